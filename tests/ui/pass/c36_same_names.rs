//! Handlers of one name in several places, and a glob over both.
#![deny(warnings)]

use handstamp::Handler;

mod a {
    #[handstamp::idempotent(consumer = "a", key = message_key)]
    pub async fn handle(_: &mut sqlx::PgConnection) -> sqlx::Result<()> {
        Ok(())
    }
}

mod b {
    #[handstamp::idempotent(consumer = "b", key = message_key)]
    pub async fn handle(_: &mut sqlx::PgConnection) -> sqlx::Result<()> {
        Ok(())
    }
}

#[allow(unused_imports)]
use a::*;
#[allow(unused_imports)]
use b::*;

mod imported {
    use super::a::handle;

    pub fn by_one_use() -> &'static str {
        let _ = handle;
        <handle as super::Handler>::PATH
    }
}

fn nested() -> &'static str {
    #[handstamp::idempotent(consumer = "nested", key = message_key)]
    async fn handle(_: &mut sqlx::PgConnection) -> sqlx::Result<()> {
        Ok(())
    }
    <handle as Handler>::CONSUMER
}

fn main() {
    assert_eq!(<a::handle as Handler>::CONSUMER, "a");
    assert_eq!(<b::handle as Handler>::CONSUMER, "b");
    assert_eq!(nested(), "nested");
    assert!(imported::by_one_use().ends_with("::a::handle"));
}
