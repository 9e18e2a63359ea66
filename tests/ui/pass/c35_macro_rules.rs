//! Handlers written by `macro_rules!`, whose arguments arrive in invisible groups.
#![deny(warnings)]

use handstamp::{Handler, Json, KeySource, idempotent};
use sqlx::PgConnection;

macro_rules! handler {
    ($vis:vis $name:ident, $consumer:literal, $header:expr, $ty:ty, $conn:ty, $attempts:expr, $start:ident) => {
        #[idempotent(consumer = $consumer, key = header($header), attempts = $attempts, start_at = $start)]
        $vis async fn $name(_: Json<$ty>, _: $conn) -> sqlx::Result<()> {
            Ok(())
        }
    };
}

handler!(pub wallet, "wallet-credits", "event_id", u32, &mut PgConnection, 3, latest);
handler!(audit, "audit", "id", Vec<u32>, &mut PgConnection, 1, earliest);

macro_rules! with_attribute {
    ($function:item) => {
        #[idempotent(consumer = "whole", key = message_key)]
        $function
    };
}

with_attribute! {
    /// Passed on as a whole.
    async fn whole(_: &mut PgConnection) -> sqlx::Result<()> {
        Ok(())
    }
}

fn main() {
    assert_eq!(<wallet as Handler>::CONSUMER, "wallet-credits");
    assert!(matches!(<wallet as Handler>::KEY, KeySource::Header("event_id")));
    assert_eq!(<audit as Handler>::CONSUMER, "audit");
    assert_eq!(<whole as Handler>::CONSUMER, "whole");
}
