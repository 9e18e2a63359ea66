use std::fmt::Write;

/// Bytes from a message, safe for a terminal: text as it is, except for control characters, which could
/// move the cursor or worse; other bytes escaped.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\n' | '\t' => out.push(char),
                char if char.is_control() => out.extend(char.escape_default()),
                char => out.push(char),
            }
        }
        out.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    out
}

/// The beginning of a text, on one line.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let text = printable(text.as_bytes()).split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Bytes as a JSON value that loses nothing: `{"text": …}`, or `{"hex": …}` where they are not UTF-8.
pub(super) fn lossless(bytes: &[u8]) -> serde_json::Value {
    match str::from_utf8(bytes) {
        Ok(text) => serde_json::json!({ "text": text }),
        Err(_) => serde_json::json!({ "hex": hex(bytes) }),
    }
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        // Writing to a String cannot fail.
        let _written = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_cannot_drive_the_terminal() {
        assert_eq!(printable("né\n\u{1b}[2J\u{9b}\r".as_bytes()), "né\n\\u{1b}[2J\\u{9b}\\r");
    }

    #[test]
    fn bytes_that_are_not_text_are_escaped_and_text_among_them_is_not() {
        assert_eq!(printable(b"a\xff\x00b"), r"a\xff\u{0}b");
    }

    #[test]
    fn an_error_of_many_lines_fits_into_a_table() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("ééééé", 3), "ééé…");
    }

    #[test]
    fn no_byte_is_lost_in_json() {
        assert_eq!(lossless("é\0".as_bytes()), serde_json::json!({ "text": "é\0" }));
        assert_eq!(lossless(b"a\xff"), serde_json::json!({ "hex": "61ff" }));
    }
}
