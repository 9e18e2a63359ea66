use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::WorkerError;
use super::jobs::{self, Ended, Failures, Row};
use super::notice::{Notice, Observers};
use super::opening::{self, Found, Handler, Opened, Opening};
use super::ownership::Owned;
use super::report::Log;
use crate::apply;
use crate::failure::FailureKind;
use crate::flow::{
    Action, Core, Epoch, Event, Job, JobId, LaneId, Millis, NextOffset, Offset, Saved, StopReason, Task, Tp,
};
use crate::inbox::Store;
use crate::message::{Message, Position};
use crate::source::kafka::{Broker, Command, Input, LookupError, Topics, Trouble};

/// How often topic ids are compared and refused partitions are looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long the group may take before the silence is explained.
const EXPLAIN_AFTER: Duration = Duration::from_secs(3);
/// How long the client may take to leave the group.
const CLOSE_LIMIT: Duration = Duration::from_secs(15);

/// What one client's driver is made of.
pub(super) struct Parts<DB: Store> {
    pub(super) group: Arc<str>,
    pub(super) topics: Topics,
    /// By topic, then by handler.
    pub(super) handlers: Vec<Vec<Handler<DB>>>,
    pub(super) pool: Pool<DB>,
    pub(super) broker: Broker,
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) core: Core<Arc<Message>>,
    pub(super) drain_limit: Duration,
    pub(super) session_timeout: Duration,
    pub(super) observers: Observers,
    pub(super) parked: Arc<tokio::sync::Notify>,
}

/// The shell around one core: tells it what happens and does what it says. It decides nothing.
pub(super) struct Driver<DB: Store> {
    group: Arc<str>,
    topics: Topics,
    handlers: Vec<Vec<Handler<DB>>>,
    pool: Pool<DB>,
    broker: Broker,
    inputs: mpsc::Receiver<Input>,
    core: Core<Arc<Message>>,
    actions: Vec<Action<Arc<Message>>>,
    drain_limit: Duration,
    session_timeout: Duration,
    observers: Observers,
    parked: Arc<tokio::sync::Notify>,
    opening: Arc<Opening<DB>>,
    answers: mpsc::UnboundedReceiver<Answer>,
    answer: mpsc::UnboundedSender<Answer>,
    zero: Instant,
    owned: Owned,
    epochs: u64,
    /// The rows that the lanes of an epoch write.
    rows: BTreeMap<(Tp, Epoch), Vec<Row>>,
    running: BTreeMap<JobId, Running>,
    failures: Failures,
    log: Log,
    heard_of_group: bool,
    drain_deadline: Option<Instant>,
    finished: bool,
    stopped: Option<WorkerError>,
}

struct Running {
    lane: LaneId,
    offset: Offset,
    attempt: u32,
    cancel: Option<oneshot::Sender<()>>,
}

/// What comes back from work that was started.
pub(super) enum Answer {
    Job(JobId, Ended),
    Saved(Vec<Saved>),
    Committed(Vec<(Tp, Epoch, NextOffset)>, Result<(), LookupError>),
    Opened(Opened),
    TopicIds(Vec<Option<uuid::Uuid>>),
    OffLog(Vec<(Tp, Epoch)>),
}

impl<DB: Store> Driver<DB> {
    pub(super) fn new(parts: Parts<DB>) -> Self {
        let (answer, answers) = mpsc::unbounded_channel();
        let Parts { group, topics, handlers, pool, broker, inputs, core, drain_limit, .. } = parts;
        let opening = Arc::new(Opening {
            topics: topics.clone(),
            handlers: handlers.clone(),
            pool: pool.clone(),
            broker: broker.clone(),
        });
        Self {
            log: Log::new(Arc::clone(&group)),
            session_timeout: parts.session_timeout,
            observers: parts.observers,
            parked: parts.parked,
            actions: Vec::new(),
            zero: Instant::now(),
            owned: Owned::default(),
            epochs: 0,
            rows: BTreeMap::new(),
            running: BTreeMap::new(),
            failures: Failures::default(),
            heard_of_group: false,
            drain_deadline: None,
            finished: false,
            stopped: None,
            group,
            topics,
            handlers,
            pool,
            broker,
            inputs,
            core,
            drain_limit,
            opening,
            answers,
            answer,
        }
    }

    /// Runs until told to stop, or until something must not go on.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), WorkerError> {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut explain = self.zero + EXPLAIN_AFTER;
        let mut answers = Vec::new();
        while !self.finished {
            let wake = self.core.next_wakeup().map(|at| self.zero + Duration::from_millis(at.0));
            tokio::select! {
                biased;
                _ = self.answers.recv_many(&mut answers, 256) => {
                    for answer in answers.drain(..) {
                        self.answered(answer);
                    }
                }
                input = self.inputs.recv() => match input {
                    Some(input) => self.take(input),
                    None => self.finished = true,
                },
                () = at(wake) => self.step(Event::Tick),
                () = at(self.owned.deadline()) => {
                    let tps = self.owned.overdue(Instant::now());
                    self.step(Event::DrainDeadline { tps });
                }
                () = at(self.drain_deadline) => {
                    self.drain_deadline = None;
                    let tps = self.core.snapshot().partitions.iter().map(|partition| partition.tp).collect();
                    self.step(Event::DrainDeadline { tps });
                }
                _ = stop.wait_for(|stop| *stop), if self.drain_deadline.is_none() && !self.is_stopping() => {
                    self.drain_deadline = Some(Instant::now() + self.drain_limit);
                    self.step(Event::Drain);
                }
                _ = look.tick() => self.look(),
                () = tokio::time::sleep_until(explain), if !self.heard_of_group => {
                    self.log.waiting_for_group(self.session_timeout);
                    explain = Instant::now() + self.session_timeout.max(EXPLAIN_AFTER);
                }
            }
            self.perform();
        }
        self.close().await;
        self.stopped.map_or(Ok(()), Err)
    }

    fn is_stopping(&self) -> bool {
        self.core.snapshot().stopping
    }

    async fn close(&mut self) {
        self.broker.command(Command::Close);
        let closed = async {
            while let Some(input) = self.inputs.recv().await {
                match input {
                    Input::Closed => break,
                    Input::Revoking { released, .. } => released.tell(),
                    _ => {}
                }
            }
        };
        if tokio::time::timeout(CLOSE_LIMIT, closed).await.is_err() {
            self.log.not_closed();
        }
    }

    fn step(&mut self, event: Event<Arc<Message>>) {
        let now = Millis(u64::try_from(self.zero.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.core.step(now, event, &mut self.actions);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Records(records) => {
                self.log.broker_answers();
                for record in records {
                    let event = Event::Record {
                        tp: record.tp,
                        epoch: record.epoch,
                        offset: Offset(record.offset),
                        bytes: record.message.size(),
                        handle: record.message,
                    };
                    self.step(event);
                    self.perform();
                }
            }
            Input::Positions(positions) => {
                for (tp, epoch, position) in positions {
                    self.step(Event::Position { tp, epoch, position: NextOffset(position) });
                }
            }
            Input::Owned(tps) => {
                self.heard_of_group = true;
                self.log.owned(tps.len());
                if !tps.is_empty() && !self.is_stopping() {
                    self.open(&tps);
                }
            }
            Input::Revoking { tps, released } => {
                let open: BTreeSet<Tp> = tps.iter().copied().filter(|tp| self.forget(*tp)).collect();
                self.owned.revoking(open.clone(), released, Instant::now() + self.drain_limit);
                self.step(Event::Revoke { tps: open.into_iter().collect() });
            }
            Input::Lost(tps) => {
                for tp in &tps {
                    self.forget(*tp);
                }
                self.owned.released(&tps);
                self.step(Event::Lost { tps });
            }
            Input::OffLog(positions) => {
                let (opening, answer) = (Arc::clone(&self.opening), self.answer.clone());
                tokio::spawn(async move { opening.off_log(positions, answer).await });
            }
            Input::NotAssigned(tps) => {
                let ours: Vec<Tp> = tps.into_iter().filter(|tp| self.owned.contains(*tp)).collect();
                self.step(Event::Lost { tps: ours.clone() });
                self.open(&ours);
            }
            Input::Trouble(trouble) => {
                if let Trouble::Rebuilt { error } = &trouble {
                    let (group, error) = (Arc::clone(&self.group), error.clone());
                    self.observers.tell(&Notice::Rebuilt { group, error });
                }
                self.log.trouble(&trouble);
            }
            Input::Closed => self.finished = true,
        }
    }

    /// The partition is not ours any more; whether it was read.
    fn forget(&mut self, tp: Tp) -> bool {
        let open = self.owned.remove(tp);
        if open {
            let (group, topic) = (Arc::clone(&self.group), Arc::clone(self.topics.name(tp)));
            self.observers.tell(&Notice::Ended { group, topic, partition: tp.partition });
        }
        open
    }

    /// Looks up where partitions start.
    fn open(&mut self, tps: &[Tp]) {
        let ticket = self.owned.opening(tps);
        let (opening, answer, tps) = (Arc::clone(&self.opening), self.answer.clone(), tps.to_vec());
        tokio::spawn(async move { opening.run(tps, ticket, answer).await });
    }

    fn opened(&mut self, opened: Opened) {
        let mut starts = Vec::new();
        if let Some(error) = &opened.error {
            self.log.opening_failed(error);
        }
        for (tp, found) in opened.found {
            if !self.owned.is_opening(tp, &opened.ticket) {
                continue;
            }
            match found {
                Found::Start { at, lanes, notes } => {
                    self.epochs += 1;
                    let epoch = Epoch(self.epochs);
                    self.owned.opened(tp, epoch);
                    let position = self.position(tp, at);
                    self.log.started(&position, &notes);
                    self.observers.tell(&Notice::Started { group: Arc::clone(&self.group), position });
                    starts.push((tp, epoch, at));
                    self.rows.retain(|(held, _), _| *held != tp);
                    let rows = lanes.iter().map(|lane| lane.row.clone()).collect();
                    self.rows.insert((tp, epoch), rows);
                    let lanes = lanes.iter().map(|lane| lane.start).collect();
                    self.step(Event::Assigned { tp, epoch, start: Some(NextOffset(at)), lanes });
                }
                Found::Refused(reason) => self.refuse(tp, &reason),
            }
        }
        if !starts.is_empty() {
            self.broker.command(Command::Assign(starts));
        }
    }

    /// Leaves a partition unread until an operator has decided.
    fn refuse(&mut self, tp: Tp, reason: &str) {
        let topic = Arc::clone(self.topics.name(tp));
        if self.owned.refused(tp, reason) {
            self.log.refused(&topic, tp.partition, reason);
            self.observers.tell(&Notice::Refused {
                group: Arc::clone(&self.group),
                topic,
                partition: tp.partition,
                reason: reason.to_owned(),
            });
        }
        self.broker.command(Command::LeaveOut(tp));
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Job(job, ended) => self.job_ended(job, ended),
            Answer::Saved(saved) => self.step(Event::ProgressSaved { saved }),
            Answer::Committed(offsets, result) => {
                self.log.committed(result.as_ref().err());
                let positions = offsets.iter().map(|(tp, _, next)| self.position(*tp, next.0));
                self.observers.tell(&Notice::Committed {
                    group: Arc::clone(&self.group),
                    offsets: positions.collect(),
                    error: result.as_ref().err().map(ToString::to_string),
                });
                self.step(Event::Committed { offsets, ok: result.is_ok() });
            }
            Answer::Opened(opened) => self.opened(opened),
            Answer::TopicIds(ids) => self.compare_topic_ids(&ids),
            Answer::OffLog(found) => self.off_log(found),
        }
    }

    fn job_ended(&mut self, id: JobId, ended: Ended) {
        let Some(running) = self.running.remove(&id) else { return };
        let Running { lane, offset, attempt, .. } = running;
        let (consumer, position) = (self.consumer(lane), self.position(lane.tp, offset.0));
        let outcome = jobs::outcome(&ended);
        match ended {
            Ok(disposition) => {
                self.log.done(consumer.name(), &position, &disposition);
                if disposition == apply::Disposition::Parked {
                    self.parked.notify_one();
                }
                self.observers.tell(&Notice::Done { consumer: consumer.name(), position, disposition });
            }
            Err(failure) => {
                self.failures.note(lane, offset, &failure);
                self.log.failed(consumer.name(), &position, attempt, &failure);
                let kind = failure.kind();
                let error = failure.to_string();
                if kind == FailureKind::TransactionEnded {
                    self.parked.notify_one();
                }
                if matches!(kind, FailureKind::TransactionEnded | FailureKind::Configuration) {
                    self.stopped.get_or_insert_with(|| match kind {
                        FailureKind::TransactionEnded => WorkerError::TransactionEnded {
                            consumer: consumer.name().to_owned(),
                            handler: consumer.registration(None, &[]).handler.to_owned(),
                            error: error.clone(),
                        },
                        _ => WorkerError::Configuration(error.clone()),
                    });
                }
                self.observers.tell(&Notice::Failed { consumer: consumer.name(), position, kind, error, attempt });
            }
        }
        self.step(Event::Finished { job: id, outcome });
    }

    fn perform(&mut self) {
        // Some actions make the core speak again.
        while !self.actions.is_empty() {
            for action in std::mem::take(&mut self.actions) {
                self.act(action);
            }
        }
    }

    fn act(&mut self, action: Action<Arc<Message>>) {
        match action {
            Action::Start(job) => self.start(job),
            Action::Cancel { job } => {
                if let Some(cancel) = self.running.get_mut(&job).and_then(|running| running.cancel.take()) {
                    let _ended = cancel.send(());
                }
            }
            Action::SaveProgress(saves) => {
                let (pool, answer) = (self.pool.clone(), self.answer.clone());
                let rows = saves.iter().map(|save| self.row(save.lane, save.epoch)).collect();
                tokio::spawn(jobs::save(pool, saves, rows, answer));
            }
            Action::Commit(offsets) => {
                let (broker, answer) = (self.broker.clone(), self.answer.clone());
                tokio::spawn(async move {
                    let asked = offsets.iter().map(|(tp, _, next)| (*tp, next.0)).collect();
                    let result = broker.commit(asked).await;
                    let _gone = answer.send(Answer::Committed(offsets, result));
                });
            }
            Action::Pause { tp } => {
                if let Some(epoch) = self.owned.epoch(tp) {
                    self.broker.command(Command::Pause(tp, epoch));
                }
            }
            Action::Resume { tp } => {
                if let Some(epoch) = self.owned.epoch(tp) {
                    self.broker.command(Command::Resume(tp, epoch));
                }
            }
            Action::Reassign { tp, reason } => {
                self.log.reassigned(self.topics.name(tp), tp.partition, reason);
                if self.owned.contains(tp) {
                    self.open(&[tp]);
                }
            }
            Action::Released { tps } => self.owned.released(&tps),
            Action::Stop { reason } => {
                let (StopReason::TransactionEnded { lane, offset } | StopReason::Misconfigured { lane, offset }) =
                    reason;
                let position = self.position(lane.tp, offset.0);
                self.log.stopped(&position);
                self.drain_deadline.get_or_insert(Instant::now() + self.drain_limit);
            }
            Action::Finished => self.finished = true,
        }
    }

    fn row(&self, lane: LaneId, epoch: Epoch) -> Option<Row> {
        self.rows.get(&(lane.tp, epoch))?.get(usize::from(lane.handler)).cloned()
    }

    fn consumer(&self, lane: LaneId) -> Arc<dyn apply::Consumer<DB>> {
        Arc::clone(&self.handlers[usize::from(lane.tp.topic)][usize::from(lane.handler)].0)
    }

    fn position(&self, tp: Tp, offset: i64) -> Position {
        Position::new(Arc::clone(self.topics.name(tp)), tp.partition, offset)
    }

    fn start(&mut self, job: Job<Arc<Message>>) {
        let (cancel, cancelled) = oneshot::channel();
        let running = Running { lane: job.lane, offset: job.offset, attempt: job.attempt, cancel: Some(cancel) };
        self.running.insert(job.id, running);
        let task = match job.task {
            Task::Apply => apply::Task::Apply,
            Task::Park => self.failures.park(job.lane, job.offset, job.attempt),
        };
        let (consumer, row) = (self.consumer(job.lane), self.row(job.lane, job.epoch));
        let (pool, answer) = (self.pool.clone(), self.answer.clone());
        tokio::spawn(jobs::run(consumer, pool, job, row, task, cancelled, answer));
    }

    /// The regular look: whether topics are still the same, and whether refused partitions were mended.
    fn look(&mut self) {
        if self.is_stopping() {
            return;
        }
        let refused = self.owned.all_refused();
        if !refused.is_empty() {
            self.open(&refused);
        }
        if self.owned.open().next().is_some() {
            let (broker, answer) = (self.broker.clone(), self.answer.clone());
            tokio::spawn(async move {
                // An error says nothing about the topics: the next look asks again.
                if let Ok(ids) = broker.topic_ids().await {
                    let ids = ids.into_iter().map(Result::ok).collect();
                    let _gone = answer.send(Answer::TopicIds(ids));
                }
            });
        }
    }

    fn compare_topic_ids(&mut self, ids: &[Option<uuid::Uuid>]) {
        let open: Vec<_> = self.owned.open().collect();
        for (tp, epoch) in open {
            let Some(Some(actual)) = ids.get(usize::from(tp.topic)) else { continue };
            let Some(row) = self.rows.get(&(tp, epoch)).and_then(|rows| rows.first()) else { continue };
            let stored = &row.partition;
            if !stored.topic_id.is_nil() && !actual.is_nil() && stored.topic_id != *actual {
                let name = self.handlers[usize::from(tp.topic)].first().map_or("", |(c, _)| c.name());
                let reason = opening::recreated(name, stored, *actual);
                self.step(Event::Lost { tps: vec![tp] });
                self.refuse(tp, &reason);
            }
        }
    }

    /// These are off their logs: opening them again says what is to be done.
    fn off_log(&mut self, off: Vec<(Tp, Epoch)>) {
        for (tp, epoch) in off {
            if self.owned.epoch(tp) == Some(epoch) {
                self.step(Event::Lost { tps: vec![tp] });
                self.open(&[tp]);
            }
        }
    }
}

/// Sleeps until then; for ever if there is no then.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
