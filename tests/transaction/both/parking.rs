use handstamp::internal::dead_letters::{self, DeadLetter, Reason, Relay};
use handstamp::internal::{Connections, Consumer, Job, Registered, Task};
use handstamp::{Disposition, FailureKind, Message, MessageBuilder, Position, apply};

use super::handlers::{
    Commits, CommitsAndBegins, CommitsAndDawdles, CommitsAndFails, CommitsAndLosesAnother, CommitsAndWaits,
    CommitsBeginsAndErrs, Credits, Decodes, Gate, ParksTombstones, Rejects, RollsBack, TakesTombstones,
};
use super::{Store, effects, keys, new_database};
use crate::database::Database;
use crate::messages::{Assigned, TOPIC, kind, message, message_at, run_alone};

async fn letters(database: &Database<Store>) -> Vec<DeadLetter> {
    dead_letters::list(&database.pool, None, false, 100).await.unwrap()
}

fn at(builder: MessageBuilder, offset: i64) -> Message {
    builder.position(Position::new(TOPIC, 0, offset)).build()
}

#[tokio::test]
async fn a_message_without_a_key_is_parked_byte_for_byte_and_the_partition_goes_on() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&database.pool, &credits).await;
    let (key, payload) = (b"key\0\xff".as_slice(), b"{\"amount\": 5}\0\xfe".as_slice());
    let keyless =
        Message::builder().key(key).payload(payload).header(b"trace\xff", b"\0\x80").null_header("empty");
    let keyless = at(keyless.timestamp(1_700_000_000_123), 0);
    assert_eq!(assigned.run(&credits, &keyless).await.unwrap(), Disposition::Parked);
    assert_eq!(assigned.run(&credits, &message_at("evt-2", 1)).await.unwrap(), Disposition::Applied);

    let letters = letters(&database).await;
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((letter.reason.as_str(), letter.consumer.as_str()), ("key", "Credits"));
    assert_eq!((letter.topic.as_deref(), letter.partition, letter.offset), (Some(TOPIC), Some(0), Some(0)));
    assert_eq!(letter.message_key.as_deref(), Some(key));
    assert_eq!(letter.payload.as_deref(), Some(payload));
    assert_eq!(letter.headers, keyless.headers());
    assert_eq!(letter.timestamp, Some(1_700_000_000_123));
    assert_eq!(effects(&database).await, ["evt-2"]);
}

#[tokio::test]
async fn an_undecodable_message_is_parked_without_a_key_in_the_inbox() {
    let database = new_database().await;
    let decodes = Registered::<Decodes>::new(&());
    let assigned = Assigned::new(&database.pool, &decodes).await;
    let poison = at(Message::builder().header("event_id", "evt-1").payload("not json"), 0);
    assert_eq!(assigned.run(&decodes, &poison).await.unwrap(), Disposition::Parked);
    assert_eq!(letters(&database).await[0].reason, "decode");
    assert_eq!(keys(&database).await, 0);
    assert_eq!(assigned.progress().await.next, 1);
}

#[tokio::test]
async fn a_rejected_message_is_parked_at_once_with_a_text_that_can_be_stored() {
    let database = new_database().await;
    let rejects = Registered::<Rejects>::new(&());
    let assigned = Assigned::new(&database.pool, &rejects).await;
    assert_eq!(assigned.run(&rejects, &message_at("evt-1", 0)).await.unwrap(), Disposition::Parked);
    let letter = letters(&database).await.remove(0);
    assert_eq!(
        (letter.reason.as_str(), letter.error.as_str()),
        ("rejected", "a deposit is po\u{fffd}sitive")
    );
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
    assert_eq!(assigned.progress().await.next, 1);
}

#[tokio::test]
async fn a_message_that_kept_failing_is_parked_with_its_attempts() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&database.pool, &credits).await;
    let park = Task::Park { reason: Reason::Failed, error: "no account 7".into(), attempts: 5 };
    let parked = assigned.run_task(&credits, &message_at("evt-1", 0), park).await;
    assert_eq!(parked.unwrap(), Disposition::Parked);
    let letter = letters(&database).await.remove(0);
    assert_eq!((letter.reason.as_str(), letter.error.as_str()), ("failed", "no account 7"));
    assert_eq!(letter.attempts, 5);
    assert_eq!(keys(&database).await, 0);
}

#[tokio::test]
async fn a_redelivered_parked_message_adds_no_second_letter() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&database.pool, &credits).await;
    let keyless = at(Message::builder().payload("5"), 0);
    assert_eq!(assigned.run(&credits, &keyless).await.unwrap(), Disposition::Parked);
    assert_eq!(assigned.run(&credits, &keyless).await.unwrap(), Disposition::AlreadyParked);
    assert_eq!(letters(&database).await.len(), 1);
}

#[tokio::test]
async fn parking_by_hand_is_told_apart_by_payload() {
    let database = new_database().await;
    for payload in ["5", "5", "6"] {
        let keyless = Message::builder().payload(payload).build();
        assert_eq!(apply::<Credits>(&database.pool, &keyless).await.unwrap(), Disposition::Parked);
    }
    let letters = letters(&database).await;
    assert_eq!(letters.len(), 2);
    assert_eq!((letters[0].source.as_deref(), letters[0].offset), (Some("apply"), None));
}

#[tokio::test]
async fn c12_a_tombstone_is_skipped_unless_the_handler_takes_it() {
    let database = new_database().await;
    let tombstone = Message::builder().header("event_id", "evt-1").build();
    assert_eq!(apply::<Decodes>(&database.pool, &tombstone).await.unwrap(), Disposition::Skipped);
    assert_eq!(apply::<TakesTombstones>(&database.pool, &tombstone).await.unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["evt-1 is gone"]);
}

#[tokio::test]
async fn c12_a_tombstone_is_parked_where_the_handler_says_so() {
    let database = new_database().await;
    let parks = Registered::<ParksTombstones>::new(&());
    let assigned = Assigned::new(&database.pool, &parks).await;
    let tombstone = at(Message::builder().header("event_id", "evt-1"), 0);
    assert_eq!(assigned.run(&parks, &tombstone).await.unwrap(), Disposition::Parked);
    let letter = letters(&database).await.remove(0);
    assert_eq!((letter.reason.as_str(), letter.payload), ("tombstone", None));
}

async fn ends_its_transaction(handler: &dyn Consumer<Store>) -> (Database<Store>, Assigned<Store>) {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, handler).await;
    let ended = assigned.run(handler, &message_at("evt-1", 0)).await;
    assert_eq!(kind(ended), FailureKind::TransactionEnded);
    let letter = letters(&database).await.remove(0);
    assert_eq!((letter.reason.as_str(), letter.offset), ("transaction_ended_by_handler", Some(0)));
    assert_eq!(assigned.progress().await.next, 0);
    (database, assigned)
}

#[tokio::test]
async fn a_handler_that_commits_by_itself_is_caught_and_its_message_listed() {
    let (database, assigned) = ends_its_transaction(&Registered::<Commits>::new(&())).await;
    assert_eq!(effects(&database).await, ["evt-1"]);
    drop(assigned);
}

#[tokio::test]
async fn a_handler_that_commits_and_then_fails_is_caught_as_well() {
    let (database, _) = ends_its_transaction(&Registered::<CommitsAndFails>::new(&())).await;
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_handler_that_commits_and_then_takes_too_long_is_caught_as_well() {
    let (database, _) = ends_its_transaction(&Registered::<CommitsAndDawdles>::new(&())).await;
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_handler_that_commits_and_begins_and_then_meets_an_error_is_caught_as_well() {
    let (database, _) = ends_its_transaction(&Registered::<CommitsBeginsAndErrs>::new(&())).await;
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_handler_that_commits_and_then_loses_another_connection_is_caught_as_well() {
    let (database, _) = ends_its_transaction(&Registered::<CommitsAndLosesAnother>::new(&())).await;
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_handler_that_commits_and_is_then_called_off_is_caught_as_well() {
    let database = new_database().await;
    let gate = Gate::new();
    let handler = Registered::<CommitsAndWaits>::new(&gate);
    let assigned = Assigned::new(&database.pool, &handler).await;
    let job = Job { attempt: 1, tracking: Some(assigned.tracking(1)), task: Task::Apply };
    let (connections, message) = (Connections::of(&database.pool), message_at("evt-1", 0));
    let ended = run_alone(&handler, &connections, &message, &job, gate.wait_until_entered()).await;
    assert_eq!(kind(ended), FailureKind::TransactionEnded);
    assert_eq!(letters(&database).await[0].reason, "transaction_ended_by_handler");
}

#[tokio::test]
async fn a_handler_that_commits_and_begins_again_is_caught_and_its_message_listed() {
    let (database, _) = ends_its_transaction(&Registered::<CommitsAndBegins>::new(&())).await;
    assert_eq!(effects(&database).await, ["evt-1"]);
}

#[tokio::test]
async fn a_handler_that_rolls_back_by_itself_is_caught_and_nothing_is_lost() {
    let (database, assigned) = ends_its_transaction(&Registered::<RollsBack>::new(&())).await;
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
    let again = assigned.run(&Registered::<RollsBack>::new(&()), &message_at("evt-1", 0)).await;
    assert_eq!(kind(again), FailureKind::TransactionEnded);
    assert_eq!(letters(&database).await.len(), 1);
}

#[tokio::test]
async fn letters_are_relayed_once() {
    let database = new_database().await;
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&database.pool, &credits).await;
    for offset in 0..3 {
        assigned.run(&credits, &at(Message::builder().payload("5"), offset)).await.unwrap();
    }
    let relay = Relay::take(&database.pool, &[assigned.id], 0, 2).await.unwrap();
    let taken: Vec<_> = relay.letters.iter().map(|letter| letter.id).collect();
    assert_eq!(relay.letters.iter().map(|letter| letter.offset).collect::<Vec<_>>(), [Some(0), Some(1)]);
    relay.done(&taken[..1]).await.unwrap();
    let relay = Relay::take(&database.pool, &[assigned.id], 0, 10).await.unwrap();
    assert_eq!(relay.letters.iter().map(|letter| letter.offset).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[tokio::test]
async fn a_letter_is_shown_by_its_number() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &Message::builder().payload("5").build()).await.unwrap();
    let listed = letters(&database).await.remove(0);
    assert_eq!(
        dead_letters::show(&database.pool, listed.id).await.unwrap().payload.as_deref(),
        Some(&b"5"[..])
    );
    assert_eq!(kind(dead_letters::show(&database.pool, listed.id + 1).await), FailureKind::Configuration);
}

#[tokio::test]
async fn letters_are_listed_by_consumer() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &Message::builder().payload("5").build()).await.unwrap();
    let of = async |name| dead_letters::list(&database.pool, Some(name), false, 10).await.unwrap().len();
    assert_eq!((of("Credits").await, of("Others").await), (1, 0));
    assert_eq!(apply::<Credits>(&database.pool, &message("evt-1")).await.unwrap(), Disposition::Applied);
}
