use super::{Key, KeyError, KeySource};
use crate::message::{Excerpt, Message};

const BINARY: [KeySource; 2] = [KeySource::Header("ce_source"), KeySource::Header("ce_id")];
const STRUCTURED: [KeySource; 2] = [KeySource::Json("/source"), KeySource::Json("/id")];
const STRUCTURED_TYPE: &[u8] = b"application/cloudevents";

/// Reads `source` and `id` of a `CloudEvent`, from where its content mode puts them:
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md>
pub(super) fn read(message: &Message) -> Result<Key, KeyError> {
    let attributes = mode(message).map_err(|error| error.at(&KeySource::CloudEvents))?;
    let [source, id] = attributes.each_ref().map(|attribute| attribute.read(message));
    Key::composite([source?, id?]).map_err(|error| error.at(&KeySource::CloudEvents))
}

fn mode(message: &Message) -> Result<&'static [KeySource; 2], KeyError> {
    let headers = message.headers();
    let mut types =
        headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type")).map(|(_, value)| value);
    let content_type = types.next().flatten();
    if types.next().is_some() {
        return Err(KeyError::new("header \"content-type\" is repeated, so the content mode is not clear"));
    }

    let media_type = content_type.unwrap_or_default().split(|&byte| byte == b';').next().unwrap_or_default();
    let media_type = media_type.trim_ascii();
    let format = media_type
        .split_at_checked(STRUCTURED_TYPE.len())
        .and_then(|(start, format)| start.eq_ignore_ascii_case(STRUCTURED_TYPE).then_some(format));
    match format {
        Some(format) if format.eq_ignore_ascii_case(b"+json") => Ok(&STRUCTURED),
        Some(format) if format.to_ascii_lowercase().starts_with(b"-batch") => {
            Err(KeyError::new("batch mode is not supported: have the producer send one event a message"))
        }
        Some(_) => Err(KeyError::new(format!(
            "content type {} is not supported: of the structured formats only application/cloudevents+json is",
            Excerpt::text(media_type)
        ))),
        None if headers.iter().all(|(name, _)| !matches!(name, b"ce_source" | b"ce_id")) => {
            Err(KeyError::new(
                "headers ce_source and ce_id are missing, and no content type says that the payload is the \
                 event: have the producer send content-type application/cloudevents+json, or take \
                 key = json(\"/source\", \"/id\"), which gives the same keys",
            ))
        }
        None => Ok(&BINARY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageBuilder;

    const EVENT: &str = r#"{"specversion":"1.0","id":"1234","source":"/orders","type":"x","data":{}}"#;

    fn binary() -> MessageBuilder {
        sent_as("application/json").header("ce_specversion", "1.0").header("ce_type", "x")
    }

    fn sent_as(content_type: &str) -> MessageBuilder {
        Message::builder().header("content-type", content_type)
    }

    fn orders() -> Key {
        Key::composite([Key::text("/orders").unwrap(), Key::text("1234").unwrap()]).unwrap()
    }

    fn read_key(message: MessageBuilder) -> Result<Key, KeyError> {
        KeySource::CloudEvents.read(&message.build())
    }

    fn reason(message: MessageBuilder) -> String {
        read_key(message).unwrap_err().to_string()
    }

    #[test]
    fn c11_binary_mode_is_keyed_by_source_and_id() {
        assert_eq!(read_key(binary().header("ce_id", "1234").header("ce_source", "/orders")), Ok(orders()));
    }

    #[test]
    fn c11_structured_mode_has_the_same_key() {
        let message = Message::builder()
            .header("content-type", "application/cloudevents+json; charset=utf-8")
            .payload(EVENT);
        assert_eq!(read_key(message), Ok(orders()));
    }

    #[test]
    fn c11_letter_case_of_the_content_type_makes_no_difference() {
        let message =
            Message::builder().header("Content-Type", "Application/CloudEvents+JSON").payload(EVENT);
        assert_eq!(read_key(message), Ok(orders()));
    }

    #[test]
    fn c11_an_event_without_headers_gets_a_hint() {
        let reason = reason(Message::builder().payload(EVENT));
        assert!(reason.contains(r#"take key = json("/source", "/id")"#), "{reason}");
    }

    #[test]
    fn c11_the_hint_gives_the_key_of_structured_mode() {
        let hinted = KeySource::Composite(&[KeySource::Json("/source"), KeySource::Json("/id")]);
        assert_eq!(hinted.read(&Message::builder().payload(EVENT).build()), Ok(orders()));
    }

    #[test]
    fn c11_a_batch_is_never_one_key() {
        let message = Message::builder()
            .header("content-type", "application/CloudEvents-Batch+JSON")
            .payload(format!("[{EVENT},{EVENT}]"));
        let reason = reason(message);
        assert!(reason.contains("batch mode is not supported"), "{reason}");
    }

    #[test]
    fn c11_a_missing_attribute_is_named() {
        assert_eq!(reason(binary().header("ce_id", "1234")), r#"header("ce_source"): missing"#);
    }

    #[test]
    fn c11_a_repeated_attribute_is_named() {
        let message = binary().header("ce_source", "/orders").header("ce_id", "1").header("ce_id", "2");
        assert_eq!(reason(message), r#"header("ce_id"): repeated (2 headers of that name)"#);
    }

    #[test]
    fn c11_equal_ids_of_two_sources_are_two_events() {
        let from = |source| read_key(binary().header("ce_id", "1234").header("ce_source", source));
        assert_ne!(from("/orders"), from("/returns"));
    }

    #[test]
    fn the_content_type_decides_where_headers_repeat_the_attributes() {
        let message = sent_as("application/cloudevents+json").header("ce_id", "7").header("ce_source", "/x");
        assert_eq!(read_key(message.payload(EVENT)), Ok(orders()));
    }

    #[test]
    fn c11_attributes_of_structured_mode_are_named_too() {
        for (event, expected) in [
            (
                r#"{"id":"1234"}"#,
                r#"json("/source"): missing: no `source` in the payload, which is an object"#,
            ),
            (r#"{"id":"","source":"/orders"}"#, r#"json("/id"): empty"#),
            (
                r#"{"id":"1","id":"2","source":"/orders"}"#,
                r#"json("/id"): duplicate member on the key path: "#,
            ),
        ] {
            let reason = reason(sent_as("application/cloudevents+json").payload(event));
            assert!(reason.starts_with(expected), "{reason}");
        }
    }

    #[test]
    fn structured_mode_without_a_payload_is_told() {
        let reason = reason(sent_as("application/cloudevents+json"));
        assert_eq!(reason, r#"json("/source"): the payload is null (a tombstone)"#);
    }

    #[test]
    fn a_content_type_that_only_begins_like_one_of_cloudevents_is_not_guessed() {
        for content_type in
            ["application/cloudevents", "application/cloudevents+jsonl", "application/cloudeventsx"]
        {
            let reason = reason(sent_as(content_type).payload(EVENT));
            assert!(reason.contains("is not supported: of the structured formats only"), "{reason}");
        }
    }

    #[test]
    fn other_structured_formats_are_refused_by_name() {
        let reason =
            reason(Message::builder().header("content-type", "application/cloudevents+avro").payload(EVENT));
        assert!(reason.contains("`application/cloudevents+avro` is not supported"), "{reason}");
    }

    #[test]
    fn a_repeated_content_type_is_refused() {
        let message = binary().header("content-type", "application/cloudevents+json").payload(EVENT);
        let reason = reason(message);
        assert!(reason.contains("\"content-type\" is repeated"), "{reason}");
    }
}
