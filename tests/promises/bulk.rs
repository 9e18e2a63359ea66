//! A handler that takes all messages of a transaction at once.

use std::time::Duration;

use handstamp::{BoxError, EventId, Notice, idempotent};
use handstamp_tests::Running;
use sqlx::PgConnection;

use crate::backlog::{self, POISON, applied_but_for_the_poison};
use crate::scene::{Scene, event_id, events};

#[idempotent(consumer = "bulk-credits", key = header("event_id"), attempts = 2)]
async fn credit_all(events: Vec<EventId>, conn: &mut PgConnection) -> Result<(), BoxError> {
    let events: Vec<String> = events.into_iter().map(|EventId(event)| event).collect();
    // Together: what fails with a neighbour must not stay.
    sqlx::query("INSERT INTO effects (event, attempt) SELECT event, $2 FROM unnest($1::text[]) AS event")
        .bind(&events)
        .bind(i64::try_from(events.len())?)
        .execute(conn)
        .await?;
    if events.iter().any(|event| event == POISON) { Err("not a deposit".into()) } else { Ok(()) }
}

#[tokio::test]
async fn a_backlog_is_applied_once_in_few_calls_and_only_the_poison_is_parked() {
    let scene = Scene::new(1).await;
    backlog::produce(&scene).await;
    let worker = Running::start(scene.worker().consume::<credit_all>(scene.topic.name()));
    let mut effects = applied_but_for_the_poison(&scene, worker).await;
    effects.sort();
    let mut expected = backlog::expected();
    expected.sort();
    assert_eq!(effects, expected);
    assert!(scene.attempts().await.into_iter().max() > Some(50), "it was called for few at a time");
}

/// More than is held in memory of one partition.
const MANY: usize = 25_000;

#[idempotent(consumer = "slow-to-start", key = header("event_id"))]
async fn record_all(events: Vec<EventId>, conn: &mut PgConnection) -> Result<(), BoxError> {
    let events: Vec<String> = events.into_iter().map(|EventId(event)| event).collect();
    sqlx::query("INSERT INTO effects (event, attempt) SELECT event, 1 FROM unnest($1::text[]) AS event")
        .bind(&events)
        .execute(conn)
        .await?;
    // Long enough for the worker to have read all that it holds, and to keep back what comes then.
    if events.contains(&event_id(0)) {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_kept_back_behind_a_slow_message_is_applied_in_its_order() {
    let scene = Scene::new(1).await;
    scene.topic.produce_all(events(MANY)).await;
    let mut worker = Running::start(scene.worker().consume::<record_all>(scene.topic.name()));
    worker.until_done(MANY).await;
    // One that delivers nothing any more would be read anew after a while.
    let started = worker.heard().iter().filter(|notice| matches!(notice, Notice::Started { .. })).count();
    assert_eq!(started, 1);
    worker.stop().await.expect("a good end");
    let expected: Vec<_> = (0..MANY).map(event_id).collect();
    assert!(scene.effects().await == expected, "something was lost, applied twice or out of order");
}
