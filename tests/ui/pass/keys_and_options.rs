#![deny(warnings)]

use handstamp::{Handler, Key, KeyError, Message, OnOutOfRange, OnTombstone, Options, Order, StartAt, idempotent};
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
    http_header: http_header("X-Request-Id");
    content_hash: content_hash;
    ignoring: content_hash(ignore = ["/trace_id", "/sent/at",],);
    unquoted: (unquoted(header("event_id")), uuid(unquoted(message_key)));
    stripe: stripe;
    stripe_object: stripe_object;
    shopify: (http_header("X-Shopify-Shop-Domain"), shopify);
    github: github;
    with: with(keys::by_account);
}

#[idempotent(
    consumer = "options",
    key = message_key,
    order = none,
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
            r#"HttpHeader("X-Request-Id")"#,
            "ContentHash([])",
            r#"ContentHash(["/trace_id", "/sent/at"])"#,
            r#"Composite([Unquoted(Header("event_id")), Uuid(Unquoted(MessageKey))])"#,
            r#"Json("/id")"#,
            r#"Composite([Json("/data/object/id"), Json("/type")])"#,
            r#"Composite([HttpHeader("X-Shopify-Shop-Domain"), HttpHeader("X-Shopify-Webhook-Id")])"#,
            r#"Uuid(HttpHeader("X-GitHub-Delivery"))"#,
            r#"With(KeyFunction("keys::by_account"))"#,
        ]
    );
    let expected = Options::new()
        .order(Order::None)
        .attempts(3)
        .timeout_ms(120_000)
        .start_at(StartAt::Latest)
        .on_tombstone(OnTombstone::Park)
        .on_out_of_range(OnOutOfRange::Earliest);
    assert_eq!(<options as Handler>::OPTIONS, expected);
    assert_eq!(<header as Handler>::OPTIONS, Options::new());
}
