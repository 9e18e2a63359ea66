use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(Json(amount): Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    let text: String = amount;
    Ok(())
}

fn main() {}
