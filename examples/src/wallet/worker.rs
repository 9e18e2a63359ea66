//! What one worker process does until its standard input closes, which is when its parent ends it or dies.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result};
use handstamp::{Disposition, Kafka, Notice, Worker};
use tokio::sync::oneshot;

use crate::database::Pool;
use crate::handlers::{Work, postgres, sqlite};
use crate::options::WorkerOptions;
use crate::plain;
use crate::report::{Report, tell};

pub async fn run(options: WorkerOptions) -> Result<()> {
    let brokers =
        std::env::var("KAFKA_BROKERS").context("a worker is started by the demonstration, not by hand")?;
    let database =
        std::env::var("DATABASE_URL").context("a worker is started by the demonstration, not by hand")?;
    let pool = Pool::connect(&database).await?;
    let work = Work(Duration::from_millis(options.handler_sleep));
    let orphaned = orphaned();
    if options.without_inbox {
        return tokio::select! {
            outcome = plain::run(&options, &brokers, &pool, work) => outcome,
            () = orphaned => Ok(()),
        };
    }
    let mut kafka = Kafka::new(brokers);
    for (name, value) in options.properties {
        kafka = kafka.property(name, value);
    }
    match pool {
        Pool::Postgres(pool) => {
            Worker::builder(pool)
                .state(work)
                .kafka(kafka)
                .group(options.group)
                .observe(watch)
                .with_graceful_shutdown(orphaned)
                .consume::<postgres::credit>(options.topic)
                .run()
                .await?;
        }
        Pool::Sqlite(pool) => {
            Worker::builder(pool)
                .state(work)
                .kafka(kafka)
                .group(options.group)
                .observe(watch)
                .with_graceful_shutdown(orphaned)
                .consume::<sqlite::credit>(options.topic)
                .run()
                .await?;
        }
    }
    Ok(())
}

fn watch(notice: &Notice) {
    if let Notice::Done { disposition, .. } = notice {
        tell(match disposition {
            Disposition::Applied => Report::Applied,
            Disposition::Parked => Report::Parked,
            _ => Report::Skipped,
        });
    }
}

/// Resolves when standard input is closed.
async fn orphaned() {
    let (closed, seen) = oneshot::channel::<()>();
    // A thread of its own: a blocking read on the runtime's pool would hold up the end of the process.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(closed);
    });
    let _ = seen.await;
}
