use futures_util::future::BoxFuture;

use super::{DatabaseOf, Disposition, Job, NeedsOf, run, unregistered};
use crate::failure::Failure;
use crate::handler::{Handler, Options};
use crate::inbox::consumers::Registration;
use crate::inbox::{Connections, Store};
use crate::message::{Arguments, Message, Provides};

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

    /// Its options.
    fn options(&self) -> Options;

    /// What it registers as.
    fn registration<'a>(&'a self, group: Option<&'a str>, topics: &'a [&'a str]) -> Registration<'a>;

    /// Runs one message; never dropped before it is done. `cancel` ends the handler, and with it the run,
    /// unless COMMIT was reached: the task that owns a connection always ends its transaction itself.
    ///
    /// Messages that can never be applied are parked by it, in a transaction that moves the progress.
    fn run<'a>(
        &'a self,
        connections: &'a Connections<DB>,
        message: &'a Message,
        job: &'a Job,
        cancel: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, Result<Disposition, Failure>>;
}

impl<H: Handler<Arguments: Arguments>> Consumer<DatabaseOf<H>> for Registered<H> {
    fn name(&self) -> &'static str {
        H::CONSUMER
    }

    fn options(&self) -> Options {
        H::OPTIONS
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
        message: &'a Message,
        job: &'a Job,
        cancel: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, Result<Disposition, Failure>> {
        Box::pin(async move {
            run(self, connections, message, job, cancel).await?.ok_or_else(|| unregistered(H::CONSUMER))
        })
    }
}
