//! Nothing that the caller's scope names differently changes what is generated.
#![deny(warnings)]
#![allow(dead_code, unused_macros, non_camel_case_types, non_upper_case_globals)]

mod handlers {
    mod std {}
    mod core {}
    mod handstamp {}
    mod sqlx {}
    struct Result;
    struct Option;
    struct Some;
    struct Send;
    struct Future;
    struct Options;
    struct usize;
    struct str;
    struct Handler;
    struct Takes;
    const name: u8 = 0;
    const call: u8 = 0;
    const access: u8 = 0;
    macro_rules! concat {
        ($($any:tt)*) => {
            compile_error!("the caller's `concat!`")
        };
    }
    macro_rules! module_path {
        () => {
            compile_error!("the caller's `module_path!`")
        };
    }

    #[::handstamp::idempotent(consumer = "a", key = with(key), attempts = 2, on_tombstone = skip)]
    pub(crate) async fn credit(
        _: ::handstamp::Headers,
        _: &mut ::sqlx::PgConnection,
    ) -> ::std::result::Result<(), ::std::string::String> {
        ::std::result::Result::Ok(())
    }

    fn key(_: &::handstamp::Message) -> ::std::result::Result<::handstamp::Key, ::handstamp::KeyError> {
        ::std::unreachable!()
    }

    type Unused = (Result, Option);
}

/// Types of the user's that are called like a connection and are not.
mod own_types {
    use handstamp::{BoxError, FromMessage, Key, Message, idempotent};

    struct Transaction;
    struct Pool;

    impl FromMessage for Transaction {
        fn from_message(_: &Message, _: &Key) -> Result<Self, BoxError> {
            Ok(Self)
        }
    }

    impl FromMessage for Pool {
        fn from_message(_: &Message, _: &Key) -> Result<Self, BoxError> {
            Ok(Self)
        }
    }

    #[idempotent(consumer = "a", key = message_key)]
    async fn credit(_: Transaction, _: Pool, _: &mut sqlx::PgConnection) -> sqlx::Result<()> {
        Ok(())
    }
}

fn main() {
    assert_eq!(<handlers::credit as handstamp::Handler>::CONSUMER, "a");
}
