//! What a worker refuses to start with, and what it says then.

use std::future::pending;
use std::str::FromStr;
use std::time::Duration;

use anyhow::ensure;
use handstamp::{EventId, Kafka, Notice, Worker, WorkerBuilder, idempotent};
use handstamp_tests::{Running, TestDatabase, TestTopic, eventually, kafka_brokers, unique};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgConnection, Postgres};
use tokio::time::timeout;

use crate::credit::{credit, write_effect};
use crate::logs::Logs;
use crate::scene::{SOON, Scene, event};

/// Another handler that says it is `credits`.
#[idempotent(consumer = "credits", key = header("event_id"))]
async fn impostor(EventId(event): EventId, conn: &mut PgConnection) -> sqlx::Result<()> {
    write_effect(conn, &event, 1).await
}

/// What the worker says instead of starting.
async fn refusal<S: Send + 'static>(worker: WorkerBuilder<Postgres, S>) -> String {
    let run = worker.with_graceful_shutdown(pending()).run();
    let refused = timeout(Duration::from_secs(30), run).await.expect("it does not start");
    refused.expect_err("it does not start").to_string()
}

#[tokio::test]
async fn a_worker_without_a_source_says_which_call_is_missing() {
    let scene = Scene::new(1).await;
    let worker = Worker::builder(scene.database.pool().clone()).consume::<credit>(scene.topic.name());
    assert_eq!(refusal(worker).await, "the worker has no source: call `.kafka(Kafka::from_env()?)`");
}

#[tokio::test]
async fn a_worker_without_handlers_says_which_call_is_missing() {
    let scene = Scene::new(1).await;
    let refusal = refusal(scene.worker()).await;
    assert_eq!(refusal, "the worker has nothing to do: call `.consume::<handler>(\"topic\")`");
}

#[tokio::test]
async fn an_unreachable_broker_is_named() {
    let scene = Scene::new(1).await;
    let worker = scene.worker().kafka(Kafka::new("127.0.0.1:1")).consume::<credit>(scene.topic.name());
    let refusal = refusal(worker).await;
    assert!(refusal.contains("no broker answered at 127.0.0.1:1 within 10 s"), "{refusal}");
    assert!(refusal.contains("check the address and that Kafka runs"), "{refusal}");
}

#[tokio::test]
async fn an_unreachable_database_is_named_with_the_cause() {
    let options = PgConnectOptions::from_str("postgres://postgres@127.0.0.1:1/wallet").expect("a URL");
    let pool = PgPoolOptions::new().acquire_timeout(Duration::from_secs(1)).connect_lazy_with(options);
    let worker = Worker::builder(pool).kafka(Kafka::new(kafka_brokers())).consume::<credit>("deposits");
    let refusal = refusal(worker).await;
    assert!(refusal.contains("the database is not ready: no connection to 127.0.0.1:1: "), "{refusal}");
    assert!(refusal.contains("Connection refused"), "{refusal}");
    assert!(refusal.contains("check the address"), "{refusal}");
}

#[tokio::test]
async fn a_database_without_the_inbox_says_how_to_migrate() {
    let database = TestDatabase::new().await;
    let worker = Worker::builder(database.pool().clone()).kafka(Kafka::new(kafka_brokers()));
    let refusal = refusal(worker.consume::<credit>("deposits")).await;
    assert_eq!(
        refusal,
        "the inbox tables are at version 0 and this program needs 2: run `handstamp migrate` (or call \
         `handstamp::migrate(&pool)`) with a role that may create tables"
    );
}

#[tokio::test]
async fn a_missing_topic_is_named() {
    let scene = Scene::new(1).await;
    let missing = unique("missing");
    let refusal = refusal(scene.worker().consume::<credit>(&*missing)).await;
    assert!(refusal.contains(&format!("topic `{missing}` does not exist")), "{refusal}");
    assert!(refusal.contains("create it first"), "{refusal}");
}

/// The topic is made while the worker asks for it. A broker that has just started knows none, either.
#[tokio::test]
async fn a_topic_that_is_made_a_moment_later_is_waited_for() {
    let scene = Scene::new(1).await;
    let topic = TestTopic::named(&kafka_brokers(), &unique("topic"));
    let mut worker = Running::start(scene.worker().consume::<credit>(topic.name()));
    // The database is asked first, Kafka at once after that; to make a topic takes longer.
    eventually(SOON, async || {
        let asked: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_stat_activity
                            WHERE datname = current_database() AND state = 'idle'
                              AND query LIKE '%handstamp.migrations%')",
        )
        .fetch_one(&mut scene.connect().await)
        .await?;
        ensure!(asked, "the worker has not looked at the database yet");
        Ok(())
    })
    .await;
    topic.make(1).await;
    topic.produce(event("evt-1")).await;
    worker.until_done(1).await;
    worker.stop().await.expect("a good end");
    assert_eq!(scene.effects().await, ["evt-1"]);
}

#[tokio::test]
async fn auto_commit_cannot_be_switched_on() {
    let scene = Scene::new(1).await;
    let kafka = scene.kafka().property("enable.auto.commit", "true");
    let refusal = refusal(scene.worker().kafka(kafka).consume::<credit>(scene.topic.name())).await;
    assert!(refusal.contains("`enable.auto.commit` cannot be set"), "{refusal}");
    assert!(refusal.contains("offsets are committed by the runtime, after the database"), "{refusal}");
}

#[tokio::test]
async fn an_unknown_property_is_named() {
    let scene = Scene::new(1).await;
    let kafka = scene.kafka().property("fetch.wait.max.msec", "10");
    let refusal = refusal(scene.worker().kafka(kafka).consume::<credit>(scene.topic.name())).await;
    assert!(refusal.contains("librdkafka refused the configuration"), "{refusal}");
    assert!(refusal.contains("fetch.wait.max.msec"), "{refusal}");
}

#[tokio::test]
async fn a_pool_that_is_too_small_says_how_large_it_must_be() {
    let scene = Scene::new(1).await;
    let pool = PgPoolOptions::new().max_connections(2).connect_lazy_with(scene.database.options());
    let worker = Worker::builder(pool).kafka(scene.kafka()).consume::<credit>(scene.topic.name());
    let refusal = refusal(worker).await;
    assert!(refusal.contains("the pool has 2 connections"), "{refusal}");
    assert!(refusal.contains("need at least 3"), "{refusal}");
    assert!(refusal.contains("raise `max_connections`"), "{refusal}");
}

#[tokio::test]
async fn c23_two_handlers_of_one_name_in_one_worker_are_both_named() {
    let scene = Scene::new(1).await;
    let worker = scene.worker().consume::<credit>(scene.topic.name()).consume::<impostor>(scene.topic.name());
    let refusal = refusal(worker).await;
    assert!(refusal.contains("`promises::credit::credit` and `promises::refusals::impostor`"), "{refusal}");
    assert!(refusal.contains("both say consumer = \"credits\""), "{refusal}");
    assert!(refusal.contains("give one of them another name"), "{refusal}");
}

#[tokio::test]
async fn c23_another_program_that_takes_a_consumers_name_is_refused_with_both_owners_named() {
    let scene = Scene::new(1).await;
    let mut owner = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    owner.next(SOON, |notice| matches!(notice, Notice::Started { .. })).await;
    let other = scene.worker().group(unique("group")).consume::<impostor>(scene.topic.name());
    let refusal = refusal(other).await;
    owner.stop().await.expect("a good end");
    assert!(refusal.contains("promises::credit::credit"), "{refusal}");
    assert!(refusal.contains("promises::refusals::impostor"), "{refusal}");
    assert!(refusal.contains("handstamp consumers release credits"), "{refusal}");
}

#[tokio::test]
async fn a_handler_given_one_topic_twice_is_refused() {
    let scene = Scene::new(1).await;
    let worker = scene.worker().consume::<credit>(scene.topic.name()).consume::<credit>(scene.topic.name());
    let refusal = refusal(worker).await;
    assert!(refusal.contains(&format!("is given topic `{}` twice", scene.topic.name())), "{refusal}");
}

#[tokio::test]
async fn the_start_says_in_a_few_lines_what_matters() {
    let logs = Logs::capture();
    let scene = Scene::new(1).await;
    let worker = scene.worker().copy_dead_letters().consume::<credit>(scene.topic.name());
    let mut worker = Running::start(worker);
    worker.next(SOON, |notice| matches!(notice, Notice::Started { .. })).await;
    worker.stop().await.expect("a good end");
    let lines = logs.with("");
    let start: Vec<_> = lines.iter().take_while(|line| !line.contains("reading")).collect();
    let said = |fact: &str| start.iter().any(|line| line.contains(fact));
    for fact in [
        "consumer credits",
        scene.topic.name(),
        "promises::credit::credit",
        &scene.group,
        r#"key: header("event_id")"#,
        "remembered in handstamp.inbox",
        "order: by partition",
        "offsets committed after it",
        "3 times",
        "30 s",
        "handstamp.dead_letters",
        "<topic>.dlq",
    ] {
        assert!(said(fact), "nothing says {fact}: {start:#?}");
    }
    assert!(start.len() <= 5, "{start:#?}");
}
