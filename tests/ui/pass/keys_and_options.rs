#![deny(warnings)]

use handstamp::{Handler, Key, KeyError, Message, OnOutOfRange, OnTombstone, Options, StartAt, idempotent};
use sqlx::PgConnection;

mod keys {
    pub fn by_account(_: &super::Message) -> Result<super::Key, super::KeyError> {
        unreachable!("never called here")
    }
}

macro_rules! handlers {
    ($($name:ident: $key:expr;)*) => {
        $(
            #[idempotent(consumer = "keys", key = $key)]
            async fn $name(_: &mut PgConnection) -> sqlx::Result<()> {
                Ok(())
            }
        )*
        fn keys() -> Vec<String> {
            vec![$(format!("{:?}", <$name as Handler>::KEY)),*]
        }
    };
}

handlers! {
    header: header("event_id");
    json: json("/order/id");
    pointers: json("/order_id", "/line");
    composite: (header("tenant"), json("/id"), cloudevents);
    nested: (message_key, (position, uuid(json("/id"))));
    message_key: message_key;
    cloudevents: cloudevents;
    position: position;
    uuid: uuid(header(r"event_id"));
    with: with(keys::by_account);
}

#[idempotent(
    consumer = "options",
    key = message_key,
    attempts = 3,
    timeout = "2 minutes",
    start_at = latest,
    on_tombstone = park,
    on_out_of_range = earliest,
)]
async fn options(_: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {
    assert_eq!(
        keys(),
        [
            r#"Header("event_id")"#,
            r#"Json("/order/id")"#,
            r#"Composite([Json("/order_id"), Json("/line")])"#,
            r#"Composite([Header("tenant"), Json("/id"), CloudEvents])"#,
            r#"Composite([MessageKey, Position, Uuid(Json("/id"))])"#,
            "MessageKey",
            "CloudEvents",
            "Position",
            r#"Uuid(Header("event_id"))"#,
            r#"With(KeyFunction("keys::by_account"))"#,
        ]
    );
    let expected = Options::new()
        .attempts(3)
        .timeout_ms(120_000)
        .start_at(StartAt::Latest)
        .on_tombstone(OnTombstone::Park)
        .on_out_of_range(OnOutOfRange::Earliest);
    assert_eq!(<options as Handler>::OPTIONS, expected);
    assert_eq!(<header as Handler>::OPTIONS, Options::new());
}
