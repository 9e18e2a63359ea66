use super::Disposition;
use super::run::Run;
use crate::failure::{Failure, FailureKind, report, storable};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::{NewLetter, Reason};
use crate::inbox::transaction::{HOUSEKEEPING, Transaction, within};
use crate::inbox::{Inbox, Store, Verdict};
use crate::key::Key;
use crate::laboratory::point;

/// Why a message is given up.
pub(super) struct Parting {
    pub(super) reason: Reason,
    pub(super) error: String,
    pub(super) attempts: u32,
}

/// Gives a message up: the letter and the progress in one transaction, no inbox row. `None` if its
/// consumer is not registered.
///
/// The key is claimed all the same, to wait for a twin that may be applying it, and then given back.
pub(super) async fn park<DB: Store>(
    run: &Run<'_, DB>,
    key: Option<&Key>,
    parting: Parting,
) -> Result<Option<Disposition>, Failure> {
    let connection = run.connections.acquire().await?;
    let mut inbox =
        Inbox::begin(connection, run.connections, run.consumer, key.cloned(), run.job.attempt, HOUSEKEEPING)
            .await?;
    let stored = key.map(Key::stored);
    let stored = stored.as_deref();
    let (consumer, verdict) = match run.claim(&mut inbox, stored).await {
        Ok(Some(claimed)) => claimed,
        Ok(None) => {
            inbox.abandon().await;
            return Ok(None);
        }
        Err(failure) => return Err(inbox.give_up(failure).await),
    };
    let parked = async {
        if verdict == Verdict::Fresh {
            let letter = parting.letter(run, consumer, stored);
            write(inbox.transaction(), stored.map(|stored| (consumer, stored)), &letter).await?;
        }
        inbox.guard(&run.guard(consumer, verdict)).await
    };
    if let Err(failure) = parked.await {
        return Err(inbox.give_up(failure).await);
    }
    inbox.commit().await?;
    Ok(Some(if verdict == Verdict::Fresh { Disposition::Parked } else { verdict.into() }))
}

/// Lists a message whose transaction its handler ended. Its key may be committed, so it is not touched,
/// and the progress stays where it is.
pub(super) async fn list_ended<DB: Store>(
    run: &Run<'_, DB>,
    consumer: ConsumerId,
    key: &Key,
    failure: Failure,
) -> Failure {
    let parting =
        Parting { reason: Reason::TransactionEnded, error: report(&failure), attempts: run.job.attempt };
    let stored = key.stored();
    let listed = async {
        let mut transaction = Transaction::begin(run.connections.pool(), HOUSEKEEPING).await?;
        let letter = parting.letter(run, consumer, Some(&stored));
        write(&mut transaction, None, &letter).await?;
        transaction.commit().await
    };
    match listed.await {
        Ok(()) => failure,
        Err(unlisted) => {
            let text = format!("{failure} (and it could not be listed among the dead letters: {unlisted})");
            Failure::new(FailureKind::TransactionEnded, text)
        }
    }
}

impl Parting {
    fn letter<'a, DB: Store>(
        &'a self,
        run: &'a Run<'_, DB>,
        consumer: ConsumerId,
        key: Option<&'a [u8]>,
    ) -> NewLetter<'a> {
        NewLetter {
            consumer,
            reason: self.reason,
            error: &self.error,
            attempts: self.attempts,
            message: run.message,
            key,
            position: run.position(),
        }
    }
}

async fn write<DB: Store>(
    transaction: &mut Transaction<DB>,
    claimed: Option<(ConsumerId, &[u8])>,
    letter: &NewLetter<'_>,
) -> Result<(), Failure> {
    let failed = |error| Failure::environment("writing a dead letter", error);
    let error = storable(letter.error);
    let letter = NewLetter { error: &error, ..*letter };
    if let Some((consumer, key)) = claimed {
        let unclaim = DB::unclaim(transaction.connection(), consumer, key);
        within(DB::STATEMENT_LIMIT, unclaim).await.map_err(failed)?;
    }
    within(DB::STATEMENT_LIMIT, DB::park(transaction.connection(), &letter)).await.map_err(failed)?;
    point!(InDeadLetter);
    Ok(())
}
