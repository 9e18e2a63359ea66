//! Parameters as they may be written: `mut`, patterns, `_`, names that generated code might use.
#![deny(warnings)]

use handstamp::{EventId, Handler, Headers, Json, Text, idempotent};
use sqlx::{Connection, SqliteConnection};

#[derive(serde::Deserialize)]
struct Credit {
    account_id: i64,
    amount: i64,
}

#[idempotent(consumer = "a", key = header("event_id"))]
async fn mutable(conn: &mut SqliteConnection, mut credit: Json<Credit>) -> Result<(), String> {
    let _ = conn;
    credit.0.amount += 1;
    Err(format!("{}", credit.0.amount))
}

#[idempotent(consumer = "a", key = header("event_id"))]
async fn destructured(
    Json(Credit { account_id, amount, .. }): Json<Credit>,
    conn: &mut SqliteConnection,
) -> Result<(), String> {
    let _ = conn;
    Err(format!("{account_id} {amount}"))
}

#[idempotent(consumer = "a", key = header("event_id"))]
async fn wildcards(_: &mut SqliteConnection, _: Json<Credit>, _: Headers) -> Result<(), String> {
    Ok(())
}

#[idempotent(consumer = "a", key = header("event_id"))]
async fn reference(ref credit: Json<Credit>, mut _conn: &mut SqliteConnection) -> Result<(), String> {
    Err(credit.0.amount.to_string())
}

#[idempotent(consumer = "a", key = header("event_id"))]
async fn r#type(r#match: Json<u8>, _: &mut SqliteConnection) -> Result<(), String> {
    Err(r#match.0.to_string())
}

#[idempotent(consumer = "a", key = header("event_id"))]
async fn generated_names(
    __a0: EventId,
    __access: &mut SqliteConnection,
    access: Text,
    name: Json<u8>,
) -> Result<(), String> {
    let _ = __access;
    Err([__a0.0, access.0, name.0.to_string()].concat())
}

async fn called_as_written(conn: &mut SqliteConnection) {
    let credit = || Json(Credit { account_id: 7, amount: 5 });
    assert_eq!(mutable(conn, credit()).await, Err("6".to_owned()));
    assert_eq!(destructured(credit(), conn).await, Err("7 5".to_owned()));
    assert_eq!(reference(credit(), conn).await, Err("5".to_owned()));
    assert_eq!(r#type(Json(1), conn).await, Err("1".to_owned()));
    let (id, text) = (EventId("a".to_owned()), Text("b".to_owned()));
    assert_eq!(generated_names(id, conn, text, Json(1)).await, Err("ab1".to_owned()));
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut conn = SqliteConnection::connect("sqlite::memory:").await.expect("a database in memory");
    called_as_written(&mut conn).await;
    let credit = Json(Credit { account_id: 7, amount: 5 });
    assert_eq!(<mutable as Handler>::call((credit, ()), &mut conn).await, Err("6".to_owned()));
    assert!(<r#type as Handler>::PATH.ends_with("::type"), "{}", <r#type as Handler>::PATH);
}
