use std::pin::pin;

use super::follow::Follower;
use super::park::Parting;
use super::{DatabaseOf, Disposition, Job, Registered, Task};
use crate::failure::Failure;
use crate::flow::{self, Content, Course, Verdict};
use crate::handler::{Handler, OnTombstone};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::Reason;
use crate::inbox::progress::{TrackedPartition, Tracking};
use crate::inbox::{Claimant, Connections, Guard, Inbox, Store};
use crate::message::{Arguments, Message};

/// What a run is about.
pub(super) struct Run<'a, DB: Store> {
    pub(super) connections: &'a Connections<DB>,
    pub(super) consumer: &'static str,
    pub(super) key_definition: &'a str,
    pub(super) message: &'a Message,
    pub(super) job: &'a Job,
}

/// Runs one message; `None` if its consumer is not registered.
pub(super) async fn run<H: Handler<Arguments: Arguments>>(
    handler: &Registered<H>,
    connections: &Connections<DatabaseOf<H>>,
    message: &Message,
    job: &Job,
    cancel: impl Future<Output = ()> + Send,
) -> Result<Option<Disposition>, Failure> {
    let key_definition = &handler.key_definition;
    let run = Run { connections, consumer: H::CONSUMER, key_definition, message, job };
    let (task, parting) = match &job.task {
        Task::Apply => (flow::Task::Apply, None),
        Task::Park { reason, error, attempts } => {
            let parting = Parting { reason: *reason, error: error.clone(), attempts: *attempts };
            (flow::Task::Park, Some(parting))
        }
    };
    let content = content::<H>(message);
    let cancel = pin!(cancel);
    let mut follower = Follower::new(handler, &run, cancel, parting);
    if content == Content::ParkedTombstone {
        follower.note(Reason::Tombstone, "the message has no payload (a tombstone)".to_owned());
    }
    follower.follow(Course::new(task, content)).await
}

fn content<H: Handler<Arguments: Arguments>>(message: &Message) -> Content {
    if message.payload().is_some() || !(H::Arguments::NEEDS_PAYLOAD || H::KEY.needs_payload()) {
        return Content::Whole;
    }
    match H::OPTIONS.on_tombstone {
        OnTombstone::Skip => Content::SkippedTombstone,
        OnTombstone::Park => Content::ParkedTombstone,
    }
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
