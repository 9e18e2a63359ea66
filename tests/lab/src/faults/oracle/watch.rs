use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use handstamp_tests::introduce;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::faults::journal::Journal;
use crate::faults::ledger::{Fate, Ledger, index};

const EVERY: Duration = Duration::from_millis(200);
const LIMIT: Duration = Duration::from_secs(2);

/// Looks on while faults run: no offset that Kafka knows may be ahead of what the database holds.
#[derive(Debug)]
pub struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Watched>,
    committed: watch::Receiver<Vec<i64>>,
    verified: Arc<Mutex<Vec<i64>>>,
}

/// While this lives nothing is compared: somebody other than a worker changes what is seen. Afterwards all
/// is compared from the start again.
pub struct LookingAway {
    _verified: OwnedMutexGuard<Vec<i64>>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// How often it could be looked at.
    pub samples: u64,
    /// Records below a committed offset that were neither applied nor parked.
    pub early: Vec<String>,
    /// The largest resident set of a worker.
    pub resident_mb: u64,
}

/// Whose progress is watched.
#[derive(Clone, Debug)]
pub struct Subject {
    pub brokers: String,
    pub topic: String,
    pub group: String,
    pub database: PgConnectOptions,
    pub ledger: Arc<Ledger>,
    pub journal: Arc<Journal>,
    /// Locked while the oracle must ask Kafka nothing.
    pub pause: Arc<Mutex<()>>,
}

struct Watching {
    subject: Subject,
    consumer: Arc<BaseConsumer>,
    connection: Option<PgConnection>,
    partitions: usize,
    /// Below these offsets everything was seen to be dealt with.
    verified: Arc<Mutex<Vec<i64>>>,
    seen: Watched,
}

impl Watch {
    pub fn start(subject: Subject) -> Self {
        let partitions = subject.ledger.ends().len();
        let (told, committed) = watch::channel(vec![0; partitions]);
        let (stop, stopped) = oneshot::channel();
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", &subject.brokers)
            .set("reconnect.backoff.max.ms", "1000")
            // It asks for the group's offsets and never joins.
            .set("group.id", &subject.group)
            .set("enable.auto.commit", "false")
            .create()
            .expect("a consumer can be made");
        let verified = Arc::new(Mutex::new(vec![0; partitions]));
        let watching = Watching {
            subject,
            consumer: Arc::new(consumer),
            connection: None,
            partitions,
            verified: Arc::clone(&verified),
            seen: Watched::default(),
        };
        Self { stop, task: tokio::spawn(watching.run(told, stopped)), committed, verified }
    }

    /// The offsets that the group has committed, as they were seen last.
    pub fn committed(&self) -> watch::Receiver<Vec<i64>> {
        self.committed.clone()
    }

    /// Compares nothing until what is returned is dropped.
    pub async fn look_away(&self) -> LookingAway {
        let mut verified = Arc::clone(&self.verified).lock_owned().await;
        verified.fill(0);
        LookingAway { _verified: verified }
    }

    pub async fn stop(self) -> Watched {
        let _ended = self.stop.send(());
        self.task.await.expect("looking on does not panic")
    }
}

impl Watching {
    async fn run(mut self, told: watch::Sender<Vec<i64>>, mut stopped: oneshot::Receiver<()>) -> Watched {
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = &mut stopped => return self.seen,
                _ = tick.tick() => {}
            }
            self.measure();
            let Ok(mut verified) = Arc::clone(&self.verified).try_lock_owned() else { continue };
            // First Kafka, then the database: what is dealt with only grows meanwhile.
            let Ok(committed) = self.committed().await else {
                introduce(self.consumer.client(), &self.subject.brokers);
                continue;
            };
            told.send_replace(committed.clone());
            match timeout(LIMIT, self.compare(&mut verified, &committed)).await {
                Ok(Ok(())) => self.seen.samples += 1,
                // The database is down, or does not answer: that is what some rows do to it.
                Ok(Err(_)) | Err(_) => self.connection = None,
            }
        }
    }

    async fn committed(&self) -> Result<Vec<i64>> {
        let _paused = self.subject.pause.lock().await;
        let (consumer, topic) = (Arc::clone(&self.consumer), self.subject.topic.clone());
        let partitions = self.partitions;
        spawn_blocking(move || {
            let mut list = TopicPartitionList::new();
            list.add_partition_range(&topic, 0, i32::try_from(partitions)? - 1);
            let answer = consumer.committed_offsets(list, LIMIT)?;
            let mut committed = vec![0; partitions];
            for element in answer.elements() {
                element.error()?;
                if let Offset::Offset(next) = element.offset() {
                    committed[index(element.partition())] = next;
                }
            }
            Ok(committed)
        })
        .await?
    }

    async fn compare(&mut self, verified: &mut Vec<i64>, committed: &[i64]) -> Result<()> {
        let mut asked: Vec<(i32, i64, i64)> = Vec::new();
        let mut ends = verified.clone();
        for (partition, next) in committed.iter().enumerate() {
            for (offset, number, event) in self.subject.ledger.between(partition, verified[partition], *next)
            {
                ends[partition] = offset + 1;
                if event.fate != Fate::Skipped {
                    asked.push((i32::try_from(partition)?, offset, i64::try_from(number)?));
                }
            }
        }
        let open = if asked.is_empty() { Vec::new() } else { self.not_dealt_with(&asked).await? };
        for (partition, offset) in open {
            self.seen.early.push(format!("{partition}@{offset} was passed before it was dealt with"));
        }
        *verified = ends;
        Ok(())
    }

    async fn not_dealt_with(&mut self, asked: &[(i32, i64, i64)]) -> Result<Vec<(i32, i64)>> {
        if self.connection.is_none() {
            self.connection = Some(self.subject.database.connect().await?);
        }
        let connection = self.connection.as_mut().context("it was made")?;
        let columns = |column: fn(&(i32, i64, i64)) -> i64| asked.iter().map(column).collect::<Vec<_>>();
        let open = sqlx::query_as(
            r#"SELECT asked.partition::int4, asked.position
               FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS asked (partition, position, event)
               WHERE NOT EXISTS (SELECT FROM effects e WHERE e.event = asked.event)
                 AND NOT EXISTS (SELECT FROM handstamp.dead_letters l
                                 WHERE l.partition = asked.partition AND l."offset" = asked.position)"#,
        )
        .bind(columns(|asked| i64::from(asked.0)))
        .bind(columns(|asked| asked.1))
        .bind(columns(|asked| asked.2))
        .fetch_all(connection)
        .await?;
        Ok(open)
    }

    fn measure(&mut self) {
        for id in self.subject.journal.processes() {
            self.seen.resident_mb = self.seen.resident_mb.max(resident_mb(id).unwrap_or(0));
        }
    }
}

/// The resident set of a process, where the system tells it.
fn resident_mb(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}
