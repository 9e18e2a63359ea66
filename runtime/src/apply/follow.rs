use std::pin::{Pin, pin};

use super::call::{call, cancelled, caught};
use super::park::{self, Parting};
use super::run::Run;
use super::{DatabaseOf, Disposition, Job, Registered, Task};
use crate::failure::{Failure, FailureKind, report};
use crate::flow::{self, Answer, Content, Course, Setback, Step};
use crate::handler::{Handler, OnTombstone};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::Reason;
use crate::inbox::transaction::HOUSEKEEPING;
use crate::inbox::{Connections, Inbox};
use crate::key::Key;
use crate::message::{Arguments, Message};

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

/// Does the steps of a course and tells how they went. It decides nothing.
struct Follower<'a, H: Handler<Arguments: Arguments>, C> {
    handler: &'a Registered<H>,
    run: &'a Run<'a, DatabaseOf<H>>,
    cancel: Pin<&'a mut C>,
    key: Option<Key>,
    arguments: Option<H::Arguments>,
    /// Why the message is given up, should it be.
    parting: Option<Parting>,
    /// What the last step that failed said.
    failure: Option<Failure>,
}

impl<'a, H: Handler<Arguments: Arguments>, C: Future<Output = ()> + Send> Follower<'a, H, C> {
    fn new(
        handler: &'a Registered<H>,
        run: &'a Run<'a, DatabaseOf<H>>,
        cancel: Pin<&'a mut C>,
        parting: Option<Parting>,
    ) -> Self {
        Self { handler, run, cancel, key: None, arguments: None, parting, failure: None }
    }

    /// Follows a course to its end; `None` if the consumer is not registered.
    async fn follow(&mut self, mut course: Course) -> Result<Option<Disposition>, Failure> {
        loop {
            let answer = match course.step() {
                Step::ReadKey => self.read_key(),
                Step::ReadArguments => self.read_arguments(),
                Step::Begin(task) => match self.begin(task).await {
                    Ok(inbox) => {
                        course.answer(Answer::Done);
                        self.within(&mut course, inbox).await;
                        continue;
                    }
                    Err(failure) => self.failed(failure),
                },
                Step::End(Ok(disposition)) => return Ok(Some(disposition)),
                Step::End(Err(Setback::Unregistered)) => return Ok(None),
                Step::End(Err(_)) => return Err(self.failure.take().unwrap_or_else(unexplained)),
                _ => self.failed(unexplained()),
            };
            course.answer(answer);
        }
    }

    /// From BEGIN to the end of the transaction, on this task, whatever the handler does.
    async fn within(&mut self, course: &mut Course, mut inbox: Inbox<DatabaseOf<H>>) {
        let Step::Claim { keyed } = course.step() else { return };
        let (run, key) = (self.run, self.key.clone());
        let stored = key.as_ref().filter(|_| keyed).map(Key::stored);
        let stored = stored.as_deref();
        let consumer = match run.claim(&mut inbox, stored).await {
            Ok(Some((consumer, verdict))) => {
                course.answer(Answer::Claimed(verdict));
                consumer
            }
            Ok(None) => {
                course.answer(Answer::Failed(Setback::Unregistered));
                inbox.abandon().await;
                return course.answer(Answer::Done);
            }
            Err(failure) => {
                course.answer(self.failed(failure));
                return course.answer(self.roll_back(inbox).await);
            }
        };
        loop {
            let answer = match course.step() {
                Step::Call => self.call(&mut inbox).await,
                Step::GiveBack => self.answer(inbox.give_back(consumer, stored).await),
                Step::Park => {
                    let parting = self.parting();
                    let letter = parting.letter(run, consumer, stored);
                    self.answer(park::write(inbox.transaction(), &letter).await)
                }
                Step::Guard { fresh } => self.answer(inbox.guard(&run.guard(consumer, fresh)).await),
                Step::Commit => return course.answer(self.answer(inbox.commit().await)),
                Step::RollBack(_) => return course.answer(self.roll_back(inbox).await),
                Step::List => {
                    drop(inbox);
                    self.list(consumer, stored).await;
                    return course.answer(Answer::Done);
                }
                _ => return,
            };
            course.answer(answer);
        }
    }

    fn read_key(&mut self) -> Answer {
        match caught(|| H::KEY.read(self.run.message)) {
            Ok(key) => {
                self.key = Some(key);
                Answer::Done
            }
            Err(error) => self.unreadable(Reason::Key, error),
        }
    }

    fn read_arguments(&mut self) -> Answer {
        let Some(key) = &self.key else { return self.failed(unexplained()) };
        match caught(|| H::Arguments::take(self.run.message, key, &self.handler.needs)) {
            Ok(arguments) => {
                self.arguments = Some(arguments);
                Answer::Done
            }
            Err(error) => self.unreadable(Reason::Decode, error),
        }
    }

    async fn begin(&mut self, task: flow::Task) -> Result<Inbox<DatabaseOf<H>>, Failure> {
        let connections = self.run.connections;
        let (connection, limit) = match task {
            flow::Task::Apply => tokio::select! {
                biased;
                () = &mut self.cancel => return Err(cancelled()),
                connection = connections.acquire() => (connection?, H::OPTIONS.timeout),
            },
            flow::Task::Park => (connections.acquire().await?, HOUSEKEEPING),
        };
        let (key, attempt) = (self.key.clone(), self.run.job.attempt);
        Inbox::begin(connection, connections, self.run.consumer, key, attempt, limit).await
    }

    async fn call(&mut self, inbox: &mut Inbox<DatabaseOf<H>>) -> Answer {
        let Some(arguments) = self.arguments.take() else { return self.failed(unexplained()) };
        let called = call::<H>(arguments, inbox, self.cancel.as_mut()).await;
        self.answer(called)
    }

    async fn roll_back(&mut self, inbox: Inbox<DatabaseOf<H>>) -> Answer {
        let failure = self.failure.take().unwrap_or_else(unexplained);
        let failure = inbox.give_up(failure).await;
        if failure.kind() == FailureKind::Rejected {
            self.note(Reason::Rejected, report(&failure));
        }
        self.failed(failure)
    }

    async fn list(&mut self, consumer: ConsumerId, key: Option<&[u8]>) {
        let failure = self.failure.take().unwrap_or_else(unexplained);
        self.failure = Some(park::list_ended(self.run, consumer, key, failure).await);
    }

    /// Remembers what a dead letter is to say.
    fn note(&mut self, reason: Reason, error: String) {
        self.parting = Some(Parting { reason, error, attempts: self.run.job.attempt });
    }

    fn parting(&mut self) -> Parting {
        self.parting.take().unwrap_or_else(|| Parting {
            reason: Reason::Failed,
            error: "the cause was not kept".to_owned(),
            attempts: self.run.job.attempt,
        })
    }

    fn unreadable(&mut self, reason: Reason, error: String) -> Answer {
        self.note(reason, error);
        Answer::Failed(Setback::Unreadable)
    }

    fn answer(&mut self, result: Result<(), Failure>) -> Answer {
        match result {
            Ok(()) => Answer::Done,
            Err(failure) => self.failed(failure),
        }
    }

    fn failed(&mut self, failure: Failure) -> Answer {
        let setback = Setback::from(failure.kind());
        self.failure = Some(failure);
        Answer::Failed(setback)
    }
}

/// For a course that asks for what it cannot: nothing of it is kept, and it is tried again.
fn unexplained() -> Failure {
    Failure::new(
        FailureKind::Environment,
        "the steps of a message were taken out of order (a bug of handstamp)",
    )
}
