use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use futures_util::FutureExt;
use tokio::time::sleep;

use super::DatabaseOf;
use crate::failure::{Failure, FailureKind};
use crate::handler::{Handler, Outcome};
use crate::inbox::{Access, Inbox, Store};
use crate::message::Arguments;

/// Calls the handler. What stops it (time, `cancel`) drops its future alone: the transaction stays with
/// the caller.
pub(super) async fn call<H: Handler<Arguments: Arguments>>(
    arguments: H::Arguments,
    inbox: &mut Inbox<DatabaseOf<H>>,
    cancel: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Failure> {
    let handler = async { H::call(arguments, H::Access::of(inbox)).await.into_result() };
    let called = limited::<H>(handler, cancel).await;
    blamed(called, inbox).await
}

/// Writes what the handler has recorded, within the time that it has.
pub(super) async fn write<H: Handler<Arguments: Arguments>>(
    inbox: &mut Inbox<DatabaseOf<H>>,
    cancel: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Failure> {
    let written = limited::<H>(inbox.write(), cancel).await;
    blamed(written, inbox).await
}

async fn limited<H: Handler>(
    work: impl Future<Output = Result<(), Failure>>,
    cancel: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Failure> {
    let limit = H::OPTIONS.timeout;
    tokio::select! {
        biased;
        outcome = AssertUnwindSafe(work).catch_unwind() => {
            outcome.unwrap_or_else(|panic| Err(panicked::<H>(&*panic)))
        }
        () = cancel => Err(cancelled()),
        () = sleep(limit) => {
            let text = format!(
                "the handler {} took longer than {limit:?} and was stopped; make it faster or give it more \
                 time with `timeout = \"…\"`",
                H::PATH
            );
            Err(Failure::new(FailureKind::Handler, text))
        }
    }
}

async fn blamed<DB: Store>(result: Result<(), Failure>, inbox: &mut Inbox<DB>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        Err(failure) => Err(inbox.blame(failure).await),
    }
}

/// Runs code of the user's that reads a message.
pub(super) fn caught<T, E: ToString>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("panicked: {}", panic_text(&*panic))),
    }
}

pub(super) fn cancelled() -> Failure {
    Failure::new(FailureKind::Cancelled, "called off before it was committed")
}

fn panicked<H: Handler>(panic: &(dyn Any + Send)) -> Failure {
    let text = format!("the handler {} panicked: {}", H::PATH, panic_text(panic));
    Failure::new(FailureKind::Handler, text)
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}
