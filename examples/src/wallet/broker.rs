//! The broker a run works on: librdkafka's mock in this process, or a Kafka that is there already.

use std::time::Duration;

use anyhow::{Context, Result};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::util::get_rdkafka_version;

use crate::options::{Plan, Services};

/// The mock speaks the real protocol, on loopback, to any process. It keeps 5 MiB a partition and trims
/// what is older without a word.
pub enum Broker {
    Mock(MockCluster<'static, DefaultProducerContext>),
    Kafka(String),
}

/// Records that fit in 5 MiB, at 256 bytes each; ours are about 100.
const RECORDS_A_PARTITION: u32 = 20_480;

/// How many records the mock surely keeps.
pub fn mock_capacity(partitions: i32, accounts: u32) -> u32 {
    let partitions = partitions.unsigned_abs();
    // Records go by account: few accounts may all meet in one partition, many spread to within a factor of two.
    let full = if accounts < 10 * partitions { 1 } else { partitions.div_ceil(2) };
    full * RECORDS_A_PARTITION
}

impl Broker {
    pub fn start(services: Option<&Services>) -> Result<Self> {
        Ok(match services {
            Some(services) => Self::Kafka(services.brokers.clone()),
            None => Self::Mock(MockCluster::new(1).context("cannot start the embedded broker")?),
        })
    }

    /// `host:port`, for every process.
    pub fn servers(&self) -> String {
        match self {
            Self::Mock(cluster) => cluster.bootstrap_servers(),
            Self::Kafka(servers) => servers.clone(),
        }
    }

    /// What it is, for people.
    pub fn name(&self) -> String {
        match self {
            Self::Mock(_) => format!("librdkafka {} mock broker", get_rdkafka_version().1),
            Self::Kafka(servers) => format!("Apache Kafka at {servers}"),
        }
    }

    pub async fn create_topic(&self, plan: &Plan) -> Result<()> {
        let topic = plan.run.as_str();
        match self {
            Self::Mock(cluster) => {
                cluster.create_topic(topic, plan.partitions, 1).context("the embedded broker made no topic")
            }
            Self::Kafka(_) => {
                let topic = NewTopic::new(topic, plan.partitions, TopicReplication::Fixed(-1));
                let created = self.admin()?.create_topics([&topic], &limited()).await;
                let created = created.with_context(|| self.unreachable())?;
                for outcome in created {
                    outcome.map_err(|(topic, code)| {
                        anyhow::anyhow!("Kafka refused to create the topic `{topic}`: {code}; may this client create topics?")
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Removes the topic from a Kafka that others use.
    pub async fn remove_topic(&self, plan: &Plan) -> Result<()> {
        if let Self::Kafka(_) = self {
            let admin = self.admin()?;
            admin.delete_topics(&[&plan.run], &limited()).await?;
        }
        Ok(())
    }

    /// The properties of the consumer of one worker.
    pub fn membership(&self, plan: &Plan, worker: usize) -> Vec<(&'static str, String)> {
        match self {
            // The mock knows no static members: a dead one holds its partitions for its session. Nor does
            // it ever answer a member that waits for the group longer than its session.
            Self::Mock(_) => vec![
                ("session.timeout.ms", SESSION.as_millis().to_string()),
                ("heartbeat.interval.ms", "200".to_owned()),
            ],
            // A worker that comes back under its own id goes on at once.
            Self::Kafka(_) => vec![
                ("session.timeout.ms", "6000".to_owned()),
                ("heartbeat.interval.ms", "1000".to_owned()),
                ("group.instance.id", format!("{}-{worker}", plan.run)),
            ],
        }
    }

    /// Waits for the moment at which workers may join.
    ///
    /// The mock holds the first member of a group for three seconds and drops members that wait longer
    /// than their session meanwhile. So a first member with a session too short to stay opens the group,
    /// and the workers, whose sessions are short as well, come late in those three seconds.
    pub async fn open_group(&self, plan: &Plan) -> Result<()> {
        let Self::Mock(cluster) = self else { return Ok(()) };
        let seat: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", cluster.bootstrap_servers())
            .set("group.id", &plan.run)
            .set("session.timeout.ms", "1000")
            .set("heartbeat.interval.ms", "200")
            .create()?;
        seat.subscribe(&[&plan.run])?;
        tokio::time::sleep(OPENING).await;
        // Closing waits for an answer that never comes.
        std::thread::spawn(move || drop(seat));
        Ok(())
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.servers());
        config.create().with_context(|| self.unreachable())
    }

    fn unreachable(&self) -> String {
        format!("no answer from Kafka at {}: is KAFKA_BROKERS right, and the broker up?", self.servers())
    }
}

fn limited() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(Duration::from_secs(10)))
}

/// Long enough to wait out a rebalance of the mock (a second less), short enough for a quick takeover.
const SESSION: Duration = Duration::from_millis(2_200);
/// Leaves a worker more than a second to start and to join, and less than its session to wait.
const OPENING: Duration = Duration::from_millis(1_200);
