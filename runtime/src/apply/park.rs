use super::run::Run;
use crate::failure::{Failure, FailureKind, storable};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::{NewLetter, Reason};
use crate::inbox::transaction::{HOUSEKEEPING, Transaction, within};
use crate::inbox::{Connections, Store};
use crate::laboratory::point;
use crate::message::Message;

/// Why a message is given up.
pub(super) struct Parting {
    pub(super) reason: Reason,
    pub(super) error: String,
    pub(super) attempts: u32,
}

/// Lists the messages whose transaction their handler ended. Their keys may be committed, so they are not
/// touched, and the progress stays where it is.
pub(super) async fn list_ended<DB: Store>(
    connections: &Connections<DB>,
    letters: &[NewLetter<'_>],
    failure: Failure,
) -> Failure {
    let listed = async {
        let mut transaction = Transaction::begin(connections.pool(), HOUSEKEEPING).await?;
        for letter in letters {
            write(&mut transaction, letter).await?;
        }
        transaction.commit().await
    };
    match listed.await {
        Ok(()) => failure,
        Err(unlisted) => {
            let text =
                format!("{failure} (and what it was for could not be listed as dead letters: {unlisted})");
            Failure::new(FailureKind::TransactionEnded, text)
        }
    }
}

impl Parting {
    pub(super) fn letter<'a, DB: Store>(
        &'a self,
        run: &Run<'a, DB>,
        message: &'a Message,
        consumer: ConsumerId,
        key: Option<&'a [u8]>,
    ) -> NewLetter<'a> {
        NewLetter {
            consumer,
            reason: self.reason,
            error: &self.error,
            attempts: self.attempts,
            message,
            key,
            position: run.position(message),
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
