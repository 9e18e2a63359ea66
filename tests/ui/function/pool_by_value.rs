use handstamp::{Json, idempotent};

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(Json(_): Json<u32>, _: sqlx::PgPool) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
