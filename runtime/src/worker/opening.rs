use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use super::answer::{Answer, Found, OpenLane, Opened, Row};
use super::ownership::Ticket;
use crate::apply::Consumer;
use crate::flow::OutOfRange;
use crate::flow::start::{self, First, Identity, Place, Refusal, StartOffset};
use crate::flow::{Epoch, LaneStart, NextOffset, Tp};
use crate::handler::{OnOutOfRange, StartAt};
use crate::inbox::Store;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::{self, Progress, TrackedPartition};
use crate::source::kafka::{Broker, Committed, Topics};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A handler as the driver knows it.
pub(super) type Handler<DB> = (Arc<dyn Consumer<DB>>, ConsumerId);

/// Finds out where partitions start: asks Kafka and the database, and lets the core's rules decide.
pub(super) struct Opening<DB: Store> {
    pub(super) topics: Topics,
    /// By topic, then by handler.
    pub(super) handlers: Vec<Vec<Handler<DB>>>,
    pub(super) pool: Pool<DB>,
    pub(super) broker: Broker,
}

/// What one look has read.
struct Read {
    cluster: Arc<str>,
    /// By topic.
    ids: Vec<Result<Uuid, String>>,
    committed: BTreeMap<Tp, Committed>,
    /// By topic and handler.
    rows: BTreeMap<(u16, usize), Vec<Progress>>,
}

impl<DB: Store> Opening<DB> {
    /// Looks until it has found something or nobody wants to know any more.
    pub(super) async fn run(&self, mut tps: Vec<Tp>, ticket: Ticket, answer: UnboundedSender<Answer>) {
        let mut pause = FIRST_PAUSE;
        while ticket.is_wanted() {
            let (found, error) = self.look(&mut tps).await;
            let opened = Opened { ticket: ticket.clone(), found, error };
            if answer.send(Answer::Opened(opened)).is_err() || tps.is_empty() {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Decides what it can. The partitions that are left in `tps` are looked at again, for the reason that
    /// is returned: one that cannot be judged holds up no other.
    async fn look(&self, tps: &mut Vec<Tp>) -> (Vec<(Tp, Found)>, Option<String>) {
        let read = match self.read(tps).await {
            Ok(read) => read,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let (mut found, mut left, mut reason) = (Vec::new(), Vec::new(), None);
        for tp in std::mem::take(tps) {
            match self.decide(tp, &read).await {
                Ok(decided) => found.push((tp, decided)),
                Err(error) => {
                    left.push(tp);
                    reason.get_or_insert(error);
                }
            }
        }
        *tps = left;
        (found, reason)
    }

    async fn read(&self, tps: &[Tp]) -> Result<Read, String> {
        let cluster = self.broker.cluster_id().await.map_err(text)?.into();
        let mut ids = Vec::new();
        for (id, topic) in self.broker.topic_ids().await.map_err(text)?.into_iter().zip(self.topics.names()) {
            ids.push(id.map_err(|code| format!("topic `{topic}`: {code}")));
        }
        let committed = self.broker.committed(tps.to_vec()).await.map_err(text)?.into_iter().collect();
        let mut rows = BTreeMap::new();
        for tp in tps {
            for (handler, (_, id)) in self.handlers[usize::from(tp.topic)].iter().enumerate() {
                if let std::collections::btree_map::Entry::Vacant(entry) = rows.entry((tp.topic, handler)) {
                    let topic = self.topics.name(*tp);
                    entry.insert(progress::read(&self.pool, *id, topic).await.map_err(text)?);
                }
            }
        }
        Ok(Read { cluster, ids, committed, rows })
    }

    async fn decide(&self, tp: Tp, read: &Read) -> Result<Found, String> {
        let handlers = &self.handlers[usize::from(tp.topic)];
        let rows_of = |handler: usize| read.rows.get(&(tp.topic, handler)).map_or(&[][..], Vec::as_slice);
        let stored = |handler| rows_of(handler).iter().find(|row| row.partition.partition == tp.partition);
        let known: Vec<_> = handlers
            .iter()
            .enumerate()
            .map(|(index, (consumer, _))| start::Progress {
                consumer: consumer.name(),
                row: stored(index).map(|row| start::Row {
                    next: NextOffset(row.next),
                    floor: NextOffset(row.floor),
                    identity: Identity {
                        cluster: row.partition.cluster.to_string(),
                        topic_id: row.partition.topic_id,
                    },
                }),
                known: !rows_of(index).is_empty(),
                first: match consumer.options().start_at {
                    StartAt::Earliest => First::Beginning,
                    StartAt::Latest => First::End,
                },
            })
            .collect();
        let topic_id = read.ids.get(usize::from(tp.topic)).cloned().unwrap_or_else(|| Ok(Uuid::nil()))?;
        let actual = Identity { cluster: read.cluster.to_string(), topic_id };
        let committed = match read.committed.get(&tp) {
            Some(Ok(committed)) => committed.map(NextOffset),
            Some(Err(error)) => return Err(error.to_string()),
            None => return Err("the group's committed offset was not told".to_owned()),
        };
        let place = Place { topic: self.topics.name(tp).to_string(), partition: tp.partition };
        let start = match start::decide(&place, committed, &actual, &known) {
            Ok(start) => start,
            Err(refusal) => return Ok(Found::Refused(refusal.to_string())),
        };
        // Offsets are written down, never "the end": a process that dies before its first record would
        // otherwise find another end.
        let mut notes: Vec<String> = start.notes.iter().map(ToString::to_string).collect();
        let (low, high) = self.broker.log_range(tp).await.map_err(text)?;
        let at = match start.offset {
            StartOffset::Beginning => low,
            StartOffset::End => high,
            StartOffset::At(next) => match OutOfRange::find(next, NextOffset(low), NextOffset(high)) {
                None => next.0,
                Some(off) if off.gone() > 0 && self.goes_on(tp) => {
                    notes.push(format!(
                        "{off}: going on at the start of the log (on_out_of_range = earliest)"
                    ));
                    low
                }
                Some(off) => return Ok(Found::Refused(self.out_of_range(tp, &off))),
            },
        };
        let mut lanes = Vec::with_capacity(handlers.len());
        for (index, (consumer, id)) in handlers.iter().enumerate() {
            let row = if let Some(row) = stored(index) {
                row.clone()
            } else {
                let partition = TrackedPartition {
                    topic: Arc::clone(self.topics.name(tp)),
                    partition: tp.partition,
                    cluster: Arc::clone(&read.cluster),
                    topic_id,
                    incarnation: 1,
                };
                let row = progress::create(&self.pool, *id, &partition, at).await.map_err(text)?;
                if row.next != at {
                    return Err("another member made the progress row meanwhile".to_owned());
                }
                row
            };
            lanes.push(OpenLane {
                row: Row { consumer: *id, partition: Arc::new(row.partition) },
                start: LaneStart {
                    acknowledged: NextOffset(row.next),
                    order: consumer.options().order,
                    attempts: consumer.options().attempts,
                    batch: consumer.options().batch_size(),
                    together: consumer.writes_together(),
                },
            });
        }
        Ok(Found::Start { at, lanes, notes })
    }

    /// Finds out which of these positions are off their logs.
    pub(super) async fn off_log(&self, positions: Vec<(Tp, Epoch, i64)>, answer: UnboundedSender<Answer>) {
        let mut off = Vec::new();
        for (tp, epoch, next) in positions {
            // One that cannot be asked now is found by its silence.
            if let Ok((low, high)) = self.broker.log_range(tp).await
                && OutOfRange::find(NextOffset(next), NextOffset(low), NextOffset(high)).is_some()
            {
                off.push((tp, epoch));
            }
        }
        let _gone = answer.send(Answer::OffLog(off));
    }

    /// Finds out which of these do not stand at the end of their logs, though nothing was delivered.
    pub(super) async fn stalled(&self, silent: Vec<(Tp, Epoch, i64)>, answer: UnboundedSender<Answer>) {
        let mut stalled = Vec::new();
        for (tp, epoch, next) in silent {
            // A broker that does not answer explains the silence.
            if self.broker.log_range(tp).await.is_ok_and(|(_, high)| high != next) {
                stalled.push((tp, epoch));
            }
        }
        if !stalled.is_empty() {
            let _gone = answer.send(Answer::Stalled(stalled));
        }
    }

    /// Whether all handlers of the partition accept a gap.
    fn goes_on(&self, tp: Tp) -> bool {
        let mut handlers = self.handlers[usize::from(tp.topic)].iter();
        handlers.all(|(consumer, _)| consumer.options().on_out_of_range == OnOutOfRange::Earliest)
    }

    fn out_of_range(&self, tp: Tp, off: &OutOfRange) -> String {
        let names = self.handlers[usize::from(tp.topic)].iter().map(|(consumer, _)| consumer.name());
        let option = match off.gone() {
            0 => "",
            _ => ", or set `on_out_of_range = earliest` on the handler",
        };
        format!(
            "offset out of range: {off}. Nothing is skipped by itself: find out what is missing, then say where to \
             go on with `handstamp progress reset {} --topic {} --partition {} --to {}`{option}",
            names.collect::<Vec<_>>().join(" "),
            self.topics.name(tp),
            tp.partition,
            off.low,
        )
    }
}

/// Why a partition whose topic has another id than its row is not read any more.
pub(super) fn recreated(consumer: &str, row: &TrackedPartition, actual: Uuid) -> String {
    let (topic, consumer) = (row.topic.to_string(), consumer.to_owned());
    Refusal::TopicRecreated { topic, consumer, stored: row.topic_id, actual }.to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
fn text(error: impl ToString) -> String {
    error.to_string()
}
