use ::uuid::Uuid;

use super::{Key, KeyError, Value};
use crate::message::Excerpt;

/// Reads a text key as a UUID.
pub(super) fn parse(key: &Key) -> Result<Key, KeyError> {
    let Value::Text(text) = &key.0 else {
        return Err(KeyError::new(match &key.0 {
            Value::Bytes(bytes) => format!("not a UUID: {} is not text", Excerpt::hex(bytes)),
            _ => "not a UUID: the key is not text".to_owned(),
        }));
    };
    match Uuid::try_parse(text) {
        Ok(uuid) => Key::uuid(uuid),
        Err(_) if is_json_quoted(text) => Err(KeyError::new(format!(
            "not a UUID: the value is JSON-quoted ({text}), as some producers' header mappers do; have it \
             sent without quotes, or say `uuid(unquoted(…))`",
            text = Excerpt::text(text.as_bytes()),
        ))),
        Err(_) => Err(KeyError::new(format!("not a UUID: {}", Excerpt::text(text.as_bytes())))),
    }
}

fn is_json_quoted(text: &str) -> bool {
    text.len() > 1 && text.starts_with('"') && text.ends_with('"')
}

#[cfg(test)]
mod tests {
    use crate::key::{Key, KeyError, KeySource};
    use crate::message::Message;

    const SOURCE: KeySource = KeySource::Uuid(&KeySource::Header("event_id"));

    fn read(id: &str) -> Result<Key, KeyError> {
        SOURCE.read(&Message::builder().header("event_id", id).build())
    }

    #[test]
    fn c03_spellings_of_one_uuid_are_one_key() {
        let spellings = [
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
            "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}",
            "6ba7b8109dad11d180b400c04fd430c8",
            "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        ];
        let keys = spellings.map(|spelling| read(spelling).unwrap().to_string());
        assert_eq!(keys, [spellings[0]; 5]);
    }

    #[test]
    fn c03_other_spellings_are_not_a_uuid() {
        let spellings = [
            "6ba7-b810-9dad-11d1-80b4-00c0-4fd4-30c8",
            " 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8\n",
        ];
        for spelling in spellings {
            let reason = read(spelling).unwrap_err().to_string();
            assert!(reason.contains("not a UUID"), "{spelling:?}: {reason}");
        }
    }

    #[test]
    fn c03_all_zeros_are_a_placeholder() {
        // There is no option to let them pass: it would make one event of all that have no id. Who means the
        // zeros has a text key for them.
        assert_eq!(
            read("00000000-0000-0000-0000-000000000000").unwrap_err().to_string(),
            "uuid(header(\"event_id\")): 00000000-0000-0000-0000-000000000000 is a placeholder, not an id"
        );
    }

    #[test]
    fn c04_a_uuid_in_json_quotes_is_told() {
        let reason = read("\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"").unwrap_err().to_string();
        assert!(reason.contains("the value is JSON-quoted"), "{reason}");
        assert!(reason.ends_with("say `uuid(unquoted(…))`"), "{reason}");
    }

    #[test]
    fn c04_a_lone_quote_is_not_json() {
        let reason = read("\"6ba7b810-9dad-11d1-80b4-00c04fd430c8").unwrap_err().to_string();
        assert!(!reason.contains("JSON"), "{reason}");
    }

    #[test]
    fn c07_an_integer_is_not_a_uuid() {
        let source = KeySource::Uuid(&KeySource::Json("/id"));
        let error = source.read(&Message::builder().payload(r#"{"id":17}"#).build()).unwrap_err();
        assert_eq!(error.to_string(), "uuid(json(\"/id\")): not a UUID: `17`");
    }

    #[test]
    fn bytes_are_not_a_uuid_even_if_they_are_16() {
        let source = KeySource::Uuid(&KeySource::MessageKey);
        let error = source.read(&Message::builder().key([0xff; 16]).build()).unwrap_err();
        assert!(error.to_string().ends_with("is not text"), "{error}");
    }

    #[test]
    fn a_long_key_that_is_not_a_uuid_is_told_in_short() {
        for key in [vec![b'a'; 4096], vec![0xff; 4096]] {
            let source = KeySource::Uuid(&KeySource::MessageKey);
            let reason = source.read(&Message::builder().key(key).build()).unwrap_err().to_string();
            assert!(reason.contains("(4096 bytes)") && reason.len() < 200, "{reason}");
        }
    }

    #[test]
    fn an_error_of_the_inner_key_names_the_inner_key() {
        let error = SOURCE.read(&Message::builder().build()).unwrap_err();
        assert_eq!(error.to_string(), "header(\"event_id\"): missing");
    }
}
