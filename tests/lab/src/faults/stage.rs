use std::fs;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::select;
use handstamp_tests::{TestDatabase, TestTopic, unique};
use sqlx::{ConnectOptions, PgConnection};
use tokio::process::Command;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep, timeout};

use super::arena::Arena;
use super::journal::Journal;
use super::ledger::{Event, Ledger};
use super::load::{ACCOUNTS, Load, Mix};
use super::member::{Member, PATIENCE};
use super::mock::{self, Mock};
use super::offsets::Offsets;
use super::oracle::{Copies, Holdings, LookingAway, Subject, Verdict, Watch, Watched};
use super::worker::{Broken, Trigger};
use crate::sim::random::Random;

/// How long everything may take to be dealt with after the last fault.
const DRAIN_LIMIT: Duration = Duration::from_mins(1);

/// A transaction that writes progress or a dead letter may take 30 s; the server ends one whose client went
/// silent 5 s after that.
const IDLE_LIMIT: Duration = Duration::from_secs(40);

/// What a stage is like.
#[derive(Clone, Debug)]
pub struct Setup {
    pub partitions: i32,
    pub mix: Mix,
    /// Properties of librdkafka that all members have.
    pub properties: Vec<(&'static str, String)>,
    /// On a Kafka of its own whose answers the row chooses.
    pub mocked: bool,
    /// Members copy dead letters to their topic, which the row has to make.
    pub copying: bool,
    pub handler: Handler,
}

/// How the messages of a partition are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// In order, many to a transaction.
    InOrder,
    /// In order, each in a transaction of its own.
    Alone,
    /// Only those of one message key are in order.
    Keyed,
}

impl Default for Setup {
    fn default() -> Self {
        let properties = vec![session(1_500), ("heartbeat.interval.ms", "200".to_owned())];
        Self {
            partitions: 16,
            mix: Mix::default(),
            properties,
            mocked: false,
            copying: false,
            handler: Handler::InOrder,
        }
    }
}

impl Setup {
    /// With another rate of records a second.
    pub fn rate(mut self, rate: u32) -> Self {
        self.mix.rate = rate;
        self
    }

    /// With one message to a transaction.
    pub fn alone(mut self) -> Self {
        self.handler = Handler::Alone;
        self
    }

    /// With `order = key`.
    pub fn keyed(mut self) -> Self {
        self.handler = Handler::Keyed;
        self
    }

    /// With a session of so many milliseconds.
    pub fn session(mut self, milliseconds: u32) -> Self {
        self.properties.retain(|(name, _)| *name != "session.timeout.ms");
        self.properties.push(session(milliseconds));
        self
    }

    /// With the session that the broker sets: the new group protocol has it so.
    pub fn without_session(mut self) -> Self {
        self.properties.retain(|(name, _)| !matches!(*name, "session.timeout.ms" | "heartbeat.interval.ms"));
        self
    }

    /// On a [`Mock`].
    pub fn mocked(self) -> Self {
        Self { mocked: true, ..self.session(mock::SESSION_MS) }
    }

    /// With members that copy dead letters, of which so many of a thousand records are made.
    pub fn copying(mut self, poison: u64) -> Self {
        self.mix.poison = poison;
        Self { copying: true, ..self }
    }

    /// With one more property.
    pub fn property(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.properties.push((name, value.into()));
        self
    }
}

fn session(milliseconds: u32) -> (&'static str, String) {
    ("session.timeout.ms", milliseconds.to_string())
}

/// One topic, one group and one database, with a load that is being written and an oracle that looks on.
pub struct Stage {
    pub database: TestDatabase,
    pub topic: TestTopic,
    pub group: String,
    pub journal: Arc<Journal>,
    pub ledger: Arc<Ledger>,
    /// If it was set up to be on one.
    pub mock: Option<Mock>,
    /// If members copy dead letters.
    pub copies: Option<Copies>,
    setup: Setup,
    brokers: String,
    broken: Option<Broken>,
    load: Load,
    watch: Watch,
    pause: Arc<Mutex<()>>,
    processes: AtomicU32,
    logs: PathBuf,
}

/// A place in the group that one process after the other may take.
#[derive(Clone, Debug, Default)]
pub struct Post {
    name: String,
    is_static: bool,
    trigger: Option<Trigger>,
    database: Option<String>,
}

impl Post {
    /// Whose processes are new to the group each time.
    pub fn dynamic(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Whose processes are one member to the group: a restart is no rebalance.
    pub fn fixed(name: impl Into<String>) -> Self {
        Self { is_static: true, ..Self::dynamic(name) }
    }

    /// Whose process does this to itself.
    pub fn with(&self, trigger: Trigger) -> Self {
        Self { trigger: Some(trigger), ..self.clone() }
    }

    /// Whose processes reach the database by another way.
    pub fn by_way_of(self, database: String) -> Self {
        Self { database: Some(database), ..self }
    }
}

/// What was found when a stage was closed.
#[derive(Debug)]
pub struct Findings {
    pub verdict: Verdict,
    pub watched: Watched,
    /// Members that did not end well when they were told to stop.
    pub unclean: Vec<String>,
    /// The last statements of transactions that stayed open with nobody at work in them.
    pub idle_transactions: Vec<String>,
    /// Dead letters that were not copied.
    pub uncopied: Option<String>,
    pub events: u64,
}

impl Stage {
    pub async fn open(arena: &Arena, setup: Setup, random: Random, logs: PathBuf) -> Result<Self> {
        fs::create_dir_all(&logs).with_context(|| format!("making {}", logs.display()))?;
        let database = TestDatabase::on(arena.postgres.url()).await;
        handstamp::migrate(database.pool()).await.context("making the inbox")?;
        for statement in [
            "CREATE TABLE account (id int8 PRIMARY KEY, balance int8 NOT NULL DEFAULT 0)",
            "CREATE TABLE effects (id bigserial, event int8 NOT NULL, account int8 NOT NULL, amount int8 NOT NULL,
             partition int4 NOT NULL, position int8 NOT NULL, process int8 NOT NULL, attempt int8 NOT NULL)",
            // Not unique: that is the inbox's part.
            "CREATE INDEX effects_event ON effects (event)",
        ] {
            sqlx::query(statement).execute(database.pool()).await?;
        }
        sqlx::query("INSERT INTO account (id) SELECT generate_series(0, $1)")
            .bind(i64::try_from(ACCOUNTS)?)
            .execute(database.pool())
            .await?;
        let mock = setup.mocked.then(Mock::start).transpose()?;
        let (brokers, topic) = if let Some(mock) = &mock {
            (mock.servers(), mock.create_topic(setup.partitions)?)
        } else {
            let brokers = arena.kafka.brokers().to_owned();
            let topic = TestTopic::on(&brokers, setup.partitions).await;
            (brokers, topic)
        };
        let copies = setup.copying.then(|| Copies::of(&brokers, topic.name()));
        let (group, pause) = (unique("group"), Arc::default());
        let partitions = usize::try_from(setup.partitions)?;
        let (ledger, journal) = (
            Arc::new(Ledger::new(partitions, setup.handler == Handler::Keyed)),
            Arc::new(Journal::new(partitions)),
        );
        let watch = Watch::start(Subject {
            brokers: brokers.clone(),
            topic: topic.name().to_owned(),
            group: group.clone(),
            database: database.options().application_name("lab-oracle"),
            ledger: Arc::clone(&ledger),
            journal: Arc::clone(&journal),
            pause: Arc::clone(&pause),
        });
        let load =
            Load::start(&brokers, topic.name(), setup.mix, random, Arc::clone(&ledger), watch.committed());
        let broken = arena.broken;
        let processes = AtomicU32::new(0);
        Ok(Self {
            database,
            topic,
            group,
            journal,
            ledger,
            mock,
            copies,
            setup,
            brokers,
            broken,
            load,
            watch,
            pause,
            processes,
            logs,
        })
    }

    /// Starts a process on a post.
    pub fn enlist(&self, post: &Post) -> Member {
        let mut command = Command::new(std::env::current_exe().expect("a process knows its path"));
        let database = post.database.clone().unwrap_or_else(|| self.database.url());
        command.args(["worker", "--database", &database, "--brokers", &self.brokers]);
        command.args(["--topic", self.topic.name(), "--group", &self.group]);
        for (name, value) in &self.setup.properties {
            command.args(["--property", &format!("{name}={value}")]);
        }
        match self.setup.handler {
            Handler::InOrder => {}
            Handler::Alone => _ = command.arg("--alone"),
            Handler::Keyed => _ = command.arg("--keyed"),
        }
        if post.is_static {
            command.args(["--property", &format!("group.instance.id={}", post.name)]);
        }
        if self.setup.copying {
            command.arg("--copies");
        }
        if let Some(broken) = self.broken {
            let broken = match broken {
                Broken::EffectsFirst => "effects-first",
                Broken::OffsetFirst => "offset-first",
            };
            command.args(["--broken", broken]);
        }
        if let Some((name, value)) = post.trigger.map(Trigger::variable) {
            command.env(name, value);
        }
        let number = self.processes.fetch_add(1, Ordering::SeqCst);
        Member::spawn(command, number, &post.name, &self.journal, &self.logs)
    }

    /// Writes one record of a new event beside the load; the event's number, and the record's offset.
    pub async fn write(&self, event: Event, partition: i32) -> (usize, i64) {
        let number = self.ledger.add(event);
        let (_, offset) = self.topic.produce(event.record(number).partition(partition)).await;
        self.ledger.written(number, partition, offset);
        (number, offset)
    }

    /// How many records the group has not committed yet.
    pub fn behind(&self) -> i64 {
        let committed = self.watch.committed();
        self.ledger.ends().iter().sum::<i64>() - committed.borrow().iter().sum::<i64>()
    }

    /// A connection that no worker uses.
    pub async fn connect(&self) -> Result<PgConnection> {
        Ok(self.database.options().application_name("lab-oracle").connect().await?)
    }

    /// Another client that asks for the group's offsets.
    pub fn offsets(&self) -> Offsets {
        Offsets::of(&self.brokers, &self.group, self.topic.name(), self.setup.partitions)
    }

    /// Kafka's offsets may be ahead of the database until what is returned is dropped.
    pub async fn look_away(&self) -> LookingAway {
        self.watch.look_away().await
    }

    /// While the answer is held, nobody but members asks Kafka about the group.
    pub async fn unwatched(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.pause).lock_owned().await
    }

    /// The offsets that the group has committed, as they were seen last.
    pub fn committed(&self) -> Vec<i64> {
        self.watch.committed().borrow().clone()
    }

    /// Waits until all that is written by now is dealt with; whether it was before patience ended.
    pub async fn until_caught_up(&self) -> bool {
        timeout(PATIENCE, self.journal.until_heard(&self.ledger.ends())).await.is_ok()
    }

    /// The faults are over: stops the load, waits until everything is dealt with, stops the members and
    /// compares what is there with what was written.
    pub async fn close(self, members: Vec<Member>) -> Result<Findings> {
        self.load.stop().await;
        let ends = self.ledger.ends();
        let mut committed = self.watch.committed();
        let all_committed = committed.wait_for(|committed| *committed == ends);
        let drained = if self.broken.is_some() {
            // Workers without an inbox may never make their last commits, or never deal with what they lose.
            let all_heard = self.journal.until_heard(&ends);
            timeout(DRAIN_LIMIT, select(pin!(all_committed), pin!(all_heard))).await.is_ok()
        } else {
            timeout(DRAIN_LIMIT, all_committed).await.is_ok()
        };
        let stuck = (!drained).then(|| describe(&committed.borrow(), &ends));
        for (partition, end) in (0..).zip(&ends) {
            let actual = self.topic.end_offset(partition).await;
            ensure!(actual == *end, "partition {partition} ends at {actual}, the ledger at {end}");
            if self.mock.is_some() {
                let start = self.topic.start_offset(partition).await;
                ensure!(start == 0, "partition {partition} starts at {start}: the mock has trimmed it");
            }
        }
        let mut connection = self.database.options().application_name("lab-oracle").connect().await?;
        let idle_transactions = idle_transactions(&mut connection).await?;
        let uncopied = match &self.copies {
            Some(copies) => copies.until_all(&copies.letters(&mut connection).await?).await.err(),
            None => None,
        };
        let mut unclean = Vec::new();
        for member in members {
            // A process that cannot drain has been reported as stuck.
            let ended = if self.broken.is_some() || stuck.is_some() {
                member.kill().await.map(drop)
            } else {
                member.stop().await.map(drop)
            };
            unclean.extend(ended.err().map(|error| error.to_string()));
        }
        let watched = self.watch.stop().await;
        let book = self.ledger.snapshot();
        ensure!(book.unwritten == 0, "{} records could not be written", book.unwritten);
        let mut verdict = Holdings::read(&mut connection).await?.judge(&book);
        verdict.early_offsets = u64::try_from(watched.early.len())?;
        verdict.examples.extend(watched.early.iter().take(3).cloned());
        verdict.stuck = u64::from(stuck.is_some());
        verdict.examples.extend(stuck);
        // The mock has no way to delete topics, and goes with its stage.
        if self.mock.is_none() {
            self.topic.delete().await;
        }
        if let Some(copies) = &self.copies {
            copies.topic().delete().await;
        }
        let events = u64::try_from(book.events.len())?;
        Ok(Findings { verdict, watched, unclean, idle_transactions, uncopied, events })
    }
}

/// Transactions in which nobody is at work, once the server has had time to end those of connections that
/// went silent. One that is aborted holds nothing; the server has forgotten its time limit by then.
async fn idle_transactions(connection: &mut PgConnection) -> Result<Vec<String>> {
    let deadline = Instant::now() + IDLE_LIMIT;
    loop {
        let idle: Vec<String> = sqlx::query_scalar(
            "SELECT format('%s of %s in a transaction since %s, idle since %s, waits for %s: %s', pid,
                           application_name, xact_start, state_change, wait_event, query)
             FROM pg_stat_activity
             WHERE datname = current_database() AND state = 'idle in transaction'
               AND state_change < clock_timestamp() - interval '1 second'",
        )
        .fetch_all(&mut *connection)
        .await?;
        if idle.is_empty() || Instant::now() > deadline {
            return Ok(idle);
        }
        sleep(Duration::from_millis(200)).await;
    }
}

fn describe(committed: &[i64], ends: &[i64]) -> String {
    let behind = committed.iter().zip(ends).enumerate().filter(|(_, (committed, end))| committed < end);
    let behind: Vec<_> = behind.map(|(at, (next, end))| format!("{at}: {next} of {end}")).collect();
    format!("still behind: {}", behind.join(", "))
}
