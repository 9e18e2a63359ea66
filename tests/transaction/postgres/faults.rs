use handstamp::internal::dead_letters::Reason;
use handstamp::internal::progress::{self, TrackedPartition};
use handstamp::internal::{Registered, Task};
use handstamp::{Disposition, Failure, FailureKind, apply};
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::handlers::{Credits, Gate, Waits};
use super::{Store, effects, execute, keys, new_database};
use crate::database::{Database, PATIENCE, server};
use crate::link::{Cut, Link};
use crate::messages::{Assigned, kind, message, message_at};

/// Waits until a transaction of the inbox waits for a lock, and returns its backend's process id.
pub(super) async fn blocked(database: &Database<Store>) -> i32 {
    blocked_beside(database, 0).await
}

/// The same of another backend than this one.
pub(super) async fn blocked_beside(database: &Database<Store>, backend: i32) -> i32 {
    let look = async {
        loop {
            let waiting = sqlx::query_scalar(
                "SELECT pid FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> $1",
            );
            if let Some(pid) = waiting.bind(backend).fetch_optional(&database.pool).await.unwrap() {
                return pid;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, look).await.expect("a backend waits for a lock")
}

/// A transaction of somebody else's that holds what its statement locks.
pub(super) async fn holding(database: &Database<Store>, lock: &'static str) -> PgConnection {
    let mut connection = PgConnection::connect_with(&server().database(database.name())).await.unwrap();
    sqlx::raw_sql("BEGIN").execute(&mut connection).await.unwrap();
    sqlx::raw_sql(lock).execute(&mut connection).await.unwrap();
    connection
}

pub(super) async fn terminate(database: &Database<Store>, backend: i32) {
    sqlx::query("SELECT pg_terminate_backend($1)").bind(backend).execute(&database.pool).await.unwrap();
}

fn spawn(database: &Database<Store>, event: &'static str) -> JoinHandle<Result<Disposition, Failure>> {
    let pool = database.pool.clone();
    tokio::spawn(async move { apply::<Credits>(&pool, &message(event)).await })
}

#[tokio::test]
async fn the_second_of_two_members_waits_and_skips() {
    let database = new_database().await;
    let gate = Gate::new();
    let waits = Registered::<Waits>::new(&gate);
    let assigned = Assigned::new(&database.pool, &waits).await;
    let message = message_at("evt-1", 0);
    let (first, second, ()) =
        tokio::join!(assigned.run(&waits, &message), assigned.run(&waits, &message), async {
            gate.wait_until_entered().await;
            blocked(&database).await;
            gate.open();
        });
    let mut dispositions = [first.unwrap(), second.unwrap()];
    dispositions.sort_by_key(|disposition| *disposition == Disposition::Duplicate);
    assert_eq!(dispositions, [Disposition::Applied, Disposition::Duplicate]);
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_backend_that_dies_while_claiming_is_the_environment() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &message("warm-up")).await.unwrap();
    let holder = holding(&database, "LOCK TABLE handstamp.inbox").await;
    let applying = spawn(&database, "evt-1");
    terminate(&database, blocked(&database).await).await;
    assert_eq!(kind(applying.await.unwrap()), FailureKind::Environment);
    holder.close().await.unwrap();
    assert_eq!(spawn(&database, "evt-1").await.unwrap().unwrap(), Disposition::Applied);
}

#[tokio::test]
async fn a_backend_that_dies_in_the_handler_is_the_environment() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &message("warm-up")).await.unwrap();
    let holder = holding(&database, "LOCK TABLE effect").await;
    let applying = spawn(&database, "evt-1");
    terminate(&database, blocked(&database).await).await;
    assert_eq!(kind(applying.await.unwrap()), FailureKind::Environment);
    holder.close().await.unwrap();
    assert_eq!(spawn(&database, "evt-1").await.unwrap().unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["warm-up", "evt-1"]);
}

#[tokio::test]
async fn a_backend_that_dies_at_the_guard_is_the_environment() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&database.pool, &credits).await;
    let holder = holding(&database, "SELECT FROM handstamp.progress FOR UPDATE").await;
    let message = message_at("evt-1", 0);
    let (run, ()) = tokio::join!(assigned.run(&credits, &message), async {
        terminate(&database, blocked(&database).await).await;
    });
    assert_eq!(kind(run), FailureKind::Environment);
    holder.close().await.unwrap();
    assert_eq!(assigned.run(&credits, &message).await.unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_lock_that_is_not_given_is_the_environment() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &message("warm-up")).await.unwrap();
    let _holder = holding(&database, "LOCK TABLE handstamp.inbox").await;
    let impatient = database.pool_as(|options| options.options([("lock_timeout", "50ms")])).await;
    let failed = apply::<Credits>(&impatient, &message("evt-1")).await;
    assert_eq!(kind(failed), FailureKind::Environment);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_unknown_and_run_again_is_a_duplicate() {
    let database = new_database().await;
    let link = Link::to(&server()).await;
    let pool = database.pool_as(|options| link.route(options)).await;
    apply::<Credits>(&pool, &message("warm-up")).await.unwrap();
    link.cut(Cut::Behind(b"COMMIT\0"));
    assert_eq!(kind(apply::<Credits>(&pool, &message("evt-1")).await), FailureKind::Unknown);
    assert_eq!(apply::<Credits>(&pool, &message("evt-1")).await.unwrap(), Disposition::Duplicate);
    assert_eq!(effects(&database).await, ["warm-up", "evt-1"]);
}

#[tokio::test]
async fn a_commit_that_is_lost_on_its_way_is_unknown_and_run_again_is_applied() {
    let database = new_database().await;
    let link = Link::to(&server()).await;
    let pool = database.pool_as(|options| link.route(options)).await;
    apply::<Credits>(&pool, &message("warm-up")).await.unwrap();
    link.cut(Cut::Before(b"COMMIT\0"));
    assert_eq!(kind(apply::<Credits>(&pool, &message("evt-1")).await), FailureKind::Unknown);
    assert_eq!(apply::<Credits>(&pool, &message("evt-1")).await.unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["warm-up", "evt-1"]);
}

#[tokio::test]
async fn a_reset_while_the_handler_runs_undoes_it() {
    let database = new_database().await;
    let gate = Gate::new();
    let waits = Registered::<Waits>::new(&gate);
    let assigned = Assigned::new(&database.pool, &waits).await;
    let message = message_at("evt-1", 0);
    let (run, ()) = tokio::join!(assigned.run(&waits, &message), async {
        gate.wait_until_entered().await;
        progress::reset(&database.pool, "Waits", &assigned.partition, 0).await.unwrap();
        gate.open();
    });
    assert_eq!(kind(run), FailureKind::Superseded);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_restore_while_the_handler_runs_undoes_it() {
    let database = new_database().await;
    let gate = Gate::new();
    let waits = Registered::<Waits>::new(&gate);
    let mut assigned = Assigned::new(&database.pool, &waits).await;
    assigned.acknowledged = 5;
    execute(&database, "UPDATE {progress} SET next = 5").await;
    let message = message_at("evt-1", 5);
    let (run, ()) = tokio::join!(assigned.run(&waits, &message), async {
        gate.wait_until_entered().await;
        execute(&database, "UPDATE {progress} SET next = 4").await;
        gate.open();
    });
    assert_eq!(kind(run), FailureKind::WentBack);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

/// A member that was evicted parks a message while its new owner claims it: the owner's claim saw
/// neither the letter nor the progress, but its guard does.
#[tokio::test]
async fn a_message_is_not_applied_while_it_is_parked() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&database.pool, &credits).await;
    let message = message_at("evt-1", 0);
    let park = Task::Park { reason: Reason::Failed, error: "no".into(), attempts: 5 };
    let holder = holding(&database, "SELECT FROM handstamp.progress FOR UPDATE").await;
    let owner = async {
        let zombie = blocked(&database).await;
        let run = assigned.run(&credits, &message);
        let release = async {
            blocked_beside(&database, zombie).await;
            holder.close().await.unwrap();
        };
        tokio::join!(run, release).0
    };
    let (parked, applied) = tokio::join!(assigned.run_task(&credits, &message, park), owner);
    assert_eq!(parked.unwrap(), Disposition::Parked);
    assert_eq!(kind(applied), FailureKind::Environment);
    assert_eq!(assigned.run(&credits, &message).await.unwrap(), Disposition::AlreadyParked);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_partition_of_another_incarnation_is_not_written_by_parking() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let mut assigned = Assigned::new(&database.pool, &credits).await;
    let older = TrackedPartition { incarnation: 0, ..(*assigned.partition).clone() };
    assigned.partition = older.into();
    let park = Task::Park { reason: Reason::Failed, error: "no".into(), attempts: 5 };
    let parked = assigned.run_task(&credits, &message_at("evt-1", 0), park).await;
    assert_eq!(kind(parked), FailureKind::Superseded);
}
