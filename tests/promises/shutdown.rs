//! Ends in good order.

use std::time::{Duration, Instant};

use handstamp::Disposition::Applied;
use handstamp_tests::{Running, Signal};

use crate::credit::credit;
use crate::gate::{Gate, gated};
use crate::logs::Logs;
use crate::scene::{SOON, Scene, count, event_id, events};

#[tokio::test]
async fn a_clean_shutdown_under_load_redelivers_nothing() {
    let scene = Scene::new(3).await;
    scene.topic.produce_all(events(600)).await;
    let mut first = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    first.until_done(100).await;
    let stopping = Instant::now();
    first.stop().await.expect("a good end");
    assert!(stopping.elapsed() < Duration::from_secs(10), "the drain took {:?}", stopping.elapsed());
    let before = scene.effects().await.len();
    assert!(before < 600, "it was not under load any more");
    let mut second = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let done = second.until_done(600 - before).await;
    second.stop().await.expect("a good end");
    assert_eq!(count(&done, Applied), done.len());
    let mut effects = scene.effects().await;
    effects.sort();
    let mut expected: Vec<_> = (0..600).map(event_id).collect();
    expected.sort();
    assert_eq!(effects, expected);
}

#[tokio::test]
async fn a_drain_waits_for_the_running_handler_and_commits_it() {
    let logs = Logs::capture();
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("evt-1")).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    gate.wait_for_handlers(1).await;
    worker.ask_to_stop();
    logs.wait_for("stopping: finishing what runs").await;
    gate.open().await;
    worker.ended().await.expect("a good end");
    assert_eq!(scene.effects().await, ["evt-1"]);
    assert_eq!(scene.committed(0).await, Some(1));
}

#[tokio::test]
async fn a_handler_that_outlasts_the_drain_is_rolled_back_and_delivered_again() {
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("evt-1")).await;
    // A quarter of it is what a drain may take.
    let kafka = scene.kafka().property("max.poll.interval.ms", "2000");
    let first = Running::start(scene.worker().kafka(kafka).consume::<credit>(scene.topic.name()));
    gate.wait_for_handlers(1).await;
    first.stop().await.expect("a good end");
    gate.open().await;
    let mut second = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    assert_eq!(second.until_done(1).await[0].1, Applied);
    second.stop().await.expect("a good end");
    assert_eq!(scene.effects().await, ["evt-1"]);
    assert_eq!(scene.attempts().await, [1]);
}

#[tokio::test]
async fn sigterm_drains_and_exits_with_success() {
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("evt-1")).await;
    let mut process = scene.process(&[]);
    gate.wait_for_handlers(1).await;
    process.signal(Signal::Terminate);
    process.wait_for_line("stopping: finishing what runs", SOON).await;
    gate.open().await;
    assert!(process.wait(SOON).await.success(), "{}", process.output());
    assert_eq!(scene.effects().await, ["evt-1"]);
    assert_eq!(scene.committed(0).await, Some(1));
}
