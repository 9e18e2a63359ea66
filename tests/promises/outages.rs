//! Servers that stop while messages are applied.

use std::time::Duration;

use anyhow::ensure;
use handstamp::{FailureKind, Notice};
use handstamp_tests::{PrivateKafka, PrivatePostgres, Running, eventually, kafka_brokers, postgres_url};
use tokio::time::sleep;

use crate::credit::credit;
use crate::gate::{Gate, gated};
use crate::scene::{SOON, Scene, event, event_id, events};

/// How many messages are applied while a server stops.
const LOAD: usize = 1_000;

/// Every event was applied once, at the first attempt, and none was given up.
async fn assert_nothing_lost_or_doubled_or_parked(scene: &Scene, count: usize) {
    let mut effects = scene.effects().await;
    effects.sort();
    let mut expected: Vec<_> = (0..count).map(event_id).collect();
    expected.sort();
    assert_eq!(effects, expected);
    assert_eq!(scene.attempts().await, [1], "an outage is no attempt");
    assert_eq!(scene.dead_letters().await.len(), 0);
}

/// Waits until every event has its effect: a `Done` can be lost with the partition.
async fn until_applied(scene: &Scene, count: usize) {
    eventually(Duration::from_mins(1), async || {
        let effects = scene.effects().await.len();
        ensure!(effects >= count, "{effects} of {count}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_database_stopped_for_twenty_seconds_under_load_loses_and_parks_nothing() {
    let postgres = PrivatePostgres::launch().await;
    let scene = Scene::on(postgres.url(), &kafka_brokers(), 3).await;
    scene.topic.produce_all(events(LOAD)).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    worker.until_done(LOAD / 10).await;
    postgres.stop().await;
    let failed = |notice: &Notice| matches!(notice, Notice::Failed { .. });
    worker.next(SOON, failed).await;
    // The outage itself, not a wait for anything.
    sleep(Duration::from_secs(20)).await;
    postgres.start().await;
    until_applied(&scene, LOAD).await;
    let blamed = worker
        .heard()
        .iter()
        .find(|notice| matches!(notice, Notice::Failed { kind: FailureKind::Handler, .. }));
    assert!(blamed.is_none(), "{blamed:?}");
    worker.stop().await.expect("a good end");
    assert_nothing_lost_or_doubled_or_parked(&scene, LOAD).await;
}

#[tokio::test]
async fn backends_terminated_again_and_again_lose_and_park_nothing() {
    let scene = Scene::new(3).await;
    scene.topic.produce_all(events(LOAD)).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let mut cut_short = 0;
    for _lap in 0..40 {
        worker.until_done(LOAD / 50).await;
        let hit: i64 = sqlx::query_scalar(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid) AND backend_xid IS NOT NULL)
             FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .fetch_one(&mut scene.connect().await)
        .await
        .expect("a superuser may");
        cut_short += hit;
    }
    assert!(cut_short >= 10, "only {cut_short} transactions were open when their backend was terminated");
    until_applied(&scene, LOAD).await;
    worker.stop().await.expect("a good end");
    assert_nothing_lost_or_doubled_or_parked(&scene, LOAD).await;
}

#[tokio::test]
async fn a_broker_restarted_under_load_loses_and_doubles_nothing() {
    let kafka = PrivateKafka::launch().await;
    let scene = Scene::on(&postgres_url(), kafka.brokers(), 3).await;
    scene.topic.produce_all(events(LOAD / 2)).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    worker.until_done(LOAD / 10).await;
    kafka.kill().await;
    kafka.start().await;
    scene.topic.produce_all(events(LOAD).skip(LOAD / 2)).await;
    until_applied(&scene, LOAD).await;
    worker.stop().await.expect("a good end");
    assert_nothing_lost_or_doubled_or_parked(&scene, LOAD).await;
}

#[tokio::test]
async fn a_failed_offset_commit_is_not_fatal_and_the_next_one_replaces_it() {
    let kafka = PrivateKafka::launch().await;
    let scene = Scene::on(&postgres_url(), kafka.brokers(), 1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce_all([gated("evt-0"), event("evt-1")]).await;
    let patient = scene.kafka().property("session.timeout.ms", "30000");
    let mut worker = Running::start(scene.worker().kafka(patient).consume::<credit>(scene.topic.name()));
    gate.wait_for_handlers(1).await;
    kafka.pause().await;
    gate.open().await;
    let failed = |notice: &Notice| matches!(notice, Notice::Committed { error: Some(_), .. });
    worker.next(SOON, failed).await;
    assert_eq!(scene.effects().await, ["evt-0", "evt-1"], "it goes on without Kafka");
    kafka.resume().await;
    worker.until_committed(0, 2).await;
    worker.stop().await.expect("a good end");
    assert_eq!(scene.committed(0).await, Some(2));
}
