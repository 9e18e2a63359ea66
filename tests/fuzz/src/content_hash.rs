use std::collections::BTreeSet;
use std::fmt;

use handstamp::{Key, KeySource, Message};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::Target;

const WHOLE: KeySource = KeySource::ContentHash(&[]);
const WITHOUT_TRACE: KeySource = KeySource::ContentHash(&["/trace_id"]);

const REPEATED: &str = "a member is repeated";

/// Hashes a payload, and variants of it that say the same.
pub const CONTENT_HASH: Target = Target { name: "content_hash", run };

fn run(bytes: &[u8]) {
    let key = read(WHOLE, bytes);
    if key.is_some() {
        serde_json::from_slice::<IgnoredAny>(bytes).expect("what has a hash is JSON");
        // It refuses more than repeated members, such as numbers beyond doubles.
        let repeats = serde_json::from_slice::<Unrepeated>(bytes).err().map(|error| error.to_string());
        assert!(
            !repeats.is_some_and(|error| error.starts_with(REPEATED)),
            "what has a hash repeats no member"
        );
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    assert_eq!(read(WHOLE, spaced(text).as_bytes()), key, "white space makes no difference");
    if key.is_some()
        && let Some(traced) = traced(text)
    {
        let bare = read(WITHOUT_TRACE, bytes);
        assert_eq!(read(WITHOUT_TRACE, traced.as_bytes()), bare, "what is ignored makes no difference");
    }
}

fn read(source: KeySource, payload: &[u8]) -> Option<Key> {
    source.read(&Message::builder().payload(payload).build()).ok()
}

/// The same with white space wherever there may be some.
fn spaced(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    json.chars()
        .flat_map(|char| {
            let is_structure = !in_string && matches!(char, '{' | '}' | '[' | ']' | ',' | ':');
            in_string ^= char == '"' && !is_escaped;
            is_escaped = in_string && char == '\\' && !is_escaped;
            [is_structure.then_some(' '), Some(char), is_structure.then_some('\n')]
        })
        .flatten()
        .collect()
}

/// An object with a member more, which it does not have.
fn traced(json: &str) -> Option<String> {
    let members = serde_json::from_str::<Value>(json).ok()?;
    let members = members.as_object().filter(|members| !members.contains_key("trace_id"))?;
    let separator = if members.is_empty() { "" } else { "," };
    let rest = json.split_once('{')?.1;
    Some(format!(r#"{{"trace_id":[1e9,{{"a":"b"}}]{separator}{rest}"#))
}

/// A document in which no member is repeated.
struct Unrepeated;

impl<'de> Deserialize<'de> for Unrepeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unrepeated {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = BTreeSet::<String>::new();
        while let Some((name, Unrepeated)) = map.next_entry()? {
            if !names.insert(name) {
                return Err(A::Error::custom(REPEATED));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}
