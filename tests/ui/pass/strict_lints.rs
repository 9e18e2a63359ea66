//! A caller with every group of lints on gets no warning from what is generated.
#![deny(warnings, missing_docs, missing_debug_implementations, missing_copy_implementations)]
#![deny(
    unreachable_pub,
    unused_qualifications,
    future_incompatible,
    let_underscore,
    unused,
    rust_2018_idioms
)]
#![deny(unnameable_types, single_use_lifetimes, trivial_casts, unused_lifetimes, variant_size_differences)]
#![forbid(unsafe_code)]

use handstamp::{EventId, Headers, Json, Message, Payload, Position, State, Text, idempotent};
use sqlx::PgConnection;

/// Takes everything there is.
#[idempotent(consumer = "strict", key = uuid(header("event_id")), timeout = "1 second")]
async fn everything(
    _: Option<Json<Vec<(u32, String)>>>,
    _: Payload,
    _: Option<Text>,
    _: Headers,
    _: EventId,
    _: Position,
    _: Message,
    _: State<u8>,
    _: &mut PgConnection,
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {
    let _ = <everything as handstamp::Handler>::PATH;
}
