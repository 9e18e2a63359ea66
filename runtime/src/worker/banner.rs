//! The few lines at start that say what matters.

use std::time::Duration;

use crate::flow::Order;
use crate::handler::{OnTombstone, Options, StartAt};
use crate::inbox::Tables;
use crate::inbox::consumers::Registration;

/// The lines for one consumer.
pub(super) fn lines(
    consumer: &Registration<'_>,
    options: &Options,
    tables: &Tables,
    copies: bool,
) -> Vec<String> {
    let Registration { name, handler, topics, key_definition, .. } = consumer;
    let group = consumer.group.unwrap_or(name);
    let start = match options.start_at {
        StartAt::Earliest => "the start of the log",
        StartAt::Latest => "the end of the log",
    };
    let tombstones = match options.on_tombstone {
        OnTombstone::Skip => "skipped",
        OnTombstone::Park => "parked",
    };
    let order = match options.order {
        Order::Partition => "by partition",
        Order::Key => "by message key, no other",
        Order::None => "none",
    };
    let batch = match options.batch_size() {
        1 => "one message".to_owned(),
        most => format!("up to {most} messages of a backlog"),
    };
    let copies = if copies { " and copied to <topic>.dlq" } else { "" };
    vec![
        format!(
            "consumer {name}: {} → {handler}, group {group}, new consumers start at {start}",
            topics.join(", ")
        ),
        format!("  key: {key_definition}, remembered in {} for ever (nothing is swept)", tables.inbox),
        format!("  order: {order}; {batch} to a transaction, offsets committed after it, every 100 ms"),
        format!(
            "  on error: the database's fault is retried for ever, the message's {} times in {}, each try at most {}; \
             then parked in {}{copies}; tombstones the handler cannot take are {tombstones}",
            options.attempts,
            "place with back-off",
            human(options.timeout),
            tables.dead_letters,
        ),
    ]
}

/// A span as people write it.
pub(super) fn human(span: Duration) -> String {
    let milliseconds = span.as_millis();
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ if !milliseconds.is_multiple_of(1000) => format!("{:.1} s", span.as_secs_f64()),
        _ if milliseconds.is_multiple_of(60_000) && milliseconds > 60_000 => {
            format!("{} min", milliseconds / 60_000)
        }
        _ => format!("{} s", milliseconds / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_says_what_matters_in_few_lines() {
        let registration = Registration {
            name: "wallet-credits",
            key_definition: "header(\"event_id\")",
            handler: "wallet::credit",
            group: None,
            topics: &["wallet.deposits"],
        };
        let tables = Tables { inbox: "handstamp.inbox", dead_letters: "handstamp.dead_letters" };
        let lines = lines(&registration, &Options::new(), &tables, true);
        let text = lines.join("\n");
        for fact in [
            "wallet-credits",
            "wallet.deposits",
            "header(\"event_id\")",
            "handstamp.inbox",
            "by partition",
            "up to 500 messages",
            "5 times",
            "30 s",
            "handstamp.dead_letters",
            "<topic>.dlq",
            "every 100 ms",
        ] {
            assert!(text.contains(fact), "{fact} is missing in:\n{text}");
        }
        assert!(lines.len() <= 5);
    }

    #[test]
    fn spans_read_as_people_write_them() {
        let spans =
            [(250, "250 ms"), (1500, "1.5 s"), (30_000, "30 s"), (60_000, "60 s"), (300_000, "5 min")];
        for (milliseconds, text) in spans {
            assert_eq!(human(Duration::from_millis(milliseconds)), text);
        }
    }
}
