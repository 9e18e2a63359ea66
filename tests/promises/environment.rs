//! c22: a database in trouble is never the message's fault, and a bad statement is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use handstamp::Disposition::{Applied, Parked};
use handstamp::{EventId, FailureKind, Inbox, Notice, State, Text, idempotent};
use handstamp_tests::{Record, Running};
use sqlx::{AssertSqlSafe, Postgres};

use crate::credit::write_effect;
use crate::scene::Scene;

/// How often each event was tried, whatever became of it.
#[derive(Clone, Default)]
struct Tries(Arc<Mutex<HashMap<String, u32>>>);

impl Tries {
    fn count(&self, event: &str) -> u32 {
        let mut tries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = tries.entry(event.to_owned()).or_default();
        *tries += 1;
        *tries
    }
}

/// Fails four times as its payload says, twice as often as it may.
#[idempotent(consumer = "c22", key = header("event_id"), attempts = 2)]
async fn fail_for_a_while(
    EventId(event): EventId,
    Text(how): Text,
    State(tries): State<Tries>,
    inbox: &mut Inbox<Postgres>,
) -> anyhow::Result<()> {
    let attempt = inbox.attempt();
    write_effect(inbox, &event, attempt).await?;
    if tries.count(&event) > 4 {
        return Ok(());
    }
    let failed = match &*how {
        "pool closed" => Err(sqlx::Error::PoolClosed),
        "pool timed out" => Err(sqlx::Error::PoolTimedOut),
        "connection reset" => Err(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())),
        statement => sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut **inbox).await.map(drop),
    };
    failed.context("crediting the account")
}

fn raise(code: &str) -> String {
    format!("DO $$ BEGIN RAISE 'Verklemmung entdeckt' USING ERRCODE = '{code}'; END $$")
}

async fn run(how: &[String]) -> (Scene, Vec<Notice>, Vec<handstamp::Disposition>) {
    let scene = Scene::new(i32::try_from(how.len()).expect("a few")).await;
    let records = how.iter().zip(0..).map(|(how, partition)| {
        Record::new(&**how).header("event_id", format!("evt-{partition}")).partition(partition)
    });
    scene.topic.produce_all(records).await;
    let worker = scene.worker().state(Tries::default()).consume::<fail_for_a_while>(scene.topic.name());
    let mut worker = Running::start(worker);
    let done = worker.until_done(how.len()).await;
    let heard = worker.heard().to_vec();
    worker.stop().await.expect("a good end");
    (scene, heard, done.into_iter().map(|(_, disposition)| disposition).collect())
}

#[tokio::test]
async fn c22_errors_of_the_environment_are_retried_for_ever_and_never_an_attempt() {
    let codes = ["40P01", "40001", "55P03", "57P01", "57P03", "08006", "53300"];
    let others = ["pool closed", "pool timed out", "connection reset"];
    let how: Vec<_> = codes.map(raise).into_iter().chain(others.map(str::to_owned)).collect();
    let (scene, heard, done) = run(&how).await;
    assert!(done.iter().all(|disposition| *disposition == Applied), "{done:?}");
    for notice in &heard {
        if let Notice::Failed { kind, error, .. } = notice {
            assert_eq!(*kind, FailureKind::Environment, "{error}");
        }
    }
    assert_eq!(scene.effects().await.len(), how.len());
    assert_eq!(scene.attempts().await, [1], "no try counts as an attempt");
    assert_eq!(scene.dead_letters().await.len(), 0);
}

#[tokio::test]
async fn c22_errors_of_the_handlers_own_statements_are_attempts_and_then_parked() {
    let statements = [
        "CREATE TEMP TABLE t (i int4 UNIQUE) ON COMMIT DROP; INSERT INTO t VALUES (1), (1)",
        "SELECT 'too long'::text; CREATE TEMP TABLE s (t varchar(3)) ON COMMIT DROP; INSERT INTO s VALUES ('too long')",
        "SELECT FROM no_such_table",
    ];
    let (scene, _, done) = run(&statements.map(str::to_owned)).await;
    assert!(done.iter().all(|disposition| *disposition == Parked), "{done:?}");
    let letters = scene.dead_letters().await;
    assert_eq!(letters.len(), 3);
    for letter in letters {
        assert_eq!((&*letter.reason, letter.attempts), ("failed", 2), "{}", letter.error);
    }
    assert_eq!(scene.effects().await.len(), 0);
}
