use super::Job;
use crate::failure::Failure;
use crate::flow::Verdict;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::{TrackedPartition, Tracking};
use crate::inbox::{Claimant, Connections, Guard, Inbox, Store};
use crate::message::Message;

/// What a run is about.
pub(super) struct Run<'a, DB: Store> {
    pub(super) connections: &'a Connections<DB>,
    pub(super) consumer: &'static str,
    pub(super) key_definition: &'a str,
    pub(super) message: &'a Message,
    pub(super) job: &'a Job,
}

impl<DB: Store> Run<'_, DB> {
    /// Where the message stands, if progress is tracked.
    pub(super) fn position(&self) -> Option<(&TrackedPartition, i64)> {
        let tracking = self.job.tracking.as_ref()?;
        Some((&tracking.partition, self.message.position()?.offset))
    }

    fn tracking(&self) -> Option<&Tracking> {
        self.job.tracking.as_ref()
    }

    /// Claims the message, or has it judged alone where it has no key.
    pub(super) async fn claim(
        &self,
        inbox: &mut Inbox<DB>,
        stored: Option<&[u8]>,
    ) -> Result<Option<(ConsumerId, Verdict)>, Failure> {
        let claimant = Claimant {
            consumer: self.consumer,
            definition: self.key_definition,
            key: stored,
            position: self.position(),
        };
        inbox.claim(&claimant, self.tracking().map_or(0, |tracking| tracking.acknowledged)).await
    }

    /// What must hold before the message is committed; a `fresh` one is dealt with by this transaction.
    pub(super) fn guard(&self, consumer: ConsumerId, fresh: bool) -> Guard<'_> {
        let ceiling = self.position().filter(|_| fresh).map_or(i64::MAX, |(_, offset)| offset);
        Guard { consumer, tracking: self.tracking(), ceiling }
    }
}
