//! Where a partition starts, from what Kafka and the database say.

use std::fmt;

use uuid::Uuid;

use super::NextOffset;
use crate::laboratory::mutant;

/// Whose offsets these are. What a broker does not tell (an empty cluster id, a nil topic id) is not
/// compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's id.
    pub cluster: String,
    /// The topic's id: another one when the topic was deleted and created again.
    pub topic_id: Uuid,
}

/// A progress row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Everything below has been dealt with.
    pub next: NextOffset,
    /// Where an operator said to go on: an offset of Kafka's that is lower does not count.
    pub floor: NextOffset,
    /// Whose offsets these are.
    pub identity: Identity,
}

/// A partition by the names that people know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
}

/// What is known of one handler on this partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The consumer's name.
    pub consumer: &'a str,
    /// Its row.
    pub row: Option<Row>,
    /// Whether it has a row for another partition of the topic.
    pub known: bool,
    /// Where it starts if it has never run.
    pub first: First,
}

/// Where a consumer starts that has never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// At the start of the log.
    Beginning,
    /// Behind what is there now.
    End,
}

/// Where to start, and what somebody should know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The lowest of what the handlers need.
    pub offset: StartOffset,
    /// To be logged.
    pub notes: Vec<Note>,
}

/// A place in the log, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartOffset {
    /// The start of the log.
    Beginning,
    /// This offset.
    At(NextOffset),
    /// Behind what is there now.
    End,
}

/// Worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Kafka's offset was moved forward by hand, or the database is older than it.
    KafkaAhead {
        /// Where.
        place: Place,
        /// Whose row is lower.
        consumer: String,
        /// Kafka's offset.
        committed: NextOffset,
        /// The row's.
        stored: NextOffset,
    },
    /// Kafka's offset is lower than where an operator said to go on: it was moved back by hand, or the
    /// worker has not committed since.
    KafkaBelowFloor {
        /// Where.
        place: Place,
        /// Whose row says so.
        consumer: String,
        /// Kafka's offset.
        committed: NextOffset,
        /// Where to go on.
        floor: NextOffset,
    },
    /// A partition that was added to a topic the consumer reads.
    NewPartition {
        /// The consumer.
        consumer: String,
    },
}

/// Why a partition does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The topic is another one than the row was written for.
    #[error(
        "the topic was deleted and created again: the progress of `{consumer}` is that of topic id {stored}, \
         the topic's id is {actual}; to read the new topic from its start run \
         `handstamp progress reset {consumer} --topic {topic} --to-start`"
    )]
    TopicRecreated {
        /// The topic.
        topic: String,
        /// Whose row.
        consumer: String,
        /// The row's topic id.
        stored: Uuid,
        /// The topic's.
        actual: Uuid,
    },
    /// The cluster is another one than the row was written for.
    #[error(
        "this is another Kafka cluster: the progress of `{consumer}` is that of cluster `{stored}`, the brokers \
         belong to `{actual}`; correct the bootstrap servers, or, if the topic has moved here, run \
         `handstamp progress reset {consumer} --topic {topic} --to-start`"
    )]
    OtherCluster {
        /// The topic.
        topic: String,
        /// Whose row.
        consumer: String,
        /// The row's cluster id.
        stored: String,
        /// The brokers'.
        actual: String,
    },
    /// Kafka has an offset, the database has nothing.
    #[error(
        "the group has committed offset {committed}, but the database knows nothing of `{consumer}` on this \
         topic: it may be a wrong or restored database, or a consumer that ran without handstamp; run \
         `handstamp progress adopt {consumer} --topic {topic}` to go on at {committed}, or \
         `handstamp progress reset {consumer} --topic {topic} --to-start` to read everything again"
    )]
    UnknownProgress {
        /// The topic.
        topic: String,
        /// The consumer.
        consumer: String,
        /// Kafka's offset.
        committed: NextOffset,
    },
}

/// Decides where a partition starts: at the lower of Kafka's offset and the row, though not below where an
/// operator said to go on; the lowest of all handlers.
///
/// # Errors
/// A [`Refusal`] where every start would skip records or apply them to the wrong state; the partition
/// waits until somebody has decided.
pub fn decide(
    place: &Place,
    committed: Option<NextOffset>,
    actual: &Identity,
    handlers: &[Progress<'_>],
) -> Result<Start, Refusal> {
    // One row is enough to explain Kafka's offset: a handler that has just joined the group is new.
    let explained = handlers.iter().any(|handler| handler.row.is_some());
    let unexplained = committed.filter(|_| !explained);
    let mut offset = None;
    let mut notes = Vec::new();
    for handler in handlers {
        let wanted = match &handler.row {
            Some(row) => {
                mutant!(StartAtKafka => {
                    if let Some(committed) = committed {
                        return Ok(Start { offset: StartOffset::At(committed), notes });
                    }
                });
                check_identity(handler.consumer, place, &row.identity, actual)?;
                notes.extend(disagreement(handler.consumer, place, committed, row));
                let lower = committed.map_or(row.next, |committed| committed.min(row.next));
                StartOffset::At(lower.max(row.floor))
            }
            None if handler.known => {
                notes.push(Note::NewPartition { consumer: handler.consumer.to_owned() });
                StartOffset::Beginning
            }
            None => match (unexplained, handler.first) {
                (Some(committed), _) => {
                    return Err(Refusal::UnknownProgress {
                        topic: place.topic.clone(),
                        consumer: handler.consumer.to_owned(),
                        committed,
                    });
                }
                (None, First::Beginning) => StartOffset::Beginning,
                (None, First::End) => StartOffset::End,
            },
        };
        offset = Some(offset.map_or(wanted, |lowest: StartOffset| lowest.min(wanted)));
    }
    Ok(Start { offset: offset.unwrap_or(StartOffset::Beginning), notes })
}

fn check_identity(
    consumer: &str,
    place: &Place,
    stored: &Identity,
    actual: &Identity,
) -> Result<(), Refusal> {
    mutant!(OtherTopic => { return Ok(()); });
    let told = !stored.cluster.is_empty() && !actual.cluster.is_empty();
    if told && stored.cluster != actual.cluster {
        return Err(Refusal::OtherCluster {
            topic: place.topic.clone(),
            consumer: consumer.to_owned(),
            stored: stored.cluster.clone(),
            actual: actual.cluster.clone(),
        });
    }
    let told = !stored.topic_id.is_nil() && !actual.topic_id.is_nil();
    if told && stored.topic_id != actual.topic_id {
        return Err(Refusal::TopicRecreated {
            topic: place.topic.clone(),
            consumer: consumer.to_owned(),
            stored: stored.topic_id,
            actual: actual.topic_id,
        });
    }
    Ok(())
}

fn disagreement(consumer: &str, place: &Place, committed: Option<NextOffset>, row: &Row) -> Option<Note> {
    let (place, consumer, committed) = (place.clone(), consumer.to_owned(), committed?);
    if committed > row.next {
        Some(Note::KafkaAhead { place, consumer, committed, stored: row.next })
    } else if committed < row.floor {
        Some(Note::KafkaBelowFloor { place, consumer, committed, floor: row.floor })
    } else {
        None
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KafkaAhead { place: Place { topic, partition }, consumer, committed, stored } => write!(
                f,
                "Kafka's offset {committed} is ahead of `{consumer}`'s progress {stored} in the database: starting \
                 at {stored}; if the offset was moved forward to skip records, run `handstamp progress reset \
                 {consumer} --topic {topic} --partition {partition} --to {committed}` as well"
            ),
            Self::KafkaBelowFloor { place: Place { topic, partition }, consumer, committed, floor } => {
                write!(
                    f,
                    "Kafka's offset {committed} is below {floor}, where an operator let `{consumer}` go on: starting \
                 there; if the offset was moved back to read records again, run `handstamp progress reset \
                 {consumer} --topic {topic} --partition {partition} --to {committed}`"
                )
            }
            Self::NewPartition { consumer } => {
                write!(f, "a partition `{consumer}` has not read before: starting at the start of its log")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Uuid = Uuid::from_u128(1);
    const ELSEWHERE: Uuid = Uuid::from_u128(2);

    fn identity(cluster: &str, topic_id: Uuid) -> Identity {
        Identity { cluster: cluster.to_owned(), topic_id }
    }

    fn row(next: i64) -> Progress<'static> {
        let row = Row { next: NextOffset(next), floor: NextOffset(0), identity: identity("c", HERE) };
        Progress { consumer: "credit", row: Some(row), known: true, first: First::Beginning }
    }

    /// As `progress reset --to` leaves it.
    fn reset(next: i64) -> Progress<'static> {
        let row = Row { next: NextOffset(next), floor: NextOffset(next), identity: identity("c", HERE) };
        Progress { row: Some(row), ..self::row(next) }
    }

    fn place() -> Place {
        Place { topic: "deposits".into(), partition: 3 }
    }

    fn no_row(known: bool, first: First) -> Progress<'static> {
        Progress { consumer: "audit", row: None, known, first }
    }

    fn start(committed: Option<i64>, handlers: &[Progress<'_>]) -> Result<Start, Refusal> {
        decide(&place(), committed.map(NextOffset), &identity("c", HERE), handlers)
    }

    fn offset(committed: Option<i64>, handlers: &[Progress<'_>]) -> StartOffset {
        start(committed, handlers).unwrap().offset
    }

    fn at(next: i64) -> StartOffset {
        StartOffset::At(NextOffset(next))
    }

    #[test]
    fn offset_and_row_start_at_the_lower() {
        assert_eq!(offset(Some(40), &[row(50)]), at(40));
        assert_eq!(offset(Some(60), &[row(50)]), at(50));
    }

    #[test]
    fn offset_moved_forward_by_hand_is_noted_and_the_row_wins() {
        let start = start(Some(60), &[row(50)]).unwrap();
        assert_eq!(start.offset, at(50));
        let note = start.notes[0].to_string();
        assert!(
            note.contains("starting at 50")
                && note.contains("`handstamp progress reset credit --topic deposits --partition 3 --to 60`"),
            "{note}"
        );
    }

    #[test]
    fn reset_wins_over_a_lower_offset_and_that_is_noted() {
        let start = start(Some(40), &[reset(50)]).unwrap();
        assert_eq!(start.offset, at(50));
        let note = start.notes[0].to_string();
        assert!(note.contains("Kafka's offset 40 is below 50"), "{note}");
    }

    #[test]
    fn reset_back_wins_over_a_higher_offset() {
        assert_eq!(offset(Some(40), &[reset(0)]), at(0));
    }

    #[test]
    fn row_without_an_offset_starts_at_the_row() {
        assert_eq!(start(None, &[row(50)]).unwrap(), Start { offset: at(50), notes: vec![] });
    }

    #[test]
    fn added_partition_of_a_known_topic_starts_at_the_start_of_the_log() {
        for committed in [None, Some(7)] {
            let start = start(committed, &[no_row(true, First::End)]).unwrap();
            assert_eq!(start.offset, StartOffset::Beginning);
            assert_eq!(start.notes, [Note::NewPartition { consumer: "audit".into() }]);
        }
    }

    #[test]
    fn new_consumer_starts_where_it_says() {
        assert_eq!(offset(None, &[no_row(false, First::Beginning)]), StartOffset::Beginning);
        assert_eq!(offset(None, &[no_row(false, First::End)]), StartOffset::End);
    }

    #[test]
    fn offset_without_any_progress_is_refused_with_both_ways_out() {
        let refusal = start(Some(7), &[no_row(false, First::Beginning)]).unwrap_err();
        let text = refusal.to_string();
        assert!(text.contains("`handstamp progress adopt audit --topic deposits`"), "{text}");
        assert!(text.contains("`handstamp progress reset audit --topic deposits --to-start`"), "{text}");
    }

    #[test]
    fn handler_that_joins_a_group_with_progress_is_new() {
        assert_eq!(offset(Some(40), &[row(50), no_row(false, First::End)]), at(40));
        assert_eq!(offset(Some(40), &[row(50), no_row(false, First::Beginning)]), StartOffset::Beginning);
    }

    #[test]
    fn several_handlers_start_at_the_lowest_of_all() {
        assert_eq!(offset(Some(90), &[row(50), row(30), row(80)]), at(30));
    }

    #[test]
    fn recreated_topic_is_refused_with_both_ids() {
        let refusal = decide(&place(), None, &identity("c", ELSEWHERE), &[row(5)]).unwrap_err();
        assert!(matches!(refusal, Refusal::TopicRecreated { stored: HERE, actual: ELSEWHERE, .. }));
    }

    #[test]
    fn other_cluster_is_refused_before_its_topic_ids_are_compared() {
        let refusal = decide(&place(), None, &identity("d", ELSEWHERE), &[row(5)]).unwrap_err();
        assert!(matches!(refusal, Refusal::OtherCluster { .. }));
    }

    #[test]
    fn ids_a_broker_does_not_tell_are_not_compared() {
        assert!(decide(&place(), None, &identity("", Uuid::nil()), &[row(5)]).is_ok());
    }
}
