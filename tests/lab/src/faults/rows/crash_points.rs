use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use handstamp::laboratory::Point;
use tokio::time::timeout;

use crate::faults::load::Mix;
use crate::faults::member::Member;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::Trigger;
use crate::sim::random::Random;

pub const ROW: Row = Row {
    id: "F2",
    what: "hard kills at each point between two steps",
    asks: &[Ask::new(Fault::CrashPointKills, 112, 640), Ask::new(Fault::CrashPoints, 16, 16)],
    expects: Expects { duplicates: true, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// How long a process may take to reach its point.
const LIMIT: Duration = Duration::from_secs(15);
const POSTS: u64 = 3;

/// What is still to be done: how often each point has to be hit.
struct Plan {
    each: u64,
    hits: Mutex<BTreeMap<Point, Hits>>,
}

#[derive(Clone, Copy, Default)]
struct Hits {
    tried: u64,
    died: u64,
}

/// Three processes, each killing itself at a point; one of their posts is a static member, the others leave
/// their partitions to whoever is there. A fourth member comes and goes, so that partitions are taken back.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let points = u64::try_from(Point::ALL.len())?;
    let each = trial.asked(Fault::CrashPointKills).div_ceil(points);
    let plan = Plan { each, hits: Mutex::default() };
    // Dead letters and skipped records come often enough for their points to be reached soon.
    let mix = Mix { rate: 400, poison: 60, tombstones: 60, ..Mix::default() };
    let setup = Setup { mix, ..Setup::default() }.session(1_000);
    let stage = trial.stage(setup).await?;
    let posts = try_join_all((0..POSTS).map(|number| kill_on(&trial, &stage, &plan, number)));
    let (over, coming) = tokio::sync::oneshot::channel();
    let (members, last) = tokio::try_join!(
        async {
            let members = posts.await;
            let _listened = over.send(());
            members
        },
        come_and_go(&stage, coming),
    )?;
    let hits = plan.hits.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for point in Point::ALL {
        let hits = hits.get(point).copied().unwrap_or_default();
        if hits.died >= each {
            trial.injected(Fault::CrashPoints);
            trial.observed(Fault::CrashPoints);
        } else {
            trial.blame(format!("{}: hit {} of {each} times, tried {}", point.name(), hits.died, hits.tried));
        }
    }
    trial.close(stage, members.into_iter().chain([last]).collect()).await
}

async fn kill_on(trial: &Trial, stage: &Stage, plan: &Plan, number: u64) -> Result<Member> {
    let mut random = trial.random(number);
    let name = number.to_string();
    let post = if number == 0 { Post::fixed(name) } else { Post::dynamic(name) };
    while let Some(point) = plan.next(&mut random) {
        let process = stage.enlist(&post.with(Trigger::crash(point, nth(point, &mut random))));
        trial.injected(Fault::CrashPointKills);
        if process.die(LIMIT).await?.as_deref() == Some(point.name()) {
            trial.observed(Fault::CrashPointKills);
            plan.died(point);
        }
    }
    Ok(stage.enlist(&post))
}

/// A member that joins, works a little and leaves, again and again; the last one stays.
async fn come_and_go(stage: &Stage, mut over: tokio::sync::oneshot::Receiver<()>) -> Result<Member> {
    loop {
        let mut member = stage.enlist(&Post::dynamic("visitor"));
        let worked = timeout(Duration::from_secs(3), member.until_done(20)).await;
        if over.try_recv().is_ok() {
            return Ok(member);
        }
        // Partitions that dead members still hold may leave it with nothing to do.
        if let Ok(worked) = worked {
            worked?;
        }
        member.stop().await?;
    }
}

/// Which time: points on the way of a message are passed thousands of times, others once a rebalance.
fn nth(point: Point, random: &mut Random) -> u32 {
    let most = match point {
        Point::InAssignment | Point::InRevocation | Point::AfterDrain => 1,
        Point::InDeadLetter
        | Point::InProgressSave
        | Point::BeforeOffsetCommit
        | Point::AfterOffsetCommit => 3,
        _ => 40,
    };
    u32::try_from(random.between(1, most)).expect("small")
}

impl Plan {
    /// One of the points that were not hit often enough; none once all were, or were tried too often.
    fn next(&self, random: &mut Random) -> Option<Point> {
        let mut hits = self.hits.lock().unwrap_or_else(PoisonError::into_inner);
        let open = |point: &&Point| {
            let hits = hits.get(point).copied().unwrap_or_default();
            hits.died < self.each && hits.tried < 2 * self.each + 5
        };
        let open: Vec<Point> = Point::ALL.iter().filter(open).copied().collect();
        let point = (!open.is_empty()).then(|| random.pick(&open))?;
        hits.entry(point).or_default().tried += 1;
        Some(point)
    }

    fn died(&self, point: Point) {
        self.hits.lock().unwrap_or_else(PoisonError::into_inner).entry(point).or_default().died += 1;
    }
}
