use handstamp::internal::{Connections, Job, Registered};
use handstamp::{Disposition, FailureKind, apply, apply_with_state};

use super::handlers::{
    BreaksDeferred, Credits, Dawdles, DropsNested, Fails, ForgetsNested, Gate, Panics, SeesInbox, Waits,
};
use super::{effects, keys, new_database};
use crate::database::POOL;
use crate::messages::{Assigned, kind, message, run_alone};

#[tokio::test]
async fn redelivery_after_commit_is_skipped() {
    let database = new_database().await;
    let message = message("evt-1");
    assert_eq!(apply::<Credits>(&database.pool, &message).await.unwrap(), Disposition::Applied);
    assert_eq!(apply::<Credits>(&database.pool, &message).await.unwrap(), Disposition::Duplicate);
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn each_consumer_dedupes_on_its_own() {
    let database = new_database().await;
    let message = message("evt-1");
    for _ in 0..2 {
        apply::<Credits>(&database.pool, &message).await.unwrap();
        apply::<SeesInbox>(&database.pool, &message).await.unwrap();
    }
    let effects = effects(&database).await;
    assert_eq!(effects.len(), 2);
    assert!(
        effects[1].starts_with("SeesInbox:") && effects[1].ends_with("evt-1 at attempt 1"),
        "{effects:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_deliveries_apply_once() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &message("warm-up")).await.unwrap();
    let racers = (0..8).map(|_| {
        let pool = database.pool.clone();
        tokio::spawn(async move { apply::<Credits>(&pool, &message("evt-1")).await.unwrap() })
    });
    let mut applied = 0;
    for racer in racers.collect::<Vec<_>>() {
        applied += usize::from(racer.await.unwrap() == Disposition::Applied);
    }
    assert_eq!(applied, 1);
    assert_eq!(effects(&database).await, ["warm-up", "evt-1"]);
}

#[tokio::test]
async fn a_failing_handler_leaves_nothing_behind() {
    let database = new_database().await;
    let failed = apply::<Fails>(&database.pool, &message("evt-1")).await;
    assert_eq!(kind(failed), FailureKind::Handler);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_panic_is_a_failure_of_the_handler() {
    let database = new_database().await;
    let failure = apply::<Panics>(&database.pool, &message("evt-1")).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Handler);
    assert!(failure.to_string().contains("at the disco"), "{failure}");
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_handler_out_of_time_is_rolled_back_and_the_pool_does_not_leak() {
    let database = new_database().await;
    for _ in 0..=POOL {
        let failed = apply::<Dawdles>(&database.pool, &message("evt-1")).await;
        assert_eq!(kind(failed), FailureKind::Handler);
    }
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_forgotten_nested_transaction_is_caught() {
    let database = new_database().await;
    for _ in 0..=POOL {
        let failed = apply::<ForgetsNested>(&database.pool, &message("evt-1")).await;
        assert_eq!(kind(failed), FailureKind::Handler);
    }
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_dropped_nested_transaction_undoes_itself_alone() {
    let database = new_database().await;
    let applied = apply::<DropsNested>(&database.pool, &message("evt-1")).await;
    assert_eq!(applied.unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_constraint_that_fails_at_commit_is_the_handlers() {
    let database = new_database().await;
    for _ in 0..=POOL {
        let failed = apply::<BreaksDeferred>(&database.pool, &message("evt-1")).await;
        assert_eq!(kind(failed), FailureKind::Handler);
    }
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_nothing_behind() {
    let database = new_database().await;
    let gate = Gate::new();
    for _ in 0..=POOL {
        let (pool, state) = (database.pool.clone(), gate.clone());
        let caller =
            tokio::spawn(async move { apply_with_state::<Waits>(&pool, &state, &message("evt-1")).await });
        gate.wait_until_entered().await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    gate.open();
    let applied = apply_with_state::<Waits>(&database.pool, &gate, &message("evt-1")).await;
    assert_eq!(applied.unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn cancelling_stops_the_handler_and_leaves_nothing_behind() {
    let database = new_database().await;
    let gate = Gate::new();
    let waits = Registered::<Waits>::new(&gate);
    Assigned::new(&database.pool, &waits).await;
    for _ in 0..=POOL {
        let (message, job) = (message("evt-1"), Job::by_hand());
        let connections = Connections::of(&database.pool);
        let ended = run_alone(&waits, &connections, &message, &job, gate.wait_until_entered()).await;
        assert_eq!(kind(ended), FailureKind::Cancelled);
    }
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_closed_pool_is_the_environment() {
    let database = new_database().await;
    database.pool.close().await;
    let failed = apply::<Credits>(&database.pool, &message("evt-1")).await;
    assert_eq!(kind(failed), FailureKind::Environment);
}
