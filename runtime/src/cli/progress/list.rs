use clap::Args;
use comfy_table::Table;
use serde_json::{Value, json};
use sqlx::Pool;

use super::seen::{Seen, look};
use crate::cli::brokers::Brokers;
use crate::cli::refused::Refused;
use crate::cli::utc::utc;
use crate::cli::{database, output};
use crate::inbox::progress::{self, Listed};
use crate::inbox::{Store, consumers};

/// Lists how far consumers have got; with --brokers, what Kafka says beside it
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only those of this consumer
    consumer: Option<String>,
    #[command(flatten)]
    brokers: Brokers,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl database::Command for List {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let mut rows = progress::list(pool).await?;
        if let Some(consumer) = &self.consumer {
            consumers::get(pool, consumer).await?;
            rows.retain(|row| row.consumer == *consumer);
        }
        let seen = match self.brokers.kafka() {
            Some(kafka) => Some(look(&kafka, &consumers::list(pool).await?, &rows)),
            None => None,
        };
        // The database's side is worth seeing without Kafka, most of all when Kafka is down.
        let (seen, error) = match seen.transpose() {
            Ok(seen) => (seen, None),
            Err(error) => (None, Some(error)),
        };
        if self.json {
            let seen = |index: usize| seen.as_ref().map(|seen| &seen[index]);
            let rows = rows.iter().enumerate();
            output::json(&rows.map(|(index, row)| document(row, seen(index))).collect::<Vec<_>>())?;
        } else {
            let empty = "no progress yet: a worker makes a row for every partition that it is given";
            output::table_or(&table(&rows, seen.as_deref()), empty)?;
        }
        error.map_or(Ok(()), |error| Err(Refused::failed(format!("Kafka's side is missing: {error}"))))
    }
}

fn table(rows: &[Listed], seen: Option<&[Seen]>) -> Table {
    let ours = ["consumer", "topic", "partition", "next", "passed", "updated"];
    let Some(seen) = seen else {
        let mut table = output::table(ours);
        table.add_rows(rows.iter().map(cells));
        return table;
    };
    let mut table = output::table(ours);
    table.set_header(ours.into_iter().chain(["committed", "log", "lag"]));
    for (row, seen) in rows.iter().zip(seen) {
        let number = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let log = match seen.log {
            None => "no such partition".to_owned(),
            Some(_) if !seen.same => "another topic or cluster".to_owned(),
            Some(log) => format!("{}..{}", log.low, log.high),
        };
        table.add_row(cells(row).into_iter().chain([number(seen.committed), log, number(seen.lag(row))]));
    }
    table
}

fn cells(row: &Listed) -> [String; 6] {
    let Listed { consumer, progress, updated_at } = row;
    [
        consumer.clone(),
        progress.partition.topic.to_string(),
        progress.partition.partition.to_string(),
        progress.next.to_string(),
        progress.passed.to_string(),
        utc(*updated_at),
    ]
}

fn document(row: &Listed, seen: Option<&Seen>) -> Value {
    let Listed { consumer, progress, updated_at } = row;
    let partition = &progress.partition;
    json!({
        "consumer": consumer,
        "topic": &*partition.topic,
        "partition": partition.partition,
        "next": progress.next,
        "passed": progress.passed,
        "floor": progress.floor,
        "incarnation": partition.incarnation,
        "cluster": &*partition.cluster,
        "topic_id": partition.topic_id,
        "updated_at": utc(*updated_at),
        "kafka": seen.map(|seen| json!({
            "committed": seen.committed,
            "log": seen.log.map(|log| json!({ "low": log.low, "high": log.high })),
            "same_topic": seen.same,
            "lag": seen.lag(row),
        })),
    })
}
