use std::pin::{Pin, pin};

use super::call::{call, cancelled, caught};
use super::park::{Parting, list_ended, park};
use super::{DatabaseOf, Disposition, Job, Registered, Task};
use crate::failure::{Failure, FailureKind, report};
use crate::handler::{Handler, OnTombstone};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::Reason;
use crate::inbox::progress::{TrackedPartition, Tracking};
use crate::inbox::{Claimant, Connections, Guard, Inbox, Store, Verdict};
use crate::key::Key;
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
    let give_up = |reason, error| Parting { reason, error, attempts: job.attempt };

    // Before the key is read: a key inside the payload cannot be read from a tombstone.
    if message.payload().is_none() && (H::Arguments::NEEDS_PAYLOAD || H::KEY.needs_payload()) {
        return match H::OPTIONS.on_tombstone {
            OnTombstone::Skip => Ok(Some(Disposition::Skipped)),
            OnTombstone::Park => {
                let text = "the message has no payload (a tombstone)".to_owned();
                park(&run, None, give_up(Reason::Tombstone, text)).await
            }
        };
    }
    let key = match caught(|| H::KEY.read(message)) {
        Ok(key) => key,
        Err(error) => return park(&run, None, give_up(Reason::Key, error)).await,
    };
    if let Task::Park { reason, error, attempts } = &job.task {
        let parting = Parting { reason: *reason, error: error.clone(), attempts: *attempts };
        return park(&run, Some(&key), parting).await;
    }
    let arguments = match caught(|| H::Arguments::take(message, &key, &handler.needs)) {
        Ok(arguments) => arguments,
        Err(error) => return park(&run, Some(&key), give_up(Reason::Decode, error)).await,
    };
    match transaction::<H>(&run, &key, arguments, pin!(cancel)).await {
        Err(failure) if failure.kind() == FailureKind::Rejected => {
            park(&run, Some(&key), give_up(Reason::Rejected, report(&failure))).await
        }
        result => result,
    }
}

impl<DB: Store> Run<'_, DB> {
    /// Where the message stands, if progress is tracked.
    pub(super) fn position(&self) -> Option<(&TrackedPartition, i64)> {
        let tracking = self.job.tracking.as_ref()?;
        Some((&tracking.partition, self.message.position()?.offset))
    }

    pub(super) fn tracking(&self) -> Option<&Tracking> {
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

    /// What must hold before a message of this verdict is committed.
    pub(super) fn guard(&self, consumer: ConsumerId, verdict: Verdict) -> Guard<'_> {
        let ceiling = match (verdict, self.position()) {
            (Verdict::Fresh, Some((_, offset))) => offset,
            _ => i64::MAX,
        };
        Guard { consumer, tracking: self.tracking(), ceiling }
    }
}

/// Claim, handler, guard, COMMIT; or ROLLBACK, on this task, whatever the handler did.
async fn transaction<H: Handler<Arguments: Arguments>>(
    run: &Run<'_, DatabaseOf<H>>,
    key: &Key,
    arguments: H::Arguments,
    mut cancel: Pin<&mut impl Future<Output = ()>>,
) -> Result<Option<Disposition>, Failure> {
    let connection = tokio::select! {
        biased;
        () = &mut cancel => return Err(cancelled()),
        connection = run.connections.acquire() => connection?,
    };
    let limit = H::OPTIONS.timeout;
    let attempt = run.job.attempt;
    let mut inbox =
        Inbox::begin(connection, run.connections, H::CONSUMER, Some(key.clone()), attempt, limit).await?;
    let (consumer, verdict) = match run.claim(&mut inbox, Some(&key.stored())).await {
        Ok(Some(claimed)) => claimed,
        Ok(None) => {
            inbox.abandon().await;
            return Ok(None);
        }
        Err(failure) => return Err(inbox.give_up(failure).await),
    };
    let applied = async {
        if verdict == Verdict::Fresh {
            call::<H>(arguments, &mut inbox, cancel).await?;
        }
        inbox.guard(&run.guard(consumer, verdict)).await
    };
    match applied.await {
        Ok(()) => {
            inbox.commit().await?;
            Ok(Some(verdict.into()))
        }
        Err(failure) => {
            let failure = inbox.give_up(failure).await;
            if failure.kind() == FailureKind::TransactionEnded {
                return Err(list_ended(run, consumer, key, failure).await);
            }
            Err(failure)
        }
    }
}

impl From<Verdict> for Disposition {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fresh => Self::Applied,
            Verdict::Duplicate => Self::Duplicate,
            Verdict::LateDuplicate => Self::LateDuplicate,
            Verdict::AlreadyParked => Self::AlreadyParked,
        }
    }
}
