use std::fmt;

/// The beginning of bytes from a message, safe to show in an error however long and strange they are.
pub(crate) struct Excerpt<'a> {
    bytes: &'a [u8],
    form: Form,
}

enum Form {
    Hex,
    Text,
}

impl<'a> Excerpt<'a> {
    /// The first bytes in hexadecimal.
    pub(crate) fn hex(bytes: &'a [u8]) -> Self {
        Self { bytes, form: Form::Hex }
    }

    /// The first bytes as text in backquotes, with everything but printable ASCII escaped.
    pub(crate) fn text(bytes: &'a [u8]) -> Self {
        Self { bytes, form: Form::Text }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self.form {
            Form::Hex => 16,
            Form::Text => 64,
        };
        let (shown, rest) = self.bytes.split_at(self.bytes.len().min(limit));
        match self.form {
            Form::Hex => shown.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?,
            Form::Text => write!(f, "`{}`", shown.escape_ascii())?,
        }
        if rest.is_empty() { Ok(()) } else { write!(f, "… ({} bytes)", self.bytes.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_bounded() {
        assert_eq!(Excerpt::hex(&[0xab; 17]).to_string(), format!("{}… (17 bytes)", "ab".repeat(16)));
    }

    #[test]
    fn text_is_bounded() {
        assert_eq!(Excerpt::text(&[b'a'; 65]).to_string(), format!("`{}`… (65 bytes)", "a".repeat(64)));
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(Excerpt::text(b"evt\0\n\xff").to_string(), r"`evt\x00\n\xff`");
    }
}
