use handstamp::{BoxError, Effects, EventId, idempotent};

#[idempotent(consumer = "c", key = header("event_id"))]
fn credit(EventId(id): EventId, fx: &mut Effects) -> Result<(), BoxError> {
    fx.execute("DELETE FROM a WHERE b = $1", id);
    Ok(())
}

fn main() {}
