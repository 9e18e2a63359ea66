use std::num::NonZeroU32;
use std::time::Duration;

use handstamp::internal::Registered;
use handstamp::internal::consumers::ConsumerId;
use handstamp::internal::retention::{Batch, Horizon, StampedAt, Sweep};
use handstamp::{Disposition, FailureKind, apply};

use super::handlers::Credits;
use super::{Store, effects, execute, keys, new_database, remember, stamps};
use crate::database::Database;
use crate::messages::{Assigned, kind, message, message_at};

const WEEK: Duration = Duration::from_hours(7 * 24);

const CREDITS: ConsumerId = ConsumerId(1);
const AUDIT: ConsumerId = ConsumerId(2);

async fn week_ago(database: &Database<Store>) -> Horizon {
    Horizon::behind(&database.pool, WEEK).await.unwrap()
}

/// Seconds from the horizon, as keys are stamped.
fn from(horizon: Horizon, seconds: i32) -> StampedAt {
    StampedAt(horizon.stamped_at().0 + seconds)
}

fn at_a_time(limit: u32) -> NonZeroU32 {
    NonZeroU32::new(limit).unwrap()
}

/// The batches of a pass to its end.
async fn pass(mut sweep: Sweep<Store>) -> Vec<Batch> {
    let mut batches = Vec::new();
    loop {
        batches.push(sweep.next_batch().await.unwrap());
        if batches.last().is_some_and(|batch| batch.finished) {
            return batches;
        }
    }
}

fn deleted(batches: &[Batch]) -> Vec<u64> {
    batches.iter().map(|batch| batch.deleted).collect()
}

#[tokio::test]
async fn r36_expired_keys_are_deleted_in_batches() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    remember(&database, CREDITS, 25_000, from(horizon, -1)).await;
    remember(&database, CREDITS, 100, from(horizon, 60)).await;
    let batches = pass(Sweep::new(&database.pool, CREDITS, horizon)).await;
    assert_eq!(deleted(&batches), [10_000, 10_000, 5_000, 0]);
    assert_eq!(keys(&database).await, 100);
}

#[tokio::test]
async fn r36_recent_keys_in_between_do_not_make_batches_smaller() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    for _ in 0..5 {
        remember(&database, CREDITS, 20, from(horizon, 60)).await;
        remember(&database, CREDITS, 50, from(horizon, -1)).await;
    }
    let batches = pass(Sweep::new(&database.pool, CREDITS, horizon).batches_of(at_a_time(100))).await;
    assert_eq!(deleted(&batches), [100, 100, 50, 0]);
    assert_eq!(keys(&database).await, 100);
}

#[tokio::test]
async fn a_key_stamped_at_the_horizon_is_kept_and_one_stamped_before_is_not() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    for seconds in [-1, 0, 1] {
        remember(&database, CREDITS, 1, from(horizon, seconds)).await;
    }
    pass(Sweep::new(&database.pool, CREDITS, horizon)).await;
    assert_eq!(stamps(&database).await, [from(horizon, 0), from(horizon, 1)]);
}

#[tokio::test]
async fn keys_of_other_consumers_are_kept() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    remember(&database, CREDITS, 10, from(horizon, -1)).await;
    remember(&database, AUDIT, 20, from(horizon, -1)).await;
    assert_eq!(deleted(&pass(Sweep::new(&database.pool, CREDITS, horizon)).await), [10, 0]);
    assert_eq!(keys(&database).await, 20);
}

#[tokio::test]
async fn a_pass_goes_on_where_there_is_nothing_to_delete_for_long() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    remember(&database, AUDIT, 100_000, from(horizon, -1)).await;
    remember(&database, CREDITS, 1, from(horizon, -1)).await;
    let batches = pass(Sweep::new(&database.pool, CREDITS, horizon)).await;
    assert_eq!(deleted(&batches), [0, 1, 0]);
}

#[tokio::test]
async fn a_new_pass_deletes_what_one_that_was_given_up_has_left() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    remember(&database, CREDITS, 25, from(horizon, -1)).await;
    let sweep = || Sweep::new(&database.pool, CREDITS, horizon).batches_of(at_a_time(10));
    sweep().next_batch().await.unwrap();
    assert_eq!(keys(&database).await, 15);
    assert_eq!(deleted(&pass(sweep()).await), [10, 5, 0]);
}

#[tokio::test]
async fn two_passes_at_the_same_time_delete_every_key_once() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    remember(&database, CREDITS, 2_500, from(horizon, -1)).await;
    let sweep = || pass(Sweep::new(&database.pool, CREDITS, horizon).batches_of(at_a_time(100)));
    let (one, other) = tokio::join!(sweep(), sweep());
    assert_eq!(deleted(&[one, other].concat()).iter().sum::<u64>(), 2_500);
    assert_eq!(keys(&database).await, 0);
}

#[tokio::test]
async fn a_finished_pass_tells_the_oldest_key_that_is_remembered() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    remember(&database, AUDIT, 1, from(horizon, 1)).await;
    for seconds in [-9, 7, -9, 5, -9, 6] {
        remember(&database, CREDITS, 10, from(horizon, seconds)).await;
    }
    let batches = pass(Sweep::new(&database.pool, CREDITS, horizon).batches_of(at_a_time(10))).await;
    assert_eq!(batches.last().unwrap().oldest, Some(from(horizon, 5)));
}

#[tokio::test]
async fn a_pass_that_leaves_nothing_tells_no_oldest_key() {
    let database = new_database().await;
    let horizon = week_ago(&database).await;
    remember(&database, CREDITS, 10, from(horizon, -1)).await;
    let batches = pass(Sweep::new(&database.pool, CREDITS, horizon)).await;
    assert_eq!(batches.last().unwrap().oldest, None);
}

#[tokio::test]
async fn a_swept_key_delivered_again_is_a_late_duplicate_and_not_remembered() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&database.pool, &credits).await;
    assigned.run(&credits, &message_at("evt-1", 0)).await.unwrap();
    execute(&database, "UPDATE {inbox} SET at = at - 1000000").await;
    let horizon = week_ago(&database).await;
    assert_eq!(deleted(&pass(Sweep::new(&database.pool, assigned.id, horizon)).await), [1, 0]);

    let again = assigned.run(&credits, &message_at("evt-1", 0)).await;
    assert_eq!(again.unwrap(), Disposition::LateDuplicate);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (1, 0));
}

#[tokio::test]
async fn the_horizon_is_the_window_before_now_as_keys_are_stamped() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &message("before")).await.unwrap();
    let now = week_ago(&database).await.stamped_at().0 + 7 * 86_400;
    apply::<Credits>(&database.pool, &message("after")).await.unwrap();
    let stamps = stamps(&database).await;
    // A stamp is rounded to the nearest second.
    assert!((stamps[0].0 - 1..=stamps[1].0).contains(&now), "{now} is not within {stamps:?}");
}

#[tokio::test]
async fn a_window_that_a_handler_could_outlast_is_refused() {
    let database = new_database().await;
    let horizon = Horizon::behind(&database.pool, Duration::from_secs(86_399)).await;
    assert_eq!(kind(horizon), FailureKind::Configuration);
}
