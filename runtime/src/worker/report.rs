//! What the person on call reads.

mod limiter;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) use limiter::Limiter;
use tracing::{debug, error, info, warn};

use super::banner::human;
use crate::apply::Disposition;
use crate::failure::{Failure, FailureKind};
use crate::flow::ReassignReason;
use crate::message::Position;
use crate::source::kafka::{LookupError, Trouble};

/// One client's log: the first of a kind is told with its cause, repeats are counted.
#[derive(Debug)]
pub(super) struct Log {
    group: Arc<str>,
    limiter: Limiter,
}

impl Log {
    pub(super) fn new(group: Arc<str>) -> Self {
        Self { group, limiter: Limiter::default() }
    }

    fn speak(&mut self, kind: &str) -> Option<u64> {
        self.limiter.speak(kind, Instant::now())
    }

    pub(super) fn waiting_for_group(&self, session: Duration) {
        info!(
            group = &*self.group,
            "no partitions yet: if a process of this group died without leaving, its session has to end first \
             ({} by session.timeout.ms); a static member (group_instance_id) comes back at once",
            human(session)
        );
    }

    pub(super) fn owned(&mut self, partitions: usize) {
        if partitions == 0 {
            info!(group = &*self.group, "the group has more members than partitions: standing by");
        }
    }

    pub(super) fn started(&mut self, position: &Position, notes: &[String]) {
        for note in notes {
            warn!(group = &*self.group, partition = %format_args!("{}[{}]", position.topic, position.partition), "{note}");
        }
        info!(
            group = &*self.group,
            "reading {}[{}] from offset {}", position.topic, position.partition, position.offset
        );
    }

    pub(super) fn opening_failed(&mut self, cause: &str) {
        if let Some(repeats) = self.speak("opening") {
            warn!(group = &*self.group, repeats, "cannot look up where to start, trying again: {cause}");
        }
    }

    pub(super) fn refused(&self, topic: &str, partition: i32, reason: &str) {
        error!(group = &*self.group, "{topic}[{partition}] is not read: {reason}");
    }

    pub(super) fn reassigned(&self, topic: &str, partition: i32, reason: ReassignReason) {
        let reason = match reason {
            ReassignReason::WentBack => {
                "the database went back in time (restored or failed over to an older state): reading again from \
                 what it remembers"
            }
            ReassignReason::Superseded => {
                "its progress was changed by an operator: looking up its start again"
            }
        };
        warn!(group = &*self.group, "{topic}[{partition}]: {reason}");
    }

    pub(super) fn stalled(&mut self, partitions: usize) {
        if let Some(repeats) = self.speak("stalled") {
            warn!(
                group = &*self.group,
                partitions,
                repeats,
                "partitions have records that the client does not fetch: assigning them again"
            );
        }
    }

    pub(super) fn batch_failed(
        &self,
        consumer: &str,
        position: &Position,
        messages: usize,
        failure: &Failure,
    ) {
        debug!(
            group = &*self.group, consumer, %position, messages,
            "nothing of this batch is kept, the message at fault is looked for in smaller ones: {failure}"
        );
    }

    pub(super) fn done(&mut self, consumer: &str, position: &Position, disposition: Disposition) {
        if self.limiter.over(consumer) {
            info!(group = &*self.group, consumer, "the database answers again");
        }
        match disposition {
            Disposition::Parked => {
                if let Some(repeats) = self.speak(&format!("{consumer} parked")) {
                    warn!(
                        group = &*self.group, consumer, %position, repeats,
                        "a message was parked: see `handstamp dlq list {consumer}`"
                    );
                }
            }
            Disposition::LateDuplicate => {
                if let Some(repeats) = self.speak(&format!("{consumer} late")) {
                    warn!(
                        group = &*self.group, consumer, %position, repeats,
                        "a message that was dealt with before is not in the inbox any more (were rows deleted, or \
                         restored?): skipped as a late duplicate"
                    );
                }
            }
            _ => {}
        }
    }

    pub(super) fn failed(&mut self, consumer: &str, position: &Position, attempt: u32, failure: &Failure) {
        let kind = match failure.kind() {
            // Called off, or run again at once: nobody has to do anything.
            FailureKind::Cancelled | FailureKind::Unknown => return,
            // One word for all of a consumer's partitions: an outage is one line.
            FailureKind::Environment => consumer.to_owned(),
            kind => format!("{consumer} {kind:?}"),
        };
        let Some(repeats) = self.speak(&kind) else { return };
        let group = &*self.group;
        match failure.kind() {
            FailureKind::Environment => {
                warn!(group, consumer, %position, repeats, "waiting, and trying again: {failure}");
            }
            FailureKind::TransactionEnded | FailureKind::Configuration => {
                error!(group, consumer, %position, "stopping: {failure}");
            }
            _ => warn!(group, consumer, %position, attempt, repeats, "a message failed: {failure}"),
        }
    }

    pub(super) fn stopped(&self, position: &Position) {
        error!(group = &*self.group, %position, "nothing is read any more: finishing what runs");
    }

    pub(super) fn committed(&mut self, error: Option<&LookupError>) {
        match error {
            Some(cause) => {
                if let Some(repeats) = self.speak("commit") {
                    warn!(
                        group = &*self.group,
                        repeats,
                        "offsets were not committed, the next commit replaces it (nothing is lost, the inbox \
                         knows what was applied): {cause}"
                    );
                }
            }
            None => {
                if self.limiter.over("commit") {
                    info!(group = &*self.group, "offsets are committed again");
                }
            }
        }
    }

    pub(super) fn broker_answers(&mut self) {
        if self.limiter.over("broker") {
            info!(group = &*self.group, "the brokers answer again");
        }
    }

    pub(super) fn trouble(&mut self, trouble: &Trouble) {
        let (kind, text) = match trouble {
            Trouble::Broker { code } => ("broker", format!("Kafka is in trouble, the client keeps trying; if it lasts, check the brokers and their addresses: {code}")),
            Trouble::Evicted => (
                "evicted",
                "this process was too late and the group went on without it (max.poll.interval.ms); it joins \
                 again, and what it was doing is skipped by whoever comes second"
                    .to_owned(),
            ),
            Trouble::NotAllowed { code } => {
                ("not allowed", format!("Kafka refuses this client, grant what it needs: {code}"))
            }
            Trouble::Settings { code } => (
                "settings",
                format!(
                    "the group refuses this client's settings ({code}): compare session.timeout.ms with the \
                     broker's limits and partition.assignment.strategy with the other members'"
                ),
            ),
            Trouble::Rebalance { what, error } => ("rebalance", format!("{what} was refused, trying again: {error}")),
            Trouble::Rebuilt { error } => ("rebuilt", format!("the Kafka client is beyond repair and is made anew: {error}")),
        };
        if let Some(repeats) = self.speak(kind) {
            warn!(group = &*self.group, repeats, "{text}");
        }
    }

    pub(super) fn not_closed(&self) {
        warn!(
            group = &*self.group,
            "the Kafka client did not leave its group in time; the group goes on after its session timeout"
        );
    }
}
