use futures_util::future::BoxFuture;

use super::{DatabaseOf, Job, JobDone, JobFailure, NeedsOf, run, unregistered};
use crate::handler::{BULK, Handler, Options};
use crate::inbox::consumers::Registration;
use crate::inbox::{Access, Connections, Store};
use crate::message::{Arguments, Message, Provides, Span};

/// A handler with what it takes from the state.
pub struct Registered<H: Handler<Arguments: Arguments>> {
    pub(super) needs: NeedsOf<H>,
    pub(super) key_definition: String,
}

impl<H: Handler<Arguments: Arguments>> Registered<H> {
    /// Takes what the handler needs out of the state.
    #[must_use]
    pub fn new(state: &impl Provides<NeedsOf<H>>) -> Self {
        Self { needs: state.provide(), key_definition: H::KEY.to_string() }
    }
}

/// A handler behind its type, as the worker holds it.
pub trait Consumer<DB: Store>: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Its options, as they hold for it and on its database.
    fn options(&self) -> Options;

    /// Whether all messages of a transaction are written at once, so that one that fails is not told from others.
    fn writes_together(&self) -> bool;

    /// What it registers as.
    fn registration<'a>(&'a self, group: Option<&'a str>, topics: &'a [&'a str]) -> Registration<'a>;

    /// Runs one message, or several of one partition in one transaction; what became of each, in their order. If
    /// one of several fails, nothing of any is kept.
    ///
    /// Never dropped before it is done. `cancel` ends the handler, and with it the run, unless COMMIT was
    /// reached: the task that owns a connection always ends its transaction itself. Messages that can never be
    /// applied are parked by it, in a transaction that moves the progress.
    fn run<'a>(
        &'a self,
        connections: &'a Connections<DB>,
        messages: &'a [&'a Message],
        job: &'a Job,
        cancel: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, Result<JobDone, JobFailure>>;
}

impl<H: Handler<Arguments: Arguments>> Consumer<DatabaseOf<H>> for Registered<H> {
    fn name(&self) -> &'static str {
        H::CONSUMER
    }

    fn options(&self) -> Options {
        let order = H::OPTIONS.order.with_writers(writers::<DatabaseOf<H>>());
        let options = Options { order, ..H::OPTIONS };
        if self.writes_together() { options.or_batch(BULK) } else { options }
    }

    fn writes_together(&self) -> bool {
        H::Arguments::SPAN == Span::Many || H::Access::RECORDS
    }

    fn registration<'a>(&'a self, group: Option<&'a str>, topics: &'a [&'a str]) -> Registration<'a> {
        Registration {
            name: H::CONSUMER,
            key_definition: &self.key_definition,
            handler: H::PATH,
            group,
            topics,
        }
    }

    fn run<'a>(
        &'a self,
        connections: &'a Connections<DatabaseOf<H>>,
        messages: &'a [&'a Message],
        job: &'a Job,
        cancel: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, Result<JobDone, JobFailure>> {
        Box::pin(async move {
            let ended = run(self, connections, messages, job, cancel).await?;
            ended.ok_or_else(|| JobFailure { at: 0, failure: unregistered(H::CONSUMER) })
        })
    }
}

/// How many transactions can write at a time.
fn writers<DB: Store>() -> usize {
    DB::WRITERS
}
