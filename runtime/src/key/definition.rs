use std::fmt::{self, Write};

use super::KeySource;

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header({})", Literal(name)),
            Self::Json(pointer) => write!(f, "json({})", Literal(pointer)),
            Self::HttpHeader(name) => write!(f, "http_header({})", Literal(name)),
            Self::ContentHash([]) => f.write_str("content_hash"),
            Self::ContentHash(ignored) => {
                // In one order, whatever they were written in: it makes no other key.
                let mut ignored: Vec<String> =
                    ignored.iter().map(|pointer| Literal(pointer).to_string()).collect();
                ignored.sort();
                write!(f, "content_hash(ignore = [{}])", ignored.join(", "))
            }
            Self::MessageKey => f.write_str("message_key"),
            Self::CloudEvents => f.write_str("cloudevents"),
            Self::Position => f.write_str("position"),
            Self::Uuid(inner) => write!(f, "uuid({inner})"),
            Self::Unquoted(inner) => write!(f, "unquoted({inner})"),
            Self::With(function) => write!(f, "with({})", function.path),
            Self::Composite([only]) => write!(f, "({only},)"),
            Self::Composite(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if index == 0 { "(" } else { ", " })?;
                }
                f.write_char(')')
            }
        }
    }
}

/// A string literal. Not `{:?}`: what that escapes follows the Unicode tables of the compiler, and a
/// definition that changes with the compiler would be refused at start.
struct Literal<'a>(&'a str);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                char if char.is_control() => write!(f, "{}", char.escape_unicode())?,
                char => f.write_char(char)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, KeyFunction};

    /// Compares with a definition that databases remember. If it fails, do not change the expected text:
    /// every consumer with such a key would be refused at start.
    #[track_caller]
    fn pinned(source: KeySource, definition: &str) {
        assert_eq!(source.to_string(), definition);
    }

    #[test]
    fn definitions_read_as_written_in_the_attribute() {
        pinned(KeySource::Header("event_id"), r#"header("event_id")"#);
        pinned(KeySource::Json("/data/id"), r#"json("/data/id")"#);
        pinned(KeySource::HttpHeader("X-Id"), r#"http_header("X-Id")"#);
        pinned(KeySource::MessageKey, "message_key");
        pinned(KeySource::CloudEvents, "cloudevents");
        pinned(KeySource::Position, "position");
        pinned(KeySource::ContentHash(&[]), "content_hash");
        pinned(KeySource::With(KeyFunction { path: "my::path", read: |_| Key::text("x") }), "with(my::path)");
    }

    #[test]
    fn the_order_of_what_is_ignored_is_no_part_of_the_definition() {
        let definition = r#"content_hash(ignore = ["/sent/at", "/trace_id"])"#;
        pinned(KeySource::ContentHash(&["/sent/at", "/trace_id"]), definition);
        pinned(KeySource::ContentHash(&["/trace_id", "/sent/at"]), definition);
    }

    #[test]
    fn definitions_nest_as_written_in_the_attribute() {
        pinned(KeySource::Uuid(&KeySource::Header("event_id")), r#"uuid(header("event_id"))"#);
        pinned(
            KeySource::Composite(&[KeySource::Header("doc"), KeySource::Json("/line")]),
            r#"(header("doc"), json("/line"))"#,
        );
        pinned(KeySource::Uuid(&KeySource::Unquoted(&KeySource::MessageKey)), "uuid(unquoted(message_key))");
        pinned(KeySource::Composite(&[KeySource::MessageKey]), "(message_key,)");
    }

    #[test]
    fn definitions_stay_on_one_line_and_keep_their_quotes() {
        pinned(KeySource::Header("a\"b\\c\né"), r#"header("a\"b\\c\u{a}é")"#);
    }
}
