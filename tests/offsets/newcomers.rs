//! Members of a group that is new.

use std::time::Duration;

use anyhow::ensure;
use handstamp_tests::{Running, eventually};
use sqlx::{Connection, PgConnection};

use crate::ledger::latecomer;
use crate::scene::{SOON, Scene, ids, started};

/// Whoever writes a new progress row takes this lock first, one after the other in the order they came.
const QUEUE: &str = "CREATE FUNCTION queue() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
     CREATE TRIGGER queue BEFORE INSERT ON handstamp.progress FOR EACH ROW EXECUTE FUNCTION queue()";

async fn until_queued(connection: &mut PgConnection, members: i64) {
    // Nobody waits longer than five seconds for a lock.
    eventually(Duration::from_secs(4), async || {
        let queued: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
             WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()",
        )
        .fetch_one(&mut *connection)
        .await?;
        ensure!(queued == members, "{queued} members make the row, not {members}");
        Ok(())
    })
    .await;
}

/// The partition moves while its first owner writes down the end it found. The second has found a later
/// end, and must not start there.
#[tokio::test]
async fn two_members_that_find_different_ends_start_at_the_one_that_was_written_first() {
    let scene = Scene::new(1).await;
    scene.execute(QUEUE).await;
    let mut queue = scene.connect().await;
    sqlx::query("SELECT pg_advisory_lock(7)").execute(&mut queue).await.expect("a lock");
    scene.produce(0, ids("before", 0..3)).await;
    // The assignor gives the only partition to the lowest id.
    let member = |id| {
        let kafka = scene.kafka().group_instance_id(id);
        Running::start(scene.builder(kafka).consume::<latecomer>(scene.topic.name()))
    };
    let first = member("b");
    until_queued(&mut queue, 1).await;
    scene.produce(0, ids("between", 0..2)).await;
    let mut second = member("a");
    until_queued(&mut queue, 2).await;
    queue.close().await.expect("the server answers");

    let start = second.next(SOON, |notice| started(notice).is_some()).await;
    assert_eq!(started(&start), Some((0, 3)));
    second.until_done(2).await;
    second.stop().await.expect("a clean stop");
    first.stop().await.expect("a clean stop");
    assert_eq!(scene.applied_by("latecomer").await, ids("between", 0..2));
    assert_eq!(scene.progress(0).await, Some(5));
}
