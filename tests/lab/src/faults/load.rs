use std::sync::Arc;
use std::time::Duration;

use handstamp_tests::introduce;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::ledger::{Event, Fate, Ledger, index};
use super::worker::Trouble;
use crate::sim::random::Random;

/// How many accounts there are.
pub const ACCOUNTS: u64 = 2_000;
const TICK: Duration = Duration::from_millis(20);
/// How long the broker may be silent before the producer is told once more where it is.
const SILENCE: Duration = Duration::from_secs(5);
/// How many events there are to one whose handler works long.
const LONG_EVERY: u64 = 40;
/// How far back an event is that is written again.
const MEMORY: u64 = 2_000;

/// What is written, in records of a thousand.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Records a second.
    pub rate: u32,
    /// An earlier event once more, in its partition or another.
    pub repeated: u64,
    /// Events whose handler fails at first.
    pub flaky: u64,
    /// Events whose handler always fails, or rejects them.
    pub poison: u64,
    /// Events without a payload.
    pub tombstones: u64,
    /// How long handlers work on events that nothing is wrong with; no longer than they must by default.
    pub slow: Option<Slow>,
    /// A partition that is further behind than this gets nothing more.
    pub backlog: i64,
    /// How many bytes a payload is longer than it has to be.
    pub padding: usize,
}

/// How many milliseconds handlers work.
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    pub usual: u32,
    /// In one of [`LONG_EVERY`].
    pub long: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            rate: 300,
            repeated: 50,
            flaky: 20,
            poison: 2,
            tombstones: 2,
            slow: None,
            backlog: 400,
            padding: 0,
        }
    }
}

/// A producer that writes without pause, and enters in the ledger what the broker acknowledges.
pub struct Load {
    stop: oneshot::Sender<()>,
    writer: JoinHandle<()>,
    /// Purges what is not yet acknowledged when it is dropped.
    producer: FutureProducer,
    reader: JoinHandle<()>,
}

struct Writer {
    topic: String,
    producer: FutureProducer,
    ledger: Arc<Ledger>,
    committed: watch::Receiver<Vec<i64>>,
    mix: Mix,
    random: Random,
    /// The events that it has made, in their order. Others are written by rows, and not again.
    own: Vec<usize>,
    sent: mpsc::UnboundedSender<(usize, DeliveryFuture)>,
}

impl Load {
    pub fn start(
        brokers: &str,
        topic: &str,
        mix: Mix,
        random: Random,
        ledger: Arc<Ledger>,
        committed: watch::Receiver<Vec<i64>>,
    ) -> Self {
        let producer: FutureProducer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("reconnect.backoff.max.ms", "1000")
            .set("enable.idempotence", "true")
            // A broker that is down for long is waited for.
            .set("message.timeout.ms", "0")
            .create()
            .expect("a producer can be made");
        let (stop, stopped) = oneshot::channel();
        let (sent, deliveries) = mpsc::unbounded_channel();
        let clerk =
            Clerk { ledger: Arc::clone(&ledger), producer: producer.clone(), brokers: brokers.to_owned() };
        let reader = tokio::spawn(clerk.enter(deliveries));
        let (topic, own) = (topic.to_owned(), producer.clone());
        let writer = Writer { topic, producer: own, ledger, committed, mix, random, own: Vec::new(), sent };
        Self { stop, writer: tokio::spawn(writer.write(stopped)), producer, reader }
    }

    /// Stops, and waits until everything is acknowledged.
    pub async fn stop(self) {
        let _ended = self.stop.send(());
        self.writer.await.expect("writing does not panic");
        self.reader.await.expect("the ledger takes what was written");
        drop(self.producer);
    }
}

impl Writer {
    async fn write(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut owed = 0.0;
        loop {
            tokio::select! {
                _ = &mut stopped => return,
                _ = tick.tick() => {}
            }
            owed += f64::from(self.mix.rate) * TICK.as_secs_f64();
            let ends = self.ledger.ends();
            while owed >= 1.0 {
                owed -= 1.0;
                self.write_one(&ends);
            }
        }
    }

    fn write_one(&mut self, ends: &[i64]) {
        let partition = self.random.index(ends.len());
        if ends[partition] - self.committed.borrow()[partition] > self.mix.backlog {
            return;
        }
        let number = self.choose();
        let event = self.ledger.event(number);
        let (mut payload, key) = (event.payload(number), event.account.to_string());
        if let Some(payload) = &mut payload {
            // Blanks, which JSON allows.
            payload.resize(payload.len() + self.mix.padding, b' ');
        }
        let id = format!("event-{number}");
        let header = Header { key: "event_id", value: Some(&id) };
        let record = FutureRecord {
            topic: &self.topic,
            partition: Some(i32::try_from(partition).expect("partitions are few")),
            payload: payload.as_ref(),
            key: Some(&key),
            timestamp: None,
            headers: Some(OwnedHeaders::new().insert(header)),
        };
        match self.producer.send_result(record) {
            Ok(delivery) => self.sent.send((number, delivery)).expect("the ledger is read to the end"),
            Err((error, _)) => panic!("not sent: {error}"),
        }
    }

    fn choose(&mut self) -> usize {
        let (known, random) = (self.own.len(), &mut self.random);
        if known > 0 && random.chance(self.mix.repeated) {
            let back = random.below(MEMORY.min(u64::try_from(known).expect("numbers fit")));
            return self.own[known - 1 - usize::try_from(back).expect("numbers fit")];
        }
        let account = i64::try_from(random.below(ACCOUNTS)).expect("accounts are few");
        let amount = i64::try_from(random.between(1, 1_000)).expect("amounts are small");
        let fate = self.fate();
        let number = self.ledger.add(Event { account, amount, fate });
        self.own.push(number);
        number
    }

    fn fate(&mut self) -> Fate {
        let Mix { flaky, poison, tombstones, .. } = self.mix;
        let drawn = self.random.below(1_000);
        if drawn < flaky {
            return Fate::flaky(if drawn.is_multiple_of(2) { 1 } else { 2 });
        }
        if drawn < flaky + poison {
            let trouble = if self.random.chance(500) { Trouble::Rejected } else { Trouble::Fails(u32::MAX) };
            return Fate::Parked(trouble);
        }
        if drawn < flaky + poison + tombstones {
            return Fate::Skipped;
        }
        Fate::Applied(match self.mix.slow {
            None => Trouble::None,
            Some(Slow { usual, long }) => {
                Trouble::Works(if self.random.below(LONG_EVERY) == 0 { long } else { usual })
            }
        })
    }
}

/// Enters in the ledger what is acknowledged.
struct Clerk {
    ledger: Arc<Ledger>,
    producer: FutureProducer,
    brokers: String,
}

impl Clerk {
    async fn enter(self, mut sent: mpsc::UnboundedReceiver<(usize, DeliveryFuture)>) {
        // In the order of sending, which is that of each partition.
        while let Some((number, mut delivery)) = sent.recv().await {
            let delivered = loop {
                match timeout(SILENCE, &mut delivery).await {
                    Ok(delivered) => break delivered,
                    Err(_) => introduce(self.producer.client(), &self.brokers),
                }
            };
            match delivered.expect("the producer lives until everything is delivered") {
                Ok(delivery) => {
                    debug_assert!(index(delivery.partition) < self.ledger.ends().len());
                    self.ledger.written(number, delivery.partition, delivery.offset);
                }
                Err(_) => self.ledger.not_written(),
            }
        }
    }
}
