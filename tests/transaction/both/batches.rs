//! Several messages in one transaction.

use handstamp::Disposition::{AlreadyParked, Applied, Duplicate, LateDuplicate, Parked, Skipped};
use handstamp::internal::dead_letters::{self, Reason};
use handstamp::internal::{JobFailure, Registered, Task};
use handstamp::{FailureKind, Message, Position};

use super::handlers::{Decodes, Obeys, ParksTombstones, SeesInbox};
use super::{effects, execute, keys, new_database};
use crate::messages::{Assigned, TOPIC, message_at};

fn obeys() -> Registered<Obeys> {
    Registered::new(&())
}

/// Messages of these events, at offsets from 0.
fn events<const N: usize>(events: [&str; N]) -> impl Iterator<Item = Message> {
    (0..).zip(events).map(|(offset, event)| message_at(event, offset))
}

fn garbled(event: &str, offset: i64) -> Message {
    let message = Message::builder().header("event_id", event).payload("not json");
    message.position(Position::new(TOPIC, 0, offset)).build()
}

fn tombstone(offset: i64) -> Message {
    let message = Message::builder().header("event_id", "gone");
    message.position(Position::new(TOPIC, 0, offset)).build()
}

#[tokio::test]
async fn a_batch_is_applied_in_order_with_its_keys_and_its_progress() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    let done = assigned.run_batch(&obeys(), events(["c", "a", "b"]), 3).await.unwrap();
    assert_eq!(done, [Applied; 3]);
    assert_eq!(effects(&database).await, ["c", "a", "b"]);
    assert_eq!(keys(&database).await, 3);
    assert_eq!(assigned.progress().await.next, 3);
}

#[tokio::test]
async fn a_redelivered_batch_is_skipped() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    assigned.run_batch(&obeys(), events(["a", "b"]), 2).await.unwrap();
    assert_eq!(assigned.run_batch(&obeys(), events(["a", "b"]), 2).await.unwrap(), [Duplicate; 2]);
    assert_eq!(effects(&database).await, ["a", "b"]);
}

#[tokio::test]
async fn only_what_is_new_in_a_batch_is_applied() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    assigned.run(&obeys(), &message_at("b", 0)).await.unwrap();
    let messages = [message_at("a", 1), message_at("b", 2), message_at("c", 3)];
    let done = assigned.run_batch(&obeys(), messages, 4).await.unwrap();
    assert_eq!(done, [Applied, Duplicate, Applied]);
    assert_eq!(effects(&database).await, ["b", "a", "c"]);
}

#[tokio::test]
async fn of_one_event_twice_in_a_batch_the_first_is_applied() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    let done = assigned.run_batch(&obeys(), events(["a", "b", "a"]), 3).await.unwrap();
    assert_eq!(done, [Applied, Applied, Duplicate]);
    assert_eq!(effects(&database).await, ["a", "b"]);
}

#[tokio::test]
async fn if_one_fails_nothing_of_the_batch_is_kept_and_it_is_named() {
    for (event, kind) in [("fail-1", FailureKind::Handler), ("reject-1", FailureKind::Rejected)] {
        let database = new_database().await;
        let assigned = Assigned::new(&database.pool, &obeys()).await;
        let failed = assigned.run_batch(&obeys(), events(["a", event, "b"]), 3).await;
        let JobFailure { at, failure } = failed.expect_err("it fails");
        assert_eq!((at, failure.kind()), (1, kind));
        assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
        assert_eq!(assigned.progress().await.next, 0);
        assert!(dead_letters::list(&database.pool, None, true, 9).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_unreadable_message_is_parked_beside_the_others_without_its_key() {
    let database = new_database().await;
    let decodes = Registered::<Decodes>::new(&());
    let assigned = Assigned::new(&database.pool, &decodes).await;
    let keyless = Message::builder().payload("{}").position(Position::new(TOPIC, 0, 2)).build();
    let messages = [message_at("a", 0), garbled("b", 1), keyless, message_at("c", 3)];
    let done = assigned.run_batch(&decodes, messages, 4).await.unwrap();
    assert_eq!(done, [Applied, Parked, Parked, Applied]);
    assert_eq!((effects(&database).await, keys(&database).await), (vec!["a".into(), "c".into()], 2));
    let letters = dead_letters::list(&database.pool, None, false, 9).await.unwrap();
    let reasons: Vec<_> =
        letters.iter().rev().map(|letter| (letter.reason.as_str(), letter.offset)).collect();
    assert_eq!(reasons, [("decode", Some(1)), ("key", Some(2))]);
    assert_eq!(assigned.progress().await.next, 4);
}

#[tokio::test]
async fn an_unreadable_message_leaves_its_key_to_a_good_one_behind_it() {
    let database = new_database().await;
    let decodes = Registered::<Decodes>::new(&());
    let assigned = Assigned::new(&database.pool, &decodes).await;
    let messages = [garbled("a", 0), message_at("a", 1)];
    assert_eq!(assigned.run_batch(&decodes, messages, 2).await.unwrap(), [Parked, Applied]);
    let again = assigned.run_batch(&decodes, [garbled("a", 0), message_at("a", 1)], 2).await.unwrap();
    assert_eq!(again, [AlreadyParked, Duplicate]);
    assert_eq!(effects(&database).await, ["a"]);
}

#[tokio::test]
async fn tombstones_in_a_batch_are_skipped_or_parked() {
    let database = new_database().await;
    let decodes = Registered::<Decodes>::new(&());
    let assigned = Assigned::new(&database.pool, &decodes).await;
    let done = assigned.run_batch(&decodes, [tombstone(0), message_at("a", 1)], 2).await.unwrap();
    assert_eq!(done, [Skipped, Applied]);
    assert_eq!(assigned.run_batch(&decodes, [tombstone(2), tombstone(3)], 4).await.unwrap(), [Skipped; 2]);
    assert_eq!(assigned.progress().await.next, 2);

    let parks = Registered::<ParksTombstones>::new(&());
    let assigned = Assigned::new(&database.pool, &parks).await;
    let done = assigned.run_batch(&parks, [tombstone(0), message_at("b", 1)], 2).await.unwrap();
    assert_eq!(done, [Parked, Applied]);
}

#[tokio::test]
async fn what_was_parked_before_is_not_applied_in_a_batch() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    let (reason, error, attempts) = (Reason::Failed, "no".to_owned(), 3);
    let park = Task::Park { reason, error, attempts };
    assigned.run_task(&obeys(), &message_at("a", 0), park).await.unwrap();
    let done = assigned.run_batch(&obeys(), events(["a", "b"]), 2).await.unwrap();
    assert_eq!(done, [AlreadyParked, Applied]);
    assert_eq!(effects(&database).await, ["b"]);
}

#[tokio::test]
async fn late_duplicates_in_a_batch_are_skipped_and_not_remembered() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    assigned.run_batch(&obeys(), events(["a", "b"]), 2).await.unwrap();
    execute(&database, "DELETE FROM {inbox}").await;
    let messages = [message_at("a", 0), message_at("b", 1), message_at("c", 2)];
    let done = assigned.run_batch(&obeys(), messages, 3).await.unwrap();
    assert_eq!(done, [LateDuplicate, LateDuplicate, Applied]);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (3, 1));
}

#[tokio::test]
async fn every_message_of_a_batch_whose_handler_committed_is_listed() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    let failed = assigned.run_batch(&obeys(), events(["a", "commit-1", "b"]), 3).await;
    assert_eq!(failed.expect_err("it is noticed").failure.kind(), FailureKind::TransactionEnded);
    let letters = dead_letters::list(&database.pool, None, false, 9).await.unwrap();
    let listed: Vec<_> = letters.iter().rev().map(|letter| (letter.reason.as_str(), letter.offset)).collect();
    let reason = "transaction_ended_by_handler";
    assert_eq!(listed, [(reason, Some(0)), (reason, Some(1)), (reason, Some(2))]);
    assert_eq!(assigned.progress().await.next, 0);
}

#[tokio::test]
async fn a_handler_that_commits_in_a_batch_is_caught_when_a_later_message_fails() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    let failed = assigned.run_batch(&obeys(), events(["commit-1", "fail-1"]), 2).await;
    assert_eq!(failed.expect_err("it is noticed").failure.kind(), FailureKind::TransactionEnded);
    assert_eq!(dead_letters::list(&database.pool, None, false, 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_handler_sees_the_key_of_its_own_message() {
    let database = new_database().await;
    let sees = Registered::<SeesInbox>::new(&());
    let assigned = Assigned::new(&database.pool, &sees).await;
    assigned.run_batch(&sees, events(["a", "b"]), 2).await.unwrap();
    let expected = ["SeesInbox:a at attempt 1", "SeesInbox:b at attempt 1"];
    assert_eq!(effects(&database).await, expected);
}

#[tokio::test]
async fn a_batch_after_the_database_went_back_keeps_nothing() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    let assigned = Assigned { acknowledged: 5, ..assigned };
    let failed = assigned.run_batch(&obeys(), events(["a", "b"]), 2).await.expect_err("it is noticed");
    assert_eq!(failed.failure.kind(), FailureKind::WentBack);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_race_for_the_same_events_wait_for_each_other_and_apply_each_once() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &obeys()).await;
    for round in 0..10 {
        let names: Vec<_> = (0..50).map(|event| format!("{round}-{event}")).collect();
        let there: Vec<_> = (0..).zip(&names).map(|(at, name)| message_at(name, round * 50 + at)).collect();
        // The same events at other offsets: sent again, in another order.
        let back = there.iter().zip(names.iter().rev());
        let back: Vec<_> =
            back.map(|(message, name)| message_at(name, message.position().unwrap().offset)).collect();
        let watermark = round * 50;
        let consumer = obeys();
        let (one, other) = tokio::join!(
            assigned.run_batch(&consumer, there, watermark),
            assigned.run_batch(&consumer, back, watermark)
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        let applied = one.iter().chain(&other).filter(|done| **done == Applied).count();
        assert_eq!(applied, 50, "{one:?} {other:?}");
    }
    assert_eq!(effects(&database).await.len(), 500);
}
