//! More records than handlers can keep up with.

use std::time::Duration;

use handstamp::Notice;
use handstamp_tests::{Record, Running};
use tokio::time::sleep;

use crate::ledger::{Gate, ledger};
use crate::scene::{Scene, ids, until_started};

const PARTITIONS: usize = 4;
const MAX_POLL: Duration = Duration::from_secs(3);

/// Memory of this process that is in use, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("pages are a number") * 4_096
}

/// A worker whose handlers have waited for longer than `max.poll.interval.ms` while records of this size
/// were there to be read; the memory it took meanwhile.
async fn overwhelmed(scene: &Scene, gate: &Gate, records: usize, bytes: usize) -> (Running, usize) {
    for some in ids("e", 0..records).chunks(1_000) {
        let records = some.iter().enumerate().map(|(number, id)| {
            let partition = i32::try_from(number % PARTITIONS).expect("a few");
            Record::new(vec![b'x'; bytes]).header("event_id", id.as_bytes()).partition(partition)
        });
        scene.topic.produce_all(records).await;
    }
    let before = resident();
    let kafka = scene.kafka().property("max.poll.interval.ms", MAX_POLL.as_millis().to_string());
    let builder = scene.builder(kafka).state(gate.clone()).consume::<ledger>(scene.topic.name());
    let mut running = Running::start(builder);
    until_started(&mut running, PARTITIONS).await;
    // Time is what is tested: an eviction comes after it.
    sleep(MAX_POLL + MAX_POLL / 2).await;
    let taken = resident().saturating_sub(before);
    (running, taken)
}

fn scene() -> impl Future<Output = Scene> {
    Scene::new(i32::try_from(PARTITIONS).expect("a few"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_have_to_wait_fill_no_memory() {
    let (scene, gate) = (scene().await, Gate::shut());
    // 200 MB; what may be held is 32 MiB, and half of that in the client.
    let (running, taken) = overwhelmed(&scene, &gate, 20_000, 10_000).await;
    assert!(taken < 100 << 20, "{} MiB were taken", taken >> 20);
    gate.open_up();
    running.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_had_to_wait_are_all_applied_once_and_in_order() {
    let (scene, gate) = (scene().await, Gate::shut());
    let (mut running, _) = overwhelmed(&scene, &gate, 20_000, 100).await;
    gate.open_up();
    for _ in 0..20 {
        running.until_done(1_000).await;
    }
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, ids("e", 0..20_000));
    let out_of_order: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT \"offset\" < lag(\"offset\") OVER (PARTITION BY partition ORDER BY number)
                               FROM effects) AS e (back) WHERE back",
    )
    .fetch_one(scene.pool())
    .await
    .expect("the oracle can count");
    assert_eq!(out_of_order, 0);
}

/// Polling goes on while nothing is fetched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_wait_longer_than_a_poll_may_take_lose_no_partition() {
    let (scene, gate) = (scene().await, Gate::shut());
    let (mut running, _) = overwhelmed(&scene, &gate, 6_000, 100).await;
    gate.open_up();
    for _ in 0..6 {
        running.until_done(1_000).await;
    }
    let ended = running.heard().iter().filter(|notice| matches!(notice, Notice::Ended { .. })).count();
    assert_eq!(ended, 0);
    running.stop().await.expect("a clean stop");
}
