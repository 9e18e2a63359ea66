//! The definition and the stored form of every key that the attribute can say.

use handstamp::{Handler, Key, KeyError, Message, Position, idempotent};
use sqlx::PgConnection;

/// Databases hold both. If this fails, do not change what is expected: a consumer with another definition is
/// refused at start, and events that are remembered in another form are applied again.
macro_rules! pinned {
    ($($name:ident: $key:expr => $definition:literal, $stored:literal;)*) => {
        $(
            #[idempotent(consumer = "keys", key = $key)]
            async fn $name(_: &mut PgConnection) -> sqlx::Result<()> {
                Ok(())
            }
        )*

        #[test]
        fn definitions_and_stored_forms_are_pinned() {
            let message = message();
            $(
                let key = <$name as Handler>::KEY;
                assert_eq!(key.to_string(), $definition);
                let stored = key.read(&message).unwrap().stored();
                assert_eq!(stored.escape_ascii().to_string(), $stored.escape_ascii().to_string(), "{key}");
            )*
        }
    };
}

pinned! {
    header: header("event_id") => r#"header("event_id")"#, b"\x020199aaaa-0000-7000-8000-000000000001";
    http_header: http_header("EVENT_ID") => r#"http_header("EVENT_ID")"#, b"\x020199aaaa-0000-7000-8000-000000000001";
    json: json("/data/object/amount_paid") => r#"json("/data/object/amount_paid")"#, b"\x02500";
    pointers: json("/id", "/type") => r#"(json("/id"), json("/type"))"#, b"\x04\x02\0\0\0\x06evt_1A\x02\0\0\0\x0cinvoice.paid";
    message_key: message_key => "message_key", b"\x02account-7";
    cloudevents: cloudevents => "cloudevents", b"\x04\x02\0\0\0\x07/orders\x02\0\0\0\x041234";
    content_hash: content_hash => "content_hash", b"\x06v\xd3l\xe66B\xa5\x1a\xa8dP\x88d\xeb\x85H\x04z~U\x98g:\xf8\x0d\x12\xf15\xf1\xf6\xc7\xdd";
    ignoring: content_hash(ignore = ["/id"]) => r#"content_hash(ignore = ["/id"])"#, b"\x06~\x9b^Ik\x8f\x92\xff\x9e$=\xa3R\x13\xf8\x16\xc7\xac\xbb\xd3\xb0}\xba\x0b\x09(\xb3\xe0B>:\xc6";
    position: position => "position", b"\x04\x02\0\0\0\x08deposits\x02\0\0\0\x013\x02\0\0\0\x0242";
    uuid: uuid(header("event_id")) => r#"uuid(header("event_id"))"#, b"\x01\x01\x99\xaa\xaa\0\0p\0\x80\0\0\0\0\0\0\x01";
    unquoted: unquoted(header("quoted")) => r#"unquoted(header("quoted"))"#, b"\x02evt-9";
    composite: (uuid(header("event_id")), json("/id")) => r#"(uuid(header("event_id")), json("/id"))"#, b"\x04\x01\0\0\0\x10\x01\x99\xaa\xaa\0\0p\0\x80\0\0\0\0\0\0\x01\x02\0\0\0\x06evt_1A";
    nested: (message_key, (content_hash, position)) => "(message_key, content_hash, position)", b"\x05\xd3#\xfb&\xcf\xbc\xed\x08\x8aT\x9d\xd2\xafc\x07uJk\xfa\xaa$\x84\x14]%\"3y\xa9k\xe2\xd4";
    with: with(two_bytes) => "with(two_bytes)", b"\x03\0\xff";
    stripe: stripe => r#"json("/id")"#, b"\x02evt_1A";
    stripe_object: stripe_object => r#"(json("/data/object/id"), json("/type"))"#, b"\x04\x02\0\0\0\x04in_1\x02\0\0\0\x0cinvoice.paid";
    shopify: shopify => r#"http_header("X-Shopify-Webhook-Id")"#, b"\x02W1";
    github: github => r#"uuid(http_header("X-GitHub-Delivery"))"#, b"\x01r\xd3\x16.\xccx\x11\xe3\x81\xabL\x93g\xdc\x09X";
}

fn two_bytes(_: &Message) -> Result<Key, KeyError> {
    Key::bytes(&[0, 255])
}

fn message() -> Message {
    Message::builder()
        .header("event_id", "0199aaaa-0000-7000-8000-000000000001")
        .header("quoted", r#""evt-9""#)
        .header("content-type", "application/json")
        .header("ce_source", "/orders")
        .header("ce_id", "1234")
        .header("x-shopify-webhook-id", "W1")
        .header("X-GITHUB-DELIVERY", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
        .key("account-7")
        .payload(r#"{"id":"evt_1A","type":"invoice.paid","data":{"object":{"id":"in_1","amount_paid":500}}}"#)
        .position(Position::new("deposits", 3, 42))
        .build()
}
