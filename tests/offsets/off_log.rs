//! An offset that is not in the log any more, or not yet (C18).

use handstamp::Notice;
use handstamp_tests::{Record, Running};

use crate::ledger::{Gate, forgiving, ledger};
use crate::log;
use crate::scene::{SOON, Scene, event, ids, refused, started, until_started};

/// Two partitions with five events each, all applied by the worker that `run` makes, which has stopped.
async fn applied_by(run: impl Fn(&Scene) -> Running) -> Scene {
    let scene = Scene::new(2).await;
    scene.produce(0, ids("zero", 0..5)).await;
    scene.produce(1, ids("one", 0..5)).await;
    let mut running = run(&scene);
    running.until_done(10).await;
    running.stop().await.expect("a clean stop");
    for partition in [0, 1] {
        scene.until_at(partition, 5).await;
    }
    scene
}

fn worker(scene: &Scene) -> Running {
    Running::start(scene.worker())
}

async fn fall_off(scene: &Scene) {
    scene.produce(0, ids("zero", 5..15)).await;
    scene.produce(1, ids("one", 5..6)).await;
    scene.topic.delete_records_before(0, 8).await;
}

async fn refusal(running: &mut Running) -> (i32, String) {
    let notice = running.next(SOON, |notice| refused(notice).is_some()).await;
    let (partition, reason) = refused(&notice).expect("it matched");
    (partition, reason.to_owned())
}

#[tokio::test]
async fn c18_offset_that_has_fallen_off_the_log_stops_its_partition_and_says_what_is_gone() {
    let scene = applied_by(worker).await;
    fall_off(&scene).await;
    let mut running = worker(&scene);
    let (partition, reason) = refusal(&mut running).await;
    assert_eq!(partition, 0);
    assert!(reason.contains("asked for 5, the log is 8..15: 3 gone"), "{reason}");
    let command = format!("progress reset ledger --topic {} --partition 0 --to 8", scene.topic.name());
    assert!(reason.contains(&command) && reason.contains("on_out_of_range = earliest"), "{reason}");
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.progress(0).await, Some(5));
    assert_eq!(scene.topic.committed_offset(&scene.group, 0).await, Some(5));
}

#[tokio::test]
async fn c18_the_other_partitions_go_on() {
    let scene = applied_by(worker).await;
    fall_off(&scene).await;
    let mut running = worker(&scene);
    running.until_done(1).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, [ids("one", 0..6), ids("zero", 0..5)].concat());
}

#[tokio::test]
async fn c18_offset_ahead_of_the_log_end_stops_its_partition() {
    let scene = applied_by(worker).await;
    scene.execute("UPDATE handstamp.progress SET next = 900 WHERE partition = 0").await;
    scene.topic.commit_offset(&scene.group, 0, 900).await;
    let mut running = worker(&scene);
    let (partition, reason) = refusal(&mut running).await;
    assert_eq!(partition, 0);
    assert!(reason.contains("asked for 900, the log is 0..5: 895 ahead of the log end"), "{reason}");
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.progress(0).await, Some(900));
}

#[tokio::test]
async fn c18_on_out_of_range_earliest_goes_on_at_the_start_of_the_log_and_tells_the_gap() {
    let forgiving =
        |scene: &Scene| Running::start(scene.builder(scene.kafka()).consume::<forgiving>(scene.topic.name()));
    let scene = applied_by(forgiving).await;
    fall_off(&scene).await;
    let mut running = forgiving(&scene);
    running.next(SOON, |notice| started(notice) == Some((0, 8))).await;
    log::says(&scene.group, "asked for 5, the log is 8..15: 3 gone", SOON).await;
    scene.until_at(0, 15).await;
    scene.until_at(1, 6).await;
    running.stop().await.expect("a clean stop");
    let expected = [ids("one", 0..6), ids("zero", 0..5), ids("zero", 8..15)].concat();
    assert_eq!(scene.applied_by("forgiving").await, expected);
}

/// The broker deletes what a reader has yet to read, and librdkafka does not say where.
#[tokio::test]
async fn c18_log_that_is_cut_under_a_running_worker_stops_its_partition_and_the_others_go_on() {
    let scene = Scene::new(2).await;
    let kafka = scene
        .kafka()
        // A few at a time, so that it cannot have fetched all of them before they are deleted.
        .property("queued.min.messages", "1")
        .property("queued.max.messages.kbytes", "64")
        .property("fetch.message.max.bytes", "20000");
    let gate = Gate::shut();
    let large = |id: &String| {
        let record = Record::new(vec![b'x'; 10_000]);
        record.header("event_id", id.as_bytes()).partition(0)
    };
    let written = ids("zero", 0..4_000);
    for some in written.chunks(500) {
        scene.topic.produce_all(some.iter().map(large)).await;
    }
    let builder = scene.builder(kafka).state(gate.clone()).consume::<ledger>(scene.topic.name());
    let mut running = Running::start(builder);
    until_started(&mut running, 2).await;
    // Nothing gets past the handler that waits, so most of the log is still to be read.
    scene.topic.delete_records_before(0, 3_999).await;
    gate.open_up();
    let (partition, reason) = refusal(&mut running).await;
    assert_eq!(partition, 0);
    assert!(reason.contains("gone"), "{reason}");
    scene.topic.produce(event("one000000").partition(1)).await;
    running.next(SOON, |n| matches!(n, Notice::Done { position, .. } if position.partition == 1)).await;
    running.stop().await.expect("a clean stop");
    let applied = scene.applied().await;
    let (last, zero) = applied.split_first().expect("something was applied");
    assert_eq!(last, "one000000");
    assert_eq!(zero, &written[..zero.len()]);
    assert_eq!(scene.progress(0).await, i64::try_from(zero.len()).ok());
}
