//! Partitions added to a topic that is being read (C16).

use handstamp_tests::Running;

use crate::ledger::latecomer;
use crate::log;
use crate::scene::{SOON, Scene, ids, until_started};

/// A producer knows of them before the consumer does, and what it writes then is easily lost: with
/// `latest` it would be.
#[tokio::test]
async fn c16_records_written_before_a_new_partition_is_noticed_are_applied() {
    let scene = Scene::new(2).await;
    let worker = scene.builder(scene.kafka()).consume::<latecomer>(scene.topic.name());
    let mut running = Running::start(worker);
    until_started(&mut running, 2).await;

    scene.topic.create_partitions(4).await;
    scene.produce(2, ids("two", 0..10)).await;
    scene.produce(3, ids("three", 0..10)).await;
    running.until_done(20).await;
    log::says(&scene.group, "a partition `latecomer` has not read before", SOON).await;
    scene.produce(2, ids("two", 10..12)).await;
    scene.produce(3, ids("three", 10..12)).await;
    running.until_done(4).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied_by("latecomer").await, [ids("three", 0..12), ids("two", 0..12)].concat());
}
