use std::sync::Arc;

use handstamp::internal::consumers;
use handstamp::internal::progress::{self, TrackedPartition};
use handstamp_tests::{Record, TestTopic, unique};
use serde_json::json;
use sqlx::PgPool;

use crate::tool::{CONSUMER, Tool, migrated, register};

/// A row for partition 0 that says `next`, of a topic id that no topic has.
async fn row(pool: &PgPool, topic: &str, next: i64) {
    let consumer = consumers::get(pool, CONSUMER).await.expect("it is registered");
    let partition = TrackedPartition {
        topic: topic.into(),
        partition: 0,
        cluster: Arc::from("elsewhere"),
        topic_id: uuid::Uuid::from_u128(1),
        incarnation: 1,
    };
    progress::create(pool, consumer.id, &partition, next).await.expect("a row can be made");
}

#[tokio::test]
async fn progress_is_listed_without_kafka() {
    let database = migrated().await;
    register(database.pool(), "position", "wallet", "deposits").await.expect("it is new");
    row(database.pool(), "deposits", 7).await;
    let tool = Tool::on(&database.url());
    let listed = tool.run(["progress", "list", CONSUMER]).await;
    let line = listed.done().lines().last().expect("a row").to_owned();
    assert!(line.contains("deposits"), "{line}");
    // Not just any 7: the line ends with a time.
    assert!(line.split_whitespace().any(|cell| cell == "7"), "{line}");
    let document = tool.json(["progress", "list", "--json"]).await;
    assert_eq!((&document[0]["next"], &document[0]["kafka"]), (&json!(7), &json!(null)));
}

#[tokio::test]
async fn progress_is_listed_with_what_kafka_says_beside_it() {
    let database = migrated().await;
    let (topic, group) = (TestTopic::create(1).await, unique("group"));
    topic.produce_all(["a", "b", "c"].map(Record::new)).await;
    topic.commit_offset(&group, 0, 1).await;
    register(database.pool(), "position", &group, topic.name()).await.expect("it is new");
    let tool = Tool::on(&database.url()).and_kafka();
    tool.run(["progress", "adopt", CONSUMER, "--topic", topic.name()]).await.done();
    let document = tool.json(["progress", "list", "--json"]).await;
    let kafka = json!({ "committed": 1, "log": { "low": 0, "high": 3 }, "same_topic": true, "lag": 2 });
    assert_eq!((&document[0]["next"], &document[0]["kafka"]), (&json!(1), &kafka));
    let listed = tool.run(["progress", "list"]).await;
    assert!(listed.done().contains("0..3"), "{listed:?}");
}

#[tokio::test]
async fn a_row_of_another_topic_of_the_name_has_no_lag() {
    let database = migrated().await;
    let topic = TestTopic::create(1).await;
    register(database.pool(), "position", "wallet", topic.name()).await.expect("it is new");
    row(database.pool(), topic.name(), 7).await;
    let document = Tool::on(&database.url()).and_kafka().json(["progress", "list", "--json"]).await;
    assert_eq!(document[0]["kafka"]["same_topic"], json!(false));
    assert_eq!(document[0]["kafka"]["lag"], json!(null));
}

#[tokio::test]
async fn a_topic_that_is_gone_does_not_hide_the_others() {
    let database = migrated().await;
    let topic = unique("gone");
    register(database.pool(), "position", "wallet", &topic).await.expect("it is new");
    row(database.pool(), &topic, 7).await;
    let listed = Tool::on(&database.url()).and_kafka().run(["progress", "list"]).await;
    assert!(listed.done().contains("no such partition"), "{listed:?}");
}

#[tokio::test]
async fn without_an_answer_from_kafka_the_databases_side_is_shown() {
    let database = migrated().await;
    register(database.pool(), "position", "wallet", "deposits").await.expect("it is new");
    row(database.pool(), "deposits", 7).await;
    let run = Tool::on(&database.url()).run(["progress", "list", "--brokers", "127.0.0.1:1"]).await;
    assert!(run.stdout.contains("deposits"), "{run:?}");
    assert!(run.refused().contains("no broker answered at 127.0.0.1:1"), "{run:?}");
}
