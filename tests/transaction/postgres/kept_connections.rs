use std::future::pending;
use std::time::Duration;

use handstamp::internal::{Connections, Job, Registered};
use handstamp::{BoxError, Handler, KeySource, Options};

use sqlx::postgres::PgPoolOptions;
use tokio::time;

use super::handlers::{handler, run};
use super::{Connection, effects, new_database};
use crate::database::server;
use crate::messages::{message, run_alone};

handler!(Backend, Options::new(), |(): (), conn| {
    Ok(run("INSERT INTO effect SELECT pg_backend_pid()", conn).await?)
});

/// Lets time pass in which nothing is asked of a server.
async fn pass(time: Duration) {
    time::pause();
    time::advance(time).await;
    time::resume();
}

/// What is never idle would never come back to its pool, which alone can close it.
#[tokio::test]
async fn a_connection_that_is_always_busy_is_closed_all_the_same_when_it_is_too_old_for_its_pool() {
    let database = new_database().await;
    // Too old whenever the pool sees it.
    let pool = PgPoolOptions::new().max_lifetime(Duration::from_millis(1));
    let pool = pool.connect_with(server().database(database.name())).await.unwrap();
    let consumer = Registered::<Backend>::new(&());
    handstamp::apply::<Backend>(&pool, &message("registers")).await.unwrap();
    let connections = Connections::keeping(&pool);
    for second in 0..15 {
        let message = message(&format!("evt-{second}"));
        run_alone(&consumer, &connections, &message, &Job::by_hand(), pending()).await.unwrap();
        pass(Duration::from_millis(900)).await;
    }
    let backends = effects(&database).await;
    let (kept, later) = (&backends[1..11], &backends[14]);
    assert!(kept.iter().all(|backend| *backend == kept[0]), "it is kept for a while: {backends:?}");
    assert_ne!(kept[0], *later, "but not for ever: {backends:?}");
}
