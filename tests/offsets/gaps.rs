//! Offsets that no record has: transaction markers, aborted records, compaction.

use std::time::Duration;

use anyhow::ensure;
use handstamp_tests::{Running, TestDatabase, TestTopic, eventually, unique};
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use tokio::task::spawn_blocking;

use crate::scene::{SOON, Scene, event, ids};

/// Writes the events to partition 0 in one transaction.
fn transaction(config: &ClientConfig, topic: &str, ids: &[String], commit: bool) {
    let mut config = config.clone();
    config.set("transactional.id", unique("transaction"));
    let producer: BaseProducer = config.create().expect("a producer can be made");
    producer.init_transactions(SOON).expect("the coordinator answers");
    producer.begin_transaction().expect("a transaction begins");
    for id in ids {
        let headers = OwnedHeaders::new().insert(Header { key: "event_id", value: Some(id) });
        let record: BaseRecord<'_, [u8], str> =
            BaseRecord::to(topic).partition(0).payload("{}").headers(headers);
        producer.send(record).expect("the queue has room");
    }
    producer.flush(SOON).expect("the records arrive");
    if commit {
        producer.commit_transaction(SOON).expect("it commits");
    } else {
        producer.abort_transaction(SOON).expect("it aborts");
    }
}

async fn run_transaction(scene: &Scene, ids: Vec<String>, commit: bool) {
    let (config, topic) = (scene.client(), scene.topic.name().to_owned());
    spawn_blocking(move || transaction(&config, &topic, &ids, commit)).await.expect("no panic");
}

/// Markers are written after the producer has heard that its transaction ended.
async fn until_end(scene: &Scene, expected: i64) {
    eventually(SOON, async || {
        let end = scene.topic.end_offset(0).await;
        ensure!(end == expected, "the log ends at {end}, not at {expected}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn lag_reaches_zero_behind_the_marker_of_a_committed_transaction() {
    let scene = Scene::new(1).await;
    let running = Running::start(scene.worker());
    run_transaction(&scene, ids("e", 0..3), true).await;
    until_end(&scene, 4).await;
    scene.until_at(0, 4).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, ids("e", 0..3));
}

#[tokio::test]
async fn lag_reaches_zero_behind_a_tail_of_aborted_records_that_are_not_applied() {
    let scene = Scene::new(1).await;
    let running = Running::start(scene.worker());
    run_transaction(&scene, ids("e", 0..3), true).await;
    run_transaction(&scene, ids("aborted", 0..2), false).await;
    until_end(&scene, 7).await;
    scene.until_at(0, 7).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, ids("e", 0..3));
}

/// The worker never sees a record of this partition, only its position.
#[tokio::test]
async fn lag_reaches_zero_where_there_are_only_aborted_records() {
    let scene = Scene::new(1).await;
    run_transaction(&scene, ids("aborted", 0..2), false).await;
    let running = Running::start(scene.worker());
    scene.until_at(0, 3).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, ids("e", 0..0));
}

#[tokio::test]
async fn gaps_that_compaction_leaves_hold_nothing_up() {
    let compacting = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "300"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("max.compaction.lag.ms", "1000"),
    ];
    let scene = Scene::with(TestTopic::with(1, &compacting).await, TestDatabase::new().await).await;
    let keyed = |id: &String| event(id).key("the same").partition(0);
    scene.topic.produce_all(ids("old", 0..20).iter().map(keyed)).await;
    eventually(Duration::from_mins(1), async || {
        // Only a closed segment is compacted, and a new record closes it.
        scene.topic.produce_all(ids("new", 0..1).iter().map(keyed)).await;
        let left = scene.topic.read_all().await.len();
        let end = usize::try_from(scene.topic.end_offset(0).await)?;
        ensure!(left < end, "{left} of {end} records are left");
        Ok(())
    })
    .await;
    let running = Running::start(scene.worker());
    eventually(SOON, async || {
        let end = scene.topic.end_offset(0).await;
        let (stored, committed) =
            (scene.progress(0).await, scene.topic.committed_offset(&scene.group, 0).await);
        ensure!((stored, committed) == (Some(end), Some(end)), "{stored:?} and {committed:?} of {end}");
        Ok(())
    })
    .await;
    running.stop().await.expect("a clean stop");
    let applied = scene.applied().await;
    assert!(applied.contains(&"new000000".to_owned()), "{applied:?}");
    assert!(applied.len() < 21 && applied.windows(2).all(|two| two[0] != two[1]), "{applied:?}");
}
