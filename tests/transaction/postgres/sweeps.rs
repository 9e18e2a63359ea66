//! Sweeps at the same time as something else, and what they cost.

use std::num::NonZeroU32;
use std::time::Duration;

use handstamp::internal::Registered;
use handstamp::internal::consumers::ConsumerId;
use handstamp::internal::retention::{Horizon, StampedAt, Sweep};
use handstamp::{Disposition, FailureKind};
use sqlx::{Connection as _, PgPool};
use tokio::time::timeout;

use super::faults::{blocked, blocked_beside, holding, terminate};
use super::handlers::{Credits, Gate, Waits};
use super::{Store, effects, execute, keys, new_database, remember};
use crate::database::{Database, PATIENCE, server};
use crate::link::{Cut, Link};
use crate::messages::{Assigned, kind, message_at};

const CREDITS: ConsumerId = ConsumerId(1);

/// The inbox's `AFTER DELETE` waits for this lock, so that a sweep is held with its keys deleted but not
/// yet committed.
const HOLD_DELETIONS: &str = "
    CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN LOCK TABLE parent IN SHARE MODE; RETURN NULL; END $$;
    CREATE TRIGGER hold AFTER DELETE ON {inbox} FOR EACH STATEMENT EXECUTE FUNCTION hold()";

async fn week_ago(pool: &PgPool) -> Horizon {
    Horizon::behind(pool, Duration::from_hours(7 * 24)).await.unwrap()
}

fn before(horizon: Horizon) -> StampedAt {
    StampedAt(horizon.stamped_at().0 - 1)
}

/// A message that was applied, with a key that has expired since.
async fn applied_long_ago(database: &Database<Store>, credits: &Registered<Credits>) -> Assigned<Store> {
    let assigned = Assigned::new(&database.pool, credits).await;
    assigned.run(credits, &message_at("evt-1", 0)).await.unwrap();
    execute(database, "UPDATE {inbox} SET at = at - 1000000").await;
    assigned
}

#[tokio::test]
async fn a_claim_waits_for_the_sweep_of_its_key_and_is_a_late_duplicate() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = applied_long_ago(&database, &credits).await;
    execute(&database, HOLD_DELETIONS).await;
    let holder = holding(&database, "LOCK TABLE parent").await;
    let mut sweep = Sweep::new(&database.pool, assigned.id, week_ago(&database.pool).await);
    let message = message_at("evt-1", 0);
    let redelivery = async {
        let sweeper = blocked(&database).await;
        let release = async {
            blocked_beside(&database, sweeper).await;
            holder.close().await.unwrap();
        };
        tokio::join!(assigned.run(&credits, &message), release).0
    };
    let (batch, redelivered) = tokio::join!(sweep.next_batch(), redelivery);
    assert_eq!(batch.unwrap().deleted, 1);
    assert_eq!(redelivered.unwrap(), Disposition::LateDuplicate);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (1, 0));
}

#[tokio::test]
async fn a_claim_that_waits_for_a_sweep_that_dies_is_a_duplicate() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = applied_long_ago(&database, &credits).await;
    execute(&database, HOLD_DELETIONS).await;
    let _holder = holding(&database, "LOCK TABLE parent").await;
    let mut sweep = Sweep::new(&database.pool, assigned.id, week_ago(&database.pool).await);
    let message = message_at("evt-1", 0);
    let redelivery = async {
        let sweeper = blocked(&database).await;
        let kill = async {
            blocked_beside(&database, sweeper).await;
            terminate(&database, sweeper).await;
        };
        tokio::join!(assigned.run(&credits, &message), kill).0
    };
    let (batch, redelivered) = tokio::join!(sweep.next_batch(), redelivery);
    assert_eq!(kind(batch), FailureKind::Environment);
    assert_eq!(redelivered.unwrap(), Disposition::Duplicate);
}

#[tokio::test]
async fn a_sweep_waits_for_no_handler() {
    let database = new_database().await;
    let gate = Gate::new();
    let waits = Registered::<Waits>::new(&gate);
    let assigned = Assigned::new(&database.pool, &waits).await;
    let horizon = week_ago(&database.pool).await;
    remember(&database, assigned.id, 1, before(horizon)).await;
    let message = message_at("evt-1", 0);
    let (applied, batch) = tokio::join!(assigned.run(&waits, &message), async {
        gate.wait_until_entered().await;
        let mut sweep = Sweep::new(&database.pool, assigned.id, horizon);
        let batch = timeout(PATIENCE, sweep.next_batch()).await.expect("the handler is not waited for");
        gate.open();
        batch
    });
    assert_eq!(batch.unwrap().deleted, 1);
    assert_eq!(applied.unwrap(), Disposition::Applied);
    assert_eq!(keys(&database).await, 1);
}

#[tokio::test]
async fn a_key_that_two_sweeps_have_found_is_deleted_by_one() {
    let database = new_database().await;
    let horizon = week_ago(&database.pool).await;
    remember(&database, CREDITS, 10, before(horizon)).await;
    let holder = holding(&database, "SELECT FROM handstamp.inbox FOR UPDATE").await;
    let (mut one, mut other) =
        (Sweep::new(&database.pool, CREDITS, horizon), Sweep::new(&database.pool, CREDITS, horizon));
    let (one, other, ()) = tokio::join!(one.next_batch(), other.next_batch(), async {
        let first = blocked(&database).await;
        blocked_beside(&database, first).await;
        holder.close().await.unwrap();
    });
    assert_eq!(one.unwrap().deleted + other.unwrap().deleted, 10);
}

/// An operator may give a key a younger stamp: what was found is looked at again.
#[tokio::test]
async fn a_key_that_is_made_younger_while_the_sweep_waits_for_it_is_kept() {
    let database = new_database().await;
    let horizon = week_ago(&database.pool).await;
    remember(&database, CREDITS, 1, before(horizon)).await;
    let mut holder = holding(&database, "UPDATE handstamp.inbox SET at = at + 1").await;
    let mut sweep = Sweep::new(&database.pool, CREDITS, horizon);
    let (batch, ()) = tokio::join!(sweep.next_batch(), async {
        blocked(&database).await;
        sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    });
    assert_eq!((batch.unwrap().deleted, keys(&database).await), (0, 1));
}

#[tokio::test]
async fn a_batch_whose_commit_is_lost_is_swept_by_the_next_call() {
    let database = new_database().await;
    let link = Link::to(&server()).await;
    let pool = database.pool_as(|options| link.route(options)).await;
    let horizon = week_ago(&pool).await;
    remember(&database, CREDITS, 10, before(horizon)).await;
    let mut sweep = Sweep::new(&pool, CREDITS, horizon);
    link.cut(Cut::Before(b"COMMIT\0"));
    assert_eq!(kind(sweep.next_batch().await), FailureKind::Unknown);
    assert_eq!(keys(&database).await, 10);
    assert_eq!(sweep.next_batch().await.unwrap().deleted, 10);
}

#[tokio::test]
async fn a_pass_reads_every_row_once_however_many_batches_it_takes() {
    let database = new_database().await;
    let horizon = week_ago(&database.pool).await;
    for _ in 0..50 {
        remember(&database, CREDITS, 40, horizon.stamped_at()).await;
        remember(&database, CREDITS, 60, before(horizon)).await;
    }
    let pool = database.pool_as(|options| options.application_name("sweeper")).await;
    let mut sweep = Sweep::new(&pool, CREDITS, horizon).batches_of(NonZeroU32::new(100).unwrap());
    while !sweep.next_batch().await.unwrap().finished {}
    assert_eq!(keys_read_by(&database, pool).await, (5_000, 0));
}

/// How many rows of the inbox were read by scans of the table, and how many scans of its index there were,
/// once the connections of `pool` are gone: a backend reports its counts when it exits.
async fn keys_read_by(database: &Database<Store>, pool: PgPool) -> (i64, i64) {
    pool.close().await;
    let gone = async {
        let sweepers = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND application_name = 'sweeper'";
        while sqlx::query_scalar::<_, i64>(sweepers).fetch_one(&database.pool).await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("the connections are closed");
    sqlx::query_as(
        "SELECT seq_tup_read, idx_scan FROM pg_stat_user_tables
         WHERE schemaname = 'handstamp' AND relname = 'inbox'",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}
