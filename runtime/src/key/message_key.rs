use super::{Key, KeyError};
use crate::message::Message;

/// Reads the message's own key.
pub(super) fn read(message: &Message) -> Result<Key, KeyError> {
    let key = message.key().ok_or_else(|| KeyError::new("null"))?;
    match std::str::from_utf8(key) {
        // A NUL means that the key is not text: numbers in binary are full of them.
        Ok(text) if !text.contains('\0') => Key::text(text),
        _ => Key::bytes(key),
    }
}

#[cfg(test)]
mod tests {
    use crate::key::{Key, KeyError, KeySource};
    use crate::message::Message;

    fn read(key: impl AsRef<[u8]>) -> Result<Key, KeyError> {
        KeySource::MessageKey.read(&Message::builder().key(key).build())
    }

    #[test]
    fn a_text_is_a_text_key() {
        assert_eq!(read("order-7"), Key::text("order-7"));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_a_bytes_key() {
        assert_eq!(read([0xc3, 0x28]), Key::bytes(&[0xc3, 0x28]));
    }

    #[test]
    fn a_number_in_binary_is_a_bytes_key() {
        assert_eq!(read(7_i64.to_be_bytes()), Key::bytes(&7_i64.to_be_bytes()));
    }

    #[test]
    fn c02_a_key_of_2_mb_is_refused() {
        let error = read(vec![b'a'; 2_000_000]).unwrap_err();
        assert_eq!(error.to_string(), "message_key: key too long (2000000 bytes, limit 4096)");
    }

    #[test]
    fn c06_a_null_key_is_told() {
        let error = KeySource::MessageKey.read(&Message::builder().build()).unwrap_err();
        assert_eq!(error.to_string(), "message_key: null");
    }

    #[test]
    fn c06_an_empty_key_is_told() {
        assert_eq!(read("").unwrap_err().to_string(), "message_key: empty");
    }
}
