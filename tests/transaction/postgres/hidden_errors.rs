use handstamp::internal::Registered;
use handstamp::{BoxError, Disposition, EventId, FailureKind, Handler, KeySource, Options, apply};

use super::handlers::{handler, record, run};
use super::{Connection, effects, execute, keys, new_database};
use crate::database::POOL;
use crate::messages::{Assigned, kind, message, message_at};

handler!(Swallows, Options::new(), |(EventId(id), ()): (EventId, ()), conn| {
    record(&id, conn).await?;
    let _ = run("SELECT 1 / 0", conn).await;
    Ok(())
});

handler!(SwallowsSome, Options::new(), |(EventId(id), ()): (EventId, ()), conn| {
    record(&id, conn).await?;
    if id == "swallow" {
        let _ = run("SELECT 1 / 0", conn).await;
    }
    Ok(())
});

handler!(SaysNothing, Options::new(), |(EventId(id), ()): (EventId, ()), conn| {
    record(&id, conn).await?;
    let lost = run("SELECT pg_terminate_backend(pg_backend_pid())", conn).await;
    Err(lost.unwrap_err().to_string().into())
});

handler!(
    FailsAtCommit,
    Options::new(),
    |(EventId(id), ()): (EventId, ()), conn| Ok(record(&id, conn).await?)
);

#[tokio::test]
async fn a_swallowed_database_error_is_caught_and_nothing_is_lost() {
    let database = new_database().await;
    for _ in 0..=POOL {
        let failure = apply::<Swallows>(&database.pool, &message("evt-1")).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Handler);
        assert!(failure.to_string().contains("hid an error of the database"), "{failure}");
    }
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_swallowed_database_error_in_a_batch_leaves_nothing_of_any_message() {
    let database = new_database().await;
    let swallows = Registered::<SwallowsSome>::new(&());
    let assigned = Assigned::new(&database.pool, &swallows).await;
    for events in [["evt-1", "swallow"], ["swallow", "evt-1"]] {
        let messages = (0..).zip(events).map(|(offset, event)| message_at(event, offset));
        let failed = assigned.run_batch(&swallows, messages, 2).await;
        assert_eq!(failed.expect_err("it is caught").failure.kind(), FailureKind::Handler);
        assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
    }
}

#[tokio::test]
async fn a_lost_connection_is_not_the_messages_fault_however_the_handler_words_it() {
    let database = new_database().await;
    let failed = apply::<SaysNothing>(&database.pool, &message("evt-1")).await;
    assert_eq!(kind(failed), FailureKind::Environment);
}

#[tokio::test]
async fn c22_a_deadlock_at_commit_is_the_environment() {
    let database = new_database().await;
    at_commit(&database, "RAISE EXCEPTION 'Verklemmung entdeckt' USING ERRCODE = '40P01'").await;
    let failed = apply::<FailsAtCommit>(&database.pool, &message("evt-1")).await;
    assert_eq!(kind(failed), FailureKind::Environment);
    execute(&database, "DROP TRIGGER at_commit ON effect").await;
    let applied = apply::<FailsAtCommit>(&database.pool, &message("evt-1")).await;
    assert_eq!(applied.unwrap(), Disposition::Applied);
}

#[tokio::test]
async fn a_connection_that_dies_at_commit_leaves_the_outcome_unknown() {
    let database = new_database().await;
    at_commit(&database, "PERFORM pg_terminate_backend(pg_backend_pid())").await;
    let failed = apply::<FailsAtCommit>(&database.pool, &message("evt-1")).await;
    assert_eq!(kind(failed), FailureKind::Unknown);
    execute(&database, "DROP TRIGGER at_commit ON effect").await;
    let applied = apply::<FailsAtCommit>(&database.pool, &message("evt-1")).await;
    assert_eq!(applied.unwrap(), Disposition::Applied);
    assert_eq!(effects(&database).await, ["evt-1"]);
}

/// Does something in every COMMIT that has written an effect.
async fn at_commit(database: &crate::database::Database<super::Store>, body: &str) {
    let sql = format!(
        "CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON effect DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION at_commit();"
    );
    execute(database, &sql).await;
}
