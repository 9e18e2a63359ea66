use std::fmt::{self, Write};

use super::{Key, Value};

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::Uuid(uuid) => write!(f, "Uuid({uuid})"),
            Value::Text(text) => write!(f, "Text({text:?})"),
            Value::Bytes(_) => write!(f, "Bytes({self})"),
            Value::ContentHash(_) => write!(f, "ContentHash({self})"),
            Value::Composite(parts) => f.debug_tuple("Composite").field(parts).finish(),
        }
    }
}

impl Key {
    fn show(&self, out: &mut dyn Write) -> fmt::Result {
        match &self.0 {
            Value::Uuid(uuid) => write!(out, "{uuid}"),
            Value::Text(text) => out.write_str(text),
            Value::Bytes(bytes) => hex(bytes, out),
            Value::ContentHash(hash) => {
                out.write_str("h1:")?;
                hex(hash, out)
            }
            Value::Composite(parts) => parts.iter().enumerate().try_for_each(|(index, part)| {
                if index > 0 {
                    out.write_char('/')?;
                }
                part.show(&mut Part(out))
            }),
        }
    }
}

fn hex(bytes: &[u8], out: &mut dyn Write) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Escapes what separates parts, so that the joined form can be taken apart again.
struct Part<'a>(&'a mut dyn Write);

impl Write for Part<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|char| match char {
            '~' => self.0.write_str("~0"),
            '/' => self.0.write_str("~1"),
            _ => self.0.write_char(char),
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn text(text: &str) -> Key {
        Key::text(text).unwrap()
    }

    #[test]
    fn a_uuid_is_shown_hyphenated_in_lower_case() {
        let key = Key::uuid(Uuid::from_u128(0x0199_AAAA_0000_7000_8000_0000_0000_00FF)).unwrap();
        assert_eq!(key.to_string(), "0199aaaa-0000-7000-8000-0000000000ff");
    }

    #[test]
    fn text_is_shown_as_it_is() {
        assert_eq!(text("orders/7~é").to_string(), "orders/7~é");
    }

    #[test]
    fn bytes_are_shown_in_hexadecimal() {
        assert_eq!(Key::bytes(&[0, 255, 16]).unwrap().to_string(), "00ff10");
    }

    #[test]
    fn c10_a_content_hash_is_shown_with_its_version() {
        assert_eq!(Key(Value::ContentHash([0xab; 32])).to_string(), format!("h1:{}", "ab".repeat(32)));
    }

    #[test]
    fn c09_a_composite_is_shown_so_that_it_can_be_taken_apart() {
        let key = Key::composite([text("a/b"), text("~1"), text("c")]).unwrap();
        assert_eq!(key.to_string(), "a~1b/~01/c");
    }

    #[test]
    fn c09_a_composite_in_a_composite_can_be_taken_apart() {
        let inner = Key::composite([text("a/b"), text("c")]).unwrap();
        assert_eq!(Key::composite([inner, text("d")]).unwrap().to_string(), "a~01b~1c/d");
    }

    #[test]
    fn the_debug_form_escapes_and_tells_the_kind() {
        let key = Key::composite([text("a\nb"), Key::bytes(&[7]).unwrap()]).unwrap();
        assert_eq!(format!("{key:?}"), r#"Composite([Text("a\nb"), Bytes(07)])"#);
    }
}
