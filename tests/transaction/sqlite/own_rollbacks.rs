//! SQLite rolls back by itself, which is nobody's COMMIT.

use handstamp::internal::Registered;
use handstamp::{BoxError, EventId, FailureKind, Handler, KeySource, Options};

use super::handlers::{handler, record, run};
use super::{Connection, effects, execute, keys, new_database};
use crate::messages::{Assigned, kind, message_at};

handler!(RunsIntoAConflict, Options::new(), |(EventId(id), ()): (EventId, ()), conn| {
    record(&id, conn).await?;
    Ok(run("INSERT INTO once VALUES (1)", conn).await?)
});

// As a handler whose errors are plain texts.
handler!(FillsTheDisk, Options::new(), |(EventId(id), ()): (EventId, ()), conn| {
    record(&id, conn).await?;
    // What is there is the least that it can be set to.
    run("PRAGMA max_page_count = 1", conn).await?;
    let filled = run("INSERT INTO once VALUES (zeroblob(50000000))", conn).await;
    Ok(filled.map_err(|error| error.to_string())?)
});

#[tokio::test]
async fn a_conflict_that_rolls_back_is_a_failure_of_the_handler() {
    let database = new_database().await;
    execute(&database, "CREATE TABLE once (n UNIQUE ON CONFLICT ROLLBACK); INSERT INTO once VALUES (1)")
        .await;
    let handler = Registered::<RunsIntoAConflict>::new(&());
    let assigned = Assigned::new(&database.pool, &handler).await;
    assert_eq!(kind(assigned.run(&handler, &message_at("evt-1", 0)).await), FailureKind::Handler);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}

#[tokio::test]
async fn a_full_disk_is_not_taken_for_a_commit() {
    let database = new_database().await;
    execute(&database, "CREATE TABLE once (n)").await;
    let handler = Registered::<FillsTheDisk>::new(&());
    let assigned = Assigned::new(&database.pool, &handler).await;
    let failed = kind(assigned.run(&handler, &message_at("evt-1", 0)).await);
    assert_ne!(failed, FailureKind::TransactionEnded);
    assert_eq!((effects(&database).await.len(), keys(&database).await), (0, 0));
}
