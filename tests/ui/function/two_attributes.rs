use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
#[idempotent(consumer = "debits", key = message_key)]
async fn credit(Json(_): Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
