use handstamp::idempotent;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit() -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
