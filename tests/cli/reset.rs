//! Where a consumer goes on, told by an operator, as a running worker takes it.

use std::time::Duration;

use handstamp::Disposition::{self, Applied, Duplicate};
use handstamp::{Kafka, Notice, Position, Worker, idempotent};
use handstamp_tests::{Record, Running, TestDatabase, TestTopic, kafka_brokers, unique};
use sqlx::PgConnection;

use crate::tool::{CONSUMER, Tool, migrated, register};

const SOON: Duration = Duration::from_secs(30);

#[idempotent(consumer = "cli-credits", key = header("event_id"))]
async fn credit(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT 1").execute(conn).await.map(drop)
}

/// A consumer with a topic of one partition, a group and a database to itself.
struct Scene {
    database: TestDatabase,
    topic: TestTopic,
    group: String,
    tool: Tool,
}

impl Scene {
    async fn new(records: usize) -> Self {
        let (database, topic) = (migrated().await, TestTopic::create(1).await);
        let tool = Tool::on(&database.url()).and_kafka();
        let scene = Self { database, topic, group: unique("group"), tool };
        scene.produce(records).await;
        scene
    }

    async fn produce(&self, records: usize) {
        let record = |_| Record::new("1").header("event_id", unique("event"));
        self.topic.produce_all((0..records).map(record)).await;
    }

    fn start(&self) -> Running {
        let kafka = Kafka::new(kafka_brokers())
            .property("session.timeout.ms", "6000")
            .property("heartbeat.interval.ms", "200");
        let worker = Worker::builder(self.database.pool().clone())
            .kafka(kafka)
            .group(self.group.as_str())
            .consume::<credit>(self.topic.name());
        Running::start(worker)
    }

    /// What `progress list` says of the partition.
    async fn next(&self) -> i64 {
        let listed = self.tool.json(["progress", "list", CONSUMER, "--json"]).await;
        listed[0]["next"].as_i64().expect("a row")
    }
}

async fn refused(worker: &mut Running) -> String {
    match worker.next(SOON, |notice| matches!(notice, Notice::Refused { .. })).await {
        Notice::Refused { reason, .. } => reason,
        other => unreachable!("{other:?} was not asked for"),
    }
}

async fn started(worker: &mut Running) -> i64 {
    match worker.next(SOON, |notice| matches!(notice, Notice::Started { .. })).await {
        Notice::Started { position, .. } => position.offset,
        other => unreachable!("{other:?} was not asked for"),
    }
}

fn offsets(done: &[(Position, Disposition)]) -> Vec<(i64, Disposition)> {
    done.iter().map(|(position, disposition)| (position.offset, *disposition)).collect()
}

#[tokio::test]
async fn a_reset_without_yes_changes_nothing_and_says_so() {
    let scene = Scene::new(3).await;
    let mut worker = scene.start();
    worker.until_done(3).await;
    worker.stop().await.expect("it stops in order");
    let run =
        scene.tool.run(["progress", "reset", CONSUMER, "--topic", scene.topic.name(), "--to-start"]).await;
    assert!(run.done().contains("3 offsets are read again") && run.done().contains("--yes"), "{run:?}");
    assert_eq!(scene.next().await, 3);
}

#[tokio::test]
async fn a_running_worker_goes_on_where_a_reset_says() {
    let scene = Scene::new(5).await;
    let mut worker = scene.start();
    worker.until_done(5).await;
    let topic = scene.topic.name();
    let reset = ["progress", "reset", CONSUMER, "--topic", topic, "--partition", "0", "--to", "2", "--yes"];
    scene.tool.run(reset).await.done();
    scene.produce(1).await;
    assert_eq!(started(&mut worker).await, 2);
    let again = offsets(&worker.until_done(4).await);
    assert_eq!(again, [(2, Duplicate), (3, Duplicate), (4, Duplicate), (5, Applied)]);
    worker.stop().await.expect("it stops in order");
}

#[tokio::test]
async fn a_reset_to_the_end_skips_what_kafka_would_still_deliver() {
    let scene = Scene::new(2).await;
    let mut worker = scene.start();
    worker.until_done(2).await;
    worker.stop().await.expect("it stops in order");
    scene.produce(3).await;
    let topic = scene.topic.name();
    scene.tool.run(["progress", "reset", CONSUMER, "--topic", topic, "--to-end", "--yes"]).await.done();
    let mut worker = scene.start();
    assert_eq!(started(&mut worker).await, 5);
    worker.stop().await.expect("it stops in order");
}

#[tokio::test]
async fn the_command_in_the_refusal_of_lost_records_lets_a_running_worker_go_on() {
    let scene = Scene::new(2).await;
    let mut worker = scene.start();
    worker.until_done(2).await;
    worker.stop().await.expect("it stops in order");
    scene.produce(4).await;
    scene.topic.delete_records_before(0, 5).await;
    let mut worker = scene.start();
    let reason = refused(&mut worker).await;
    scene.tool.paste(&reason, "handstamp progress reset", "--yes").await.done();
    assert_eq!(started(&mut worker).await, 5);
    assert_eq!(offsets(&worker.until_done(1).await), [(5, Applied)]);
    worker.stop().await.expect("it stops in order");
}

#[tokio::test]
async fn the_command_in_the_refusal_of_unknown_progress_lets_a_running_worker_go_on() {
    let scene = Scene::new(4).await;
    scene.topic.commit_offset(&scene.group, 0, 3).await;
    let mut worker = scene.start();
    let reason = refused(&mut worker).await;
    scene.tool.paste(&reason, "handstamp progress adopt", "").await.done();
    assert_eq!(started(&mut worker).await, 3);
    assert_eq!(offsets(&worker.until_done(1).await), [(3, Applied)]);
    worker.stop().await.expect("it stops in order");
}

#[tokio::test]
async fn the_command_in_the_refusal_of_a_recreated_topic_reads_it_from_its_start() {
    let scene = Scene::new(2).await;
    let mut worker = scene.start();
    worker.until_done(2).await;
    worker.stop().await.expect("it stops in order");
    scene.topic.recreate(1).await;
    scene.produce(1).await;
    let mut worker = scene.start();
    let reason = refused(&mut worker).await;
    scene.tool.paste(&reason, "handstamp progress reset", "--yes").await.done();
    assert_eq!(started(&mut worker).await, 0);
    assert_eq!(offsets(&worker.until_done(1).await), [(0, Applied)]);
    worker.stop().await.expect("it stops in order");
}

#[tokio::test]
async fn a_row_that_says_something_else_is_not_adopted_over_without_yes() {
    let scene = Scene::new(4).await;
    scene.topic.commit_offset(&scene.group, 0, 3).await;
    register(scene.database.pool(), r#"header("event_id")"#, &scene.group, scene.topic.name())
        .await
        .expect("it is new");
    let topic = scene.topic.name();
    scene.tool.run(["progress", "reset", CONSUMER, "--topic", topic, "--to-start", "--yes"]).await.done();
    let run = scene.tool.run(["progress", "adopt", CONSUMER, "--topic", topic]).await;
    assert!(run.done().contains("nothing is changed yet"), "{run:?}");
    assert_eq!(scene.next().await, 0);
    scene.tool.run(["progress", "adopt", CONSUMER, "--topic", topic, "--yes"]).await.done();
    assert_eq!(scene.next().await, 3);
}

#[tokio::test]
async fn an_offset_that_is_not_in_the_log_is_refused_with_those_that_are() {
    let scene = Scene::new(4).await;
    let topic = scene.topic.name();
    register(scene.database.pool(), "position", &scene.group, topic).await.expect("it is new");
    let run = scene.tool.run(["progress", "reset", CONSUMER, "--topic", topic, "--to", "9", "--yes"]).await;
    assert!(run.refused().contains("0..4"), "{run:?}");
}
