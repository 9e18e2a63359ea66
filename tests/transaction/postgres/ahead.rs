//! Messages that are dealt with out of turn: the row says so above its `next`, which stays where it is.

use std::future::pending;

use handstamp::flow::{Ahead, NextOffset, Offset, Offsets};
use handstamp::internal::dead_letters::Reason;
use handstamp::internal::progress::{self, Save, Saved, Tracking};
use handstamp::internal::{Connections, Job, Registered, Task};
use handstamp::{Disposition, Failure, FailureKind};

use super::faults::{blocked, blocked_beside, holding};
use super::handlers::{Commits, Credits};
use super::{Store, effects, execute, keys, new_database};
use crate::messages::{Assigned, kind, message_at, run_alone};

fn credits() -> Registered<Credits> {
    Registered::new(&())
}

fn offsets(first: i64, end: i64) -> Offsets {
    let mut offsets = Offsets::default();
    offsets.insert(Offset(first), NextOffset(end));
    offsets
}

fn park() -> Task {
    Task::Park { reason: Reason::Failed, error: "no".into(), attempts: 5 }
}

/// Deals with the message at offset 5 while those below are still under way.
async fn run_ahead(assigned: &Assigned<Store>, task: Task) -> Result<Disposition, Failure> {
    let ahead = Ahead { relied: Offsets::default(), added: offsets(5, 6) };
    let job = Job { attempt: 1, tracking: Some(Tracking { ahead, ..assigned.tracking(0) }), task };
    run_alone(&credits(), &Connections::of(&assigned.pool), &message_at("evt-5", 5), &job, pending()).await
}

/// What has become of the progress that relies on what was done at offset 5.
async fn save(assigned: &Assigned<Store>) -> Saved {
    let ahead = Ahead { relied: offsets(5, 6), added: Offsets::default() };
    let tracking = Tracking { ahead, ..assigned.tracking(8) };
    let saved = progress::save(&assigned.pool, &[Save { consumer: assigned.id, tracking }]).await;
    saved.expect("the database answers")[0]
}

#[tokio::test]
async fn what_is_applied_out_of_turn_leaves_the_row_below_it() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assert_eq!(run_ahead(&assigned, Task::Apply).await.unwrap(), Disposition::Applied);
    assert_eq!(run_ahead(&assigned, Task::Apply).await.unwrap(), Disposition::Duplicate);
    assert_eq!((assigned.progress().await.next, effects(&database).await.len()), (0, 1));
    assert_eq!(save(&assigned).await, Saved::Written);
    assert_eq!(assigned.progress().await.next, 8);
}

#[tokio::test]
async fn what_is_parked_out_of_turn_is_not_run_again_even_after_a_reset() {
    let database = new_database().await;
    let mut assigned = Assigned::new(&database.pool, &credits()).await;
    assert_eq!(run_ahead(&assigned, park()).await.unwrap(), Disposition::Parked);
    assert_eq!(run_ahead(&assigned, Task::Apply).await.unwrap(), Disposition::AlreadyParked);
    progress::reset(&database.pool, "Credits", &assigned.partition, 0).await.unwrap();
    assigned.partition = assigned.progress().await.partition.into();
    assert_eq!(run_ahead(&assigned, Task::Apply).await.unwrap(), Disposition::AlreadyParked);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn what_was_applied_out_of_turn_and_is_forgotten_is_late() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    run_ahead(&assigned, Task::Apply).await.unwrap();
    execute(&database, "DELETE FROM {inbox}").await;
    assert_eq!(run_ahead(&assigned, Task::Apply).await.unwrap(), Disposition::LateDuplicate);
    assert_eq!(effects(&database).await.len(), 1);
}

#[tokio::test]
async fn a_database_that_lost_what_was_applied_out_of_turn_went_back_in_time() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    let ahead = Ahead { relied: offsets(5, 6), added: Offsets::default() };
    let tracking = Tracking { ahead, ..assigned.tracking(7) };
    let job = Job { attempt: 1, tracking: Some(tracking), task: Task::Apply };
    let connections = Connections::of(&assigned.pool);
    let run = run_alone(&credits(), &connections, &message_at("evt-6", 6), &job, pending()).await;
    assert_eq!(kind(run), FailureKind::WentBack);
    assert_eq!(save(&assigned).await, Saved::WentBack);
    assert_eq!((assigned.progress().await.next, effects(&database).await.len()), (0, 0));
}

#[tokio::test]
async fn a_handler_is_not_called_on_a_database_that_lost_what_was_applied_out_of_turn() {
    let database = new_database().await;
    let commits = Registered::<Commits>::new(&());
    let assigned = Assigned::new(&database.pool, &commits).await;
    let ahead = Ahead { relied: offsets(5, 6), added: Offsets::default() };
    let tracking = Tracking { ahead, ..assigned.tracking(7) };
    let job = Job { attempt: 1, tracking: Some(tracking), task: Task::Apply };
    let connections = Connections::of(&assigned.pool);
    let run = run_alone(&commits, &connections, &message_at("evt-6", 6), &job, pending()).await;
    // It would commit by itself, and never come to the guard.
    assert_eq!(kind(run), FailureKind::WentBack);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

/// As `a_message_is_not_applied_while_it_is_parked`, where the row is not raised by parking.
#[tokio::test]
async fn a_message_is_not_applied_while_it_is_parked_out_of_turn() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    let holder = holding(&database, "SELECT FROM handstamp.progress FOR UPDATE").await;
    let owner = async {
        let zombie = blocked(&database).await;
        let run = run_ahead(&assigned, Task::Apply);
        let release = async {
            blocked_beside(&database, zombie).await;
            sqlx::Connection::close(holder).await.unwrap();
        };
        tokio::join!(run, release).0
    };
    let (parked, applied) = tokio::join!(run_ahead(&assigned, park()), owner);
    assert_eq!(parked.unwrap(), Disposition::Parked);
    assert_eq!(kind(applied), FailureKind::Environment);
    assert_eq!(run_ahead(&assigned, Task::Apply).await.unwrap(), Disposition::AlreadyParked);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}
