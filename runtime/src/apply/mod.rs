//! One message through one consumer, or several in one transaction: claim, handler, guard, commit. Knows SQL and
//! handlers, no broker; what comes after what is decided by [`crate::flow::Course`].

mod call;
mod follow;
mod job;
mod park;
mod read;
mod registered;
mod run;

use sqlx::Pool;

pub use job::{Job, JobDone, JobFailure, Task};
pub use registered::{Consumer, Registered};

pub use crate::flow::Disposition;

use crate::failure::{Failure, FailureKind};
use crate::flow::Setback;
use crate::handler::Handler;
use crate::inbox::consumers;
use crate::inbox::{Access, Connections};
use crate::message::{Arguments, Message, Provides};
use follow::run;

pub(crate) type DatabaseOf<H> = <<H as Handler>::Access as Access>::Database;
pub(crate) type NeedsOf<H> = <<H as Handler>::Arguments as Arguments>::Needs;

/// Runs `message` through the handler `H` in one inbox transaction, unless its key has been applied
/// already. For sources other than Kafka: call it again until it returns `Ok`.
///
/// A message that can never be applied (no key, undecodable, rejected by the handler) becomes a dead
/// letter, and the result is `Ok(Parked)`. The first call registers the consumer.
///
/// ```no_run
/// # use handstamp::{Failure, Handler, Message};
/// # async fn receive<credit>(pool: &sqlx::PgPool, id: &str, body: &[u8]) -> Result<(), Failure>
/// # where credit: Handler<Arguments = (), Access = sqlx::PgConnection> {
/// let message = Message::builder().header("event_id", id).payload(body).build();
/// let disposition = handstamp::apply::<credit>(pool, &message).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// If it was not applied; nothing of it was written then, unless the [kind](FailureKind) says otherwise.
pub async fn apply<H>(pool: &Pool<DatabaseOf<H>>, message: &Message) -> Result<Disposition, Failure>
where
    H: Handler<Arguments: Arguments>,
    (): Provides<NeedsOf<H>>,
{
    apply_with_state::<H>(pool, &(), message).await
}

/// As [`apply`], for handlers that take [`State`](crate::State).
///
/// # Errors
/// As [`apply`].
pub async fn apply_with_state<H: Handler<Arguments: Arguments>>(
    pool: &Pool<DatabaseOf<H>>,
    state: &impl Provides<NeedsOf<H>>,
    message: &Message,
) -> Result<Disposition, Failure> {
    let handler = Registered::<H>::new(state);
    if let Some(disposition) = by_hand(&handler, pool, message).await? {
        return Ok(disposition);
    }
    consumers::register(pool, &handler.registration(None, &[])).await?;
    by_hand(&handler, pool, message).await?.ok_or_else(|| unregistered(H::CONSUMER))
}

/// `None` if the consumer is not registered.
async fn by_hand<H: Handler<Arguments: Arguments>>(
    handler: &Registered<H>,
    pool: &Pool<DatabaseOf<H>>,
    message: &Message,
) -> Result<Option<Disposition>, Failure> {
    let never = std::future::pending::<()>();
    let ended = run(handler, &Connections::of(pool), &[message], &Job::by_hand(), never).await;
    Ok(ended.map_err(|failed| failed.failure)?.and_then(|done| done.dispositions.into_iter().next()))
}

fn unregistered(consumer: &str) -> Failure {
    let text = format!(
        "consumer `{consumer}` is not registered with the key definition that this program has: it was renamed \
         or its key was changed while this ran, or the database was restored to before it was there; start \
         the program again"
    );
    Failure::new(FailureKind::Configuration, text)
}

impl From<FailureKind> for Setback {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Environment => Self::Environment,
            FailureKind::Unknown => Self::Unknown,
            FailureKind::Handler => Self::Handler,
            FailureKind::Key | FailureKind::Decode => Self::Unreadable,
            FailureKind::Rejected => Self::Rejected,
            FailureKind::TransactionEnded => Self::TransactionEnded,
            FailureKind::WentBack => Self::WentBack,
            FailureKind::Superseded => Self::Superseded,
            FailureKind::Cancelled => Self::Cancelled,
            FailureKind::Configuration => Self::Misconfigured,
        }
    }
}
