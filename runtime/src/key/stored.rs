use sha2::{Digest, Sha256};

use super::{Key, Value};

/// The first byte of a stored key: keys of different kinds never collide.
///
/// The numbers are in every inbox there is. Another number would make old events new again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Uuid = 1,
    Text = 2,
    Bytes = 3,
    Composite = 4,
    Digest = 5,
    ContentHashV1 = 6,
}

/// The longest key that is stored as it is; a longer one would cost more than its digest.
const AS_IS: usize = 64;

/// What a part of a composite has before its bytes: its kind and, in four bytes, its length.
const PART: usize = 5;

impl Key {
    /// What the inbox stores: one byte for the kind (1 UUID, 2 text, 3 bytes, 4 composite, 6 content hash of
    /// version 1), then the key.
    ///
    /// Of a key longer than 64 bytes: the byte 5, then the SHA-256 of what would have been stored.
    /// A part of a composite is its kind, its length (4 bytes, big endian) and its bytes.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        let mut stored = Vec::with_capacity(1 + self.length());
        stored.push(self.kind() as u8);
        self.encode(&mut stored);
        if stored.len() > 1 + AS_IS {
            let digest = Sha256::digest(&stored);
            stored.clear();
            stored.push(Kind::Digest as u8);
            stored.extend_from_slice(&digest);
        }
        stored
    }

    fn kind(&self) -> Kind {
        match self.0 {
            Value::Uuid(_) => Kind::Uuid,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::ContentHash(_) => Kind::ContentHashV1,
            Value::Composite(_) => Kind::Composite,
        }
    }

    /// How many bytes it has, without its own kind.
    pub(super) fn length(&self) -> usize {
        match &self.0 {
            Value::Uuid(uuid) => uuid.as_bytes().len(),
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::ContentHash(hash) => hash.len(),
            Value::Composite(parts) => parts.iter().map(|part| PART + part.length()).sum(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Value::Uuid(uuid) => out.extend_from_slice(uuid.as_bytes()),
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => out.extend_from_slice(bytes),
            Value::ContentHash(hash) => out.extend_from_slice(hash),
            Value::Composite(parts) => {
                for part in parts {
                    #[expect(clippy::cast_possible_truncation, reason = "a key has at most Key::LIMIT bytes")]
                    let length = part.length() as u32;
                    out.push(part.kind() as u8);
                    out.extend_from_slice(&length.to_be_bytes());
                    part.encode(out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::super::{KeyError, KeySource};
    use super::*;
    use crate::message::Message;

    /// Compares with a stored form that inboxes hold. If such a test fails, do not change the expected
    /// bytes: every event remembered in the old form would be applied again.
    #[track_caller]
    fn pinned(key: Result<Key, KeyError>, stored: &[u8]) {
        assert_eq!(key.unwrap().stored(), stored);
    }

    fn text(text: &str) -> Key {
        Key::text(text).unwrap()
    }

    #[test]
    fn stored_form_of_a_uuid_is_pinned() {
        let uuid = Uuid::from_u128(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8);
        pinned(Key::uuid(uuid), b"\x01\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8");
    }

    #[test]
    fn stored_form_of_text_is_pinned() {
        pinned(Key::text("evt-é"), b"\x02evt-\xc3\xa9");
    }

    #[test]
    fn stored_form_of_bytes_is_pinned() {
        pinned(Key::bytes(&[0, 255, 16]), b"\x03\x00\xff\x10");
    }

    #[test]
    fn stored_form_of_a_composite_is_pinned() {
        let key = Key::composite([text("doc-7"), Key::bytes(&[1]).unwrap()]);
        pinned(key, b"\x04\x02\0\0\0\x05doc-7\x03\0\0\0\x01\x01");
    }

    #[test]
    fn stored_form_of_a_composite_in_a_composite_is_pinned() {
        let inner = Key::composite([text("a")]).unwrap();
        pinned(Key::composite([inner, text("b")]), b"\x04\x04\0\0\0\x06\x02\0\0\0\x01a\x02\0\0\0\x01b");
    }

    #[test]
    fn stored_form_of_a_content_hash_is_pinned() {
        let hash =
            KeySource::ContentHash(&["/t"]).read(&Message::builder().payload(r#"{"id":1,"t":2}"#).build());
        pinned(
            hash,
            b"\x06\x03\x7c\x92\x14\xee\xf7\x4c\xc3\x88\x7f\x3a\x4f\x08\x5b\x4e\x17\
              \xd7\x62\x80\xda\xfd\x27\x3b\x0e\xe1\x60\xc0\x9c\x4b\xa1\xcf\xd4",
        );
    }

    #[test]
    fn stored_form_of_every_kind_of_part_is_pinned() {
        let parts = [
            Key::uuid(Uuid::from_u128(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8)).unwrap(),
            text("evt-\u{e9}"),
            Key::bytes(&[0, 255, 16]).unwrap(),
        ];
        pinned(
            Key::composite(parts),
            b"\x04\x01\0\0\0\x10\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8\
              \x02\0\0\0\x06evt-\xc3\xa9\x03\0\0\0\x03\x00\xff\x10",
        );
    }

    #[test]
    fn stored_form_of_long_bytes_is_pinned() {
        pinned(
            Key::bytes(&[0xab; 65]),
            b"\x05\x2d\x71\x40\x5c\xb6\xbe\x77\x48\xa9\xae\x14\xd5\x31\xaf\x15\xd3\
              \x9c\xaf\x6f\x49\x24\x22\x6b\x6b\xfa\xcb\x56\xd6\xd3\x93\x52\x8d",
        );
    }

    #[test]
    fn stored_form_of_a_long_composite_is_pinned() {
        let hash = Key(Value::ContentHash([0xab; 32]));
        pinned(
            Key::composite([text("doc-7"), hash.clone(), hash]),
            b"\x05\x1d\xff\x8d\xe9\x6c\xda\xe5\x0b\x2e\x94\x5b\x4a\x8c\x6e\x5e\xeb\
              \xf1\xe6\xbb\xf9\xde\x80\x26\x8f\xaf\xc3\x79\xff\xc5\x5f\x48\x3e",
        );
    }

    #[test]
    fn stored_form_of_a_long_text_is_pinned() {
        pinned(
            Key::text(&"a".repeat(65)),
            b"\x05\x08\x59\x0c\xd0\xf7\xbb\xbe\x56\xfe\xf2\x76\x00\x1c\x06\x3a\x50\
              \x73\xb3\x83\x37\x91\xcd\x53\x23\xa6\x53\x4c\xc4\x00\x94\xf9\x3e",
        );
    }

    #[test]
    fn c02_64_bytes_are_stored_as_they_are() {
        assert_eq!(text(&"a".repeat(64)).stored(), [&[2][..], &[b'a'; 64]].concat());
    }

    #[test]
    fn c02_the_longest_key_is_stored_in_33_bytes() {
        assert_eq!(text(&"a".repeat(Key::LIMIT)).stored().len(), 33);
    }

    #[test]
    fn c02_long_keys_that_begin_alike_are_two_keys() {
        let beginning = "a".repeat(2900);
        assert_ne!(text(&format!("{beginning}1")).stored(), text(&format!("{beginning}2")).stored());
    }

    #[test]
    fn long_keys_of_different_kinds_are_two_keys() {
        let long = "a".repeat(100);
        assert_ne!(text(&long).stored(), Key::bytes(long.as_bytes()).unwrap().stored());
    }

    #[test]
    fn a_digest_is_not_the_bytes_it_is_made_of() {
        let digest = text(&"a".repeat(100)).stored();
        assert_ne!(Key::bytes(&digest[1..]).unwrap().stored(), digest);
    }

    #[test]
    fn c09_pairs_that_a_separator_would_glue_together_are_two_keys() {
        let pairs = [
            ["doc-7", "12"],
            ["doc-71", "2"],
            ["a", "b:c"],
            ["a:b", "c"],
            ["a\u{1f}", "b"],
            ["a", "\u{1f}b"],
        ];
        let stored: std::collections::BTreeSet<_> =
            pairs.iter().map(|pair| Key::composite(pair.map(text)).unwrap().stored()).collect();
        assert_eq!(stored.len(), pairs.len());
    }

    fn parts() -> impl Strategy<Value = Vec<Key>> {
        let part = prop_oneof![
            "[ab/~]{1,3}".prop_map(|text| Key::text(&text).unwrap()),
            proptest::collection::vec(0_u8..7, 1..8).prop_map(|bytes| Key::bytes(&bytes).unwrap()),
            (0_u8..3).prop_map(|byte| Key(Value::ContentHash([byte; 32]))),
            (1_u128..4).prop_map(|uuid| Key::uuid(Uuid::from_u128(uuid)).unwrap()),
        ];
        let nested = part.prop_recursive(2, 6, 3, |part| {
            proptest::collection::vec(part, 1..4).prop_map(|parts| Key::composite(parts).unwrap())
        });
        proptest::collection::vec(nested, 1..4)
    }

    proptest! {
        #[test]
        fn composites_of_different_parts_never_collide(a in parts(), b in parts()) {
            let stored = |parts: &[Key]| Key::composite(parts.to_vec()).unwrap().stored();
            prop_assert_eq!(a == b, stored(&a) == stored(&b));
        }
    }
}
