use handstamp::{Json, idempotent};
use sqlx::PgConnection;

macro_rules! handler {
    ($name:ident, $consumer:literal, $header:expr) => {
        #[idempotent(consumer = $consumer, key = header($header))]
        async fn $name(_: Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
            Ok(())
        }
    };
}

handler!(credit, 5, "event_id");
handler!(debit, "debits", concat!("event", "_id"));

fn main() {}
