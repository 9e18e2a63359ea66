use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup};
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F13",
    what: "the broker killed and started, and frozen",
    asks: &[Ask::new(Fault::BrokerRestarts, 10, 100), Ask::new(Fault::BrokerFreezes, 3, 30)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

const SESSION: u64 = 1_500;

/// Two members that the group knows again and one that it does not. The latter is replaced while the broker is frozen:
/// who joins then may hear of no brokers, and has to hear of them later.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default()).await?;
    let posts = [Post::fixed("0"), Post::fixed("1"), Post::dynamic("2")];
    let mut members: Vec<_> = posts.iter().map(|post| stage.enlist(post)).collect();
    let mut random = trial.random(0);
    let kafka = &trial.arena.kafka;
    loop {
        let faults = [Fault::BrokerRestarts, Fault::BrokerFreezes].into_iter();
        let wanted: Vec<_> = faults.filter(|fault| trial.wants(*fault)).collect();
        if wanted.is_empty() {
            break;
        }
        let fault = random.pick(&wanted);
        ensure!(stage.journal.until_applied(20).await, "nothing is applied any more");
        trial.injected(fault);
        let silent = if fault == Fault::BrokerRestarts {
            kafka.kill().await;
            let silent = !answers(kafka.brokers()).await;
            // Now and then longer than a session.
            sleep(Duration::from_millis(if random.chance(200) { SESSION * 2 } else { 0 })).await;
            kafka.start().await;
            silent
        } else {
            kafka.pause().await;
            let silent = !answers(kafka.brokers()).await;
            members.pop().expect("the last one is known to nobody").kill().await?;
            members.push(stage.enlist(&posts[2]));
            sleep(Duration::from_millis(random.between(SESSION, SESSION * 3))).await;
            kafka.resume().await;
            members[2].until_done(1).await?;
            silent
        };
        if silent && stage.journal.until_applied(1).await {
            trial.observed(fault);
        }
    }
    trial.close(stage, members).await
}

/// Whether the broker answers somebody who is new to it.
pub async fn answers(brokers: &str) -> bool {
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", brokers).create().expect("a consumer can be made");
    let asked = move || consumer.fetch_metadata(None, Duration::from_millis(500)).is_ok();
    spawn_blocking(asked).await.expect("no panic")
}
