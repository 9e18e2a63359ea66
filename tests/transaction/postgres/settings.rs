use std::future::pending;

use handstamp::internal::{Connections, Job, Registered};
use handstamp::{BoxError, EventId, Handler, KeySource, Options, apply};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::handlers::handler;
use super::{Connection, effects, new_database};
use crate::database::server;
use crate::messages::{message, run_alone};

handler!(TellsSettings, Options::new().timeout_ms(2_000), |(EventId(_), ()): (EventId, ()), conn| {
    sqlx::query(
        "INSERT INTO effect SELECT current_setting('synchronous_commit') || ' ' ||
             current_setting('statement_timeout') || ' ' || current_setting('lock_timeout') || ' ' ||
             current_setting('idle_in_transaction_session_timeout')",
    )
    .execute(conn)
    .await?;
    Ok(())
});

/// What handlers see on connections that are used once, and again and again.
async fn settings_of(options: impl FnOnce(PgConnectOptions) -> PgConnectOptions) -> String {
    let database = new_database().await;
    let pool = database.pool_as(options).await;
    apply::<TellsSettings>(&pool, &message("evt-1")).await.unwrap();
    let (consumer, connections) = (Registered::<TellsSettings>::new(&()), Connections::keeping(&pool));
    for event in ["evt-2", "evt-3", "evt-4"] {
        run_alone(&consumer, &connections, &message(event), &Job::by_hand(), pending()).await.unwrap();
    }
    let mut seen = effects(&database).await;
    assert_eq!(seen.len(), 4);
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    seen.remove(0)
}

#[tokio::test]
async fn limits_are_set_above_the_handlers_own() {
    let settings = settings_of(|options| options).await;
    assert_eq!(settings, "on 3s 5s 7s");
}

#[tokio::test]
async fn an_asynchronous_commit_is_raised() {
    for weak in ["off", "local", "remote_write"] {
        let settings = settings_of(|options| options.options([("synchronous_commit", weak)])).await;
        assert!(settings.starts_with("on "), "{weak}: {settings}");
    }
}

#[tokio::test]
async fn a_stronger_commit_is_not_lowered() {
    let settings = settings_of(|options| options.options([("synchronous_commit", "remote_apply")])).await;
    assert!(settings.starts_with("remote_apply "), "{settings}");
}

#[tokio::test]
async fn the_roles_shorter_limits_win() {
    let shorter = [
        ("statement_timeout", "900ms"),
        ("lock_timeout", "1s"),
        ("idle_in_transaction_session_timeout", "6s"),
    ];
    let settings = settings_of(|options| options.options(shorter)).await;
    assert_eq!(settings, "on 900ms 1s 6s");
}

#[tokio::test]
async fn the_roles_longer_limits_do_not() {
    let longer = [
        ("statement_timeout", "1min"),
        ("lock_timeout", "1h"),
        ("idle_in_transaction_session_timeout", "2d"),
    ];
    let settings = settings_of(|options| options.options(longer)).await;
    assert_eq!(settings, "on 3s 5s 7s");
}

#[tokio::test]
async fn c19_nothing_is_set_for_longer_than_the_transaction() {
    let database = new_database().await;
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect_with(server().database(database.name())).await.unwrap();
    apply::<TellsSettings>(&pool, &message("evt-1")).await.unwrap();
    let after: String = sqlx::query_scalar("SHOW lock_timeout").fetch_one(&pool).await.unwrap();
    assert_eq!(after, "0");
}

handler!(LowersCommit, Options::new(), |(EventId(_), ()): (EventId, ()), conn| {
    let seen = "INSERT INTO effect SELECT current_setting('synchronous_commit')";
    sqlx::query(seen).execute(&mut *conn).await?;
    sqlx::query("SET synchronous_commit = off").execute(conn).await?;
    Ok(())
});

#[tokio::test]
async fn an_asynchronous_commit_that_a_handler_leaves_behind_is_raised_for_the_next() {
    let database = new_database().await;
    let pool = database.pool_as(|options| options).await;
    apply::<LowersCommit>(&pool, &message("evt-1")).await.unwrap();
    let (consumer, connections) = (Registered::<LowersCommit>::new(&()), Connections::keeping(&pool));
    for event in ["evt-2", "evt-3", "evt-4"] {
        run_alone(&consumer, &connections, &message(event), &Job::by_hand(), pending()).await.unwrap();
    }
    assert_eq!(effects(&database).await, ["on"; 4]);
}
