//! Design §5's table of start offsets, row by row.

use handstamp::internal::progress::{self, TrackedPartition};
use handstamp_tests::Running;
use uuid::Uuid;

use crate::ledger::latecomer;
use crate::log;
use crate::scene::{SOON, Scene, ids, refused, started};

/// Where the partition is read from next.
async fn start_of(running: &mut Running, partition: i32) -> i64 {
    let notice = running.next(SOON, |n| started(n).is_some_and(|(p, _)| p == partition)).await;
    started(&notice).expect("it matched").1
}

/// Why the partition is not read.
async fn refusal_of(running: &mut Running, partition: i32) -> String {
    let notice = running.next(SOON, |n| refused(n).is_some_and(|(p, _)| p == partition)).await;
    refused(&notice).expect("it matched").1.to_owned()
}

/// A scene in which five events were applied and the worker has stopped.
async fn five_applied() -> Scene {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("e", 0..5)).await;
    let mut running = Running::start(scene.worker());
    running.until_done(5).await;
    running.stop().await.expect("a clean stop");
    scene.until_at(0, 5).await;
    scene
}

#[tokio::test]
async fn offset_and_row_start_at_kafkas_when_it_is_lower_and_nothing_is_applied_twice() {
    let scene = five_applied().await;
    scene.topic.commit_offset(&scene.group, 0, 2).await;
    let mut running = Running::start(scene.worker());
    assert_eq!(start_of(&mut running, 0).await, 2);
    running.until_done(3).await;
    scene.until_at(0, 5).await;
    assert_eq!(scene.applied().await, ids("e", 0..5));
    running.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn offset_and_row_start_at_the_row_when_it_is_lower_and_the_operator_is_told() {
    let scene = five_applied().await;
    scene.execute("UPDATE handstamp.progress SET next = 2").await;
    let mut running = Running::start(scene.worker());
    assert_eq!(start_of(&mut running, 0).await, 2);
    let note = log::says(&scene.group, "Kafka's offset 5 is ahead of `ledger`'s progress 2", SOON).await;
    let command =
        format!("`handstamp progress reset ledger --topic {} --partition 0 --to 5`", scene.topic.name());
    assert!(note.contains("starting at 2") && note.contains(&command), "{note}");
    running.until_done(3).await;
    scene.until_at(0, 5).await;
    assert_eq!(scene.applied().await, ids("e", 0..5));
    running.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn row_without_an_offset_starts_at_the_row() {
    let scene = five_applied().await;
    scene.forget_group().await;
    assert_eq!(scene.topic.committed_offset(&scene.group, 0).await, None);
    scene.produce(0, ids("f", 0..1)).await;
    let mut running = Running::start(scene.worker());
    assert_eq!(start_of(&mut running, 0).await, 5);
    running.until_done(1).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, [ids("e", 0..5), ids("f", 0..1)].concat());
}

#[tokio::test]
async fn partition_without_a_row_starts_at_the_start_of_the_log_although_kafka_has_an_offset() {
    let scene = five_applied().await;
    scene.topic.create_partitions(2).await;
    scene.produce(1, ids("f", 0..4)).await;
    scene.topic.commit_offset(&scene.group, 1, 3).await;
    let mut running = Running::start(scene.worker());
    assert_eq!(start_of(&mut running, 1).await, 0);
    running.until_done(4).await;
    log::says(&scene.group, "a partition `ledger` has not read before", SOON).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, [ids("e", 0..5), ids("f", 0..4)].concat());
}

#[tokio::test]
async fn new_consumer_starts_at_the_start_of_the_log() {
    let scene = five_applied().await;
    assert_eq!(scene.applied().await, ids("e", 0..5));
}

#[tokio::test]
async fn new_consumer_that_asks_for_the_latest_starts_at_the_end() {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("before", 0..3)).await;
    let worker = scene.builder(scene.kafka()).consume::<latecomer>(scene.topic.name());
    let mut running = Running::start(worker);
    assert_eq!(start_of(&mut running, 0).await, 3);
    scene.produce(0, ids("after", 0..2)).await;
    running.until_done(2).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied_by("latecomer").await, ids("after", 0..2));
}

/// Where it starts is written down at once: a process that dies before its first record must not find
/// another end.
#[tokio::test]
async fn the_end_that_a_new_consumer_starts_at_is_remembered_before_it_reads() {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("before", 0..3)).await;
    let worker = || scene.builder(scene.kafka()).consume::<latecomer>(scene.topic.name());
    let mut running = Running::start(worker());
    assert_eq!(start_of(&mut running, 0).await, 3);
    running.stop().await.expect("a clean stop");
    scene.forget_group().await;
    scene.produce(0, ids("after", 0..2)).await;
    let mut running = Running::start(worker());
    assert_eq!(start_of(&mut running, 0).await, 3);
    running.until_done(2).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied_by("latecomer").await, ids("after", 0..2));
}

#[tokio::test]
async fn offset_without_any_progress_is_refused_until_an_operator_says_where_to_go_on() {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("e", 0..5)).await;
    scene.topic.commit_offset(&scene.group, 0, 3).await;
    let mut running = Running::start(scene.worker());
    let reason = refusal_of(&mut running, 0).await;
    let topic = scene.topic.name();
    let adopt_it = format!("`handstamp progress adopt ledger --topic {topic}` to go on at 3");
    let reset_it = format!("`handstamp progress reset ledger --topic {topic} --to-start`");
    assert!(reason.contains(&adopt_it) && reason.contains(&reset_it), "{reason}");
    assert_eq!(scene.applied().await, ids("e", 0..0));

    adopt(&scene, 3).await;
    assert_eq!(start_of(&mut running, 0).await, 3);
    running.until_done(2).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, ids("e", 3..5));
}

#[tokio::test]
async fn progress_of_another_cluster_is_refused_and_both_are_named() {
    let scene = five_applied().await;
    scene.produce(0, ids("f", 0..1)).await;
    let here: String = sqlx::query_scalar("SELECT cluster FROM handstamp.progress")
        .fetch_one(scene.pool())
        .await
        .expect("there is a row");
    scene.execute("UPDATE handstamp.progress SET cluster = 'elsewhere'").await;
    let mut running = Running::start(scene.worker());
    let reason = refusal_of(&mut running, 0).await;
    assert!(reason.contains("another Kafka cluster"), "{reason}");
    assert!(reason.contains("`elsewhere`") && reason.contains(&format!("`{here}`")), "{reason}");
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, ids("e", 0..5));
}

/// As `handstamp progress adopt` does.
async fn adopt(scene: &Scene, next: i64) {
    let partition = TrackedPartition {
        topic: scene.topic.name().into(),
        partition: 0,
        cluster: "".into(),
        topic_id: Uuid::nil(),
        incarnation: 1,
    };
    progress::reset(scene.pool(), "ledger", &partition, next).await.expect("the progress can be set");
}
