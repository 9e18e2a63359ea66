use handstamp::{EventId, Json, Position, State, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = header("event_id"))]
async fn credit(
    _: Vec<Json<u64>>,
    _: EventId,
    _: State<u8>,
    _: Vec<Position>,
    _: &mut PgConnection,
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
