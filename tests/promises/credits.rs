//! A worker to be killed, frozen and told to stop.

mod credit;

use std::thread;

use clap::Parser;
use handstamp::{Kafka, Notice, Worker};
use sqlx::PgPool;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    database: String,
    #[arg(long)]
    brokers: String,
    #[arg(long)]
    topic: String,
    #[arg(long)]
    group: String,
    /// Once the record at this offset is committed in the database, does nothing more: its offset is not
    /// committed to Kafka.
    #[arg(long)]
    hang_after: Option<i64>,
    /// Keeps the order of message keys alone.
    #[arg(long)]
    by_key: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt().with_ansi(false).init();
    let hang_after = arguments.hang_after;
    let kafka = Kafka::new(arguments.brokers)
        .property("session.timeout.ms", "1500")
        .property("heartbeat.interval.ms", "200");
    let pool = PgPool::connect(&arguments.database).await?;
    let worker = Worker::builder(pool).kafka(kafka).group(arguments.group);
    let worker = if arguments.by_key {
        worker.consume::<credit::credit_by_key>(arguments.topic)
    } else {
        worker.consume::<credit::credit>(arguments.topic)
    };
    worker
        .observe(move |notice| {
            if let Notice::Done { position, disposition, .. } = notice {
                println!("done {} {disposition:?}", position.offset);
                while hang_after == Some(position.offset) {
                    thread::park();
                }
            }
        })
        .run()
        .await?;
    Ok(())
}
