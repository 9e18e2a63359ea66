//! `#[cfg(…)]` on parameters and around handlers, true (`all()`) and false (`any()`).
#![deny(warnings)]

use handstamp::{Handler, Headers, Json, Text, idempotent};
use sqlx::PgConnection;

#[cfg(any())]
struct Audit;

#[idempotent(consumer = "a", key = header("event_id"))]
async fn absent(
    _: &mut PgConnection,
    #[cfg(any())] audit: handstamp::State<Audit>,
    #[allow(unused_variables)] Json(credit): Json<u32>,
) -> sqlx::Result<()> {
    #[cfg(any())]
    audit.0.note();
    Ok(())
}

#[idempotent(consumer = "a", key = header("event_id"))]
async fn present(
    #[cfg(all())]
    #[cfg(not(any()))]
    _: Text,
    _: &mut PgConnection,
    #[cfg(all())]
    #[cfg(any())]
    _: handstamp::State<Audit>,
    _: Headers,
) -> sqlx::Result<()> {
    Ok(())
}

#[cfg(any())]
#[idempotent(consumer = "a", key = header("event_id"))]
async fn above(_: Unknown, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(consumer = "a", key = header("event_id"))]
#[cfg(any())]
async fn below(_: Unknown, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

/// Free for whoever wants the name, since no handler took it.
#[allow(non_camel_case_types)]
struct below;

/// Kept.
#[idempotent(consumer = "a", key = header("event_id"))]
#[cfg_attr(all(), allow(unused_variables))]
#[deprecated = "kept as well"]
async fn attributes(text: Text, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn arguments_of<H: Handler<Arguments = A>, A>() {}

fn main() {
    arguments_of::<absent, ((), (Json<u32>, ()))>();
    arguments_of::<present, (Text, ((), (Headers, ())))>();
    arguments_of::<attributes, (Text, ())>();
    let _ = below;
}
