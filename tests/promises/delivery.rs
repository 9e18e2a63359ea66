//! Redelivery, and two consumers of one message.

use anyhow::ensure;
use handstamp::Disposition::{Applied, Duplicate};
use handstamp::Message;
use handstamp_tests::{Running, eventually};

use crate::credit::credit;
use crate::gate::{Gate, gated};
use crate::scene::{SOON, Scene, count, event};

#[tokio::test]
async fn a_message_delivered_twice_is_applied_once() {
    let scene = Scene::new(2).await;
    let again = [event("evt-1").partition(0), event("evt-1").partition(0), event("evt-1").partition(1)];
    scene.topic.produce_all(again).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let done = worker.until_done(3).await;
    worker.stop().await.expect("a good end");
    assert_eq!((count(&done, Applied), count(&done, Duplicate)), (1, 2));
    assert_eq!(scene.effects().await, ["evt-1"]);
}

#[tokio::test]
async fn a_duplicate_moves_the_offset_too() {
    let scene = Scene::new(1).await;
    scene.topic.produce_all([event("evt-1"), event("evt-1")]).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    worker.until_committed(0, 2).await;
    worker.stop().await.expect("a good end");
    assert_eq!(scene.committed(0).await, Some(2));
}

#[tokio::test]
async fn a_kill_between_the_database_commit_and_the_offset_commit_is_a_duplicate_after_the_restart() {
    let scene = Scene::new(1).await;
    let mut process = scene.process(&["--hang-after", "1"]);
    scene.topic.produce(event("evt-0")).await;
    eventually(SOON, async || {
        let committed = scene.committed(0).await;
        ensure!(committed == Some(1), "committed is {committed:?}");
        Ok(())
    })
    .await;
    scene.topic.produce(event("evt-1")).await;
    process.wait_for_line("done 1 Applied", SOON).await;
    process.kill().await;
    assert_eq!(scene.effects().await, ["evt-0", "evt-1"]);
    assert_eq!(scene.committed(0).await, Some(1), "the offset commit came before the kill");

    let mut restarted = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let (position, disposition) = restarted.until_done(1).await.remove(0);
    assert_eq!((position.offset, disposition), (1, Duplicate));
    restarted.until_committed(0, 2).await;
    restarted.stop().await.expect("a good end");
    assert_eq!(scene.effects().await, ["evt-0", "evt-1"]);
}

#[tokio::test]
async fn of_two_consumers_racing_on_one_message_the_second_waits_and_then_skips() {
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("evt-1")).await;
    let one = scene.worker().group(format!("{}-one", scene.group));
    let mut one = Running::start(one.consume::<credit>(scene.topic.name()));
    gate.wait_for_handlers(1).await;
    let two = scene.worker().group(format!("{}-two", scene.group));
    let mut two = Running::start(two.consume::<credit>(scene.topic.name()));
    wait_until_claim_is_blocked(&scene).await;
    gate.open().await;
    let done = [one.until_done(1).await.remove(0).1, two.until_done(1).await.remove(0).1];
    one.stop().await.expect("a good end");
    two.stop().await.expect("a good end");
    assert_eq!(done, [Applied, Duplicate]);
    assert_eq!(scene.effects().await, ["evt-1"]);
}

#[tokio::test]
async fn what_was_applied_from_elsewhere_is_skipped_by_the_worker() {
    let scene = Scene::new(1).await;
    let message = Message::builder().header("event_id", "evt-1").payload("{}").build();
    let applied = handstamp::apply::<credit>(scene.database.pool(), &message).await;
    assert_eq!(applied.expect("the database answers"), Applied);
    scene.topic.produce(event("evt-1")).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    assert_eq!(worker.until_done(1).await[0].1, Duplicate);
    worker.stop().await.expect("a good end");
    assert_eq!(scene.effects().await, ["evt-1"]);
}

/// Waits until somebody's claim waits for somebody else's transaction.
pub async fn wait_until_claim_is_blocked(scene: &Scene) {
    let mut connection = scene.connect().await;
    eventually(SOON, async || {
        let blocked: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event = 'transactionid' AND query LIKE '%INTO handstamp.inbox%'",
        )
        .fetch_one(&mut connection)
        .await?;
        ensure!(blocked == 1, "{blocked} claims are blocked");
        Ok(())
    })
    .await;
}
