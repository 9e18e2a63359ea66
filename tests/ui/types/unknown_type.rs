use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(_: Json<Deposit>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
