//! How far Kafka and the database are told that everything is dealt with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::ensure;
use handstamp::{EventId, Payload, Position, idempotent};
use handstamp_tests::{Record, Running, eventually};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use sqlx::PgConnection;
use tokio::task::spawn_blocking;

use crate::ledger::{Gate, audit, ledger, write};
use crate::member::Member;
use crate::scene::{SOON, Scene, ids, until_started};

const PARTITIONS: i32 = 3;
const EACH: usize = 60;

/// Asks for committed offsets and progress without end; each must hold at every moment.
struct Sampler {
    end: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<Sample>>,
}

/// One look at a partition; `stored` is read after `committed`, and neither goes back.
#[derive(Debug)]
struct Sample {
    committed: i64,
    stored: i64,
    /// Applied records below `stored`, as of the same moment.
    applied: i64,
}

impl Sampler {
    fn start(scene: &Scene) -> Self {
        let mut config = scene.client();
        config.set("group.id", &scene.group).set("enable.auto.commit", "false");
        let (topic, options) = (scene.topic.name().to_owned(), scene.database.options());
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let pool = runtime.block_on(async { sqlx::PgPool::connect_lazy_with(options) });
            let consumer: BaseConsumer = config.create().expect("a consumer can be made");
            let mut samples = Vec::new();
            while !ended.load(Ordering::Acquire) {
                let committed = committed(&consumer, &topic);
                let stored = runtime.block_on(stored(&pool));
                for (partition, stored, applied) in stored {
                    let committed = committed[usize::try_from(partition).expect("not negative")];
                    samples.push(Sample { committed, stored, applied });
                }
            }
            samples
        });
        Self { end, thread }
    }

    fn stop(self) -> Vec<Sample> {
        self.end.store(true, Ordering::Release);
        self.thread.join().expect("no panic")
    }
}

/// By partition; 0 for none.
fn committed(consumer: &BaseConsumer, topic: &str) -> Vec<i64> {
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, PARTITIONS - 1);
    let committed = consumer.committed_offsets(list, SOON).expect("the broker tells committed offsets");
    committed.elements().iter().map(|element| element.offset().to_raw().unwrap_or(0).max(0)).collect()
}

async fn stored(pool: &sqlx::PgPool) -> Vec<(i32, i64, i64)> {
    sqlx::query_as(
        "SELECT partition, next, (SELECT count(DISTINCT \"offset\") FROM effects e
                                  WHERE e.partition = p.partition AND e.\"offset\" < p.next)
         FROM handstamp.progress p",
    )
    .fetch_all(pool)
    .await
    .expect("the progress can be read")
}

/// Samples a run of slow handlers from its first record to its last.
async fn samples_of_a_run() -> Vec<Sample> {
    let scene = Scene::new(PARTITIONS).await;
    for partition in 0..PARTITIONS {
        scene.produce(partition, ids(&format!("p{partition}-"), 0..EACH)).await;
    }
    let looking = Sampler::start(&scene);
    let builder = scene.builder(scene.kafka()).state(Gate::slow()).consume::<ledger>(scene.topic.name());
    let mut running = Running::start(builder);
    running.until_done(EACH * usize::try_from(PARTITIONS).expect("a few")).await;
    for partition in 0..PARTITIONS {
        scene.until_at(partition, i64::try_from(EACH).expect("a few")).await;
    }
    running.stop().await.expect("a clean stop");
    let samples = looking.stop();
    let between = |next: i64| next > 0 && next < i64::try_from(EACH).expect("a few");
    let seen = samples.iter().filter(|sample| between(sample.committed) && between(sample.stored)).count();
    assert!(seen > 20, "only {seen} of {} samples were taken while it ran", samples.len());
    samples
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn committed_offset_is_never_ahead_of_the_progress_in_the_database() {
    for sample in samples_of_a_run().await {
        assert!(sample.committed <= sample.stored, "{sample:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_and_committed_offset_never_pass_an_unfinished_record() {
    for sample in samples_of_a_run().await {
        assert_eq!(sample.applied, sample.stored, "{sample:?}");
        assert!(sample.committed <= sample.applied, "{sample:?}");
    }
}

/// A handler that waits holds its own offset, however much has been fetched behind it.
#[tokio::test]
async fn offset_of_a_record_that_is_still_handled_is_not_passed() {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("e", 0..10)).await;
    let gate = Gate::shut();
    // A lane takes one record alone first, and what is behind it together.
    gate.admit(1);
    let mut running = Running::start(scene.gated(&gate));
    running.until_done(1).await;
    scene.until_at(0, 1).await;
    // Committed again without having moved: a later round has nothing else to say either.
    running.until_committed(0, 1).await;
    running.until_committed(0, 1).await;
    assert_eq!(scene.progress(0).await, Some(1));
    assert_eq!(scene.topic.committed_offset(&scene.group, 0).await, Some(1));
    gate.open_up();
    scene.until_at(0, 10).await;
    running.stop().await.expect("a clean stop");
}

#[idempotent(consumer = "needy", key = header("event_id"))]
async fn needy(_: Payload, EventId(id): EventId, at: Position, conn: &mut PgConnection) -> sqlx::Result<()> {
    write("needy", &id, &at, conn).await
}

/// A skipped record moves the watermark without a transaction of its own.
#[tokio::test]
async fn kafka_is_not_told_of_a_skipped_record_before_the_database_is() {
    let scene = Scene::new(1).await;
    let mut running = Running::start(scene.builder(scene.kafka()).consume::<needy>(scene.topic.name()));
    scene.produce(0, ids("e", 0..3)).await;
    running.until_done(3).await;
    scene.until_at(0, 3).await;

    let mut holder = scene.pool().begin().await.expect("a transaction begins");
    sqlx::query("SELECT FROM handstamp.progress FOR UPDATE")
        .execute(&mut *holder)
        .await
        .expect("the row can be locked");
    scene.topic.produce_all((0..3).map(|_| Record::tombstone().partition(0))).await;
    running.until_done(3).await;
    // Rounds in which it would have been told.
    running.until_committed(0, 3).await;
    running.until_committed(0, 3).await;
    assert_eq!(scene.topic.committed_offset(&scene.group, 0).await, Some(3));
    holder.rollback().await.expect("the row can be unlocked");
    scene.until_at(0, 6).await;
    running.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn committed_offset_waits_for_the_slowest_handler_of_the_group() {
    let scene = Scene::new(1).await;
    scene.produce(0, ids("e", 0..10)).await;
    let gate = Gate::shut();
    gate.admit(1);
    let mut running = Running::start(scene.gated(&gate).consume::<audit>(scene.topic.name()));
    running.until_done(11).await;
    assert_eq!(scene.applied_by("audit").await, ids("e", 0..10));
    eventually(SOON, async || {
        let committed = scene.topic.committed_offset(&scene.group, 0).await;
        ensure!(committed == Some(1), "{committed:?} is committed");
        Ok(())
    })
    .await;
    running.until_committed(0, 1).await;
    gate.open_up();
    running.until_committed(0, 10).await;
    running.stop().await.expect("a clean stop");
}

/// A broker takes any member's word for any partition of the group.
#[tokio::test]
async fn offset_that_another_member_moved_back_is_committed_again() {
    let scene = Scene::new(2).await;
    scene.produce(0, ids("zero", 0..5)).await;
    scene.produce(1, ids("one", 0..5)).await;
    let mut running = Running::start(scene.worker());
    running.until_done(10).await;
    for partition in [0, 1] {
        scene.until_at(partition, 5).await;
    }
    let other = Member::join(&scene, &[]).await;
    until_started(&mut running, 1).await;
    let theirs = i32::from(other.partitions() == [0]);
    eventually(SOON, async || {
        // The worker commits once when it starts to read, which may come in between.
        other.commit(scene.topic.name(), theirs, 1, CommitMode::Sync)?;
        let committed = scene.topic.committed_offset(&scene.group, theirs).await;
        ensure!(committed == Some(1), "{committed:?} is committed");
        Ok(())
    })
    .await;
    scene.until_at(theirs, 5).await;
    spawn_blocking(move || drop(other)).await.expect("no panic");
    running.stop().await.expect("a clean stop");
}
