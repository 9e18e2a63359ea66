//! A database that is older than it was, and an operator who changes the progress under a running worker.

use std::collections::BTreeSet;

use handstamp::Disposition;
use handstamp_tests::{PrivatePostgres, Running, TestDatabase, TestTopic};

use crate::log;
use crate::scene::{SOON, Scene, ids, started, until_started};

/// Partition 0 has traffic after the restore, partition 1 rests: both must be noticed.
#[tokio::test]
async fn a_database_restored_to_an_older_state_under_a_running_worker_loses_nothing() {
    let postgres = PrivatePostgres::launch().await;
    let scene = Scene::with(TestTopic::create(2).await, TestDatabase::on(postgres.url()).await).await;
    let mut running = Running::start(scene.worker());
    until_started(&mut running, 2).await;
    for partition in [0, 1] {
        scene.produce(partition, ids(&format!("kept{partition}-"), 0..20)).await;
        scene.until_at(partition, 20).await;
    }
    postgres.stop().await;
    postgres.snapshot().await;
    postgres.start().await;
    for partition in [0, 1] {
        scene.produce(partition, ids(&format!("gone{partition}-"), 0..20)).await;
        scene.until_at(partition, 40).await;
    }

    postgres.stop().await;
    postgres.restore().await;
    postgres.start().await;
    scene.produce(0, ids("next0-", 0..1)).await;
    let mut again = BTreeSet::new();
    while again != BTreeSet::from([(0, 20), (1, 20)]) {
        let notice = running.next(2 * SOON, |notice| started(notice).is_some()).await;
        again.extend(started(&notice));
    }
    scene.until_at(0, 41).await;
    scene.until_at(1, 40).await;
    log::says(&scene.group, "the database went back in time", SOON).await;
    running.stop().await.expect("a clean stop");
    let expected = ["gone0-", "gone1-", "kept0-", "kept1-"].map(|prefix| ids(prefix, 0..20)).concat();
    assert_eq!(scene.applied().await, [expected, ids("next0-", 0..1)].concat());
}

/// The incarnation is what `handstamp progress reset` raises.
#[tokio::test]
async fn progress_that_is_reset_under_a_running_worker_is_noticed_and_read_from_there() {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("e", 0..5)).await;
    let mut running = Running::start(scene.worker());
    running.until_done(5).await;
    scene.until_at(0, 5).await;

    scene.execute("UPDATE handstamp.progress SET next = 2, incarnation = incarnation + 1").await;
    scene.produce(0, ids("f", 0..1)).await;
    running.next(SOON, |notice| started(notice) == Some((0, 2))).await;
    let done = running.until_done(4).await;
    let done: Vec<_> = done.iter().map(|(position, disposition)| (position.offset, *disposition)).collect();
    let duplicates = [2, 3, 4].map(|offset| (offset, Disposition::Duplicate));
    assert_eq!(done, [&duplicates[..], &[(5, Disposition::Applied)]].concat());
    log::says(&scene.group, "its progress was changed by an operator", SOON).await;
    scene.until_at(0, 6).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, [ids("e", 0..5), ids("f", 0..1)].concat());
}
