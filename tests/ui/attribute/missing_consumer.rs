use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(key = header("event_id"))]
async fn credit(Json(_): Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
