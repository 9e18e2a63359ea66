use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::ClientConfig;

/// How to reach Kafka: brokers and any librdkafka property.
///
/// ```no_run
/// # use handstamp::Kafka;
/// # fn main() -> Result<(), handstamp::KafkaConfigError> {
/// let kafka = Kafka::from_env()?                       // KAFKA_BROKERS
///     .group_instance_id("wallet-0")                   // static membership: restarts cost no rebalance
///     .property("client.rack", "eu-1a");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Kafka {
    properties: BTreeMap<String, String>,
}

/// A Kafka configuration that cannot work, or that would break the guarantee.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaConfigError {
    /// The environment does not say where Kafka is.
    #[error("KAFKA_BROKERS is not set: give host:port of one or more brokers, separated by commas")]
    NoBrokers,
    /// A property that the runtime must control.
    #[error("`{property}` cannot be set: {instead}")]
    Reserved {
        /// The property.
        property: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// librdkafka refused the configuration.
    #[error("librdkafka refused the configuration: {0}")]
    Refused(String),
}

/// What librdkafka takes `max.poll.interval.ms` to be when nothing is said.
const MAX_POLL_INTERVAL: Duration = Duration::from_mins(5);
const SESSION_TIMEOUT: Duration = Duration::from_secs(45);

/// Properties that would break the order "database, then offset", each with what to do instead.
const RESERVED: [(&str, &str); 5] = [
    (
        "enable.auto.commit",
        "offsets are committed by the runtime, after the database; an automatic commit loses messages",
    ),
    (
        "enable.auto.offset.store",
        "offsets are committed by the runtime, after the database; a stored offset would run ahead of it",
    ),
    ("auto.offset.reset", "say `start_at = earliest` or `start_at = latest` on the handler"),
    ("group.id", "the group is the consumer's name, or what `.group(\"…\")` says"),
    (
        "test.mock.num.brokers",
        "start a mock broker by itself (`rdkafka::mocking::MockCluster`) and give its address",
    ),
];

impl Kafka {
    /// Brokers as `host:port`, separated by commas.
    #[must_use]
    pub fn new(brokers: impl Into<String>) -> Self {
        let properties = BTreeMap::from([
            ("bootstrap.servers".to_owned(), brokers.into()),
            // The default of 10 s adds up to 8 s to an outage of the broker.
            ("reconnect.backoff.max.ms".to_owned(), "1000".to_owned()),
        ]);
        Self { properties }
    }

    /// Brokers from the environment variable `KAFKA_BROKERS`.
    ///
    /// # Errors
    /// If it is unset or empty.
    pub fn from_env() -> Result<Self, KafkaConfigError> {
        match std::env::var("KAFKA_BROKERS") {
            Ok(brokers) if !brokers.trim().is_empty() => Ok(Self::new(brokers)),
            _ => Err(KafkaConfigError::NoBrokers),
        }
    }

    /// Sets any librdkafka property. Those that would break the guarantee are refused when the worker
    /// starts, by name.
    ///
    /// TLS and SASL are not built in: name `rdkafka` in your own `Cargo.toml`, of the same version and with
    /// its feature `ssl` or `sasl`, and librdkafka is built with them.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// Makes the process a static member of its group: when it crashes and comes back under the same
    /// id within the session timeout, it goes on at once and nobody is rebalanced. Two processes of a
    /// group must never share an id.
    #[must_use]
    pub fn group_instance_id(self, id: impl Into<String>) -> Self {
        self.property("group.instance.id", id)
    }

    /// The brokers.
    pub(crate) fn brokers(&self) -> &str {
        self.get("bootstrap.servers").unwrap_or_default()
    }

    pub(crate) fn get(&self, property: &str) -> Option<&str> {
        self.properties.get(property).map(String::as_str)
    }

    pub(crate) fn max_poll_interval(&self) -> Duration {
        self.milliseconds("max.poll.interval.ms").unwrap_or(MAX_POLL_INTERVAL)
    }

    pub(crate) fn session_timeout(&self) -> Duration {
        self.milliseconds("session.timeout.ms").unwrap_or(SESSION_TIMEOUT)
    }

    fn milliseconds(&self, property: &str) -> Option<Duration> {
        self.get(property).and_then(|value| value.parse().ok()).map(Duration::from_millis)
    }

    /// Refuses what would break the guarantee.
    pub(crate) fn check(&self) -> Result<(), KafkaConfigError> {
        for (property, instead) in RESERVED {
            let off = property.starts_with("enable.auto") && self.get(property) == Some("false");
            if self.properties.contains_key(property) && !off {
                return Err(KafkaConfigError::Reserved { property: property.to_owned(), instead });
            }
        }
        Ok(())
    }

    /// The configuration of a consumer of `group`.
    pub(crate) fn consumer(&self, group: &str) -> ClientConfig {
        let mut config = self.client();
        config
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            // Where to start is decided here and put into the assignment; anything else is an error
            // that we act on, never a silent jump.
            .set("auto.offset.reset", "error");
        for (property, value) in [
            // For all partitions whose records come together, and for each that keeps them back; an answer may add what
            // it holds of each. The defaults (64 MiB, 100,000, 1 MiB) are more than lanes can use.
            ("queued.max.messages.kbytes", "2048"),
            ("queued.min.messages", "4000"),
            ("fetch.message.max.bytes", "524288"),
            // The default of one second stalls a queue that was full for a moment.
            ("fetch.queue.backoff.ms", "20"),
            // A partition that fetches again waits for the answer to a request that was sent without it: half a second
            // by default, if the others have nothing to read.
            ("fetch.wait.max.ms", "100"),
            // A client that waits for metadata to join its group is not told that the broker it had asked was
            // replaced (librdkafka 2.12.1): it waits for this refresh, by default five minutes.
            ("topic.metadata.refresh.interval.ms", "10000"),
        ] {
            if self.get(property).is_none() {
                config.set(property, value);
            }
        }
        config
    }

    /// The configuration of a producer that neither loses nor reorders.
    pub(crate) fn producer(&self) -> ClientConfig {
        let mut config = self.client();
        for consumer_only in ["group.instance.id", "session.timeout.ms", "max.poll.interval.ms"] {
            config.remove(consumer_only);
        }
        config.set("enable.idempotence", "true").set("acks", "all");
        config
    }

    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (property, value) in &self.properties {
            config.set(property, value);
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_before_effects_cannot_be_configured() {
        for (property, value) in [
            ("enable.auto.commit", "true"),
            ("enable.auto.offset.store", "true"),
            ("auto.offset.reset", "latest"),
        ] {
            let error = Kafka::new("localhost:9092").property(property, value).check().expect_err(property);
            assert!(error.to_string().contains(property), "{error}");
        }
        assert_eq!(Kafka::new("localhost:9092").property("enable.auto.commit", "false").check(), Ok(()));
    }

    #[test]
    fn the_runtime_keeps_its_own_settings_over_the_users() {
        let kafka = Kafka::new("localhost:9092").property("queued.min.messages", "7");
        let config = kafka.consumer("group");
        assert_eq!(config.get("enable.auto.commit"), Some("false"));
        assert_eq!(config.get("auto.offset.reset"), Some("error"));
        assert_eq!(config.get("queued.min.messages"), Some("7"));
    }
}
