use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use tokio::time::sleep;

use crate::faults::intruder::Intruder;
use crate::faults::ledger::index;
use crate::faults::member::Member;
use crate::faults::offsets::Offsets;
use crate::faults::progress;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::sim::random::Random;

pub const ROW: Row = Row {
    id: "F16",
    what: "committed offsets moved back and ahead",
    asks: &[
        Ask::new(Fault::OffsetsMovedBack, 40, 240),
        Ask::new(Fault::OffsetsMovedBackAtRest, 16, 120),
        Ask::new(Fault::OffsetsMovedAhead, 16, 120),
    ],
    expects: Expects { duplicates: true, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// How far an offset is moved back at most.
const BACK: i64 = 200;
/// How long records gather that no worker reads.
const REST: Duration = Duration::from_millis(500);

struct Scene {
    trial: Arc<Trial>,
    stage: Stage,
    intruder: Intruder,
    offsets: Offsets,
    posts: [Post; 3],
}

/// Three members that the group knows again, and one that is no worker and commits what it likes.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default()).await?;
    let intruder = Intruder::join(trial.arena.kafka.brokers(), &stage.group).await?;
    let posts = ["0", "1", "2"].map(Post::fixed);
    let mut members: Vec<_> = posts.iter().map(|post| stage.enlist(post)).collect();
    let offsets = stage.offsets();
    let mut random = trial.random(0);
    let scene = Scene { trial, stage, intruder, offsets, posts };
    loop {
        ensure!(scene.stage.journal.until_applied(100).await, "nothing is applied any more");
        if scene.trial.wants(Fault::OffsetsMovedBack) {
            scene.move_under_workers(&mut members, &mut random).await?;
        } else if scene.trial.wants(Fault::OffsetsMovedBackAtRest)
            || scene.trial.wants(Fault::OffsetsMovedAhead)
        {
            members = scene.move_at_rest(members, &mut random).await?;
        } else {
            break;
        }
    }
    let Scene { trial, stage, intruder, .. } = scene;
    intruder.leave().await;
    trial.close(stage, members).await
}

impl Scene {
    /// Moves the offset of every partition back. One reader dies before it can correct that, so that its
    /// partitions are read again from there; the others assert what they know.
    async fn move_under_workers(&self, members: &mut Vec<Member>, random: &mut Random) -> Result<()> {
        let before = self.committed().await?;
        let moved: Vec<_> = (0..).zip(&before).map(|(at, next)| (at, back(*next, random))).collect();
        self.intruder.commit(self.stage.topic.name(), &moved).await?;
        let seen = self.committed().await?;
        let victim = random.index(members.len());
        members.remove(victim).kill().await?;
        members.insert(victim, self.stage.enlist(&self.posts[victim]));
        let mut low = Vec::new();
        for (partition, next) in moved {
            self.trial.injected(Fault::OffsetsMovedBack);
            if seen[index(partition)] == next && next < before[index(partition)] {
                low.push((partition, before[index(partition)]));
            }
        }
        for _ in self.offsets.until_committed(&low).await? {
            self.trial.observed(Fault::OffsetsMovedBack);
        }
        Ok(())
    }

    /// Kills all workers, moves the offsets of all partitions to either side of where the database stands,
    /// and starts workers: each partition must be read from the lower of both.
    async fn move_at_rest(&self, members: Vec<Member>, random: &mut Random) -> Result<Vec<Member>> {
        try_join_all(members.into_iter().map(Member::kill)).await?;
        let mut connection = self.stage.connect().await?;
        let stored = progress::settled(&mut connection).await?;
        sleep(REST).await;
        let ends = self.stage.ledger.ends();
        let away = self.stage.look_away().await;
        let moved: Vec<_> = (0..)
            .zip(&stored)
            .map(|(at, next)| {
                let unread = u64::try_from(ends[index(at)] - next).unwrap_or(0);
                let ahead = unread > 0 && random.chance(500);
                (at, if ahead { next + below(unread, random) + 1 } else { back(*next, random) })
            })
            .collect();
        self.intruder.commit(self.stage.topic.name(), &moved).await?;
        let seen = self.committed().await?;
        self.stage.journal.forget_openings();
        let members = self.posts.iter().map(|post| self.stage.enlist(post)).collect();
        for (partition, next) in moved {
            let stored = stored[index(partition)];
            let fault = if next > stored { Fault::OffsetsMovedAhead } else { Fault::OffsetsMovedBackAtRest };
            self.trial.injected(fault);
            let from = self.stage.journal.until_opened(partition).await?;
            if from != next.min(stored) {
                let what = format!("{partition}: Kafka said {next}, the database {stored}, read from {from}");
                self.trial.blame(what);
            }
            if seen[index(partition)] == next && next != stored {
                self.trial.observed(fault);
            }
        }
        if !self.offsets.until_not_ahead(&mut connection).await? {
            self.trial.blame("Kafka's offsets stayed ahead of the database");
        }
        drop(away);
        Ok(members)
    }

    async fn committed(&self) -> Result<Vec<i64>> {
        let committed = self.offsets.committed().await?;
        Ok(committed.into_iter().map(|next| next.unwrap_or(0)).collect())
    }
}

fn back(next: i64, random: &mut Random) -> i64 {
    let most = next.min(BACK);
    next - most + below(u64::try_from(most).unwrap_or(0), random)
}

/// One of so many, from 0.
fn below(count: u64, random: &mut Random) -> i64 {
    i64::try_from(random.below(count.max(1))).expect("offsets fit")
}
