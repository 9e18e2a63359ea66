use sha2::{Digest, Sha256};

use super::canonical::canonical;
use super::document::Document;
use super::{Key, KeyError, Value};
use crate::message::Message;

/// Hashes the payload in canonical form, without what `ignored` points to.
///
/// This is version 1, which the key carries into the inbox. Whatever changes a hash is another version.
pub(super) fn read(ignored: &[&str], message: &Message) -> Result<Key, KeyError> {
    let canonical = canonical(Document::of(message)?, ignored)?;
    // One hash for all messages that say nothing would make them one event.
    if matches!(canonical.as_str(), "{}" | "[]" | "\"\"" | "null") {
        let left = if ignored.is_empty() { "is" } else { "without what is ignored is" };
        return Err(KeyError::new(format!("nothing to hash: the payload {left} {canonical}")));
    }
    Ok(Key(Value::ContentHash(Sha256::digest(canonical).into())))
}

#[cfg(test)]
mod tests {
    use crate::key::{Key, KeyError, KeySource};
    use crate::message::Message;

    const IGNORING: KeySource = KeySource::ContentHash(&["/trace_id", "/sent/at"]);

    fn read(source: KeySource, payload: impl AsRef<[u8]>) -> Result<Key, KeyError> {
        source.read(&Message::builder().payload(payload).build())
    }

    fn hash(payload: &str) -> String {
        read(KeySource::ContentHash(&[]), payload).unwrap().to_string()
    }

    fn reason(payload: impl AsRef<[u8]>) -> String {
        read(IGNORING, payload).unwrap_err().to_string()
    }

    /// Compares with a hash that inboxes hold. If it fails, do not change the expected text: it takes a new
    /// version of the hash, or every event remembered under the old one would be applied again.
    #[test]
    fn c10_hashes_are_pinned() {
        for (payload, expected) in [
            (
                r#"{"note":"caf\u00e9","amount":1e21,"rate":117.63331139400017,"n":1}"#,
                "h1:a68091af769a6ad925410a240254b8b533653d126cf500d5734c5b29aff30a6e",
            ),
            (
                r#"{"id":18446744073709551617}"#,
                "h1:7513567d22398b79e40f1156ec678d7222f176d1174795dd22b7519de524e2b4",
            ),
            (
                "[-0.0, 1e400, \"\\u0000\\ud83d\\ude00\"]",
                "h1:b44a9003d562956f47441030d04d19bd60494bee1092e732101f33bc9f290314",
            ),
        ] {
            assert_eq!(hash(payload), expected, "{payload}");
        }
    }

    #[test]
    fn c10_member_order_white_space_and_spelling_make_no_difference() {
        let other =
            "{ \"n\":1.0,\n\"rate\":117.63331139400017, \"amount\":1000000000000000000000,\"note\":\"café\"}";
        assert_eq!(
            hash(other),
            hash(r#"{"note":"caf\u00e9","amount":1e21,"rate":117.63331139400017,"n":1}"#)
        );
    }

    #[test]
    fn c10_numbers_that_differ_in_the_last_place_are_two_hashes() {
        assert_ne!(hash(r#"{"rate":117.63331139400017}"#), hash(r#"{"rate":117.63331139400016}"#));
    }

    #[test]
    fn c07_ids_that_one_double_stands_for_are_two_hashes() {
        assert_ne!(hash(r#"{"id":18446744073709551616}"#), hash(r#"{"id":18446744073709551617}"#));
    }

    #[test]
    fn a_number_is_not_its_digits_in_quotes() {
        assert_ne!(hash(r#"{"id":1}"#), hash(r#"{"id":"1"}"#));
    }

    #[test]
    fn what_is_ignored_makes_no_difference() {
        let key = |payload| read(IGNORING, payload).unwrap();
        let bare = key(r#"{"id":1,"sent":{"by":"a"}}"#);
        assert_eq!(key(r#"{"trace_id":"x","id":1,"sent":{"at":5,"by":"a"}}"#), bare);
        assert_ne!(key(r#"{"id":1,"sent":{"by":"b"}}"#), bare);
    }

    #[test]
    fn c08_a_repeated_member_is_refused() {
        let reason = reason(r#"{"id":"evt_C","note":1,"note":2,"amount":5}"#);
        assert!(reason.contains("duplicate member: `note`"), "{reason}");
    }

    #[test]
    fn c06_a_payload_that_says_nothing_is_refused() {
        for payload in ["{}", "[ ]", "null", "\"\""] {
            let reason = read(KeySource::ContentHash(&[]), payload).unwrap_err().to_string();
            assert!(reason.starts_with("content_hash: nothing to hash: the payload is "), "{reason}");
        }
    }

    #[test]
    fn a_payload_of_ignored_values_alone_is_refused() {
        assert_eq!(
            reason(r#"{"trace_id":"x"}"#),
            r#"content_hash(ignore = ["/sent/at", "/trace_id"]): nothing to hash: the payload without what is ignored is {}"#
        );
    }

    #[test]
    fn c13_a_payload_that_is_not_json_is_told() {
        let reason = reason(b"\x00\x00\x00\x00\x2a\x02\x06abc");
        assert!(reason.ends_with("looks like schema-registry framing, schema id 42"), "{reason}");
    }
}
