//! Handlers that misbehave.

use std::future::pending;

use handstamp::Disposition::{Applied, Parked};
use handstamp::{BoxError, EventId, FailureKind, Inbox, Notice, WorkerError, idempotent};
use handstamp_tests::Running;
use sqlx::Postgres;

use crate::credit::write_effect;
use crate::logs::Logs;
use crate::scene::{SOON, Scene, event};

/// Writes, and then goes wrong in the way that the event is called.
#[idempotent(consumer = "misbehaving", key = header("event_id"), attempts = 3, timeout = "200ms")]
async fn misbehave(EventId(event): EventId, inbox: &mut Inbox<Postgres>) -> Result<(), BoxError> {
    let attempt = inbox.attempt();
    write_effect(inbox, &event, attempt).await?;
    match &*event {
        "fails" => Err("no such account".into()),
        "fails once" if attempt == 1 => Err("no such account yet".into()),
        "panics" => panic!("index out of bounds"),
        "hangs" => pending().await,
        "swallows" => {
            let _hidden = sqlx::query("SELECT 1 / 0").execute(&mut **inbox).await;
            Ok(())
        }
        "commits" => Ok(sqlx::raw_sql("COMMIT").execute(&mut **inbox).await.map(drop)?),
        "rolls back" => Ok(sqlx::raw_sql("ROLLBACK").execute(&mut **inbox).await.map(drop)?),
        _ => Ok(()),
    }
}

/// Runs the event and one after it, to the end.
async fn run(scene: &Scene, name: &str) -> Running {
    scene.topic.produce_all([event(name), event("after")]).await;
    Running::start(scene.worker().consume::<misbehave>(scene.topic.name()))
}

/// The event is given up with this error; the one after it is applied, and nothing else.
async fn assert_parked(name: &str, error: &str) {
    let scene = Scene::new(1).await;
    let mut worker = run(&scene, name).await;
    let done: Vec<_> = worker.until_done(2).await.into_iter().map(|(_, disposition)| disposition).collect();
    let tries = worker.heard().iter().filter_map(|notice| match notice {
        Notice::Failed { kind: FailureKind::Handler, attempt, .. } => Some(*attempt),
        Notice::Failed { .. } => Some(0),
        _ => None,
    });
    assert_eq!(tries.collect::<Vec<_>>(), [1, 2, 3]);
    worker.until_committed(0, 2).await;
    worker.stop().await.expect("a good end");
    assert_eq!(done, [Parked, Applied]);
    assert_eq!(scene.effects().await, ["after"]);
    assert_eq!(scene.remembered().await, 1, "a parked message has no row in the inbox");
    let letters = scene.dead_letters().await;
    assert_eq!(letters.len(), 1);
    assert_eq!((&*letters[0].reason, letters[0].attempts, letters[0].offset), ("failed", 3, Some(0)));
    assert!(letters[0].error.contains(error), "{}", letters[0].error);
}

#[tokio::test]
async fn a_failing_handler_is_rolled_back_and_retried_and_parked_and_the_partition_goes_on() {
    assert_parked("fails", "no such account").await;
}

#[tokio::test]
async fn a_panicking_handler_is_parked_and_the_partition_goes_on() {
    assert_parked("panics", "panicked: index out of bounds").await;
}

#[tokio::test]
async fn a_handler_over_its_timeout_is_parked_and_the_partition_goes_on() {
    assert_parked("hangs", "took longer than 200ms").await;
}

#[tokio::test]
async fn a_handler_that_swallows_a_database_error_is_caught_and_its_message_parked() {
    assert_parked("swallows", "hid an error of the database").await;
}

#[tokio::test]
async fn what_fails_once_is_applied_once() {
    let scene = Scene::new(1).await;
    let mut worker = run(&scene, "fails once").await;
    worker.until_done(2).await;
    worker.stop().await.expect("a good end");
    assert_eq!(scene.effects().await, ["fails once", "after"]);
    assert_eq!(scene.dead_letters().await.len(), 0);
}

/// The worker stops at the event, lists it, and touches nothing after it.
async fn assert_stopped(name: &str, how: &str, effects: &[&str]) {
    let scene = Scene::new(1).await;
    let mut worker = run(&scene, name).await;
    let stopped = worker.ended().await.expect_err("it stops");
    let WorkerError::TransactionEnded { consumer, handler, error, .. } = &stopped else {
        panic!("stopped with {stopped:?}");
    };
    assert_eq!((&**consumer, &**handler), ("misbehaving", "promises::handlers::misbehave"));
    assert!(error.contains(how), "{error}");
    let letters = scene.dead_letters().await;
    assert_eq!(letters.len(), 1);
    assert_eq!((&*letters[0].reason, letters[0].offset), ("transaction_ended_by_handler", Some(0)));
    assert_eq!(scene.effects().await, effects);
    assert_eq!(scene.committed(0).await.unwrap_or(0), 0, "the message is not behind us");
}

#[tokio::test]
async fn a_handler_that_commits_by_itself_stops_its_consumer_and_the_message_is_listed() {
    assert_stopped("commits", "committed its inbox transaction by itself", &["commits"]).await;
}

#[tokio::test]
async fn a_handler_that_rolls_back_by_itself_stops_its_consumer_and_the_message_is_listed() {
    assert_stopped("rolls back", "rolled back its inbox transaction by itself", &[]).await;
}

#[tokio::test]
async fn the_first_failure_is_logged_with_its_cause_and_repeats_are_not() {
    let logs = Logs::capture();
    let scene = Scene::new(2).await;
    let records = [event("fails").partition(0), event("fails").partition(1)];
    scene.topic.produce_all(records).await;
    let mut worker = Running::start(scene.worker().consume::<misbehave>(scene.topic.name()));
    worker.until_done(2).await;
    worker.next(SOON, |notice| matches!(notice, Notice::Committed { .. })).await;
    worker.stop().await.expect("a good end");
    let failures = logs.with("a message failed");
    assert_eq!(failures.len(), 1, "six tries failed: {failures:#?}");
    assert!(failures[0].contains("no such account") && failures[0].contains("misbehaving"), "{failures:#?}");
    let parked = logs.with("a message was parked");
    assert_eq!(parked.len(), 1, "{parked:#?}");
    assert!(parked[0].contains("handstamp dlq list misbehaving"), "{parked:#?}");
}
