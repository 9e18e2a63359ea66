//! Records of every kind that a topic may hold.

use handstamp::{Disposition, Handler, Json, Payload, Position, idempotent};
use handstamp_tests::{Record, Running, TestDatabase, TestTopic};
use serde::Deserialize;
use sqlx::PgConnection;

use crate::ledger::write;
use crate::scene::{Scene, event, ids};

/// A change event as Debezium writes it.
#[derive(Deserialize)]
struct Change {
    op: String,
}

macro_rules! changes {
    ($($name:ident: $payload:ty, $describe:expr, [$($option:tt)*];)*) => {$(
        #[idempotent(consumer = "changes", $($option)*)]
        async fn $name(payload: $payload, position: Position, conn: &mut PgConnection) -> sqlx::Result<()> {
            let describe: fn($payload) -> String = $describe;
            write("changes", &describe(payload), &position, conn).await
        }
    )*};
}

changes! {
    skipping: Json<Change>, |Json(change)| change.op, [key = json("/source/lsn")];
    parking: Json<Change>, |Json(change)| change.op, [key = json("/source/lsn"), on_tombstone = park];
    taking: Option<Json<Change>>, |change| change.map_or("none".into(), |Json(change)| change.op),
        [key = header("event_id")];
}

/// A deleted row's event and its tombstone, a payload of no bytes, and a later event.
async fn run_changes<H>(scene: &Scene) -> Vec<Disposition>
where
    H: Handler<Arguments: handstamp::Arguments>,
    sqlx::Postgres: handstamp::Serves<<H::Access as handstamp::Access>::Database>,
    (): handstamp::Provides<<H::Arguments as handstamp::Arguments>::Needs>,
{
    let change = |op: &str, lsn: u64| {
        let payload = format!(r#"{{"before":null,"after":null,"source":{{"lsn":{lsn}}},"op":"{op}"}}"#);
        Record::new(payload)
    };
    let records = [change("d", 34_213_136), Record::tombstone(), Record::new(""), change("u", 34_213_137)];
    let records = records.into_iter().zip(["1", "2", "3", "4"]);
    let records = records.map(|(record, id)| record.partition(0).key("{\"id\":7}").header("event_id", id));
    scene.topic.produce_all(records).await;
    let mut running = Running::start(scene.builder(scene.kafka()).consume::<H>(scene.topic.name()));
    let done = running.until_done(4).await;
    scene.until_at(0, 4).await;
    running.stop().await.expect("a clean stop");
    done.into_iter().map(|(_, disposition)| disposition).collect()
}

/// Offset and reason of each dead letter.
async fn letters(scene: &Scene) -> Vec<(i64, String)> {
    sqlx::query_as("SELECT \"offset\", reason FROM handstamp.dead_letters ORDER BY \"offset\"")
        .fetch_all(scene.pool())
        .await
        .expect("the dead letters can be read")
}

#[tokio::test]
async fn c12_tombstone_is_skipped_by_a_handler_that_needs_a_payload() {
    let scene = Scene::new(1).await;
    let done = run_changes::<skipping>(&scene).await;
    assert_eq!(done[..2], [Disposition::Applied, Disposition::Skipped]);
    assert_eq!(scene.applied_by("changes").await, ["d", "u"]);
}

#[tokio::test]
async fn c12_tombstone_is_parked_on_request() {
    let scene = Scene::new(1).await;
    let done = run_changes::<parking>(&scene).await;
    assert_eq!(done[..2], [Disposition::Applied, Disposition::Parked]);
    assert_eq!(letters(&scene).await[0], (1, "tombstone".to_owned()));
    assert_eq!(scene.applied_by("changes").await, ["d", "u"]);
}

#[tokio::test]
async fn c12_tombstone_reaches_a_handler_that_can_do_without_a_payload_once() {
    let scene = Scene::new(1).await;
    run_changes::<taking>(&scene).await;
    assert_eq!(scene.applied_by("changes").await, ["d", "none", "u"]);
}

#[tokio::test]
async fn c12_payload_of_no_bytes_is_no_tombstone_but_cannot_be_decoded() {
    let scene = Scene::new(1).await;
    run_changes::<taking>(&scene).await;
    assert_eq!(letters(&scene).await, [(2, "decode".to_owned())]);
}

/// The broker writes whole batches in the topic's codec, whatever the producer did.
async fn c14_reads(codec: &str) {
    let topic = TestTopic::with(1, &[("compression.type", codec)]).await;
    let scene = Scene::with(topic, TestDatabase::new().await).await;
    let written = ids("e", 0..10);
    let large = |id: &String| Record::new(vec![b'x'; 1_000]).header("event_id", id.as_bytes()).partition(0);
    scene.topic.produce_all(written.iter().map(large)).await;
    let mut running = Running::start(scene.worker());
    running.until_done(10).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, written);
}

#[tokio::test]
async fn c14_gzip_is_read() {
    c14_reads("gzip").await;
}

#[tokio::test]
async fn c14_snappy_is_read() {
    c14_reads("snappy").await;
}

#[tokio::test]
async fn c14_lz4_is_read() {
    c14_reads("lz4").await;
}

#[tokio::test]
async fn c14_zstd_is_read() {
    c14_reads("zstd").await;
}

#[tokio::test]
async fn c05_headers_that_are_not_utf8_and_that_nobody_asked_for_do_not_matter() {
    let scene = Scene::new(1).await;
    let record = event("evt-3")
        .header("trash_header", [0xc3, 0x28])
        .header([0xff, 0xfe], "the name is not UTF-8")
        .header("x-bin", [0x00, 0xff, 0x10])
        .null_header("x-null");
    scene.topic.produce_all([record.partition(0), event("evt-4").partition(0)]).await;
    let mut running = Running::start(scene.worker());
    running.until_done(2).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, ["evt-3", "evt-4"]);
}

#[tokio::test]
async fn c05_key_header_that_is_not_utf8_is_parked_and_the_partition_goes_on() {
    let scene = Scene::new(1).await;
    let unreadable = Record::new("{}").header("event_id", [0xc3, 0x28]).partition(0);
    scene.topic.produce_all([unreadable, event("evt-4").partition(0)]).await;
    let mut running = Running::start(scene.worker());
    running.until_done(2).await;
    scene.until_at(0, 2).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(letters(&scene).await, [(0, "key".to_owned())]);
    assert_eq!(scene.applied().await, ["evt-4"]);
}

#[idempotent(consumer = "measure", key = header("event_id"))]
async fn measure(Payload(payload): Payload, position: Position, conn: &mut PgConnection) -> sqlx::Result<()> {
    write("measure", &payload.len().to_string(), &position, conn).await
}

#[tokio::test]
async fn payload_of_a_mebibyte_arrives_whole() {
    let topic = TestTopic::with(1, &[("max.message.bytes", "2000000")]).await;
    let scene = Scene::with(topic, TestDatabase::new().await).await;
    scene.produce_large(1 << 20, "large").await;
    scene.produce(0, ids("small", 0..1)).await;
    let mut running = Running::start(scene.builder(scene.kafka()).consume::<measure>(scene.topic.name()));
    running.until_done(2).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied_by("measure").await, ["1048576", "2"]);
}
