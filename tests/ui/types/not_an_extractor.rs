use handstamp::idempotent;
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(_: u32, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
