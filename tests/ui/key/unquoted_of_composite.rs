use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = unquoted((header("a"), header("b"))))]
async fn credit(Json(_): Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
