use super::{Key, KeyError};
use crate::message::{Excerpt, Message};

/// Reads the one header called `name`.
pub(super) fn read(name: &str, message: &Message) -> Result<Key, KeyError> {
    only(|candidate| candidate == name.as_bytes(), message)
}

/// Reads the one header called `name` in any letter case.
pub(super) fn read_in_any_case(name: &str, message: &Message) -> Result<Key, KeyError> {
    only(|candidate| candidate.eq_ignore_ascii_case(name.as_bytes()), message)
}

fn only(is_called: impl Fn(&[u8]) -> bool, message: &Message) -> Result<Key, KeyError> {
    let headers = message.headers();
    let mut values = headers.iter().filter(|(name, _)| is_called(name)).map(|(_, value)| value);
    let Some(value) = values.next() else {
        return Err(KeyError::new("missing"));
    };
    match values.count() {
        0 => text(value.ok_or_else(|| KeyError::new("null"))?),
        more => Err(KeyError::new(format!("repeated ({} headers of that name)", more + 1))),
    }
}

fn text(value: &[u8]) -> Result<Key, KeyError> {
    match std::str::from_utf8(value) {
        Ok(text) => Key::text(text),
        Err(_) => Err(KeyError::new(format!("not UTF-8: {}", Excerpt::hex(value)))),
    }
}

#[cfg(test)]
mod tests {
    use crate::key::{Key, KeySource};
    use crate::message::{Message, MessageBuilder};

    fn reason(message: MessageBuilder) -> String {
        KeySource::Header("event_id").read(&message.build()).unwrap_err().to_string()
    }

    #[test]
    fn c01_a_nul_byte_is_refused() {
        let message = Message::builder().header("event_id", b"evt\x001");
        assert_eq!(reason(message), r#"header("event_id"): NUL byte in `evt\x001`"#);
    }

    #[test]
    fn c02_a_value_over_the_limit_is_refused() {
        let message = Message::builder().header("event_id", "a".repeat(1_000_000));
        assert_eq!(reason(message), r#"header("event_id"): key too long (1000000 bytes, limit 4096)"#);
    }

    #[test]
    fn c03_spellings_of_a_uuid_are_different_text() {
        let key = |id| KeySource::Header("event_id").read(&Message::builder().header("event_id", id).build());
        assert_ne!(key("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), key("6BA7B810-9DAD-11D1-80B4-00C04FD430C8"));
    }

    #[test]
    fn c04_a_value_in_json_quotes_is_kept_byte_for_byte() {
        let message = Message::builder().header("event_id", "\"evt-9\"").build();
        assert_eq!(KeySource::Header("event_id").read(&message), Key::text("\"evt-9\""));
    }

    #[test]
    fn c05_other_headers_are_not_looked_at() {
        let message = Message::builder()
            .header(b"\xc3\x28", b"\xc3\x28")
            .header("event_id", "evt-3")
            .header("x-bin", b"\x00\xff\x10")
            .build();
        assert_eq!(KeySource::Header("event_id").read(&message), Key::text("evt-3"));
    }

    #[test]
    fn c05_a_value_that_is_not_utf_8_is_shown_in_hexadecimal() {
        let message = Message::builder().header("event_id", b"\xc3\x28");
        assert_eq!(reason(message), r#"header("event_id"): not UTF-8: c328"#);
    }

    #[test]
    fn c06_a_missing_header_is_told() {
        assert_eq!(reason(Message::builder().header("event-id", "x")), r#"header("event_id"): missing"#);
    }

    #[test]
    fn c06_a_null_value_is_told() {
        assert_eq!(reason(Message::builder().null_header("event_id")), r#"header("event_id"): null"#);
    }

    #[test]
    fn c06_an_empty_value_is_told() {
        assert_eq!(reason(Message::builder().header("event_id", "")), r#"header("event_id"): empty"#);
    }

    #[test]
    fn c32_a_header_of_kafka_is_called_as_it_is_spelt() {
        assert_eq!(reason(Message::builder().header("Event_Id", "x")), r#"header("event_id"): missing"#);
    }

    #[test]
    fn c32_a_header_of_http_is_called_the_same_in_any_letter_case() {
        let source = KeySource::HttpHeader("X-Shopify-Event-Id");
        for name in ["X-Shopify-Event-Id", "x-shopify-event-id", "X-SHOPIFY-EVENT-ID"] {
            assert_eq!(source.read(&Message::builder().header(name, "e-1").build()), Key::text("e-1"));
        }
    }

    #[test]
    fn a_header_of_http_that_is_there_in_two_letter_cases_is_repeated() {
        let message = Message::builder().header("X-Id", "a").header("x-id", "a").build();
        let error = KeySource::HttpHeader("x-id").read(&message).unwrap_err();
        assert_eq!(error.to_string(), r#"http_header("x-id"): repeated (2 headers of that name)"#);
    }

    #[test]
    fn a_repeated_header_is_refused_even_if_the_values_agree() {
        let message = Message::builder().header("event_id", "evt-1").header("event_id", "evt-1");
        assert_eq!(reason(message), r#"header("event_id"): repeated (2 headers of that name)"#);
    }
}
