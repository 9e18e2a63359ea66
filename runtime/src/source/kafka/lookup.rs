use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientContext, Offset};
use uuid::Uuid;

use super::handover::Command;
use super::poll::{Poll, Slot, lock};
use super::{Consumer, Kafka, Topics, assignment, ffi};
use crate::flow::Tp;

/// How long any single request to the brokers may take.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// How long a topic may be unknown to the broker that is asked: one that was just made, or a broker that
/// has just started, takes a moment.
const MISSING_LIMIT: Duration = Duration::from_secs(3);
/// How long a start waits for a first broker to answer.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Requests to the brokers beside polling: commits, offsets, ids. Each has a deadline of its own and
/// runs on a thread that may block.
#[derive(Clone)]
pub(crate) struct Broker {
    slot: Slot,
    topics: Topics,
    commands: Sender<Command>,
    addresses: Arc<str>,
}

/// Why the brokers did not answer a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("the client is being made anew")]
    NoClient,
    #[error("{what}: {code}")]
    Code { what: &'static str, code: RDKafkaErrorCode },
    #[error("{what}: {text}")]
    Other { what: &'static str, text: String },
}

/// What a group has committed for one partition.
pub(crate) type Committed = Result<Option<i64>, LookupError>;

impl LookupError {
    fn of(what: &'static str, error: &KafkaError) -> Self {
        match error.rdkafka_error_code() {
            Some(code) => Self::Code { what, code },
            None => Self::Other { what, text: error.to_string() },
        }
    }

    /// Whether no broker said anything at all.
    pub(crate) fn is_silence(&self) -> bool {
        use RDKafkaErrorCode::{BrokerTransportFailure, OperationTimedOut};
        matches!(self, Self::Code { code: BrokerTransportFailure | OperationTimedOut, .. })
    }
}

impl Broker {
    /// A client of `group` for `topics`; it polls once its [`Poll`] runs.
    pub(crate) fn new(
        kafka: &Kafka,
        group: &str,
        topics: &Topics,
        inputs: tokio::sync::mpsc::Sender<super::Input>,
        drain_limit: Duration,
    ) -> (Self, Poll) {
        let (commands, receiver) = mpsc::channel();
        let slot = Slot::default();
        let poll = Poll {
            kafka: kafka.clone(),
            group: group.to_owned(),
            topics: topics.clone(),
            inputs,
            commands: receiver,
            slot: Arc::clone(&slot),
            // The callback waits a little longer than the drain, for the last commit, but never so long
            // that the group goes on without us.
            drain_limit: (drain_limit + LIMIT + Duration::from_millis(500))
                .min(kafka.max_poll_interval() / 2),
        };
        (Self { slot, topics: topics.clone(), commands, addresses: kafka.brokers().into() }, poll)
    }

    /// Tells the poll thread; one that has ended has nothing to do any more.
    pub(crate) fn command(&self, command: Command) {
        let _ended = self.commands.send(command);
    }

    /// Gives the client the addresses that it began with, in case that it has forgotten all brokers.
    pub(crate) fn introduce(&self) {
        if let Some(consumer) = &*lock(&self.slot) {
            ffi::add_brokers(consumer.client(), &self.addresses);
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Consumer, &Topics) -> Result<T, LookupError> + Send + 'static,
    ) -> Result<T, LookupError> {
        let consumer = lock(&self.slot).clone().ok_or(LookupError::NoClient)?;
        let topics = self.topics.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&consumer, &topics)).await;
        asked.unwrap_or_else(|panic| {
            Err(LookupError::Other { what: "ask the broker", text: panic.to_string() })
        })
    }

    /// Commits the offsets, if the assignment is still held: a commit after it was lost would drop
    /// or fence the member.
    pub(crate) async fn commit(&self, offsets: Vec<(Tp, i64)>) -> Result<(), LookupError> {
        const WHAT: &str = "commit offsets";
        self.ask(move |consumer, topics| {
            if consumer.assignment_lost() {
                return Err(LookupError::Code { what: WHAT, code: RDKafkaErrorCode::IllegalGeneration });
            }
            let list = assignment::list(topics, offsets.into_iter().map(|(tp, next)| (tp, Some(next))))
                .map_err(|error| LookupError::of(WHAT, &error))?;
            ffi::commit(consumer, &list, LIMIT).map_err(|code| LookupError::Code { what: WHAT, code })
        })
        .await
    }

    /// The group's committed offsets; `None` where it has none. An error is never taken for none.
    pub(crate) async fn committed(&self, tps: Vec<Tp>) -> Result<Vec<(Tp, Committed)>, LookupError> {
        const WHAT: &str = "read committed offsets";
        self.ask(move |consumer, topics| {
            let list = assignment::list(topics, tps.into_iter().map(|tp| (tp, None)))
                .map_err(|error| LookupError::of(WHAT, &error))?;
            let list =
                consumer.committed_offsets(list, LIMIT).map_err(|error| LookupError::of(WHAT, &error))?;
            let elements = list.elements();
            let known = elements
                .iter()
                .filter_map(|element| Some((topics.find(element.topic(), element.partition())?, element)));
            let committed = known.map(|(tp, element)| {
                let offset = match (element.error(), element.offset()) {
                    (Err(error), _) => Err(LookupError::of(WHAT, &error)),
                    (Ok(()), Offset::Offset(offset)) => Ok(Some(offset)),
                    (Ok(()), _) => Ok(None),
                };
                (tp, offset)
            });
            Ok(committed.collect())
        })
        .await
    }

    /// The ids of all topics, by index; nil where the broker has none.
    pub(crate) async fn topic_ids(&self) -> Result<Vec<Result<Uuid, RDKafkaErrorCode>>, LookupError> {
        self.ask(|consumer, topics| {
            let names: Vec<&str> = topics.names().collect();
            ffi::topic_ids(consumer, &names, LIMIT)
                .map_err(|code| LookupError::Code { what: "read topic ids", code })
        })
        .await
    }

    /// The cluster's id. Every supported broker has one, so none is a broker that did not answer.
    pub(crate) async fn cluster_id(&self) -> Result<String, LookupError> {
        self.ask(|consumer, _| {
            consumer.client().fetch_cluster_id(LIMIT).ok_or_else(|| LookupError::Other {
                what: "read the cluster's id",
                text: "no broker answered in time".to_owned(),
            })
        })
        .await
    }

    /// The first offset in the log and the one behind the last.
    pub(crate) async fn log_range(&self, tp: Tp) -> Result<(i64, i64), LookupError> {
        self.ask(move |consumer, topics| {
            consumer
                .fetch_watermarks(topics.name(tp), tp.partition, LIMIT)
                .map_err(|error| LookupError::of("read the log's range", &error))
        })
        .await
    }
}

/// A client whose errors come back from its calls.
pub(super) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _: rdkafka::config::RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(target: "handstamp::librdkafka", facility, "{message}");
    }

    fn error(&self, _: KafkaError, _: &str) {}
}

impl rdkafka::consumer::ConsumerContext for Quiet {}

/// Why a worker cannot start on this Kafka.
pub(crate) enum NotReady {
    /// Something must be changed first.
    Misconfigured(String),
    /// No broker answers, or not as it should.
    Unavailable(String),
}

/// Checks that brokers answer and that the topics exist; blocks. The text says what to change.
pub(crate) fn check(kafka: &Kafka, topics: &[Arc<str>]) -> Result<(), NotReady> {
    kafka.check().map_err(|error| NotReady::Misconfigured(error.to_string()))?;
    // With a group, so that properties of groups are checked, too.
    let consumer = bystander(kafka, "handstamp-check").map_err(NotReady::Misconfigured)?;
    for topic in topics {
        let deadline = Instant::now() + MISSING_LIMIT;
        while partitions(kafka, &consumer, topic).map_err(NotReady::Unavailable)?.is_none() {
            if Instant::now() >= deadline {
                return Err(NotReady::Misconfigured(missing(kafka, topic)));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    Ok(())
}

/// A client that can ask about a group and never joins it.
pub(super) fn bystander(kafka: &Kafka, group: &str) -> Result<BaseConsumer<Quiet>, String> {
    kafka
        .consumer(group)
        .create_with_context(Quiet)
        .map_err(|error| format!("librdkafka refused the configuration: {error}"))
}

/// The partitions of a topic, `None` if there is no such topic; blocks. The text says what to change.
pub(super) fn partitions(
    kafka: &Kafka,
    consumer: &BaseConsumer<Quiet>,
    topic: &str,
) -> Result<Option<Vec<i32>>, String> {
    let metadata = consumer.client().fetch_metadata(Some(topic), START_LIMIT).map_err(|error| {
        format!(
            "no broker answered at {} within {} s ({error}): check the address and that Kafka runs",
            kafka.brokers(),
            START_LIMIT.as_secs()
        )
    })?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    let code = found.and_then(rdkafka::metadata::MetadataTopic::error).map(RDKafkaErrorCode::from);
    match (found, code) {
        (Some(found), None) if !found.partitions().is_empty() => {
            Ok(Some(found.partitions().iter().map(rdkafka::metadata::MetadataPartition::id).collect()))
        }
        (_, Some(RDKafkaErrorCode::TopicAuthorizationFailed)) => {
            Err(format!("not allowed to read topic `{topic}`: grant READ and DESCRIBE on it to this client"))
        }
        (Some(_), Some(code)) if code != RDKafkaErrorCode::UnknownTopicOrPartition => {
            Err(format!("topic `{topic}` at {}: {code}; try again when Kafka is well", kafka.brokers()))
        }
        _ => Ok(None),
    }
}

pub(super) fn missing(kafka: &Kafka, topic: &str) -> String {
    format!("topic `{topic}` does not exist at {}: create it first", kafka.brokers())
}
