use clap::Args;

use super::refused::Refused;
use crate::source::kafka::Kafka;

/// How to reach Kafka.
#[derive(Debug, Args)]
pub(super) struct Brokers {
    /// Kafka: host:port of one or more brokers, separated by commas
    #[arg(long, env = "KAFKA_BROKERS", value_name = "BROKERS")]
    brokers: Option<String>,
    /// A property of librdkafka, such as client.id=ops; can be repeated
    #[arg(short = 'X', long, value_name = "NAME=VALUE", value_parser = property)]
    property: Vec<(String, String)>,
}

impl Brokers {
    /// `None` if nobody said where it is.
    pub(super) fn kafka(self) -> Option<Kafka> {
        let brokers = self.brokers.filter(|brokers| !brokers.trim().is_empty())?;
        let kafka = Kafka::new(brokers);
        Some(self.property.into_iter().fold(kafka, |kafka, (name, value)| kafka.property(name, value)))
    }

    /// Where a command cannot do without.
    pub(super) fn required(self) -> Result<Kafka, Refused> {
        self.kafka().ok_or_else(|| {
            Refused::usage(
                "which Kafka? Set KAFKA_BROKERS or give --brokers (host:port, separated by commas)",
            )
        })
    }
}

fn property(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
