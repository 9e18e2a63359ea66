use handstamp::{Message, apply, idempotent};
use serde_json::json;
use sqlx::PgConnection;

use crate::tool::{CONSUMER, Tool, migrated};

#[idempotent(consumer = "cli-credits", key = header("event_id"))]
async fn credit(conn: &mut PgConnection) -> Result<(), handstamp::BoxError> {
    sqlx::query("SELECT 1").execute(conn).await?;
    Err(handstamp::reject("no such\naccount").into())
}

async fn park(pool: &sqlx::PgPool, message: Message) {
    apply::<credit>(pool, &message).await.expect("a rejected message is parked");
}

fn keyless(payload: &[u8]) -> Message {
    Message::builder().payload(payload).build()
}

#[tokio::test]
async fn a_dead_letter_is_shown_with_all_that_it_came_with() {
    let database = migrated().await;
    let message = Message::builder()
        .key([0xff])
        .header("event_id", "evt-7")
        .header("trace", [0x1b, 0xfe])
        .payload("{\"é\": 1}\u{1b}[2J")
        .build();
    park(database.pool(), message).await;
    let tool = Tool::on(&database.url());
    let listed = tool.run(["dlq", "list", CONSUMER]).await;
    let line = listed.done().lines().last().expect("a row").to_owned();
    for word in ["1", CONSUMER, "rejected", "apply", "open", "no such account"] {
        assert!(line.contains(word), "no {word} in {line}");
    }
    let shown = tool.run(["dlq", "show", "1"]).await;
    for word in ["rejected", "evt-7", r"\xff", r"trace: \u{1b}\xfe", "{\"é\": 1}\\u{1b}[2J"] {
        assert!(shown.done().contains(word), "no {word} in {shown:?}");
    }
}

#[tokio::test]
async fn no_byte_of_a_dead_letter_is_lost_in_json() {
    let database = migrated().await;
    let message = Message::builder().header("event_id", "evt-7").header("trace", [0xfe]).payload([0, 0xff]);
    park(database.pool(), message.build()).await;
    let tool = Tool::on(&database.url());
    let shown = tool.json(["dlq", "show", "1", "--json"]).await;
    let headers = json!([
        { "name": { "text": "event_id" }, "value": { "text": "evt-7" } },
        { "name": { "text": "trace" }, "value": { "hex": "fe" } },
    ]);
    assert_eq!(shown["headers"], headers);
    assert_eq!(shown["payload"], json!({ "hex": "00ff" }));
    assert_eq!(shown["message_key"], json!(null));
    assert_eq!(shown["event_key"], json!("evt-7"));
    assert_eq!(tool.json(["dlq", "list", "--json"]).await[0]["error"], shown["error"]);
}

#[tokio::test]
async fn a_list_that_is_cut_says_so_and_begins_with_the_newest() {
    let database = migrated().await;
    for payload in [b"a", b"b", b"c"] {
        park(database.pool(), keyless(payload)).await;
    }
    let tool = Tool::on(&database.url());
    let listed = tool.run(["dlq", "list", "--limit", "2"]).await;
    assert!(listed.done().contains("and more"), "{listed:?}");
    let ids = tool.json(["dlq", "list", "--limit", "2", "--json"]).await;
    assert_eq!((&ids[0]["id"], &ids[1]["id"], ids.get(2)), (&json!(3), &json!(2), None));
}

#[tokio::test]
async fn closed_letters_are_listed_when_asked_for() {
    let database = migrated().await;
    park(database.pool(), keyless(b"a")).await;
    sqlx::query("UPDATE handstamp.dead_letters SET closed_at = now(), outcome = 'dropped'")
        .execute(database.pool())
        .await
        .expect("the owner may do this");
    let tool = Tool::on(&database.url());
    assert!(tool.run(["dlq", "list"]).await.done().contains("no open dead letters"));
    assert!(tool.run(["dlq", "list", "--all"]).await.done().contains("dropped"));
}

#[tokio::test]
async fn a_letter_that_is_not_there_is_refused_with_where_to_look() {
    let database = migrated().await;
    let run = Tool::on(&database.url()).run(["dlq", "show", "7"]).await;
    assert!(run.refused().contains("`handstamp dlq list`"), "{run:?}");
}
