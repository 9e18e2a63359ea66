use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::Instant;

use super::call::{call, cancelled, write};
use super::park::{self, Parting};
use super::read::Reading;
use super::run::Run;
use super::{DatabaseOf, Job, JobDone, JobFailure, NeedsOf, Registered};
use crate::failure::{Failure, FailureKind, report};
use crate::flow::{self, Answer, Course, Member, Offset, Setback, Step};
use crate::handler::Handler;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::Reason;
use crate::inbox::transaction::HOUSEKEEPING;
use crate::inbox::{Access, Connections, Inbox};
use crate::key::Key;
use crate::message::{Arguments, Message, Span};

/// Runs the messages of a job; `None` if their consumer is not registered.
pub(super) async fn run<H: Handler<Arguments: Arguments>>(
    handler: &Registered<H>,
    connections: &Connections<DatabaseOf<H>>,
    messages: &[&Message],
    job: &Job,
    cancel: impl Future<Output = ()> + Send,
) -> Result<Option<JobDone>, JobFailure> {
    let key_definition = &handler.key_definition;
    let run = Run { connections, consumer: H::CONSUMER, key_definition, job };
    let readings: Vec<_> = messages.iter().map(|message| Reading::<H>::of(message, job)).collect();
    let members = members(&run, &readings);
    let course = match H::Arguments::SPAN {
        Span::Many => Course::together(members),
        Span::One | Span::Any => Course::new(members),
    };
    let course = if H::Access::RECORDS { course.recorded() } else { course };
    let cancel = pin!(cancel);
    let follower = Follower {
        run: &run,
        needs: &handler.needs,
        readings,
        cancel,
        failure: None,
        at: 0,
        handlers: Duration::ZERO,
    };
    follower.follow(course).await
}

fn members<H: Handler<Arguments: Arguments>>(
    run: &Run<'_, DatabaseOf<H>>,
    readings: &[Reading<'_, H>],
) -> Vec<Member> {
    let mut first: HashMap<&Key, usize> = HashMap::new();
    let members = readings.iter().enumerate().map(|(index, reading)| Member {
        intent: reading.intent,
        place: run.place(reading.message),
        key: reading.key.as_ref().map(|key| *first.entry(key).or_insert(index)),
    });
    members.collect()
}

/// Does the steps of a course and tells how they went. It decides nothing.
struct Follower<'a, H: Handler<Arguments: Arguments>, C> {
    run: &'a Run<'a, DatabaseOf<H>>,
    needs: &'a NeedsOf<H>,
    readings: Vec<Reading<'a, H>>,
    cancel: Pin<&'a mut C>,
    /// What the last step that failed said.
    failure: Option<Failure>,
    /// The message that was worked on last.
    at: usize,
    /// How long the handlers have worked.
    handlers: Duration,
}

impl<H: Handler<Arguments: Arguments>, C: Future<Output = ()> + Send> Follower<'_, H, C> {
    /// Follows a course to its end; `None` if the consumer is not registered.
    async fn follow(mut self, mut course: Course) -> Result<Option<JobDone>, JobFailure> {
        loop {
            match course.step() {
                Step::Begin(task) => match self.begin(task).await {
                    Ok(inbox) => {
                        course.answer(Answer::Done);
                        self.within(&mut course, inbox).await;
                    }
                    Err(failure) => course.answer(self.failed(failure)),
                },
                Step::End(Ok(())) => {
                    let (dispositions, handlers) = (course.dispositions().collect(), self.handlers);
                    return Ok(Some(JobDone { dispositions, handlers }));
                }
                Step::End(Err(Setback::Unregistered)) => return Ok(None),
                Step::End(Err(_)) => {
                    let failure = self.failure.take().unwrap_or_else(unexplained);
                    return Err(JobFailure { at: self.at, failure });
                }
                _ => course.answer(self.failed(unexplained())),
            }
        }
    }

    /// From BEGIN to the end of the transaction, on this task, whatever the handler does.
    async fn within(&mut self, course: &mut Course, mut inbox: Inbox<DatabaseOf<H>>) {
        let consumer = match self.claim(course, &mut inbox).await {
            Ok(Some(consumer)) => consumer,
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
                Step::GiveBack => self.give_back(course, consumer, &mut inbox).await,
                step @ (Step::Call(_) | Step::CallTogether | Step::Write) => {
                    let begun = Instant::now();
                    let answer = self.handle(step, course, &mut inbox).await;
                    self.handlers += begun.elapsed();
                    answer
                }
                Step::Park(member) => self.park(member, consumer, &mut inbox).await,
                Step::Guard { fresh } => self.guard(course, consumer, fresh, &mut inbox).await,
                Step::Commit => return course.answer(self.answer(inbox.commit().await)),
                Step::RollBack(_) => return course.answer(self.roll_back(inbox).await),
                Step::List => {
                    drop(inbox);
                    self.list(course, consumer).await;
                    return course.answer(Answer::Done);
                }
                Step::Begin(_) | Step::Claim | Step::End(_) => return,
            };
            course.answer(answer);
        }
    }

    async fn begin(&mut self, task: flow::Task) -> Result<Inbox<DatabaseOf<H>>, Failure> {
        let Run { connections, consumer, job, .. } = self.run;
        let (connection, limit) = match task {
            flow::Task::Apply => tokio::select! {
                biased;
                () = &mut self.cancel => return Err(cancelled()),
                connection = connections.acquire() => (connection?, H::OPTIONS.timeout),
            },
            flow::Task::Park => (connections.acquire().await?, HOUSEKEEPING),
        };
        Inbox::begin(connection, connections, consumer, job.attempt, limit).await
    }

    /// `None` if the consumer is not registered.
    async fn claim(
        &mut self,
        course: &mut Course,
        inbox: &mut Inbox<DatabaseOf<H>>,
    ) -> Result<Option<ConsumerId>, Failure> {
        let claimed: Vec<_> = self.readings.iter().map(|reading| self.run.claimed(reading)).collect();
        let claim = inbox.claim(&self.run.claimant(&claimed)).await?;
        let Some(consumer) = claim.consumer else { return Ok(None) };
        course.answer(Answer::Claimed { found: claim.found, row: claim.row });
        if let Step::RollBack(setback) = course.step() {
            self.failure = Some(inbox.refused(setback, claim.row, self.run.acknowledged()));
        }
        Ok(Some(consumer))
    }

    async fn give_back(
        &mut self,
        course: &Course,
        consumer: ConsumerId,
        inbox: &mut Inbox<DatabaseOf<H>>,
    ) -> Answer {
        let keys = self.readings.iter().enumerate().filter(|(member, _)| course.is_given_back(*member));
        let keys: Vec<_> = keys.filter_map(|(_, reading)| reading.stored.as_deref()).collect();
        let given_back = inbox.give_back(consumer, &keys).await;
        self.answer(given_back)
    }

    /// What the handlers do, or have done for them.
    async fn handle(&mut self, step: Step, course: &Course, inbox: &mut Inbox<DatabaseOf<H>>) -> Answer {
        match step {
            Step::Call(member) => self.call(member, inbox).await,
            Step::CallTogether => self.call_together(course, inbox).await,
            _ => {
                let written = write::<H>(inbox, self.cancel.as_mut()).await;
                self.answer(written)
            }
        }
    }

    async fn call(&mut self, member: usize, inbox: &mut Inbox<DatabaseOf<H>>) -> Answer {
        self.at = member;
        let needs = self.needs;
        let arguments = self.readings.get_mut(member).and_then(|reading| {
            let arguments = H::Arguments::of_one(reading.each.take()?, needs)?;
            Some((reading.key.clone()?, arguments))
        });
        let Some((key, arguments)) = arguments else { return self.failed(unexplained()) };
        inbox.turn_to(key);
        let called = call::<H>(arguments, inbox, self.cancel.as_mut()).await;
        self.answer(called)
    }

    async fn call_together(&mut self, course: &Course, inbox: &mut Inbox<DatabaseOf<H>>) -> Answer {
        let (mut first, mut each) = (None, Vec::new());
        for (member, reading) in
            (0..).zip(&mut self.readings).filter(|(member, _)| course.is_handled(*member))
        {
            if first.is_none() {
                first = reading.key.clone().map(|key| (member, key));
            }
            each.extend(reading.each.take());
        }
        let Some(((at, key), arguments)) = first.zip(H::Arguments::of_many(each, self.needs)) else {
            return self.failed(unexplained());
        };
        self.at = at;
        inbox.turn_to_all(key);
        let called = call::<H>(arguments, inbox, self.cancel.as_mut()).await;
        self.answer(called)
    }

    async fn park(
        &mut self,
        member: usize,
        consumer: ConsumerId,
        inbox: &mut Inbox<DatabaseOf<H>>,
    ) -> Answer {
        self.at = member;
        let Some(reading) = self.readings.get_mut(member) else { return self.failed(unexplained()) };
        let parting = reading.parting.take().unwrap_or_else(|| Parting {
            reason: Reason::Failed,
            error: "the cause was not kept".to_owned(),
            attempts: self.run.job.attempt,
        });
        let letter = parting.letter(self.run, reading.message, consumer, reading.stored.as_deref());
        let written = park::write(inbox.transaction(), &letter).await;
        self.answer(written)
    }

    async fn guard(
        &mut self,
        course: &Course,
        consumer: ConsumerId,
        fresh: Option<Offset>,
        inbox: &mut Inbox<DatabaseOf<H>>,
    ) -> Answer {
        let applied = self.readings.iter().enumerate().filter(|(member, _)| course.is_handled(*member));
        let applied = applied.filter_map(|(_, reading)| self.run.position(reading.message));
        let applied: Vec<_> = applied.map(|(_, offset)| offset).collect();
        let guarded = inbox.guard(&self.run.guard(consumer, fresh, &applied)).await;
        self.answer(guarded)
    }

    async fn roll_back(&mut self, inbox: Inbox<DatabaseOf<H>>) -> Answer {
        let failure = self.failure.take().unwrap_or_else(unexplained);
        let failure = inbox.give_up(failure).await;
        if failure.kind() == FailureKind::Rejected
            && let Some(reading) = self.readings.get_mut(self.at)
        {
            let (error, attempts) = (report(&failure), self.run.job.attempt);
            reading.parting = Some(Parting { reason: Reason::Rejected, error, attempts });
        }
        self.failed(failure)
    }

    /// Lists every message whose effects the handler may have committed, or thrown away with those of others.
    async fn list(&mut self, course: &Course, consumer: ConsumerId) {
        let failure = self.failure.take().unwrap_or_else(unexplained);
        let attempts = self.run.job.attempt;
        let parting = Parting { reason: Reason::TransactionEnded, error: report(&failure), attempts };
        let handled = self.readings.iter().enumerate().filter(|(member, _)| course.is_handled(*member));
        let letters: Vec<_> = handled
            .map(|(_, reading)| {
                parting.letter(self.run, reading.message, consumer, reading.stored.as_deref())
            })
            .collect();
        self.failure = Some(park::list_ended(self.run.connections, &letters, failure).await);
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
