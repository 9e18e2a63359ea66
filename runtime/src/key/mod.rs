//! What identifies a message to a consumer, and where it is read from.

mod canonical;
mod cloudevents;
mod content_hash;
mod definition;
mod display;
mod document;
mod error;
mod header;
mod json;
mod message_key;
mod number;
mod pointer;
mod position;
mod source;
mod stored;
mod unquoted;
mod uuid;

use ::uuid::Uuid;

use crate::message::Excerpt;

pub use error::KeyError;
pub use source::{KeyFunction, KeySource};
#[cfg(feature = "cli")]
pub(crate) use stored::Kind;

/// What identifies a message to one consumer: a UUID, text, bytes, a hash, or several keys together.
///
/// Never empty and never longer than [`Key::LIMIT`]. Its [`Display`](std::fmt::Display) form is for
/// people and for services outside the database: a UUID in hyphenated lower case, text as it is, bytes in
/// hexadecimal, a content hash as `h1:` (its version) and hexadecimal; several keys are joined by `/`, with `~`
/// and `/` inside them written `~0` and `~1` as in RFC 6901.
///
/// ```
/// use handstamp::{Key, KeyError, Message};
///
/// // For `key = with(invoice)`: the message key is the customer, the payload begins with a number.
/// fn invoice(message: &Message) -> Result<Key, KeyError> {
///     let customer = message.key().ok_or_else(|| KeyError::new("no message key"))?;
///     let payload = message.payload().ok_or_else(|| KeyError::new("no payload"))?;
///     let number = payload.get(..4).ok_or_else(|| KeyError::new("payload shorter than 4 bytes"))?;
///     Key::composite([Key::bytes(customer)?, Key::bytes(number)?])
/// }
///
/// let message = Message::builder().key([7]).payload([0, 0, 1, 255, 99]).build();
/// assert_eq!(invoice(&message)?.to_string(), "07/000001ff");
/// # Ok::<(), KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(Value);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Value {
    Uuid(Uuid),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    ContentHash([u8; 32]),
    Composite(Box<[Key]>),
}

impl Key {
    /// The most bytes a key may have; a composite has five more for each part.
    ///
    /// One limit for all, tested before any SQL: what an index can hold depends on how well a value
    /// compresses.
    pub const LIMIT: usize = 4096;

    /// A key of text, byte for byte: no letter case or spelling is taken for another.
    ///
    /// # Errors
    /// If it is empty, longer than [`Key::LIMIT`], or holds a NUL byte, which no database's text can.
    pub fn text(text: &str) -> Result<Self, KeyError> {
        bounded(text.len())?;
        if text.contains('\0') {
            return Err(KeyError::new(format!("NUL byte in {}", Excerpt::text(text.as_bytes()))));
        }
        Ok(Self(Value::Text(text.into())))
    }

    /// A key of any bytes.
    ///
    /// # Errors
    /// If there are none, or more than [`Key::LIMIT`].
    pub fn bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        bounded(bytes.len())?;
        Ok(Self(Value::Bytes(bytes.into())))
    }

    /// A key of 16 bytes, the smallest to remember.
    ///
    /// # Errors
    /// If it is all zeros or all ones: every message with such a placeholder would be one event.
    pub fn uuid(uuid: Uuid) -> Result<Self, KeyError> {
        if uuid.is_nil() || uuid.is_max() {
            return Err(KeyError::new(format!("{uuid} is a placeholder, not an id")));
        }
        Ok(Self(Value::Uuid(uuid)))
    }

    /// Several keys together. Their order matters, and no two lists of parts give the same key.
    ///
    /// # Errors
    /// If there are none, or they are together longer than [`Key::LIMIT`].
    pub fn composite(parts: impl IntoIterator<Item = Self>) -> Result<Self, KeyError> {
        let key = Self(Value::Composite(parts.into_iter().collect()));
        bounded(key.length())?;
        Ok(key)
    }
}

fn bounded(length: usize) -> Result<(), KeyError> {
    match length {
        0 => Err(KeyError::new("empty")),
        1..=Key::LIMIT => Ok(()),
        _ => Err(KeyError::new(format!("key too long ({length} bytes, limit {})", Key::LIMIT))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(key: Result<Key, KeyError>) -> String {
        key.unwrap_err().to_string()
    }

    #[test]
    fn c01_text_with_a_nul_byte_is_refused_and_not_shortened() {
        assert_eq!(reason(Key::text("evt\x001")), r"NUL byte in `evt\x001`");
    }

    #[test]
    fn c02_a_key_at_the_limit_is_a_key() {
        assert!(Key::text(&"a".repeat(Key::LIMIT)).is_ok());
    }

    #[test]
    fn c02_a_key_over_the_limit_is_refused_whatever_it_holds() {
        let long = "a".repeat(Key::LIMIT + 1);
        let refused = "key too long (4097 bytes, limit 4096)";
        assert_eq!(reason(Key::text(&long)), refused);
        assert_eq!(reason(Key::bytes(long.as_bytes())), refused);
    }

    #[test]
    fn c09_the_limit_is_for_the_whole_of_a_composite() {
        let part = || Key::text(&"a".repeat(2048));
        let key = Key::composite([part().unwrap(), part().unwrap()]);
        assert_eq!(reason(key), "key too long (4106 bytes, limit 4096)");
    }

    #[test]
    fn c06_an_empty_key_is_refused_in_every_kind() {
        let keys = [Key::text(""), Key::bytes(&[]), Key::composite([])];
        assert_eq!(keys.map(reason), ["empty"; 3]);
    }

    #[test]
    fn c03_placeholders_are_not_ids() {
        let reasons = [Uuid::nil(), Uuid::max()].map(|uuid| reason(Key::uuid(uuid)));
        assert!(reasons.iter().all(|reason| reason.contains("is a placeholder, not an id")), "{reasons:?}");
    }
}
