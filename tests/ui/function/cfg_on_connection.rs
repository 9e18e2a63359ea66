use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(Json(_): Json<u32>, #[cfg(all())] _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
