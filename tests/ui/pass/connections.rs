#![deny(warnings)]
#![forbid(unsafe_code)]

use handstamp::{Inbox, Json, State, idempotent};
use sqlx::{PgConnection, Postgres, Sqlite, SqliteConnection};

#[idempotent(consumer = "postgres", key = header("event_id"))]
async fn postgres(Json(_): Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(consumer = "sqlite", key = header("event_id"))]
async fn sqlite(_: &mut SqliteConnection, Json(_): Json<u32>) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(consumer = "inbox", key = header("event_id"))]
async fn inbox(inbox: &mut Inbox<Postgres>, State(_): State<u8>) -> Result<(), handstamp::BoxError> {
    let _ = inbox.idempotency_key();
    Ok(())
}

#[idempotent(consumer = "inbox-sqlite", key = header("event_id"))]
async fn inbox_sqlite(_: &mut Inbox<Sqlite>) -> anyhow::Result<()> {
    Ok(())
}

fn connection_of<H: handstamp::Handler<Access = A>, A>() {}

fn main() {
    connection_of::<postgres, PgConnection>();
    connection_of::<sqlite, SqliteConnection>();
    connection_of::<inbox, Inbox<Postgres>>();
    connection_of::<inbox_sqlite, Inbox<Sqlite>>();
}
