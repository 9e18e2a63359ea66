use handstamp::{BoxError, Effects, EventId, idempotent};

#[idempotent(consumer = "c", key = header("event_id"))]
async fn credit(_: EventId, fx: &mut Effects) -> Result<(), BoxError> {
    fx.execute("DELETE FROM a", ());
    Ok(())
}

fn main() {}
