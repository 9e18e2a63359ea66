use std::fmt;

use super::{Key, KeyError, cloudevents, content_hash, header, json, message_key, position, unquoted, uuid};
use crate::message::Message;

/// Where a handler's key comes from; a constant that `#[idempotent]` writes.
///
/// Its [`Display`](fmt::Display) form is the key's definition as one writes it in the attribute. The
/// database remembers it: another definition would make every message new again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum KeySource {
    /// `header("event_id")`: exactly one header of that name, not null, not empty, UTF-8 without NUL.
    /// Other headers are not looked at. Byte for byte: a value in JSON quotes is another key.
    Header(&'static str),
    /// `http_header("X-Request-Id")`: the same for a header that came by HTTP and was handed on: the letter case
    /// of its name makes no difference, as HTTP has it and relays change it.
    HttpHeader(&'static str),
    /// `json("/order_id")`: a string or an integer literal in the payload, by RFC 6901 pointer. The key
    /// is the digits as written, so `1` and `"1"` are one key, and numbers of any size are told apart.
    Json(&'static str),
    /// `message_key`: the message's own key. Text where it is UTF-8 without NUL, else its bytes: keys
    /// are often binary.
    MessageKey,
    /// `cloudevents`: `source` and `id`, from the headers (binary mode) or the payload (structured mode,
    /// told by its content type). The same key as `json("/source", "/id")` has.
    CloudEvents,
    /// `content_hash(ignore = ["/trace_id"])`: SHA-256 of the payload as canonical JSON (RFC 8785) without what
    /// the pointers point to. The last resort: two events that say the same are one. Numbers count by their exact
    /// value, so `1`, `1.0` and `1e0` are one and no two ids are; where the RFC would round to a double the
    /// hash differs from the RFC's. A repeated member anywhere is refused.
    ContentHash(&'static [&'static str]),
    /// `position`: topic, partition and offset. Weaker: a producer's re-publish gets a new offset.
    Position,
    /// `uuid(…)`: the text key inside as a UUID of 16 bytes. Letter case, braces, `urn:uuid:` and missing
    /// hyphens make no difference, as they would in a text key; all zeros or all ones are refused.
    Uuid(&'static Self),
    /// `unquoted(…)`: the text key inside, out of the JSON string that it may be in: `"evt-9"` and `evt-9`
    /// are one key.
    Unquoted(&'static Self),
    /// `(…, …)`: several keys together, in this order.
    Composite(&'static [Self]),
    /// `with(path)`: a function of the user's.
    With(KeyFunction),
}

/// A user's own key function and the path it was named by.
#[derive(Clone, Copy)]
pub struct KeyFunction {
    /// As written in the attribute.
    pub path: &'static str,
    /// Reads the key; an error parks the message.
    pub read: fn(&Message) -> Result<Key, KeyError>,
}

impl KeySource {
    /// Reads the key of `message`.
    ///
    /// # Errors
    /// If it is missing, empty, repeated or unreadable. The reason names the part of the definition.
    pub fn read(&self, message: &Message) -> Result<Key, KeyError> {
        match self {
            // Their errors name the part that is at fault.
            Self::CloudEvents => return cloudevents::read(message),
            Self::Composite(parts) => {
                let parts: Vec<Key> =
                    parts.iter().map(|part| part.read(message)).collect::<Result<_, _>>()?;
                Key::composite(parts)
            }
            Self::Uuid(text) => uuid::parse(&text.read(message)?),
            Self::Unquoted(text) => unquoted::unquote(text.read(message)?),
            Self::Header(name) => header::read(name, message),
            Self::HttpHeader(name) => header::read_in_any_case(name, message),
            Self::ContentHash(ignored) => content_hash::read(ignored, message),
            Self::Json(pointer) => json::read(pointer, message),
            Self::MessageKey => message_key::read(message),
            Self::Position => position::read(message),
            Self::With(function) => (function.read)(message),
        }
        .map_err(|error| error.at(self))
    }

    /// Whether a message without a payload (a tombstone) can never have this key. The consumer's
    /// `on_tombstone` then decides before the key is read.
    #[must_use]
    pub const fn needs_payload(&self) -> bool {
        match self {
            Self::Json(_) | Self::ContentHash(_) => true,
            Self::Uuid(inner) | Self::Unquoted(inner) => inner.needs_payload(),
            Self::Composite(parts) => {
                let mut parts = *parts;
                while let [first, rest @ ..] = parts {
                    if first.needs_payload() {
                        return true;
                    }
                    parts = rest;
                }
                false
            }
            Self::Header(_)
            | Self::HttpHeader(_)
            | Self::MessageKey
            | Self::CloudEvents
            | Self::Position
            | Self::With(_) => false,
        }
    }
}

impl fmt::Debug for KeyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyFunction").field(&self.path).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: KeySource = KeySource::With(KeyFunction { path: "my::path", read: |_| Key::text("x") });

    #[test]
    fn a_payload_is_needed_where_any_part_is_read_from_it() {
        const PARTS: KeySource =
            KeySource::Composite(&[KeySource::Header("doc"), KeySource::Uuid(&KeySource::Json("/line"))]);
        const { assert!(PARTS.needs_payload() && KeySource::ContentHash(&[]).needs_payload()) }
    }

    #[test]
    fn no_payload_is_needed_for_what_stands_outside_of_it() {
        const PARTS: KeySource = KeySource::Composite(&[
            KeySource::Uuid(&KeySource::Unquoted(&KeySource::Header("doc"))),
            KeySource::HttpHeader("doc"),
            KeySource::MessageKey,
            KeySource::Position,
            KeySource::CloudEvents,
            WITH,
        ]);
        const { assert!(!PARTS.needs_payload()) }
    }

    #[test]
    fn an_error_of_a_users_function_names_the_function() {
        let source =
            KeySource::With(KeyFunction { path: "my::path", read: |_| Err(KeyError::new("no customer")) });
        let error = source.read(&Message::builder().build()).unwrap_err();
        assert_eq!(error.to_string(), "with(my::path): no customer");
    }

    const PAIR: KeySource = KeySource::Composite(&[KeySource::Header("doc"), KeySource::Json("/line")]);

    fn pair(doc: &str, payload: &str) -> Result<Key, KeyError> {
        PAIR.read(&Message::builder().header("doc", doc).payload(payload).build())
    }

    #[test]
    fn c09_parts_are_read_in_the_order_of_the_definition() {
        let turned = KeySource::Composite(&[KeySource::Json("/line"), KeySource::Header("doc")]);
        let message = Message::builder().header("doc", "1").payload(r#"{"line":2}"#).build();
        assert_ne!(PAIR.read(&message).unwrap(), turned.read(&message).unwrap());
    }

    #[test]
    fn c09_a_number_and_its_digits_are_one_part() {
        assert_eq!(pair("1", r#"{"line":2}"#).unwrap(), pair("1", r#"{"line":"2"}"#).unwrap());
    }

    #[test]
    fn c09_a_missing_part_is_named() {
        let error = pair("x", "{}").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"json("/line"): missing: no `line` in the payload, which is an object"#
        );
    }

    #[test]
    fn c09_an_empty_part_is_named() {
        assert_eq!(pair("", r#"{"line":"y"}"#).unwrap_err().to_string(), r#"header("doc"): empty"#);
    }
}
