use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use tokio::sync::mpsc::Sender;

use super::assignment::Assignment;
use super::handover::{Command, Fetched, Input, Trouble};
use super::rebalance::Context;
use super::{Consumer, Kafka, Topics, convert, ffi};
use crate::laboratory::point;

/// How long one poll waits; also how long a command may wait.
const POLL: Duration = Duration::from_millis(20);
/// How often positions are read.
const POSITIONS_EVERY: Duration = Duration::from_millis(500);
/// How many records are handed over at once,
const BATCH: usize = 256;
/// or how many bytes of them: handed over, they no longer count in librdkafka's own queue.
const BATCH_BYTES: usize = 2 << 20;
/// How long a dead client is left alone before a new one is made.
const REBUILD_AFTER: Duration = Duration::from_secs(1);
/// How long closing waits for lookups that still use the client.
const CLOSE_LIMIT: Duration = Duration::from_secs(8);

/// The place where the current client can be found by lookups.
pub(super) type Slot = Arc<Mutex<Option<Arc<Consumer>>>>;

/// The poll thread: nothing but polling and handing over, so that it is never late.
pub(crate) struct Poll {
    pub(super) kafka: Kafka,
    pub(super) group: String,
    pub(super) topics: Topics,
    pub(super) inputs: Sender<Input>,
    pub(super) commands: Receiver<Command>,
    pub(super) slot: Slot,
    pub(super) drain_limit: Duration,
}

enum End {
    Asked,
    Fatal(String),
}

impl Poll {
    /// Runs until told to close or until nobody listens.
    pub(crate) fn run(self) {
        loop {
            let end = panic::catch_unwind(AssertUnwindSafe(|| self.one_client())).unwrap_or_else(|_| {
                // The client closes here, on the thread that may run callbacks.
                drop(lock(&self.slot).take());
                Err("the poll thread panicked".to_owned())
            });
            match end {
                Ok(End::Asked) => break,
                Ok(End::Fatal(error)) | Err(error) => {
                    if self.inputs.blocking_send(Input::Trouble(Trouble::Rebuilt { error })).is_err() {
                        break;
                    }
                    thread::sleep(REBUILD_AFTER);
                }
            }
        }
        let _gone = self.inputs.blocking_send(Input::Closed);
    }

    fn one_client(&self) -> Result<End, String> {
        let context = Context::new(self.inputs.clone(), self.topics.clone(), self.drain_limit);
        let consumer: Consumer = self
            .kafka
            .consumer(&self.group)
            .create_with_context(context)
            .map_err(|error| error.to_string())?;
        let names: Vec<&str> = self.topics.names().collect();
        consumer.subscribe(&names).map_err(|error| error.to_string())?;
        let consumer = Arc::new(consumer);
        *lock(&self.slot) = Some(Arc::clone(&consumer));
        let end = self.poll(&consumer);
        self.close(consumer, &end);
        Ok(end)
    }

    fn poll(&self, consumer: &Consumer) -> End {
        let mut positions_read = Instant::now();
        loop {
            loop {
                match self.commands.try_recv() {
                    Ok(Command::Close) | Err(TryRecvError::Disconnected) => return End::Asked,
                    Ok(command) => self.obey(consumer, command),
                    Err(TryRecvError::Empty) => break,
                }
            }
            let (mut records, mut bytes) = (Vec::new(), 0);
            let mut wait = POLL;
            while records.len() < BATCH && bytes < BATCH_BYTES {
                match consumer.poll(wait) {
                    Some(Ok(record)) => {
                        wait = Duration::ZERO;
                        let Some(tp) = self.topics.find(record.topic(), record.partition()) else { continue };
                        let offset = record.offset();
                        let held = consumer
                            .context()
                            .assignment(|held| held.delivered(consumer, &self.topics, tp, offset));
                        // A record of a partition that is no longer ours comes back to its new owner.
                        if let Some((epoch, topic_id)) = held {
                            let topic = self.topics.name(tp);
                            let message = Arc::new(convert::message(&record, topic, topic_id));
                            bytes += message.size();
                            records.push(Fetched { tp, epoch, offset, message });
                        }
                    }
                    Some(Err(error)) => {
                        if let Some(fatal) = self.judge(consumer, &error) {
                            return End::Fatal(fatal);
                        }
                        break;
                    }
                    None => break,
                }
            }
            if !records.is_empty() {
                point!(AfterPoll);
                if self.inputs.blocking_send(Input::Records(records)).is_err() {
                    return End::Asked;
                }
            }
            // Now they stand behind every record that was read.
            if positions_read.elapsed() >= POSITIONS_EVERY {
                positions_read = Instant::now();
                self.positions(consumer);
            }
        }
    }

    fn obey(&self, consumer: &Consumer, command: Command) {
        let (context, topics) = (consumer.context(), &self.topics);
        // An assignment would make a lost one pass for held. Its revocation is on the way.
        if consumer.assignment_lost() {
            return;
        }
        match command {
            Command::Assign(starts) => {
                if let Err(error) = context.assignment(|held| held.add(consumer, topics, &starts)) {
                    let error = error.to_string();
                    self.tell(Input::Trouble(Trouble::Rebalance { what: "assign", error }));
                    self.tell(Input::NotAssigned(starts.into_iter().map(|start| start.tp).collect()));
                }
            }
            Command::LeaveOut(tp) => {
                if let Err(error) = context.assignment(|held| held.leave_out(consumer, topics, tp)) {
                    let error = error.to_string();
                    self.tell(Input::Trouble(Trouble::Rebalance { what: "unassign", error }));
                }
            }
            Command::Pause(tp, epoch) => context.assignment(|held| {
                if held.epoch(tp) == Some(epoch) {
                    held.pause(consumer, topics, tp);
                }
            }),
            Command::Resume(tp, epoch) => context.assignment(|held| {
                if held.epoch(tp) == Some(epoch) {
                    held.resume(consumer, topics, tp);
                }
            }),
            Command::Close => {}
        }
    }

    fn positions(&self, consumer: &Consumer) {
        // It waits for fetches that a new assignment ended, so that no position of an earlier one is told.
        let Ok(list) = consumer.position() else { return };
        let positions: Vec<_> = list
            .elements()
            .iter()
            .filter_map(|element| {
                let position = element.offset().to_raw().filter(|offset| *offset >= 0)?;
                let tp = self.topics.find(element.topic(), element.partition())?;
                let epoch = consumer.context().assignment(|held| held.epoch(tp))?;
                Some((tp, epoch, position))
            })
            .collect();
        if !positions.is_empty() {
            self.tell(Input::Positions(positions));
        }
    }

    /// Errors of `poll` are mostly passing; the text of one that ends the client is returned.
    fn judge(&self, consumer: &Consumer, error: &KafkaError) -> Option<String> {
        use RDKafkaErrorCode as Code;
        if let Some((code, text)) = consumer.client().fatal_error() {
            return Some(format!("{text} ({code})"));
        }
        if let KafkaError::MessageConsumptionFatal(code) = error {
            return Some(code.to_string());
        }
        let code = error.rdkafka_error_code()?;
        match code {
            Code::AutoOffsetReset => {
                let positions = consumer.context().assignment(|held| held.positions().collect());
                self.tell(Input::OffLog(positions));
            }
            Code::PollExceeded => self.tell(Input::Trouble(Trouble::Evicted)),
            Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed => {
                self.tell(Input::Trouble(Trouble::NotAllowed { code }));
            }
            Code::InconsistentGroupProtocol | Code::InvalidSessionTimeout | Code::InvalidGroupId => {
                self.tell(Input::Trouble(Trouble::Settings { code }));
            }
            code => self.tell(Input::Trouble(Trouble::Broker { code })),
        }
        None
    }

    fn tell(&self, input: Input) {
        let _gone = self.inputs.blocking_send(input);
    }

    /// Leaves the group. Everything was drained before, so a crash of librdkafka in here loses nothing.
    fn close(&self, consumer: Arc<Consumer>, end: &End) {
        lock(&self.slot).take();
        // After a fatal error librdkafka takes everything back without a word.
        let given = consumer.context().assignment(Assignment::give_up);
        if !given.is_empty() {
            self.tell(Input::Lost(given));
        }
        let deadline = Instant::now() + CLOSE_LIMIT;
        let mut consumer = Some(consumer);
        while let Some(shared) = consumer.take() {
            match Arc::try_unwrap(shared) {
                // The next client must not wait for one that may take its time.
                Ok(only) if matches!(end, End::Fatal(_)) => {
                    let close = thread::Builder::new().name("handstamp-close".to_owned());
                    let _detached = close.spawn(move || ffi::abandon(only));
                }
                // Closes on this thread, which is the one that may run callbacks.
                Ok(only) => drop(only),
                Err(shared) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(10));
                    consumer = Some(shared);
                }
                Err(shared) => {
                    tracing::warn!("a request to the broker did not end; its client is left behind");
                    std::mem::forget(shared);
                }
            }
        }
    }
}

pub(super) fn lock(slot: &Slot) -> std::sync::MutexGuard<'_, Option<Arc<Consumer>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
