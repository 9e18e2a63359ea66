//! Handlers that only record what they write.

use handstamp::Disposition::{Applied, Duplicate, Parked};
use handstamp::internal::dead_letters;
use handstamp::internal::{Job, JobFailure, Registered, Task};
use handstamp::{BoxError, Effects, EventId, FailureKind, Message, idempotent, reject};
use sqlx::Row as _;
use uuid::Uuid;

use super::{effects, execute, keys, new_database};
use crate::messages::{Assigned, message_at};

const INSERT: &str = "INSERT INTO effect (event) VALUES ($1)";

/// What an event's name says is done.
#[idempotent(consumer = "records", key = header("event_id"))]
fn records(EventId(id): EventId, fx: &mut Effects) -> Result<(), BoxError> {
    match id.split('-').next() {
        Some("reject") => return Err(reject("it says so").into()),
        Some("fail") => return Err("it says so".into()),
        Some("panic") => panic!("it says so"),
        Some("violate") => drop(fx.execute("INSERT INTO effect (event) VALUES ($1)", (None::<String>,))),
        Some("nobody") => {
            fx.execute("UPDATE effect SET event = event WHERE event = $1", (id.clone(),)).expect_rows(1);
        }
        Some("commit") => drop(fx.execute("COMMIT", ())),
        _ => {}
    }
    fx.execute(INSERT, (format!("{id}.1"),)).expect_rows(1);
    fx.execute("INSERT INTO effect SELECT $1 -- a comment", (format!("{id}.2"),));
    Ok(())
}

#[idempotent(consumer = "records-many", key = header("event_id"))]
fn records_many(ids: Vec<EventId>, fx: &mut Effects) -> Result<(), BoxError> {
    let ids: Vec<_> = ids.into_iter().map(|EventId(id)| id).collect();
    fx.execute(INSERT, (ids.join("+"),));
    Ok(())
}

fn events<const N: usize>(events: [&str; N]) -> impl Iterator<Item = Message> {
    (0..).zip(events).map(|(offset, event)| message_at(event, offset))
}

fn recording() -> Registered<records> {
    Registered::new(&())
}

#[tokio::test]
async fn statements_of_all_messages_are_run_in_the_order_recorded() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &recording()).await;
    let done = assigned.run_batch(&recording(), events(["c", "a", "b"]), 3).await.unwrap();
    assert_eq!(done, [Applied; 3]);
    assert_eq!(effects(&database).await, ["c.1", "c.2", "a.1", "a.2", "b.1", "b.2"]);
    assert_eq!((keys(&database).await, assigned.progress().await.next), (3, 3));
}

#[tokio::test]
async fn one_message_and_many_do_the_same() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &recording()).await;
    assert_eq!(assigned.run(&recording(), &message_at("a", 0)).await.unwrap(), Applied);
    assert_eq!(effects(&database).await, ["a.1", "a.2"]);
}

#[tokio::test]
async fn statements_of_many_messages_reach_the_server_together() {
    let database = new_database().await;
    execute(&database, "ALTER TABLE effect ADD sent timestamptz DEFAULT statement_timestamp()").await;
    let assigned = Assigned::new(&database.pool, &recording()).await;
    let messages = (0..100).map(|offset| message_at(&format!("evt-{offset}"), offset));
    assigned.run_batch(&recording(), messages, 100).await.unwrap();
    let sent = sqlx::query("SELECT count(*), count(DISTINCT sent) FROM effect");
    let sent = sent.fetch_one(&database.pool).await.unwrap();
    assert_eq!((sent.get::<i64, _>(0), sent.get::<i64, _>(1)), (200, 1));
}

#[tokio::test]
async fn duplicates_record_nothing() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &recording()).await;
    assigned.run(&recording(), &message_at("b", 0)).await.unwrap();
    let messages = [message_at("a", 1), message_at("b", 2), message_at("a", 3)];
    let done = assigned.run_batch(&recording(), messages, 4).await.unwrap();
    assert_eq!(done, [Applied, Duplicate, Duplicate]);
    assert_eq!(effects(&database).await, ["b.1", "b.2", "a.1", "a.2"]);
}

#[tokio::test]
async fn if_the_handler_or_a_statement_fails_nothing_is_kept() {
    for event in ["fail", "panic", "violate", "nobody"] {
        for neighbours in [&[][..], &["a", "b"]] {
            let database = new_database().await;
            let assigned = Assigned::new(&database.pool, &recording()).await;
            let names = neighbours.iter().chain([&event]);
            let messages = (0..).zip(names).map(|(offset, event)| message_at(event, offset));
            let failed = assigned.run_batch(&recording(), messages, 3).await;
            let JobFailure { failure, .. } = failed.expect_err("it fails");
            assert_eq!(failure.kind(), FailureKind::Handler, "{event}: {failure}");
            assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0), "{event}");
        }
    }
}

#[tokio::test]
async fn an_update_of_no_row_is_told_as_what_it_is() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &recording()).await;
    let alone = assigned.run_batch(&recording(), events(["nobody"]), 1).await;
    let among = assigned.run_batch(&recording(), events(["nobody", "b", "c"]), 3).await;
    for failed in [alone, among] {
        let JobFailure { failure, .. } = failed.expect_err("there is no such row");
        assert!(failure.to_string().contains("affected 0 rows instead of 1"), "{failure}");
    }
}

#[tokio::test]
async fn a_message_that_it_rejects_is_parked() {
    let database = new_database().await;
    let assigned = Assigned::new(&database.pool, &recording()).await;
    assert_eq!(assigned.run(&recording(), &message_at("reject", 0)).await.unwrap(), Parked);
    assert_eq!(dead_letters::list(&database.pool, None, false, 9).await.unwrap().len(), 1);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_recorded_commit_is_caught() {
    for others in [&[][..], &["a", "b"]] {
        let database = new_database().await;
        let assigned = Assigned::new(&database.pool, &recording()).await;
        let names = others.iter().chain([&"commit"]);
        let messages = (0..).zip(names).map(|(offset, event)| message_at(event, offset));
        let failed = assigned.run_batch(&recording(), messages, 3).await;
        let JobFailure { failure, .. } = failed.expect_err("it is caught");
        assert_eq!(failure.kind(), FailureKind::TransactionEnded, "{failure}");
        let letters = dead_letters::list(&database.pool, None, false, 9).await.unwrap();
        assert_eq!(letters.len(), 1 + others.len());
        assert_eq!(assigned.progress().await.next, 0);
    }
}

#[tokio::test]
async fn a_handler_of_many_messages_records_as_well() {
    let database = new_database().await;
    let handler = Registered::<records_many>::new(&());
    let assigned = Assigned::new(&database.pool, &handler).await;
    let done = assigned.run_batch(&handler, events(["c", "a", "b"]), 3).await.unwrap();
    assert_eq!(done, [Applied; 3]);
    assert_eq!(effects(&database).await, ["c+a+b"]);
}

#[tokio::test]
async fn messages_that_are_called_off_write_nothing() {
    let database = new_database().await;
    let handler = recording();
    let assigned = Assigned::new(&database.pool, &handler).await;
    let job = Job { attempt: 1, tracking: Some(assigned.tracking(1)), task: Task::Apply };
    let message = message_at("a", 0);
    let connections = handstamp::internal::Connections::of(&database.pool);
    let called_off = Box::pin(std::future::ready(()));
    let ended =
        handstamp::internal::Consumer::run(&handler, &connections, &[&message], &job, called_off).await;
    assert_eq!(ended.expect_err("it was called off").failure.kind(), FailureKind::Cancelled);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

/// Statements that a block could take for something else, with arguments of many types.
#[idempotent(consumer = "records-all", key = header("event_id"))]
fn records_all(EventId(id): EventId, fx: &mut Effects) -> Result<(), BoxError> {
    let number = i64::try_from(id.len())?;
    fx.execute(
        "INSERT INTO kinds (event, n, f, b, t, u, j, nothing, statement) VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, 'it''s $1')",
        (
            id.clone(),
            number,
            0.5_f64,
            true,
            vec![0_u8, 1, 255],
            Uuid::from_u128(7),
            "[1, 2]".to_owned(),
            None::<i32>,
        ),
    );
    // A column of a name that the block uses, too.
    fx.execute(
        "UPDATE kinds SET statement = kinds.statement || $q$ $2;$q$ || $1 /* $2 */ WHERE statement <> '' AND event = $2",
        ("é".to_owned(), id.clone()),
    )
    .expect_rows(1);
    fx.execute("SELECT set_config('test.event', $1::text || $1, true)", (id.clone(),));
    fx.execute("DELETE FROM kinds WHERE event = $1 AND n > $2;", (id, 4_i16));
    Ok(())
}

#[tokio::test]
async fn statements_mean_the_same_together_and_alone() {
    let mut found = Vec::new();
    for batch in [1, 4] {
        let database = new_database().await;
        execute(
            &database,
            "CREATE TABLE kinds (event text, n int8, f float8, b bool, t bytea, u uuid, j jsonb, nothing int4,
                                 statement text)",
        )
        .await;
        let handler = Registered::<records_all>::new(&());
        let assigned = Assigned::new(&database.pool, &handler).await;
        let mut offsets = 0..;
        for names in ["a", "bb", "'; --", "$1", "handstamp_effect", "ccc", "dddd", "eeeee"].chunks(batch) {
            let messages: Vec<_> =
                names.iter().zip(&mut offsets).map(|(name, offset)| message_at(name, offset)).collect();
            let watermark = messages.last().and_then(Message::position).unwrap().offset + 1;
            let done = assigned.run_batch(&handler, messages, watermark).await.unwrap();
            assert_eq!(done, vec![Applied; names.len()]);
        }
        let rows = sqlx::query_scalar("SELECT kinds::text FROM kinds ORDER BY ctid");
        found.push(rows.fetch_all(&database.pool).await.unwrap() as Vec<String>);
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].len(), 5, "{:?}", found[0]);
    assert_eq!(
        found[0][0],
        r#"(a,1,0.5,t,"\\x0001ff",00000000-0000-0000-0000-000000000007,"[1, 2]",,"it's $1 $2;é")"#
    );
}
