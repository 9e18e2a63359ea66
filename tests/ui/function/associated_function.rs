use handstamp::{Json, idempotent};
use sqlx::PgConnection;

struct Wallet;

impl Wallet {
    #[idempotent(consumer = "credits", key = message_key)]
    async fn credit(Json(_): Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
        Ok(())
    }
}

fn main() {}
