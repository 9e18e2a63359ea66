//! A topic that was deleted and created again under its name (C15).

use anyhow::ensure;
use handstamp::internal::progress::{self, TrackedPartition};
use handstamp::{Notice, Payload, Position, idempotent};
use handstamp_tests::{Record, Running, TestTopic, eventually};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::ledger::{Gate, ledger, write};
use crate::scene::{SOON, Scene, event, ids, refused, started};

/// A worker that reads another topic beside the scene's.
fn with_other(scene: &Scene, other: &TestTopic) -> Running {
    let builder = scene.builder(scene.kafka()).state(Gate::open());
    Running::start(builder.consume::<ledger>(scene.topic.name()).consume::<ledger>(other.name()))
}

async fn produce(topic: &TestTopic, ids: &[String]) {
    // With a producer of its own: one that knew the old topic would take the new one for it.
    let topic = TestTopic::named(&handstamp_tests::kafka_brokers(), topic.name());
    topic.produce_all(ids.iter().map(|id| event(id).partition(0))).await;
}

async fn refusal(running: &mut Running) -> String {
    let notice = running.next(SOON, |notice| refused(notice).is_some()).await;
    refused(&notice).expect("it matched").1.to_owned()
}

fn is_done_on(notice: &Notice, topic: &TestTopic) -> bool {
    matches!(notice, Notice::Done { position, .. } if &*position.topic == topic.name())
}

/// Both topic ids, in the order of the text: the row's, then the topic's. Names of topics hold UUIDs, too,
/// without hyphens.
fn topic_ids(reason: &str) -> Vec<Uuid> {
    let words = reason.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
    words.filter(|word| word.contains('-')).filter_map(|word| Uuid::parse_str(word).ok()).collect()
}

/// As `handstamp progress reset --to-start` does.
async fn reset_to_start(scene: &Scene, consumer: &str, actual: Uuid) {
    let cluster: String = sqlx::query_scalar("SELECT DISTINCT cluster FROM handstamp.progress")
        .fetch_one(scene.pool())
        .await
        .expect("there is a row");
    let partition = TrackedPartition {
        topic: scene.topic.name().into(),
        partition: 0,
        cluster: cluster.into(),
        topic_id: actual,
        incarnation: 1,
    };
    progress::reset(scene.pool(), consumer, &partition, 0).await.expect("the progress can be reset");
}

/// Five events of the old topic are applied, then the topic is made anew with `new` events while no
/// worker runs.
async fn recreated_while_stopped(new: usize) {
    let (scene, other) = (Scene::new(1).await, TestTopic::create(1).await);
    scene.produce(0, ids("e", 0..5)).await;
    let mut running = with_other(&scene, &other);
    running.until_done(5).await;
    running.stop().await.expect("a clean stop");
    scene.until_at(0, 5).await;

    scene.topic.recreate(1).await;
    produce(&scene.topic, &ids("f", 0..new)).await;
    let mut running = with_other(&scene, &other);
    let reason = refusal(&mut running).await;
    assert!(reason.contains("deleted and created again"), "{reason}");
    let command = format!("`handstamp progress reset ledger --topic {} --to-start`", scene.topic.name());
    assert!(reason.contains(&command), "{reason}");
    let ids_told = topic_ids(&reason);
    assert!(ids_told.len() == 2 && ids_told[0] != ids_told[1], "{reason}");

    produce(&other, &ids("other", 0..1)).await;
    running.next(SOON, |notice| is_done_on(notice, &other)).await;
    assert_eq!(scene.applied().await, [ids("e", 0..5), ids("other", 0..1)].concat());
    assert_eq!(scene.progress(0).await, Some(5));

    reset_to_start(&scene, "ledger", ids_told[1]).await;
    running.until_done(new).await;
    scene.until_at(0, i64::try_from(new).expect("a few")).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, [ids("e", 0..5), ids("f", 0..new), ids("other", 0..1)].concat());
}

#[tokio::test]
async fn c15_topic_recreated_with_a_log_beyond_the_old_offset_is_refused_and_read_whole_after_a_reset() {
    recreated_while_stopped(10).await;
}

#[tokio::test]
async fn c15_topic_recreated_with_a_log_below_the_old_offset_is_refused_and_read_whole_after_a_reset() {
    recreated_while_stopped(3).await;
}

/// The client itself would go on at its old position, and its committed offset would be taken.
async fn recreated_while_running(refresh: &str, new: usize) {
    let (scene, other) = (Scene::new(1).await, TestTopic::create(1).await);
    scene.produce(0, ids("e", 0..5)).await;
    let kafka = scene.kafka().property("topic.metadata.refresh.interval.ms", refresh);
    let builder = scene.builder(kafka).state(Gate::open());
    let builder = builder.consume::<ledger>(scene.topic.name()).consume::<ledger>(other.name());
    let mut running = Running::start(builder);
    running.until_done(5).await;
    scene.until_at(0, 5).await;

    scene.topic.recreate(1).await;
    produce(&scene.topic, &ids("f", 0..new)).await;
    let reason = refusal(&mut running).await;
    assert!(reason.contains("deleted and created again"), "{reason}");
    produce(&other, &ids("other", 0..1)).await;
    running.next(SOON, |notice| is_done_on(notice, &other)).await;

    reset_to_start(&scene, "ledger", topic_ids(&reason)[1]).await;
    running.next(SOON, |notice| started(notice) == Some((0, 0))).await;
    scene.until_at(0, i64::try_from(new).expect("a few")).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, [ids("e", 0..5), ids("f", 0..new), ids("other", 0..1)].concat());
}

#[tokio::test]
async fn c15_topic_recreated_under_a_running_worker_is_refused_at_the_next_look() {
    recreated_while_running("300000", 3).await;
}

#[tokio::test]
async fn c15_topic_recreated_under_a_running_worker_whose_client_notices_is_refused() {
    recreated_while_running("1000", 3).await;
}

/// Records beyond the old position are read until the next look, but nothing is skipped for good.
#[tokio::test]
async fn c15_topic_recreated_and_filled_beyond_the_old_position_is_read_whole_after_a_reset() {
    recreated_while_running("300000", 10).await;
}

#[idempotent(consumer = "by-position", key = position)]
async fn by_position(position: Position, Payload(id): Payload, conn: &mut PgConnection) -> sqlx::Result<()> {
    write("by-position", &String::from_utf8_lossy(&id), &position, conn).await
}

/// A key made of the position alone would be that of the old topic's record.
#[tokio::test]
async fn c15_offsets_of_the_new_topic_are_not_taken_for_those_of_the_old_one() {
    let scene = Scene::new(1).await;
    let worker = || scene.builder(scene.kafka()).consume::<by_position>(scene.topic.name());
    scene.topic.produce_all(["e0", "e1"].map(Record::new)).await;
    let mut running = Running::start(worker());
    running.until_done(2).await;
    running.stop().await.expect("a clean stop");

    scene.topic.recreate(1).await;
    let topic = TestTopic::named(&scene.brokers, scene.topic.name());
    topic.produce_all(["f0", "f1"].map(Record::new)).await;
    let mut running = Running::start(worker());
    let reason = refusal(&mut running).await;
    reset_to_start(&scene, "by-position", topic_ids(&reason)[1]).await;
    running.until_done(2).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied_by("by-position").await, ["e0", "e1", "f0", "f1"]);
}

#[tokio::test]
async fn a_topic_that_was_deleted_holds_up_no_other_topic_of_its_group() {
    let (scene, other) = (Scene::new(1).await, TestTopic::create(2).await);
    let mut running = with_other(&scene, &other);
    scene.produce(0, ids("e", 0..1)).await;
    running.until_done(1).await;
    scene.topic.delete().await;
    // It joins, so that every partition of the other topic is opened anew.
    let builder = scene.builder(scene.kafka()).state(Gate::open());
    let mut joined = Running::start(builder.consume::<ledger>(other.name()));
    joined.next(SOON, |notice| started(notice).is_some()).await;
    let both = (0..2).map(|partition| event(&format!("other{partition}")).partition(partition));
    other.produce_all(both).await;
    eventually(SOON, async || {
        let applied = scene.applied().await;
        ensure!(applied == ["e000000", "other0", "other1"], "applied: {applied:?}");
        Ok(())
    })
    .await;
    joined.stop().await.expect("a clean stop");
    running.stop().await.expect("a clean stop");
}
