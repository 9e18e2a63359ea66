use super::{Key, KeyError, Value};
use crate::message::Excerpt;

/// Takes a text key out of the JSON string that it may be in: some producers' mappers write headers and keys
/// as JSON, so that one id comes with quotes and without.
pub(super) fn unquote(key: Key) -> Result<Key, KeyError> {
    let Value::Text(text) = &key.0 else { return Ok(key) };
    if !text.starts_with('"') {
        return Ok(key);
    }
    match serde_json::from_str::<String>(text) {
        Ok(unquoted) if text.ends_with('"') => Key::text(&unquoted),
        _ => {
            let text = Excerpt::text(text.as_bytes());
            Err(KeyError::new(format!("begins with a quote and is not a JSON string: {text}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::key::{Key, KeyError, KeySource};
    use crate::message::Message;

    const SOURCE: KeySource = KeySource::Unquoted(&KeySource::Header("event_id"));

    fn read(id: impl AsRef<[u8]>) -> Result<Key, KeyError> {
        SOURCE.read(&Message::builder().header("event_id", id).build())
    }

    fn reason(id: &str) -> String {
        read(id).unwrap_err().to_string()
    }

    #[test]
    fn c04_an_id_in_json_quotes_is_the_id_without_them() {
        assert_eq!(read(r#""evt-9""#), read("evt-9"));
        assert_eq!(read(r#""evt\u002d9""#), read("evt-9"));
    }

    #[test]
    fn c04_a_uuid_in_json_quotes_is_that_uuid() {
        let source = KeySource::Uuid(&SOURCE);
        let key = |id| source.read(&Message::builder().header("event_id", id).build()).unwrap();
        let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        assert_eq!(key(format!("\"{id}\"")), key(id.to_owned()));
    }

    #[test]
    fn c04_a_lone_quote_is_refused_and_not_repaired() {
        for id in ["\"evt", "\"", "\"evt\" ", "\"evt\"\""] {
            let reason = reason(id);
            assert!(reason.contains("begins with a quote and is not a JSON string: `"), "{id}: {reason}");
        }
    }

    #[test]
    fn c04_a_quote_elsewhere_is_part_of_the_id() {
        assert_eq!(read("evt\""), Key::text("evt\""));
    }

    #[test]
    fn c06_nothing_in_quotes_is_empty() {
        assert_eq!(reason("\"\""), r#"unquoted(header("event_id")): empty"#);
    }

    #[test]
    fn c01_a_nul_byte_in_quotes_is_refused() {
        assert!(reason(r#""evt\u0000""#).contains("NUL byte"));
    }

    #[test]
    fn bytes_are_left_as_they_are() {
        let source = KeySource::Unquoted(&KeySource::MessageKey);
        let key = source.read(&Message::builder().key([0xff, b'"']).build());
        assert_eq!(key, Key::bytes(&[0xff, b'"']));
    }
}
