use handstamp::{Handler, idempotent};
use sqlx::PgPool;

#[idempotent(consumer = "wallet credits", kye = header("event_id"), attempts = 0)]
pub fn credit(_: &u32, _: &PgPool) -> sqlx::Result<()> {
    Ok(())
}

fn consume<H: Handler>() {}

// Names the handler, which must not be reported as well.
fn main() {
    consume::<credit>();
}
