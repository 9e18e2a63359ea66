//! A member that the group has given up on, and that goes on all the same.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use handstamp::Disposition::{Applied, Duplicate};
use handstamp::{Notice, Worker};
use handstamp_tests::{Running, Signal, eventually};
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::{EnterGuard, Runtime};

use crate::credit::credit;
use crate::delivery::wait_until_claim_is_blocked;
use crate::gate::{Gate, gated};
use crate::scene::{SOON, Scene, event, events};

#[tokio::test]
async fn a_frozen_process_and_the_new_owner_of_its_message_apply_it_once() {
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("evt-1")).await;
    let zombie = scene.process(&[]);
    gate.wait_for_handlers(1).await;
    zombie.signal(Signal::Freeze);
    let mut heir = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    wait_until_claim_is_blocked(&scene).await;
    gate.open().await;
    zombie.signal(Signal::Thaw);
    // Applied if the zombie hears that it was given up before it hears from the gate, else a duplicate.
    heir.until_done(1).await;
    heir.stop().await.expect("a good end");
    zombie.wait_for_line("from offset 1", SOON).await;
    assert_eq!(scene.effects().await, ["evt-1"]);
}

#[tokio::test]
async fn a_frozen_process_that_lost_its_transaction_applies_nothing_after_the_new_owner() {
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("evt-1")).await;
    let zombie = scene.process(&[]);
    gate.wait_for_handlers(1).await;
    zombie.signal(Signal::Freeze);
    let mut heir = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    wait_until_claim_is_blocked(&scene).await;
    // What idle_in_transaction_session_timeout does, without the wait.
    sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event = 'advisory'",
    )
    .execute(&mut scene.connect().await)
    .await
    .expect("a superuser may");
    gate.open().await;
    assert_eq!(heir.until_done(1).await[0].1, Applied);
    zombie.signal(Signal::Thaw);
    heir.stop().await.expect("a good end");
    zombie.wait_for_line("from offset 1", SOON).await;
    assert_eq!(scene.effects().await, ["evt-1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_evicted_by_max_poll_interval_finishes_late_and_the_new_owner_skips() {
    let scene = Scene::new(2).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("late").partition(0)).await;
    let stall = Stall::default();
    let kafka = scene.kafka().property("max.poll.interval.ms", "3000");
    let stalled = Arc::clone(&stall.0);
    // On threads and connections of its own: what stalls it must not stall the test.
    let own_threads = own_threads();
    let threads = own_threads.enter();
    let pool = PgPoolOptions::new().connect_lazy_with(scene.database.options());
    let zombie = Worker::builder(pool).kafka(kafka).group(&*scene.group).observe(move |notice| {
        // Nothing takes what the poll thread hands over any more, so that it stops polling.
        if matches!(notice, Notice::Done { position, .. } if position.partition == 1) {
            stalled.wait();
        }
    });
    let mut zombie = Running::start(zombie.consume::<credit>(scene.topic.name()));
    drop(threads);
    gate.wait_for_handlers(1).await;
    scene.topic.produce(event("evt-0").partition(1)).await;
    eventually(SOON, async || {
        ensure!(scene.effects().await == ["evt-0"], "nothing stalls yet");
        Ok(())
    })
    .await;
    let mut heir = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let feeding = async {
        for record in events(10_000).skip(1) {
            scene.topic.produce(record.partition(1)).await;
        }
    };
    let taken_over =
        |notice: &Notice| matches!(notice, Notice::Started { position, .. } if position.partition == 0);
    tokio::select! {
        _ = heir.next(SOON, taken_over) => {}
        () = feeding => panic!("still not evicted"),
    }
    wait_until_claim_is_blocked(&scene).await;
    gate.open().await;
    let late = |notice: &Notice| matches!(notice, Notice::Done { position, .. } if position.partition == 0);
    let second = heir.next(SOON, late).await;
    drop(stall);
    let first = zombie.next(SOON, late).await;
    heir.stop().await.expect("a good end");
    zombie.stop().await.expect("a good end");
    drop(own_threads);
    assert!(matches!(first, Notice::Done { disposition: Applied, .. }), "{first:?}");
    assert!(matches!(second, Notice::Done { disposition: Duplicate, .. }), "{second:?}");
    let effects = scene.effects().await;
    assert_eq!(effects.iter().filter(|event| *event == "late").count(), 1);
}

/// A runtime whose connections are served even while a task blocks one of its threads: a thread that
/// blocks may be the one that waited for all input, and only one that is busy takes over from it.
fn own_threads() -> OwnThreads {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(4).event_interval(1).enable_all().build();
    let runtime = runtime.expect("threads can be started");
    runtime.spawn(async {
        loop {
            std::thread::sleep(Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
    });
    OwnThreads(Some(runtime))
}

/// A runtime cannot end inside another: this one is left behind when the test ends.
struct OwnThreads(Option<Runtime>);

impl OwnThreads {
    fn enter(&self) -> EnterGuard<'_> {
        self.0.as_ref().expect("it runs until it is dropped").enter()
    }
}

impl Drop for OwnThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Holds up a thread until the test ends it, or ends itself.
#[derive(Default)]
struct Stall(Arc<Stalled>);

#[derive(Default)]
struct Stalled {
    over: Mutex<bool>,
    told: Condvar,
}

impl Stalled {
    fn wait(&self) {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.told.wait_while(over, |over| !*over).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        *self.0.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.told.notify_all();
    }
}
