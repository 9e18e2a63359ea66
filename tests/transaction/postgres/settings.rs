use handstamp::{BoxError, EventId, Handler, KeySource, Options, apply};
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

use super::handlers::handler;
use super::{Connection, effects, new_database};
use crate::messages::message;

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

async fn settings_of(options: impl FnOnce(PgConnectOptions) -> PgConnectOptions) -> (String, PgPool) {
    let database = new_database().await;
    let pool = database.pool_as(options).await;
    apply::<TellsSettings>(&pool, &message("evt-1")).await.unwrap();
    (effects(&database).await.remove(0), pool)
}

#[tokio::test]
async fn limits_are_set_above_the_handlers_own() {
    let (settings, _) = settings_of(|options| options).await;
    assert_eq!(settings, "on 3s 5s 7s");
}

#[tokio::test]
async fn an_asynchronous_commit_is_raised() {
    for weak in ["off", "local", "remote_write"] {
        let (settings, _) = settings_of(|options| options.options([("synchronous_commit", weak)])).await;
        assert!(settings.starts_with("on "), "{weak}: {settings}");
    }
}

#[tokio::test]
async fn a_stronger_commit_is_not_lowered() {
    let (settings, _) =
        settings_of(|options| options.options([("synchronous_commit", "remote_apply")])).await;
    assert!(settings.starts_with("remote_apply "), "{settings}");
}

#[tokio::test]
async fn the_roles_shorter_limits_win() {
    let shorter = [
        ("statement_timeout", "900ms"),
        ("lock_timeout", "1s"),
        ("idle_in_transaction_session_timeout", "6s"),
    ];
    let (settings, _) = settings_of(|options| options.options(shorter)).await;
    assert_eq!(settings, "on 900ms 1s 6s");
}

#[tokio::test]
async fn the_roles_longer_limits_do_not() {
    let longer = [
        ("statement_timeout", "1min"),
        ("lock_timeout", "1h"),
        ("idle_in_transaction_session_timeout", "2d"),
    ];
    let (settings, _) = settings_of(|options| options.options(longer)).await;
    assert_eq!(settings, "on 3s 5s 7s");
}

#[tokio::test]
async fn c19_nothing_is_set_for_longer_than_the_transaction() {
    let database = new_database().await;
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let pool = pool.connect_with(crate::database::server().database(database.name())).await.unwrap();
    apply::<TellsSettings>(&pool, &message("evt-1")).await.unwrap();
    let after: String = sqlx::query_scalar("SHOW lock_timeout").fetch_one(&pool).await.unwrap();
    assert_eq!(after, "0");
}
