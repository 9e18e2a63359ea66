use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit<'a>(_: Json<u32>, _: &'a mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
