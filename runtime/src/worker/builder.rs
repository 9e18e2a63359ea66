use std::fmt;
use std::sync::Arc;

use sqlx::Pool;

use super::plan::{Plan, Subscription};
use super::{Notice, WorkerError, run};
use crate::apply::{Consumer, DatabaseOf, NeedsOf, Registered};
use crate::handler::Handler;
use crate::inbox::Store;
use crate::message::{Arguments, Provides};
use crate::source::kafka::Kafka;

/// Reads Kafka topics and applies each message once.
///
/// ```no_run
/// use handstamp::{Json, Kafka, Worker, idempotent};
/// # use sqlx::{PgConnection, PgPool};
/// # #[derive(serde::Deserialize)] struct Deposit { account_id: i64, amount: i64 }
///
/// #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
/// async fn credit(Json(d): Json<Deposit>, conn: &mut PgConnection) -> sqlx::Result<()> {
///     sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = $2")
///         .bind(d.amount).bind(d.account_id).execute(conn).await?;
///     Ok(())
/// }
///
/// # async fn f(pool: PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// Worker::builder(pool)
///     .kafka(Kafka::from_env()?)
///     .consume::<credit>("wallet.deposits")
///     .run()
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub enum Worker {}

impl Worker {
    /// Begins to put a worker together. `pool` is where inbox and effects are written; it needs two
    /// connections more than handlers may run at a time.
    pub fn builder<DB: Store>(pool: Pool<DB>) -> WorkerBuilder<DB, ()> {
        WorkerBuilder {
            state: (),
            plan: Plan {
                pool,
                kafka: None,
                group: None,
                subscriptions: Vec::new(),
                copies: false,
                observers: Vec::new(),
                shutdown: None,
            },
        }
    }
}

/// A worker being put together; `S` is the type of its state.
#[must_use = "a worker does nothing before `.run().await`"]
pub struct WorkerBuilder<DB: Store, S> {
    state: S,
    plan: Plan<DB>,
}

impl<DB: Store, S> WorkerBuilder<DB, S> {
    /// What `State<…>` arguments of the handlers that follow are taken from.
    pub fn state<T>(self, state: T) -> WorkerBuilder<DB, T> {
        WorkerBuilder { state, plan: self.plan }
    }

    /// Where the messages come from.
    pub fn kafka(mut self, kafka: Kafka) -> Self {
        self.plan.kafka = Some(kafka);
        self
    }

    /// The Kafka group of the handlers that follow, instead of one for each, named as its consumer.
    /// Handlers of one group share a client: an offset is committed when all of them are done with it.
    pub fn group(mut self, group: impl Into<Arc<str>>) -> Self {
        self.plan.group = Some(group.into());
        self
    }

    /// Gives the messages of `topic` to the handler `H`.
    pub fn consume<H>(mut self, topic: impl Into<Arc<str>>) -> Self
    where
        H: Handler<Arguments: Arguments>,
        DB: Serves<DatabaseOf<H>>,
        S: Provides<NeedsOf<H>>,
    {
        let consumer = DB::consumer(Arc::new(Registered::<H>::new(&self.state)));
        let group = self.plan.group.clone().unwrap_or_else(|| H::CONSUMER.into());
        self.plan.subscriptions.push(Subscription { consumer, group, topic: topic.into() });
        self
    }

    /// Copies dead letters to the topic `<topic>.dlq`, which has to exist. The database keeps them
    /// either way; a copy may come twice.
    pub fn copy_dead_letters(mut self) -> Self {
        self.plan.copies = true;
        self
    }

    /// Tells `observer` what happens, for metrics and tests. It must return at once.
    pub fn observe(mut self, observer: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.plan.observers.push(Box::new(observer));
        self
    }

    /// Stops when `signal` resolves, instead of at SIGTERM or Ctrl-C.
    pub fn with_graceful_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.plan.shutdown = Some(Box::pin(signal));
        self
    }

    /// Reads and applies until told to stop; then finishes what runs within 10 seconds (at most a quarter of
    /// `max.poll.interval.ms`), commits, and leaves the group. What takes longer is rolled back and comes
    /// again. Leave it 30 seconds before a SIGKILL.
    ///
    /// # Errors
    /// If the database or Kafka does not answer or something must be changed before it can start, or if a
    /// handler broke its transaction so that going on could lose or double something. Once it runs, outages
    /// of either are waited out.
    pub async fn run(self) -> Result<(), WorkerError> {
        run::run(self.plan).await
    }
}

impl<DB: Store, S> fmt::Debug for WorkerBuilder<DB, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let consumers = self.plan.subscriptions.iter().map(|s| (s.consumer.name(), &*s.topic));
        f.debug_struct("WorkerBuilder")
            .field("consumers", &consumers.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A worker's database is the one that its handlers write to.
#[diagnostic::on_unimplemented(
    message = "this worker's pool is of `{Self}`, but the handler writes to `{Other}`",
    label = "a handler of another database",
    note = "effects and inbox commit in one transaction: build a second worker with a `Pool<{Other}>`"
)]
pub trait Serves<Other: Store>: Store {
    /// The consumer, as one of this database.
    #[doc(hidden)]
    fn consumer(consumer: Arc<dyn Consumer<Other>>) -> Arc<dyn Consumer<Self>>;
}

impl<DB: Store> Serves<DB> for DB {
    fn consumer(consumer: Arc<dyn Consumer<DB>>) -> Arc<dyn Consumer<DB>> {
        consumer
    }
}
