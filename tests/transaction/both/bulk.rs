//! Handlers that take all messages of a transaction at once.

use handstamp::Disposition::{Applied, Duplicate, Parked};
use handstamp::internal::dead_letters;
use handstamp::internal::{JobFailure, Registered};
use handstamp::{FailureKind, Message, Position};

use super::handlers::{DecodesMany, TakesMany};
use super::{effects, keys, new_database};
use crate::messages::{Assigned, TOPIC, message_at};

fn takes_many() -> Registered<TakesMany> {
    Registered::new(&())
}

/// Messages of these events, at offsets from 0.
fn events<const N: usize>(events: [&str; N]) -> impl Iterator<Item = Message> {
    (0..).zip(events).map(|(offset, event)| message_at(event, offset))
}

#[tokio::test]
async fn it_is_called_once_with_all_of_them_in_order() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &takes_many()).await;
    let done = assigned.run_batch(&takes_many(), events(["c", "a", "b"]), 3).await.unwrap();
    assert_eq!(done, [Applied; 3]);
    assert_eq!(effects(&database).await, ["c+a+b"]);
    assert_eq!(keys(&database).await, 3);
    assert_eq!(assigned.progress().await.next, 3);
}

#[tokio::test]
async fn it_is_given_each_event_once_and_none_that_was_applied() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &takes_many()).await;
    assigned.run(&takes_many(), &message_at("b", 0)).await.unwrap();
    let messages = [message_at("a", 1), message_at("b", 2), message_at("a", 3), message_at("c", 4)];
    let done = assigned.run_batch(&takes_many(), messages, 5).await.unwrap();
    assert_eq!(done, [Applied, Duplicate, Duplicate, Applied]);
    assert_eq!(effects(&database).await, ["b", "a+c"]);
}

#[tokio::test]
async fn it_is_not_called_for_duplicates_alone() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &takes_many()).await;
    assigned.run_batch(&takes_many(), events(["a", "b"]), 2).await.unwrap();
    assert_eq!(assigned.run_batch(&takes_many(), events(["a", "b"]), 2).await.unwrap(), [Duplicate; 2]);
    assert_eq!(effects(&database).await, ["a+b"]);
}

#[tokio::test]
async fn if_it_fails_nothing_is_kept() {
    for (event, kind) in [("fail-1", FailureKind::Handler), ("reject-1", FailureKind::Rejected)] {
        let database = new_database().await;
        let assigned = Assigned::new(&database.pool, &takes_many()).await;
        let failed = assigned.run_batch(&takes_many(), events(["a", event, "b"]), 3).await;
        let JobFailure { at, failure } = failed.expect_err("it fails");
        assert_eq!((at, failure.kind()), (0, kind));
        assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
        assert_eq!(assigned.progress().await.next, 0);
    }
}

#[tokio::test]
async fn a_message_that_it_rejects_alone_is_parked() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &takes_many()).await;
    assert_eq!(assigned.run_batch(&takes_many(), events(["reject-1"]), 1).await.unwrap(), [Parked]);
    let letters = dead_letters::list(&database.pool, None, false, 9).await.unwrap();
    assert_eq!((letters.len(), letters[0].reason.as_str()), (1, "rejected"));
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn it_is_given_what_can_be_read_and_the_rest_is_parked() {
    let database = new_database().await;
    let decodes = Registered::<DecodesMany>::new(&());
    let assigned = Assigned::new(&database.pool, &decodes).await;
    let garbled = Message::builder().header("event_id", "b").payload("not json");
    let garbled = garbled.position(Position::new(TOPIC, 0, 1)).build();
    let messages = [message_at("a", 0), garbled, message_at("c", 2)];
    let done = assigned.run_batch(&decodes, messages, 3).await.unwrap();
    assert_eq!(done, [Applied, Parked, Applied]);
    assert_eq!((effects(&database).await, keys(&database).await), (vec!["a+c".into()], 2));
}

#[tokio::test]
async fn a_message_by_itself_is_one_of_one() {
    let database = new_database().await;
    let pool = &database.pool;
    assert_eq!(handstamp::apply::<TakesMany>(pool, &crate::messages::message("a")).await.unwrap(), Applied);
    assert_eq!(handstamp::apply::<TakesMany>(pool, &crate::messages::message("a")).await.unwrap(), Duplicate);
    assert_eq!(effects(&database).await, ["a"]);
}

#[tokio::test]
async fn every_message_is_listed_if_it_ends_the_transaction() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &takes_many()).await;
    let failed = assigned.run_batch(&takes_many(), events(["a", "commit-1", "b"]), 3).await;
    assert_eq!(failed.expect_err("it is noticed").failure.kind(), FailureKind::TransactionEnded);
    assert_eq!(dead_letters::list(&database.pool, None, false, 9).await.unwrap().len(), 3);
}
