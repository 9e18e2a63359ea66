use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What a value has under one token of the pointer.
pub(super) enum Child<'de> {
    Missing,
    Once(&'de str),
    Repeated,
}

/// Reads through all of `json`, so that its syntax is checked whatever it holds.
pub(super) fn child<'de>(json: &'de str, token: &str) -> Result<Child<'de>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let child = if json.starts_with(['{', '[']) {
        deserializer.deserialize_any(Token(&unescaped(token)))?
    } else {
        IgnoredAny::deserialize(&mut deserializer)?;
        Child::Missing
    };
    deserializer.end()?;
    Ok(child)
}

fn unescaped(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

/// What is left of `pointer` below the child called `name`: nothing if it points there, `None` if elsewhere.
pub(super) fn below<'a>(pointer: &'a str, name: &str) -> Option<&'a str> {
    let path = pointer.strip_prefix('/')?;
    let (token, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    (unescaped(token) == name).then_some(rest)
}

/// Takes one child out of an object or an array.
struct Token<'a>(&'a str);

impl Token<'_> {
    /// As an array index: digits without a leading zero.
    fn index(&self) -> Option<usize> {
        let canonical = self.0 == "0" || !self.0.starts_with(['0', '+']);
        self.0.parse().ok().filter(|_| canonical)
    }
}

impl<'de> Visitor<'de> for Token<'_> {
    type Value = Child<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Child<'de>, A::Error> {
        let mut child = Child::Missing;
        while let Some(is_wanted) = members.next_key_seed(Name(self.0))? {
            if !is_wanted {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = members.next_value::<&RawValue>()?.get();
            child = if let Child::Missing = child { Child::Once(value) } else { Child::Repeated };
        }
        Ok(child)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Child<'de>, A::Error> {
        let mut child = Child::Missing;
        let wanted = self.index();
        for index in 0.. {
            if Some(index) == wanted {
                match elements.next_element::<&RawValue>()? {
                    Some(value) => child = Child::Once(value.get()),
                    None => break,
                }
            } else if elements.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(child)
    }
}

/// Tells whether a member has this name, without copying the name.
struct Name<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::key::{Key, KeyError, KeySource};
    use crate::message::Message;

    fn read(pointer: &'static str, payload: &str) -> Result<Key, KeyError> {
        KeySource::Json(pointer).read(&Message::builder().payload(payload).build())
    }

    #[test]
    fn a_pointer_walks_objects_and_arrays() {
        assert_eq!(read("/a/1/b", r#" { "a" : [ 0 , { "b" : "evt-1" } ] } "#), Key::text("evt-1"));
    }

    #[test]
    fn a_pointer_unescapes_in_the_order_of_rfc_6901() {
        let payload = r#"{"a/b":"slash","m~n":"tilde","~1":"both","":"none"}"#;
        let keys = ["/a~1b", "/m~0n", "/~01", "/"].map(|pointer| read(pointer, payload).unwrap().to_string());
        assert_eq!(keys, ["slash", "tilde", "both", "none"]);
    }

    #[test]
    fn an_array_index_has_one_spelling() {
        for pointer in ["/01", "/+1", "/-", "/1 ", "/2", "/"] {
            let reason = read(pointer, "[0,1]").unwrap_err().to_string();
            assert!(reason.contains("missing"), "{pointer}: {reason}");
        }
    }
}
