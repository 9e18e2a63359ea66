use std::any;
use std::fmt::Display;
use std::str::Utf8Error;

use serde_json::error::Category;

use super::Excerpt;

/// Why a payload cannot be read in the form that a handler or its key asks for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("no payload (a tombstone): take an `Option<…>` to handle it")]
    NoPayload,
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("JSON, but not a `{wanted}`: {error}")]
    OtherJson { wanted: &'static str, error: serde_json::Error },
    #[error("not UTF-8 text: {error} (first bytes {first_bytes})")]
    NotText { first_bytes: String, error: Utf8Error },
}

impl DecodeError {
    /// Tells a payload that is no JSON from one that is no `T`.
    pub(crate) fn json<T>(payload: &[u8], error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Syntax | Category::Eof => Self::not_json(payload, &error),
            Category::Data | Category::Io => Self::OtherJson { wanted: any::type_name::<T>(), error },
        }
    }

    /// Says what the payload looks like, where its first bytes tell more than the parser does.
    pub(crate) fn not_json(payload: &[u8], error: &dyn Display) -> Self {
        let first_bytes = Excerpt::hex(payload);
        Self::NotJson(match payload {
            [] => "the payload is empty (0 bytes)".to_owned(),
            [0, id @ ..] if let Some(id) = id.first_chunk() => {
                let id = u32::from_be_bytes(*id);
                format!("first byte 0x00, looks like schema-registry framing, schema id {id}")
            }
            [0xef, 0xbb, 0xbf, ..] | [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                format!(
                    "begins with a byte order mark (first bytes {first_bytes}); JSON is UTF-8 without one"
                )
            }
            _ => format!("{error} (first bytes {first_bytes})"),
        })
    }

    pub(crate) fn not_text(payload: &[u8], error: Utf8Error) -> Self {
        Self::NotText { first_bytes: Excerpt::hex(payload).to_string(), error }
    }
}

#[cfg(test)]
mod tests {
    use crate::key::Key;
    use crate::message::{FromMessage, Json, Message, Payload, Text};

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Deposit {
        account_id: i64,
    }

    fn read<T: FromMessage>(payload: impl AsRef<[u8]>) -> Result<T, String> {
        from(&Message::builder().payload(payload).build())
    }

    fn from<T: FromMessage>(message: &Message) -> Result<T, String> {
        T::from_message(message, &Key::text("evt-1").unwrap()).map_err(|error| error.to_string())
    }

    fn reason(payload: impl AsRef<[u8]>) -> String {
        read::<Json<Deposit>>(payload).unwrap_err()
    }

    #[test]
    fn c12_a_tombstone_is_none() {
        assert_eq!(from::<Option<Json<Deposit>>>(&Message::builder().build()), Ok(None));
    }

    #[test]
    fn c12_an_empty_payload_is_not_none() {
        let error = read::<Option<Json<Deposit>>>("").unwrap_err();
        assert_eq!(error, "not JSON: the payload is empty (0 bytes)");
    }

    #[test]
    fn c12_a_tombstone_is_told_where_a_payload_is_needed() {
        let tombstone = Message::builder().build();
        let reasons = [
            from::<Json<Deposit>>(&tombstone).unwrap_err(),
            from::<Text>(&tombstone).unwrap_err(),
            from::<Payload>(&tombstone).unwrap_err(),
        ];
        assert_eq!(reasons, ["no payload (a tombstone): take an `Option<…>` to handle it"; 3]);
    }

    #[test]
    fn c13_registry_framing_is_recognised() {
        assert_eq!(
            reason(b"\x00\x00\x00\x00\x2a\x02\x06abc"),
            "not JSON: first byte 0x00, looks like schema-registry framing, schema id 42"
        );
    }

    #[test]
    fn c13_one_zero_byte_is_shown_in_hexadecimal() {
        assert_eq!(reason([0]), "not JSON: expected value at line 1 column 1 (first bytes 00)");
    }

    #[test]
    fn c13_a_byte_order_mark_is_named() {
        let reasons =
            [&b"\xef\xbb\xbf{\"account_id\":7}"[..], b"\xff\xfe{\0}\0", b"\xfe\xff\0{\0}"].map(reason);
        assert!(reasons.iter().all(|reason| reason.contains("byte order mark (first bytes ")), "{reasons:?}");
    }

    #[test]
    fn c13_raw_bytes_are_handed_over_untouched() {
        let framed = b"\x00\x00\x00\x00\x2a\x02\x06abc";
        assert_eq!(read(framed), Ok(Payload(framed[..].into())));
    }

    #[test]
    fn json_of_another_shape_is_not_called_no_json() {
        let reason = reason("{}");
        assert!(reason.starts_with("JSON, but not a `"), "{reason}");
        assert!(reason.ends_with("::Deposit`: missing field `account_id` at line 1 column 2"), "{reason}");
    }

    #[test]
    fn c08_a_repeated_field_is_a_decode_error() {
        let reason = reason(r#"{"account_id":1,"account_id":2}"#);
        assert!(reason.contains("duplicate field `account_id`"), "{reason}");
    }

    #[test]
    fn text_that_is_not_utf_8_is_shown_in_hexadecimal() {
        assert_eq!(
            read::<Text>(b"a\xc3\x28").unwrap_err(),
            "not UTF-8 text: invalid utf-8 sequence of 1 bytes from index 1 (first bytes 61c328)"
        );
    }

    #[test]
    fn an_empty_payload_is_an_empty_text() {
        assert_eq!(read(""), Ok(Text(String::new())));
    }
}
