use super::document::Document;
use super::pointer::{Child, child};
use super::{Key, KeyError};
use crate::message::{Excerpt, Message};

/// Reads the string or the integer literal at `pointer` (RFC 6901) from the payload's own bytes.
///
/// No value model stands between: one would round numbers and drop all but one of equal members, and
/// which it does depends on features that other crates turn on.
pub(super) fn read(pointer: &str, message: &Message) -> Result<Key, KeyError> {
    let Some(path) = pointer.strip_prefix('/') else {
        return Err(KeyError::new("not a JSON pointer: it begins with `/`"));
    };
    let document = Document::of(message)?;
    let mut value = document.text().trim_start_matches([' ', '\t', '\n', '\r']);
    let mut walked = 0;
    for token in path.split('/') {
        match child(value, token).map_err(|error| document.not_json(&error))? {
            Child::Once(child) => value = child,
            Child::Repeated => {
                return Err(KeyError::new(format!(
                    "duplicate member on the key path: `{token}` is there more than once, and parsers differ \
                     in which one they take"
                )));
            }
            Child::Missing => {
                let parent = if walked == 0 { "the payload" } else { &pointer[..walked] };
                let kind = kind(value);
                return Err(KeyError::new(format!("missing: no `{token}` in {parent}, which is {kind}")));
            }
        }
        walked += 1 + token.len();
    }
    leaf(value)
}

fn leaf(json: &str) -> Result<Key, KeyError> {
    match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => Key::text(&text),
            Err(error) => Err(KeyError::new(format!("not a string of Unicode text: {error}"))),
        },
        Some(b'-' | b'0'..=b'9') => {
            let digits = json.strip_prefix('-').unwrap_or(json);
            if json == "-0" || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let literal = Excerpt::text(json.as_bytes());
                return Err(KeyError::new(format!("{literal} is not an integer literal")));
            }
            Key::text(json)
        }
        Some(b'n') => Err(KeyError::new("null")),
        Some(b't' | b'f') => Err(KeyError::new("a boolean where a string or an integer is needed")),
        _ => {
            Err(KeyError::new(format!("not a scalar: {} where a string or an integer is needed", kind(json))))
        }
    }
}

fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::key::{Key, KeyError, KeySource};
    use crate::message::Message;

    fn read(pointer: &'static str, payload: impl AsRef<[u8]>) -> Result<Key, KeyError> {
        KeySource::Json(pointer).read(&Message::builder().payload(payload).build())
    }

    #[track_caller]
    fn refused(payload: impl AsRef<[u8]>, reason: &str) {
        assert_eq!(read("/id", payload).unwrap_err().to_string(), format!("json(\"/id\"): {reason}"));
    }

    #[test]
    fn c01_a_nul_byte_in_a_string_is_refused() {
        refused(r#"{"id":"evt\u00001"}"#, r"NUL byte in `evt\x001`");
    }

    #[test]
    fn c06_a_missing_member_is_told() {
        refused("{}", "missing: no `id` in the payload, which is an object");
    }

    #[test]
    fn c06_an_array_root_is_told() {
        refused("[1]", "missing: no `id` in the payload, which is an array");
    }

    #[test]
    fn c06_a_scalar_root_is_told() {
        refused("17", "missing: no `id` in the payload, which is a number");
    }

    #[test]
    fn c06_a_missing_parent_is_told() {
        let error = read("/data/id", r#"{"data":null}"#).unwrap_err();
        assert_eq!(error.to_string(), r#"json("/data/id"): missing: no `id` in /data, which is null"#);
    }

    #[test]
    fn c06_null_is_told() {
        refused(r#"{"id":null}"#, "null");
    }

    #[test]
    fn c06_an_empty_string_is_told() {
        refused(r#"{"id":""}"#, "empty");
    }

    #[test]
    fn c06_an_array_is_told() {
        refused(r#"{"id":["a"]}"#, "not a scalar: an array where a string or an integer is needed");
    }

    #[test]
    fn c06_an_object_is_told() {
        refused(r#"{"id":{}}"#, "not a scalar: an object where a string or an integer is needed");
    }

    #[test]
    fn c06_a_boolean_is_told() {
        refused(r#"{"id":true}"#, "a boolean where a string or an integer is needed");
    }

    #[test]
    fn c06_a_null_payload_is_told() {
        let error = KeySource::Json("/id").read(&Message::builder().build()).unwrap_err();
        assert_eq!(error.to_string(), r#"json("/id"): the payload is null (a tombstone)"#);
    }

    #[test]
    fn c06_an_empty_payload_is_told() {
        refused("", "not JSON: the payload is empty (0 bytes)");
    }

    #[test]
    fn c13_a_payload_in_registry_framing_is_told() {
        let reason = "not JSON: first byte 0x00, looks like schema-registry framing, schema id 42";
        refused(b"\x00\x00\x00\x00\x2a\x02\x06abc", reason);
    }

    #[test]
    fn c06_syntax_is_checked_behind_the_key_too() {
        refused(
            r#"{"id":"evt-1","amount":}"#,
            "not JSON: expected value at line 1 column 24 (first bytes 7b226964223a226576742d31222c2261… (24 bytes))",
        );
    }

    #[test]
    fn syntax_is_checked_where_no_key_can_be() {
        for payload in ["hello", "[1,", "[1] 2", "17 18", r#"{"id":1} x"#] {
            let reason = read("/id", payload).unwrap_err().to_string();
            assert!(reason.contains("not JSON"), "{payload}: {reason}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_not_json_wherever_they_stand() {
        let reason = read("/id", b"{\"id\":\"evt-1\",\"note\":\"\xc3\x28\"}").unwrap_err().to_string();
        assert!(reason.contains("not JSON: invalid utf-8"), "{reason}");
    }

    #[test]
    fn a_lone_surrogate_is_refused_and_not_replaced() {
        let reason = read("/id", r#"{"id":"\ud800"}"#).unwrap_err().to_string();
        assert!(reason.contains("not a string of Unicode text"), "{reason}");
    }

    #[test]
    fn c07_integers_of_any_size_are_told_apart() {
        let ids = [
            "9007199254740992",
            "9007199254740993",
            "9223372036854775808",
            "18446744073709551616",
            "18446744073709551617",
            "-18446744073709551617",
        ];
        let keys: BTreeSet<String> =
            ids.iter().map(|id| read("/id", format!("{{\"id\": {id} }}")).unwrap().to_string()).collect();
        assert_eq!(keys, ids.map(str::to_owned).into());
    }

    #[test]
    fn c07_a_number_and_its_digits_are_one_key() {
        assert_eq!(read("/id", r#"{"id":1}"#).unwrap(), read("/id", r#"{"id":"1"}"#).unwrap());
    }

    #[test]
    fn c07_other_numbers_are_not_integer_literals() {
        for number in ["1.0", "1e0", "1E2", "-0", "-0.0", "0e0"] {
            refused(format!("{{\"id\":{number}}}"), &format!("`{number}` is not an integer literal"));
        }
    }

    #[test]
    fn c08_the_key_twice_is_refused() {
        let reason = read("/id", r#"{"id":"evt_A","amount":5,"id":"evt_B"}"#).unwrap_err().to_string();
        assert!(reason.contains("duplicate member on the key path: `id`"), "{reason}");
    }

    #[test]
    fn c08_a_parent_of_the_key_twice_is_refused() {
        let reason = read("/data/id", r#"{"data":{"id":1},"data":{"id":2}}"#).unwrap_err().to_string();
        assert!(reason.contains("duplicate member on the key path: `data`"), "{reason}");
    }

    #[test]
    fn c08_a_name_in_another_spelling_is_the_same_member() {
        let reason = read("/id", r#"{"id":"evt_A","\u0069d":"evt_B"}"#).unwrap_err().to_string();
        assert!(reason.contains("duplicate member on the key path"), "{reason}");
    }

    #[test]
    fn c08_other_members_twice_are_the_handlers_business() {
        assert_eq!(read("/id", r#"{"id":"evt_C","note":1,"note":2,"amount":5}"#), Key::text("evt_C"));
    }

    #[test]
    fn a_pointer_without_a_slash_never_means_the_whole_payload() {
        let reason = read("id", r#""evt-1""#).unwrap_err().to_string();
        assert!(reason.contains("not a JSON pointer"), "{reason}");
    }

    proptest! {
        #[test]
        fn any_text_comes_back_as_it_was(name in "[a-z/~]{1,4}", id in "[^\\x00]{1,20}") {
            let payload = serde_json::json!({ "before": [1.5], name.as_str(): id.as_str() }).to_string();
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let message = Message::builder().payload(payload).build();
            prop_assert_eq!(super::read(&pointer, &message), Key::text(&id));
        }

        #[test]
        fn any_payload_is_read_or_refused(payload in "[\\[\\]{}:,\"\\\\id0-9u ]{0,24}") {
            let is_json = serde_json::from_str::<serde_json::Value>(&payload).is_ok();
            prop_assert!(is_json || read("/id", payload).is_err());
        }
    }
}
