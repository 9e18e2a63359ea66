use std::sync::Arc;

use handstamp::flow::Ahead;
use handstamp::internal::progress::{self, Save, Saved, TrackedPartition};
use handstamp::internal::{Consumer, Registered, Task, dead_letters::Reason};
use handstamp::{Disposition, FailureKind};
use uuid::Uuid;

use super::handlers::{Credits, Fails};
use super::{effects, execute, keys, new_database};
use crate::messages::{Assigned, TOPIC, kind, message_at};

fn credits() -> Registered<Credits> {
    Registered::new(&())
}

#[tokio::test]
async fn progress_is_committed_with_the_effect() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assert_eq!(assigned.run(&credits(), &message_at("evt-1", 6)).await.unwrap(), Disposition::Applied);
    let row = assigned.progress().await;
    assert_eq!((row.next, row.passed), (7, 7));
}

#[tokio::test]
async fn a_failure_moves_no_progress() {
    let database = new_database().await;
    let fails = Registered::<Fails>::new(&());
    let assigned = Assigned::new(&database.pool, &fails).await;
    assert_eq!(kind(assigned.run(&fails, &message_at("evt-1", 0)).await), FailureKind::Handler);
    assert_eq!(assigned.progress().await.next, 0);
}

#[tokio::test]
async fn duplicates_move_progress_as_well() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 0)).await.unwrap();
    let duplicate = assigned.run(&credits(), &message_at("evt-1", 1)).await;
    assert_eq!(duplicate.unwrap(), Disposition::Duplicate);
    assert_eq!(assigned.progress().await.next, 2);
}

#[tokio::test]
async fn progress_is_never_lowered() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-9", 9)).await.unwrap();
    assigned.run(&credits(), &message_at("evt-3", 3)).await.unwrap();
    let row = assigned.progress().await;
    assert_eq!((row.next, row.passed), (10, 10));
}

/// Were it remembered, it would pass for applied once the row is reset to a topic made anew.
#[tokio::test]
async fn a_late_duplicate_is_skipped_and_not_remembered_again() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 0)).await.unwrap();
    execute(&database, "DELETE FROM {inbox}").await;
    let late = assigned.run(&credits(), &message_at("evt-1", 0)).await;
    assert_eq!(late.unwrap(), Disposition::LateDuplicate);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (1, 0));
}

#[tokio::test]
async fn what_was_passed_stays_passed_after_a_reset() {
    let database = new_database().await;
    let mut assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 0)).await.unwrap();
    execute(&database, "DELETE FROM {inbox}").await;
    progress::reset(&database.pool, "Credits", &assigned.partition, 0).await.unwrap();
    assigned.partition = Arc::new(assigned.progress().await.partition);
    let late = assigned.run(&credits(), &message_at("evt-1", 0)).await;
    assert_eq!(late.unwrap(), Disposition::LateDuplicate);
}

#[tokio::test]
async fn a_database_that_went_back_in_time_is_noticed_and_nothing_is_written() {
    let database = new_database().await;
    let mut assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 4)).await.unwrap();
    assigned.acknowledged = 5;
    execute(&database, "UPDATE {progress} SET next = 2").await;
    assert_eq!(kind(assigned.run(&credits(), &message_at("evt-2", 5)).await), FailureKind::WentBack);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (1, 1));
    assert_eq!(assigned.progress().await.next, 2);
}

#[tokio::test]
async fn what_began_before_a_reset_writes_nothing() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    progress::reset(&database.pool, "Credits", &assigned.partition, 0).await.unwrap();
    assert_eq!(kind(assigned.run(&credits(), &message_at("evt-1", 0)).await), FailureKind::Superseded);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn c15_the_progress_of_another_topic_of_the_name_is_not_written() {
    let database = new_database().await;
    let mut assigned = Assigned::new(&database.pool, &credits()).await;
    let recreated = TrackedPartition { topic_id: Uuid::from_u128(2), ..(*assigned.partition).clone() };
    assigned.partition = Arc::new(recreated);
    assert_eq!(kind(assigned.run(&credits(), &message_at("evt-1", 0)).await), FailureKind::Superseded);
    assert_eq!(keys(&database).await, 0);
}

#[tokio::test]
async fn a_row_that_is_there_is_not_made_again() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 6)).await.unwrap();
    let row = progress::create(&database.pool, assigned.id, &assigned.partition, 0).await.unwrap();
    assert_eq!(row.next, 7);
}

#[tokio::test]
async fn a_reset_raises_the_incarnation_and_keeps_what_was_passed() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 6)).await.unwrap();
    progress::reset(&database.pool, "Credits", &assigned.partition, 2).await.unwrap();
    let row = assigned.progress().await;
    assert_eq!((row.next, row.passed, row.partition.incarnation), (2, 7, 2));
}

#[tokio::test]
async fn c15_a_reset_to_another_topic_forgets_what_was_passed() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 6)).await.unwrap();
    let recreated = TrackedPartition { topic_id: Uuid::from_u128(2), ..(*assigned.partition).clone() };
    progress::reset(&database.pool, "Credits", &recreated, 0).await.unwrap();
    let row = assigned.progress().await;
    assert_eq!((row.next, row.passed, row.partition.topic_id), (0, 0, Uuid::from_u128(2)));
}

#[tokio::test]
async fn watermarks_are_saved_under_the_conditions_of_the_guard() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    assigned.run(&credits(), &message_at("evt-1", 6)).await.unwrap();
    let elsewhere = TrackedPartition { partition: 1, ..(*assigned.partition).clone() };
    progress::create(&database.pool, assigned.id, &elsewhere, 0).await.unwrap();
    let save = |partition: &TrackedPartition, watermark, acknowledged| Save {
        consumer: assigned.id,
        tracking: progress::Tracking {
            partition: Arc::new(partition.clone()),
            watermark,
            acknowledged,
            ahead: Ahead::default(),
        },
    };
    let reset = TrackedPartition { incarnation: 2, ..elsewhere.clone() };
    let saves = [save(&assigned.partition, 20, 7), save(&reset, 20, 0), save(&elsewhere, 20, 9)];
    let results = progress::save(&database.pool, &saves).await.unwrap();
    assert_eq!(results, [Saved::Written, Saved::Superseded, Saved::WentBack]);
    let rows = progress::read(&database.pool, assigned.id, TOPIC).await.unwrap();
    assert_eq!(rows.iter().map(|row| (row.next, row.passed)).collect::<Vec<_>>(), [(20, 20), (0, 0)]);
}

#[tokio::test]
async fn a_message_parked_by_another_member_is_not_applied() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    let message = message_at("evt-1", 0);
    let park = Task::Park { reason: Reason::Failed, error: "no".into(), attempts: 5 };
    assert_eq!(assigned.run_task(&credits(), &message, park).await.unwrap(), Disposition::Parked);
    let redelivered = assigned.run(&credits(), &message).await;
    assert_eq!(redelivered.unwrap(), Disposition::AlreadyParked);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_message_applied_by_another_member_is_not_parked() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    let message = message_at("evt-1", 0);
    assigned.run(&credits(), &message).await.unwrap();
    let park = Task::Park { reason: Reason::Failed, error: "no".into(), attempts: 5 };
    let parked = assigned.run_task(&credits(), &message, park).await;
    assert_eq!(parked.unwrap(), Disposition::Duplicate);
    assert_eq!(keys(&database).await, 1);
}

#[tokio::test]
async fn a_consumer_that_the_database_does_not_know_is_not_run() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &credits()).await;
    execute(&database, "UPDATE {consumers} SET key_definition = 'another'").await;
    assert_eq!(kind(assigned.run(&credits(), &message_at("evt-1", 0)).await), FailureKind::Configuration);
    assert_eq!(credits().name(), "Credits");
    assert_eq!(effects(&database).await.len(), 0);
}
