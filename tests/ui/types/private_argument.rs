use sqlx::PgConnection;

pub mod handlers {
    use handstamp::{Json, idempotent};

    #[derive(serde::Deserialize)]
    struct Deposit;

    #[idempotent(consumer = "credits", key = message_key)]
    pub async fn credit(_: Json<Deposit>, _: &mut super::PgConnection) -> sqlx::Result<()> {
        Ok(())
    }
}

fn main() {}
