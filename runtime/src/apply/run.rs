use super::Job;
use super::read::Reading;
use crate::flow::{NextOffset, Offset, Place};
use crate::handler::Handler;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::{TrackedPartition, Tracking};
use crate::inbox::{Claimant, Claimed, Connections, Guard, Store};
use crate::message::{Arguments, Message};

/// What a run is about, whatever its messages are.
pub(super) struct Run<'a, DB: Store> {
    pub(super) connections: &'a Connections<DB>,
    pub(super) consumer: &'static str,
    pub(super) key_definition: &'a str,
    pub(super) job: &'a Job,
}

impl<'a, DB: Store> Run<'a, DB> {
    /// Where a message stands, if progress is tracked.
    pub(super) fn position(&self, message: &Message) -> Option<(&'a TrackedPartition, i64)> {
        Some((&self.tracking()?.partition, message.position()?.offset))
    }

    /// The same for the core.
    pub(super) fn place(&self, message: &Message) -> Option<Place> {
        let (_, offset) = self.position(message)?;
        Some(Place { offset: Offset(offset), acknowledged: self.acknowledged() })
    }

    /// What the row's `next` is at least, unless the database went back in time.
    pub(super) fn acknowledged(&self) -> NextOffset {
        NextOffset(self.tracking().map_or(0, |tracking| tracking.acknowledged))
    }

    fn tracking(&self) -> Option<&'a Tracking> {
        self.job.tracking.as_ref()
    }

    pub(super) fn claimed<'r, H: Handler<Arguments: Arguments>>(
        &self,
        reading: &'r Reading<'_, H>,
    ) -> Claimed<'r> {
        let offset = self.position(reading.message).map(|(_, offset)| offset);
        Claimed { key: reading.stored.as_deref(), offset }
    }

    pub(super) fn claimant<'c>(&'c self, messages: &'c [Claimed<'c>]) -> Claimant<'c> {
        Claimant {
            consumer: self.consumer,
            definition: self.key_definition,
            partition: self.tracking().map(|tracking| &*tracking.partition),
            relied: self.tracking().map(|tracking| &tracking.ahead.relied),
            messages,
        }
    }

    /// What must hold before the messages are committed; `fresh` is the lowest offset that this transaction
    /// deals with, and these are those that it applies.
    pub(super) fn guard<'g>(
        &'g self,
        consumer: ConsumerId,
        fresh: Option<Offset>,
        applied: &'g [i64],
    ) -> Guard<'g> {
        let ceiling = fresh.map_or(i64::MAX, |offset| offset.0);
        Guard { consumer, tracking: self.tracking(), ceiling, applied }
    }
}
