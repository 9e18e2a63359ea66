mod actions;
mod answers;
mod inputs;
mod partitions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::WorkerError;
use super::answer::{Answer, Row};
use super::jobs::Failures;
use super::notice::Observers;
use super::opening::{Handler, Opening};
use super::ownership::Owned;
use super::pulse::Pulse;
use super::report::Log;
use crate::apply;
use crate::flow::{Action, Core, Epoch, Event, JobId, LaneId, Millis, Offset, Order, Tp};
use crate::inbox::{Connections, Store};
use crate::message::{Message, Position};
use crate::source::kafka::{Broker, Command, Input, Topics};

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
    /// Whether any handler of a topic goes by message keys.
    by_key: Vec<bool>,
    connections: Connections<DB>,
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
    pulse: Pulse,
    epochs: u64,
    /// The rows that the lanes of an epoch write.
    rows: BTreeMap<(Tp, Epoch), Vec<Row>>,
    running: BTreeMap<JobId, Running>,
    failures: Failures,
    log: Log,
    heard_of_group: bool,
    drain_deadline: Option<Instant>,
    stopping: bool,
    finished: bool,
    stopped: Option<WorkerError>,
}

struct Running {
    lane: LaneId,
    track: u16,
    offsets: Vec<Offset>,
    attempt: u32,
    cancel: Option<oneshot::Sender<()>>,
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
        let goes_by_key = |(consumer, _): &Handler<DB>| consumer.options().order == Order::Key;
        let by_key = handlers.iter().map(|of_topic| of_topic.iter().any(goes_by_key)).collect();
        Self {
            by_key,
            log: Log::new(Arc::clone(&group)),
            session_timeout: parts.session_timeout,
            observers: parts.observers,
            parked: parts.parked,
            actions: Vec::new(),
            zero: Instant::now(),
            owned: Owned::default(),
            pulse: Pulse::default(),
            epochs: 0,
            rows: BTreeMap::new(),
            running: BTreeMap::new(),
            failures: Failures::default(),
            heard_of_group: false,
            drain_deadline: None,
            stopping: false,
            finished: false,
            stopped: None,
            group,
            topics,
            handlers,
            connections: Connections::keeping(&pool),
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
                // What is rare comes first: a backlog must not hold up a stop or a deadline.
                biased;
                _ = stop.wait_for(|stop| *stop), if !self.stopping => {
                    self.begin_to_stop();
                    self.step(Event::Drain);
                }
                () = at(self.drain_deadline) => {
                    self.drain_deadline = None;
                    let tps = self.core.snapshot().partitions.iter().map(|partition| partition.tp).collect();
                    self.step(Event::DrainDeadline { tps });
                }
                () = at(self.owned.deadline()) => {
                    let tps = self.owned.overdue(Instant::now());
                    self.step(Event::DrainDeadline { tps });
                }
                _ = look.tick() => self.look(),
                () = tokio::time::sleep_until(explain), if !self.heard_of_group => {
                    self.log.waiting_for_group(self.session_timeout);
                    explain = Instant::now() + self.session_timeout.max(EXPLAIN_AFTER);
                }
                _ = self.answers.recv_many(&mut answers, 256) => {
                    for answer in answers.drain(..) {
                        self.answered(answer);
                    }
                }
                input = self.inputs.recv() => match input {
                    Some(input) => self.take(input),
                    None => self.poll_thread_ended(),
                },
                () = at(wake) => self.step(Event::Tick),
            }
            self.perform();
        }
        self.close().await;
        self.stopped.map_or(Ok(()), Err)
    }

    /// Nobody told it to: what runs is left to its own end, and comes again.
    fn poll_thread_ended(&mut self) {
        self.finished = true;
        self.stopped.get_or_insert_with(|| WorkerError::Internal("the poll thread ended".to_owned()));
    }

    fn begin_to_stop(&mut self) {
        self.stopping = true;
        self.drain_deadline = Some(Instant::now() + self.drain_limit);
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
        let now = milliseconds(self.zero.elapsed());
        self.core.step(now, event, &mut self.actions);
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
}

fn milliseconds(span: Duration) -> Millis {
    Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

/// Sleeps until then; for ever if there is no then.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
