use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Driver;
use crate::flow::{Event, NextOffset, Offset, OrderKey, Tp};
use crate::inbox::Store;
use crate::source::kafka::{Fetched, Input, Trouble};
use crate::worker::notice::Notice;

/// How long partitions rest that librdkafka did not take into the assignment.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// About what a record takes besides its own bytes, in the maps of the core and between allocations.
const BOOKKEEPING: usize = 300;

/// What the poll thread tells.
impl<DB: Store> Driver<DB> {
    pub(super) fn take(&mut self, input: Input) {
        match input {
            Input::Records(records) => {
                self.log.broker_answers();
                let now = Instant::now();
                for record in records {
                    self.pulse.at(record.tp, record.epoch, record.offset + 1, now);
                    let event = Event::Record {
                        tp: record.tp,
                        epoch: record.epoch,
                        offset: Offset(record.offset),
                        key: self.order_key(&record),
                        bytes: record.message.size() + BOOKKEEPING,
                        handle: record.message,
                    };
                    self.step(event);
                    self.perform();
                }
            }
            Input::Positions(positions) => {
                let now = Instant::now();
                for (tp, epoch, position) in positions {
                    self.pulse.at(tp, epoch, position, now);
                    self.step(Event::Position { tp, epoch, position: NextOffset(position) });
                }
            }
            Input::Owned(tps) => {
                self.heard_of_group = true;
                self.log.owned(tps.len());
                if !tps.is_empty() && !self.stopping {
                    // Nothing of an earlier assignment may go on.
                    self.step(Event::Lost { tps: tps.clone() });
                    self.open(&tps);
                }
            }
            Input::Revoking { tps, released } => {
                let open: BTreeSet<Tp> = tps.iter().copied().filter(|tp| self.forget(*tp)).collect();
                self.owned.revoking(open.clone(), released, Instant::now() + self.drain_limit);
                self.step(Event::Revoke { tps: open.into_iter().collect() });
            }
            Input::Lost(tps) => {
                for tp in &tps {
                    self.forget(*tp);
                }
                self.owned.released(&tps);
                self.step(Event::Lost { tps });
            }
            Input::OffLog(positions) => {
                let (opening, answer) = (Arc::clone(&self.opening), self.answer.clone());
                tokio::spawn(async move { opening.off_log(positions, answer).await });
            }
            Input::NotAssigned(tps) => {
                let ours: Vec<Tp> = tps.into_iter().filter(|tp| self.owned.contains(*tp)).collect();
                self.step(Event::Lost { tps: ours.clone() });
                self.open_after(REFUSED_PAUSE, &ours);
            }
            Input::Trouble(trouble) => {
                if let Trouble::Rebuilt { error } = &trouble {
                    let (group, error) = (Arc::clone(&self.group), error.clone());
                    self.observers.tell(&Notice::Rebuilt { group, error });
                }
                self.log.trouble(&trouble);
            }
            Input::Closed => self.poll_thread_ended(),
        }
    }

    /// What a record's message key comes to, where any handler of its topic goes by that.
    fn order_key(&self, record: &Fetched) -> Option<OrderKey> {
        let by_key = self.by_key.get(usize::from(record.tp.topic)) == Some(&true);
        record.message.key().filter(|_| by_key).map(order_key)
    }

    /// The partition is not ours any more; whether it was read.
    pub(super) fn forget(&mut self, tp: Tp) -> bool {
        let open = self.owned.remove(tp);
        self.pulse.closed(tp);
        if open {
            let (group, topic) = (Arc::clone(&self.group), Arc::clone(self.topics.name(tp)));
            self.observers.tell(&Notice::Ended { group, topic, partition: tp.partition });
        }
        open
    }
}

/// The same for the life of a process, which is as long as anybody asks.
fn order_key(message_key: &[u8]) -> OrderKey {
    let mut hasher = DefaultHasher::new();
    message_key.hash(&mut hasher);
    OrderKey(hasher.finish())
}
