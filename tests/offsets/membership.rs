//! A worker and its group: waiting, standing by, fenced.

use handstamp::Notice;

use handstamp_tests::Running;

use crate::ledger::{Gate, ledger};
use crate::log;
use crate::member::Member;
use crate::scene::{SOON, Scene, ids, until_started};

#[tokio::test]
async fn member_that_stands_by_is_told() {
    let scene = Scene::new(1).await;
    let mut first = Running::start(scene.worker());
    until_started(&mut first, 1).await;
    let second = Running::start(scene.worker());
    log::says(&scene.group, "the group has more members than partitions: standing by", SOON).await;
    first.stop().await.expect("a clean stop");
    second.stop().await.expect("a clean stop");
}

/// To the group a process that died is one that does not answer.
#[tokio::test]
async fn start_that_waits_for_a_member_that_does_not_answer_says_so_and_then_goes_on() {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("e", 0..1)).await;
    let mut dead = Member::join(&scene, &[]).await;
    dead.fall_silent();
    let mut running = Running::start(scene.worker());
    let line = log::says(&scene.group, "no partitions yet", SOON).await;
    assert!(line.contains("1.5 s") && line.contains("session.timeout.ms"), "{line}");
    assert!(line.contains("group_instance_id"), "{line}");
    drop(dead);
    running.until_done(1).await;
    running.stop().await.expect("a clean stop");
}

/// Its client is beyond repair then, and every commit of it would be refused.
#[tokio::test]
async fn worker_that_is_fenced_by_another_of_its_static_id_rebuilds_its_client_and_goes_on() {
    let scene = Scene::new(1).await;
    let kafka = scene.kafka().group_instance_id("the same");
    let builder = scene.builder(kafka).state(Gate::open());
    let mut running = Running::start(builder.consume::<ledger>(scene.topic.name()));
    scene.produce(0, ids("e", 0..3)).await;
    running.until_done(3).await;
    scene.until_at(0, 3).await;

    let usurper = Member::join(&scene, &[("group.instance.id", "the same")]).await;
    running.next(SOON, |notice| matches!(notice, Notice::Rebuilt { .. })).await;
    until_started(&mut running, 1).await;
    scene.produce(0, ids("f", 0..3)).await;
    running.until_done(3).await;
    scene.until_at(0, 6).await;
    assert_eq!(scene.applied().await, [ids("e", 0..3), ids("f", 0..3)].concat());
    running.stop().await.expect("a clean stop");
    drop(usurper);
}
