use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use handstamp::internal::progress as store;
use handstamp_tests::Signal;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use tokio::time::{sleep, timeout};

use crate::faults::ledger::index;
use crate::faults::member::{Member, PATIENCE};
use crate::faults::offsets::Offsets;
use crate::faults::progress;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::sim::random::Random;

pub const ROW: Row = Row {
    id: "F17",
    what: "group offsets deleted, logs cut",
    asks: &[
        Ask::new(Fault::GroupsForgotten, 2, 10),
        Ask::new(Fault::LogsCutBehind, 8, 40),
        Ask::new(Fault::LogsCutAhead, 8, 40),
        Ask::new(Fault::LogsCutUnderReader, 4, 30),
    ],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// How long records gather that no worker reads.
const REST: Duration = Duration::from_millis(500);
/// How long a frozen reader's last request is on its way to the broker and answered.
const ANSWERED: Duration = Duration::from_millis(200);
/// How many logs are cut at a time under their reader.
const CUTS: usize = 2;

struct Scene {
    trial: Arc<Trial>,
    stage: Stage,
    offsets: Offsets,
    posts: [Post; 3],
}

/// A log that was cut, and where it starts now.
struct Cut {
    partition: i32,
    start: i64,
}

async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default()).await?;
    let posts = ["0", "1", "2"].map(Post::dynamic);
    let mut members: Vec<_> = posts.iter().map(|post| stage.enlist(post)).collect();
    let offsets = stage.offsets();
    let mut random = trial.random(0);
    let scene = Scene { trial, stage, offsets, posts };
    loop {
        ensure!(scene.stage.journal.until_applied(100).await, "nothing is applied any more");
        let at_rest = [Fault::GroupsForgotten, Fault::LogsCutBehind, Fault::LogsCutAhead];
        if at_rest.into_iter().any(|fault| scene.trial.wants(fault)) {
            members = scene.cut_at_rest(members, &mut random).await?;
        } else if scene.trial.wants(Fault::LogsCutUnderReader) {
            scene.cut_under_reader(&members, &mut random).await?;
        } else {
            break;
        }
    }
    let Scene { trial, stage, .. } = scene;
    trial.close(stage, members).await
}

impl Scene {
    /// Ends all workers, deletes their group with its offsets, and cuts logs on both sides of where the
    /// database stands: the first are read from there, the others not until somebody says where.
    async fn cut_at_rest(&self, mut members: Vec<Member>, random: &mut Random) -> Result<Vec<Member>> {
        members.remove(random.index(members.len())).kill().await?;
        try_join_all(members.into_iter().map(Member::stop)).await?;
        let mut connection = self.stage.connect().await?;
        let stored = progress::settled(&mut connection).await?;
        forget(self.trial.arena.kafka.brokers(), &self.stage.group).await?;
        let forgotten = self.offsets.committed().await?.iter().all(Option::is_none);
        self.trial.injected(Fault::GroupsForgotten);
        sleep(REST).await;
        let ends = self.stage.ledger.ends();
        let (mut behind, mut ahead) = (Vec::new(), Vec::new());
        for (partition, next) in (0..).zip(&stored) {
            let (low, end) = (self.offsets.log_start(partition).await?, ends[index(partition)]);
            if partition % 2 == 0 && low < *next {
                behind.push(self.cut(partition, within(low, *next, random)).await?);
            } else if partition % 2 == 1 && *next < end {
                self.stage.journal.mean_refusal(partition, true);
                ahead.push(self.cut(partition, within(*next, end, random)).await?);
            }
        }
        self.stage.journal.forget_openings();
        let members = self.posts.iter().map(|post| self.stage.enlist(post)).collect();
        let mut resumed = true;
        for (partition, next) in (0..).zip(&stored) {
            if ahead.iter().all(|cut| cut.partition != partition) {
                resumed &= self.stage.journal.until_opened(partition).await? == *next;
            }
        }
        if forgotten && resumed {
            self.trial.observed(Fault::GroupsForgotten);
        } else {
            self.trial.blame("not every partition went on where the database stood");
        }
        for cut in behind {
            self.trial.injected(Fault::LogsCutBehind);
            if self.is_cut(&cut).await? {
                self.trial.observed(Fault::LogsCutBehind);
            }
        }
        self.mend(Fault::LogsCutAhead, &ahead).await?;
        Ok(members)
    }

    /// Freezes a reader for less than its session, and cuts logs behind its back.
    async fn cut_under_reader(&self, members: &[Member], random: &mut Random) -> Result<()> {
        let reader = &members[random.index(members.len())];
        let held = self.stage.journal.held_by(reader.number());
        reader.signal(Signal::Freeze);
        sleep(ANSWERED).await;
        let answered = self.stage.ledger.ends();
        sleep(REST).await;
        let ends = self.stage.ledger.ends();
        let unread = held.into_iter().filter(|at| answered[index(*at)] < ends[index(*at)]);
        let mut cuts = Vec::new();
        for partition in unread.take(CUTS) {
            self.stage.journal.mean_refusal(partition, true);
            let start = within(answered[index(partition)], ends[index(partition)], random);
            cuts.push(self.cut(partition, start).await?);
        }
        reader.signal(Signal::Thaw);
        self.mend(Fault::LogsCutUnderReader, &cuts).await
    }

    async fn cut(&self, partition: i32, start: i64) -> Result<Cut> {
        self.stage.topic.delete_records_before(partition, start).await;
        Ok(Cut { partition, start })
    }

    async fn is_cut(&self, cut: &Cut) -> Result<bool> {
        Ok(self.offsets.log_start(cut.partition).await? == cut.start)
    }

    /// Waits until these partitions are refused while the others go on, and then does what the refusal says.
    async fn mend(&self, fault: Fault, cuts: &[Cut]) -> Result<()> {
        let journal = &self.stage.journal;
        let mut refusals = Vec::new();
        for cut in cuts {
            self.trial.injected(fault);
            refusals.push(journal.until_refused(cut.partition).await?);
        }
        ensure!(journal.until_applied(20).await, "a refused partition stops the others");
        let mut connection = self.stage.connect().await?;
        let stored = progress::settled(&mut connection).await?;
        for (cut, refusal) in cuts.iter().zip(&refusals) {
            let (partition, next) = (cut.partition, stored[index(cut.partition)]);
            let log = format!("the log is {}..", cut.start);
            let command = format!("--partition {partition} --to {}`", cut.start);
            let clear = asked(refusal).is_some_and(|asked| asked <= next)
                && refusal.contains(&log)
                && refusal.contains(&command);
            if !clear {
                self.trial.blame(format!("{partition} stands at {next}, and is refused so: {refusal}"));
            }
            self.stage.ledger.deleted(partition, next..cut.start);
            journal.mean_refusal(partition, true);
            self.go_on_at(cut).await?;
            if clear && self.is_cut(cut).await? {
                self.trial.observed(fault);
            }
        }
        for cut in cuts {
            let from = journal.until_opened(cut.partition).await?;
            if from != cut.start {
                self.trial.blame(format!("{} went on at {from}, not at {}", cut.partition, cut.start));
            }
            journal.mean_refusal(cut.partition, false);
        }
        Ok(())
    }

    /// As `handstamp progress reset` does.
    async fn go_on_at(&self, cut: &Cut) -> Result<()> {
        let pool = self.stage.database.pool();
        let rows = store::list(pool).await?;
        let row = rows.iter().find(|row| row.progress.partition.partition == cut.partition);
        let row = row.context("the partition has a row")?;
        store::reset(pool, &row.consumer, &row.progress.partition, cut.start).await?;
        Ok(())
    }
}

/// Deletes a group as soon as it has no members.
async fn forget(brokers: &str, group: &str) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers).create()?;
    let options = AdminOptions::new();
    let deleted = async {
        while !admin.delete_groups(&[group], &options).await?.iter().all(Result::is_ok) {
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, deleted).await.context("the group still has members")?
}

/// What a refusal says was asked for: the lower of Kafka's offset and the database's.
fn asked(refusal: &str) -> Option<i64> {
    refusal.split_once("asked for ")?.1.split_once(',')?.0.parse().ok()
}

/// An offset behind `low`, up to `high`.
fn within(low: i64, high: i64, random: &mut Random) -> i64 {
    let most = u64::try_from(high - low).unwrap_or(0).max(1);
    low + i64::try_from(random.between(1, most)).expect("offsets fit")
}
