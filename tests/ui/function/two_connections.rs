use handstamp::idempotent;
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(_: &mut PgConnection, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
