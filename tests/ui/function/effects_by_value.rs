use handstamp::{BoxError, Effects, EventId, idempotent};

#[idempotent(consumer = "c", key = header("event_id"))]
fn credit(_: EventId, _: Effects) -> Result<(), BoxError> {
    Ok(())
}

fn main() {}
