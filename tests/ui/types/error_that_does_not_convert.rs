use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(_: Json<u32>, _: &mut PgConnection) -> Result<(), u8> {
    Ok(())
}

fn main() {}
