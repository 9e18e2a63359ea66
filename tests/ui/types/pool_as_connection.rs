use handstamp::{Json, idempotent};

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(_: Json<u32>, _: &mut sqlx::PgPool) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
