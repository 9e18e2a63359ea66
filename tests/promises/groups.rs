//! Several handlers: what they share and what they do not.

use handstamp::Disposition::Applied;
use handstamp::{EventId, Notice, idempotent};
use handstamp_tests::Running;
use sqlx::PgConnection;

use crate::credit::{credit, write_effect};
use crate::gate::{Gate, gated};
use crate::scene::{SOON, Scene, count, event};

#[idempotent(consumer = "email-receipts", key = header("event_id"))]
async fn send_receipt(EventId(event): EventId, conn: &mut PgConnection) -> sqlx::Result<()> {
    write_effect(conn, &format!("receipt of {event}"), 1).await
}

#[tokio::test]
async fn handlers_of_one_group_share_an_offset_which_is_that_of_the_slower_one() {
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce_all([event("evt-0"), gated("evt-1"), event("evt-2")]).await;
    let worker =
        scene.worker().consume::<credit>(scene.topic.name()).consume::<send_receipt>(scene.topic.name());
    let mut worker = Running::start(worker);
    gate.wait_for_handlers(1).await;
    worker.until_done(4).await;
    worker.until_committed(0, 1).await;
    let all_receipts = scene.effects().await.iter().filter(|event| event.starts_with("receipt")).count();
    assert_eq!((all_receipts, scene.committed(0).await), (3, Some(1)));
    gate.open().await;
    worker.until_done(2).await;
    worker.until_committed(0, 3).await;
    worker.stop().await.expect("a good end");
}

#[tokio::test]
async fn c23_two_consumers_of_one_topic_and_one_database_both_apply_a_message() {
    let scene = Scene::new(1).await;
    scene.topic.produce(event("evt-1")).await;
    let credits = scene.worker().group(format!("{}-credits", scene.group));
    let receipts = scene.worker().group(format!("{}-receipts", scene.group));
    let mut credits = Running::start(credits.consume::<credit>(scene.topic.name()));
    let mut receipts = Running::start(receipts.consume::<send_receipt>(scene.topic.name()));
    let done = [credits.until_done(1).await, receipts.until_done(1).await].concat();
    credits.stop().await.expect("a good end");
    receipts.stop().await.expect("a good end");
    assert_eq!((count(&done, Applied), scene.remembered().await), (2, 2));
    let mut effects = scene.effects().await;
    effects.sort();
    assert_eq!(effects, ["evt-1", "receipt of evt-1"]);
}

#[tokio::test]
async fn a_consumer_that_must_stop_takes_the_others_of_its_worker_along_in_good_order() {
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("evt-0")).await;
    let worker = scene.worker().consume::<credit>(scene.topic.name());
    let worker =
        worker.group(format!("{}-ending", scene.group)).consume::<end_transaction>(scene.topic.name());
    let mut worker = Running::start(worker);
    gate.wait_for_handlers(1).await;
    worker.next(SOON, |notice| matches!(notice, Notice::Failed { consumer: "ending", .. })).await;
    gate.open().await;
    worker.ended().await.expect_err("it stops");
    assert_eq!(scene.effects().await, ["evt-0"]);
    assert_eq!(scene.committed(0).await, Some(1));
}

#[idempotent(consumer = "ending", key = header("event_id"))]
async fn end_transaction(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("ROLLBACK").execute(conn).await.map(drop)
}
