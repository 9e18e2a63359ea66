//! Messages that can never be applied.

use std::iter::repeat_n;

use handstamp::Disposition::{Applied, Parked};
use handstamp::{BoxError, EventId, Headers, Json, idempotent, reject};
use handstamp_tests::{Record, Running, TestTopic, eventually, kafka_brokers};
use sqlx::PgConnection;

use crate::credit::{credit, write_effect};
use crate::logs::Logs;
use crate::scene::{SOON, Scene, count, event, event_id, events};

const NOT_TEXT: &[u8] = b"\xc3\x28";

#[tokio::test]
async fn a_message_without_a_key_is_parked_byte_for_byte_and_the_partition_goes_on() {
    let scene = Scene::new(1).await;
    let keyless = Record::new(b"\x00not json\xff")
        .key(b"k\x00\xff")
        .header("trace", b"\x00\xff\x10")
        .header("trace", "")
        .null_header("trace");
    scene.topic.produce_all([keyless, event("evt-1")]).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let done = worker.until_done(2).await;
    worker.until_committed(0, 2).await;
    worker.stop().await.expect("a good end");
    assert_eq!((done[0].1, done[1].1), (Parked, Applied));
    let letter = scene.dead_letters().await.remove(0);
    assert_eq!((&*letter.reason, &*letter.error), ("key", r#"header("event_id"): missing"#));
    assert_eq!(letter.payload.as_deref(), Some(&b"\x00not json\xff"[..]));
    assert_eq!(letter.message_key.as_deref(), Some(&b"k\x00\xff"[..]));
    let headers: Vec<_> = letter.headers.iter().collect();
    let trace = &b"trace"[..];
    assert_eq!(headers, [(trace, Some(&b"\x00\xff\x10"[..])), (trace, Some(&b""[..])), (trace, None)]);
}

#[tokio::test]
async fn a_dead_letter_is_copied_whole_to_the_dlq_topic() {
    let scene = Scene::new(1).await;
    let copies = TestTopic::named(&kafka_brokers(), &format!("{}.dlq", scene.topic.name()));
    copies.make(1).await;
    let keyless =
        Record::new(b"\x00not json\xff").key(b"k\x00\xff").header("trace", b"\x00\xff\x10").null_header("x");
    scene.topic.produce(keyless.clone()).await;
    let mut worker = Running::start(scene.worker().copy_dead_letters().consume::<credit>(scene.topic.name()));
    worker.until_done(1).await;
    eventually(SOON, async || {
        anyhow::ensure!(copies.end_offset(0).await > 0, "nothing is copied");
        Ok(())
    })
    .await;
    worker.stop().await.expect("a good end");
    let letter = scene.dead_letters().await.remove(0);
    let told = keyless
        .partition(0)
        .header("handstamp_dead_letter", letter.id.to_string())
        .header("handstamp_consumer", "credits")
        .header("handstamp_reason", "key")
        .header("handstamp_error", letter.error)
        .header("handstamp_attempts", "1")
        .header("handstamp_topic", scene.topic.name())
        .header("handstamp_partition", "0")
        .header("handstamp_offset", "0");
    assert_eq!(copies.read_all().await, [told]);
}

#[tokio::test]
async fn a_missing_dlq_topic_is_told_and_stops_nothing() {
    let logs = Logs::capture();
    let scene = Scene::new(1).await;
    scene.topic.produce_all([Record::new("no key"), event("evt-1")]).await;
    let mut worker = Running::start(scene.worker().copy_dead_letters().consume::<credit>(scene.topic.name()));
    worker.until_committed(0, 2).await;
    logs.wait_for(&format!("topic `{}.dlq` does not exist: create it", scene.topic.name())).await;
    worker.stop().await.expect("a good end");
    assert_eq!((scene.effects().await.len(), scene.dead_letters().await.len()), (1, 1));
}

/// Takes all headers.
#[idempotent(consumer = "c05", key = header("event_id"))]
async fn with_headers(
    EventId(event): EventId,
    headers: Headers,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    let values: Vec<_> =
        headers.iter().map(|(_, value)| format!("{}", value.unwrap_or_default().escape_ascii())).collect();
    write_effect(conn, &format!("{event}: {}", values.join(" ")), 1).await
}

#[tokio::test]
async fn c05_a_header_that_is_not_utf_8_matters_only_where_it_is_the_key() {
    let scene = Scene::new(1).await;
    let payload = r#"{"account_id":7,"amount":5}"#;
    let trashed = Record::new(payload)
        .header("event_id", "evt-3")
        .header("trash_header", NOT_TEXT)
        .header("x-bin", b"\x00\xff\x10");
    let unreadable = Record::new(payload).header("event_id", NOT_TEXT).header(NOT_TEXT, "x");
    scene.topic.produce_all([trashed, unreadable]).await;
    let mut worker = Running::start(scene.worker().consume::<with_headers>(scene.topic.name()));
    let done = worker.until_done(2).await;
    worker.stop().await.expect("a good end");
    assert_eq!((done[0].1, done[1].1), (Applied, Parked));
    assert_eq!(scene.effects().await, [r"evt-3: evt-3 \xc3( \x00\xff\x10"]);
    let letter = scene.dead_letters().await.remove(0);
    assert_eq!((&*letter.reason, &*letter.error), ("key", r#"header("event_id"): not UTF-8: c328"#));
    let headers: Vec<_> = letter.headers.iter().collect();
    assert_eq!(headers, [(&b"event_id"[..], Some(NOT_TEXT)), (NOT_TEXT, Some(&b"x"[..]))]);
}

/// What a message asks of [`picky`].
#[derive(serde::Deserialize)]
struct Order {
    #[serde(default)]
    does: String,
}

#[idempotent(consumer = "picky", key = header("event_id"), attempts = 2)]
async fn picky(
    EventId(event): EventId,
    Json(order): Json<Order>,
    conn: &mut PgConnection,
) -> Result<(), BoxError> {
    write_effect(conn, &event, 1).await?;
    match &*order.does {
        "reject" => Err(reject("a deposit is positive").into()),
        "fail" => Err("no such account".into()),
        "panic" => panic!("index out of bounds"),
        "swallow" => {
            let _hidden = sqlx::query("SELECT 1 / 0").execute(conn).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Ten kinds that cannot be applied, each with the reason it is parked for.
fn poison(number: usize) -> (Record, &'static str) {
    let does = |what: &str| {
        Record::new(format!(r#"{{"does":"{what}"}}"#)).header("event_id", format!("bad-{number}"))
    };
    let empty = || Record::new("{}");
    match number % 10 {
        0 => (empty(), "key"),
        1 => (empty().header("event_id", ""), "key"),
        2 => (empty().null_header("event_id"), "key"),
        3 => (empty().header("event_id", "a").header("event_id", "a"), "key"),
        4 => (empty().header("event_id", NOT_TEXT).header(NOT_TEXT, NOT_TEXT), "key"),
        5 => (Record::new("{\"does\":").header("event_id", format!("bad-{number}")), "decode"),
        6 => (does("reject"), "rejected"),
        7 => (does("fail"), "failed"),
        8 => (does("panic"), "failed"),
        _ => (does("swallow"), "failed"),
    }
}

#[tokio::test]
async fn one_hundred_poison_messages_do_not_stop_the_rest() {
    let scene = Scene::new(4).await;
    for (number, good) in events(100).enumerate() {
        let partition = i32::try_from(number % 4).expect("small");
        scene.topic.produce_all([poison(number).0.partition(partition), good.partition(partition)]).await;
    }
    let mut worker = Running::start(scene.worker().consume::<picky>(scene.topic.name()));
    let done = worker.until_done(200).await;
    worker.stop().await.expect("a good end");
    assert_eq!((count(&done, Applied), count(&done, Parked)), (100, 100));
    let mut effects = scene.effects().await;
    effects.sort();
    let mut good: Vec<_> = (0..100).map(event_id).collect();
    good.sort();
    assert_eq!(effects, good);
    let mut reasons: Vec<_> = scene.dead_letters().await.into_iter().map(|letter| letter.reason).collect();
    reasons.sort();
    let expected = [("decode", 10), ("failed", 30), ("key", 50), ("rejected", 10)];
    assert_eq!(
        reasons,
        expected.into_iter().flat_map(|(reason, times)| repeat_n(reason, times)).collect::<Vec<_>>()
    );
}
