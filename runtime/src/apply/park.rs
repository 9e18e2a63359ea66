use super::run::Run;
use crate::failure::{Failure, FailureKind, report, storable};
use crate::inbox::Store;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::{NewLetter, Reason};
use crate::inbox::transaction::{HOUSEKEEPING, Transaction, within};
use crate::laboratory::point;

/// Why a message is given up.
pub(super) struct Parting {
    pub(super) reason: Reason,
    pub(super) error: String,
    pub(super) attempts: u32,
}

/// Lists a message whose transaction its handler ended. Its key may be committed, so it is not touched,
/// and the progress stays where it is.
pub(super) async fn list_ended<DB: Store>(
    run: &Run<'_, DB>,
    consumer: ConsumerId,
    key: Option<&[u8]>,
    failure: Failure,
) -> Failure {
    let parting =
        Parting { reason: Reason::TransactionEnded, error: report(&failure), attempts: run.job.attempt };
    let listed = async {
        let mut transaction = Transaction::begin(run.connections.pool(), HOUSEKEEPING).await?;
        let letter = parting.letter(run, consumer, key);
        write(&mut transaction, &letter).await?;
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
    pub(super) fn letter<'a, DB: Store>(
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

/// Writes the letter into the open transaction.
pub(super) async fn write<DB: Store>(
    transaction: &mut Transaction<DB>,
    letter: &NewLetter<'_>,
) -> Result<(), Failure> {
    let failed = |error| Failure::environment("writing a dead letter", error);
    let error = storable(letter.error);
    let letter = NewLetter { error: &error, ..*letter };
    within(DB::STATEMENT_LIMIT, DB::park(transaction.connection(), &letter)).await.map_err(failed)?;
    point!(InDeadLetter);
    Ok(())
}
