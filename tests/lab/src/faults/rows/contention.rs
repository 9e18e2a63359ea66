use std::sync::Arc;

use anyhow::{Result, ensure};
use futures_util::future::join_all;

use crate::faults::ledger::{Event, Fate};
use crate::faults::load::ACCOUNTS;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::{Rivalry, Trouble};

pub const ROW: Row = Row {
    id: "F11",
    what: "deadlocks, serialization failures, lock timeouts",
    asks: &[
        Ask::new(Fault::Deadlocks, 170, 850),
        Ask::new(Fault::SerializationFailures, 170, 850),
        Ask::new(Fault::LockTimeouts, 170, 850),
    ],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// What the server says, in the language that the database is set to. Not its SQLSTATE: workers tell errors
/// as text.
const SAYINGS: [(Fault, &str); 3] = [
    (Fault::Deadlocks, "deadlock detected"),
    (Fault::SerializationFailures, "already moved to another partition due to concurrent update"),
    (Fault::LockTimeouts, "canceling statement due to lock timeout"),
];

/// Few of the others, so that rivals meet.
const RATE: u32 = 50;
/// How many are written at a time. It takes two for a failure.
const RIVALS: u32 = 8;

/// Handlers that are in one another's way. The runtime sets READ COMMITTED itself: what fails there with a
/// serialization failure is who waited for a row that was moved.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default().rate(RATE)).await?;
    sqlx::raw_sql(Rivalry::TABLES).execute(&mut stage.connect().await?).await?;
    let members: Vec<_> = ["0", "1", "2"].map(|name| stage.enlist(&Post::fixed(name))).into();
    let mut random = trial.random(0);
    let mut rivals = Vec::new();
    loop {
        let counts = stage.journal.counts();
        for (fault, saying) in SAYINGS {
            let said = counts.environment.iter().filter(|(error, _)| error.contains(saying));
            trial.observed_in_all(fault, said.map(|(_, times)| times).sum());
        }
        let wanted: Vec<_> = SAYINGS.iter().map(|(fault, _)| *fault).filter(|f| trial.wants(*f)).collect();
        if wanted.is_empty() {
            break;
        }
        // Many of one kind at a time: alone, none is in the way of another.
        let fault = random.pick(&wanted);
        let written = (0..RIVALS).map(|number| {
            let upwards = number % 2 == 0;
            if upwards {
                trial.injected(fault);
            }
            let rivalry = match fault {
                Fault::Deadlocks => Rivalry::Crosses { upwards },
                Fault::SerializationFailures => Rivalry::Moves,
                _ => Rivalry::Hurries,
            };
            // Accounts of their own: they must get as far as what they contend for.
            let account = i64::try_from(random.below(ACCOUNTS)).expect("accounts are few");
            let event = Event { account, amount: 1, fate: Fate::Applied(Trouble::Contends(rivalry)) };
            (event, i32::try_from(random.below(16)).expect("partitions are few"))
        });
        let written: Vec<_> = written.collect();
        let numbers = join_all(written.into_iter().map(|(event, partition)| stage.write(event, partition)));
        rivals.extend(numbers.await.into_iter().map(|(number, _)| number));
        ensure!(stage.journal.until_applied(10).await, "nothing is applied any more");
    }
    let charged = charged(&stage, &rivals).await?;
    if charged > 0 {
        trial.blame(format!("{charged} times the database's failure was counted as an attempt"));
    }
    trial.close(stage, members).await
}

/// How many of these events were applied only at a later attempt.
async fn charged(stage: &Stage, events: &[usize]) -> Result<i64> {
    let events: Vec<i64> = events.iter().map(|event| i64::try_from(*event)).collect::<Result<_, _>>()?;
    let charged = sqlx::query_scalar("SELECT count(*) FROM effects WHERE attempt > 1 AND event = ANY($1)");
    Ok(charged.bind(events).fetch_one(&mut stage.connect().await?).await?)
}
