use handstamp::{Json, Message, idempotent};
use sqlx::PgConnection;

fn by_account(message: &Message) -> Option<u64> {
    message.timestamp().map(i64::cast_unsigned)
}

#[idempotent(consumer = "credits", key = with(by_account))]
async fn credit(_: Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
