use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::document::Document;
use super::pointer::below;
use super::{KeyError, number};
use crate::message::Excerpt;

/// As deep as a handler's `Json<…>` reads.
const DEPTH: usize = 127;

/// Writes a document in canonical form (RFC 8785, numbers as in [`number::write`]), without the values that
/// `ignored` points to.
///
/// All of the document is read, what is ignored too: a repeated member is refused wherever it stands.
/// Each level is taken apart by a parse of its own, so the cost is size times depth; the depth is bounded.
pub(super) fn canonical(document: Document<'_>, ignored: &[&str]) -> Result<String, KeyError> {
    let whole: &RawValue =
        serde_json::from_str(document.text()).map_err(|error| document.not_json(&error))?;
    let mut out = String::with_capacity(whole.get().len());
    Writer(&mut out).value(whole, ignored, DEPTH)?;
    Ok(out)
}

struct Writer<'a>(&'a mut String);

impl Writer<'_> {
    fn value(&mut self, value: &RawValue, ignored: &[&str], depth: usize) -> Result<(), KeyError> {
        let json = value.get();
        match json.as_bytes().first() {
            Some(b'{') => self.object(parse(json)?, ignored, deeper(depth)?),
            Some(b'[') => self.array(parse(json)?, ignored, deeper(depth)?),
            Some(b'"') => {
                self.string(&parse::<String>(json)?);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => number::write(json, self.0),
            _ => {
                self.0.push_str(json);
                Ok(())
            }
        }
    }

    fn object(&mut self, members: Members<'_>, ignored: &[&str], depth: usize) -> Result<(), KeyError> {
        let Members(mut members) = members;
        members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        if let Some([(name, _), _]) = members.array_windows().find(|[(a, _), (b, _)]| a == b) {
            let name = Excerpt::text(name.as_bytes());
            return Err(KeyError::new(format!(
                "duplicate member: {name} is there more than once, and parsers differ in which one they take"
            )));
        }
        self.0.push('{');
        let mut separator = "";
        for (name, value) in members {
            let start = self.0.len();
            self.0.push_str(separator);
            self.string(&name);
            self.0.push(':');
            if self.child(value, ignored, &name, depth)? {
                separator = ",";
            } else {
                self.0.truncate(start);
            }
        }
        self.0.push('}');
        Ok(())
    }

    fn array(&mut self, elements: Vec<&RawValue>, ignored: &[&str], depth: usize) -> Result<(), KeyError> {
        self.0.push('[');
        let mut separator = "";
        for (index, value) in elements.into_iter().enumerate() {
            let start = self.0.len();
            self.0.push_str(separator);
            let index = if ignored.is_empty() { String::new() } else { index.to_string() };
            if self.child(value, ignored, &index, depth)? {
                separator = ",";
            } else {
                self.0.truncate(start);
            }
        }
        self.0.push(']');
        Ok(())
    }

    /// Writes the child of this name, or says that it is ignored; then what was written does not count.
    fn child(
        &mut self,
        value: &RawValue,
        ignored: &[&str],
        name: &str,
        depth: usize,
    ) -> Result<bool, KeyError> {
        let ignored: Vec<&str> = ignored.iter().filter_map(|pointer| below(pointer, name)).collect();
        self.value(value, &ignored, depth)?;
        Ok(!ignored.contains(&""))
    }

    fn string(&mut self, text: &str) {
        self.0.push('"');
        for char in text.chars() {
            match char {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\u{8}' => self.0.push_str("\\b"),
                '\t' => self.0.push_str("\\t"),
                '\n' => self.0.push_str("\\n"),
                '\u{c}' => self.0.push_str("\\f"),
                '\r' => self.0.push_str("\\r"),
                '\0'..='\u{1f}' => {
                    let escaped = format!("\\u{:04x}", u32::from(char));
                    self.0.push_str(&escaped);
                }
                char => self.0.push(char),
            }
        }
        self.0.push('"');
    }
}

/// Takes one level of a document apart. Its syntax has been checked, but not that strings are Unicode.
fn parse<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, KeyError> {
    serde_json::from_str(json)
        .map_err(|error| KeyError::new(format!("not a string of Unicode text: {error}")))
}

fn deeper(depth: usize) -> Result<usize, KeyError> {
    depth.checked_sub(1).ok_or_else(|| KeyError::new(format!("nested more than {DEPTH} deep")))
}

/// An object's members in the order they stand in.
struct Members<'de>(Vec<(String, &'de RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::message::Message;

    fn written(payload: impl AsRef<[u8]>, ignored: &[&str]) -> Result<String, KeyError> {
        canonical(Document::of(&Message::builder().payload(payload).build())?, ignored)
    }

    fn reason(payload: &str) -> String {
        written(payload, &[]).unwrap_err().to_string()
    }

    #[test]
    fn the_sample_of_rfc_8785_comes_out_as_printed_there_but_for_the_number_that_no_double_gives_back() {
        // Sections 3.2.2 and 3.2.3. The RFC rounds the first number to 333333333.3333333.
        let sample = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let expected = concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        assert_eq!(written(sample, &[]), Ok(expected.into()));
    }

    #[test]
    fn members_are_sorted_as_in_rfc_8785() {
        // Section 3.2.3: by UTF-16 code units, so that what lies outside of the BMP comes before U+FB33.
        let sample = r#"{
            "\u20ac": "Euro Sign",
            "\r": "Carriage Return",
            "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "1": "One",
            "\ud83d\ude00": "Emoji: Grinning Face",
            "\u0080": "Control",
            "\u00f6": "Latin Small Letter O With Diaeresis"
        }"#;
        let sorted = written(sample, &[]).unwrap();
        let order = ["Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"];
        let places: Vec<_> = order.iter().map(|value| sorted.find(value).unwrap()).collect();
        assert!(places.is_sorted(), "{sorted}");
    }

    #[test]
    fn text_is_not_normalised() {
        assert_eq!(written(r#""A\u030a""#, &[]), Ok("\"A\u{30a}\"".into()));
        assert_ne!(written(r#""A\u030a""#, &[]), written(r#""\u00c5""#, &[]));
    }

    #[test]
    fn ignored_values_are_left_out_wherever_they_stand() {
        let payload = r#"{"b":{"t":1,"u":[0,{"t":2,"v":3}]},"a/b":1,"t":[1,2]}"#;
        let ignored = ["/t", "/b/t", "/b/u/1/t", "/a~1b", "/missing/t"];
        assert_eq!(written(payload, &ignored), Ok(r#"{"b":{"u":[0,{"v":3}]}}"#.into()));
    }

    #[test]
    fn a_pointer_ignores_nothing_but_what_it_points_to() {
        let payload = r#"{"at":1,"t":{"ta":2},"u":{"t":3},"v":[4,5]}"#;
        assert_eq!(written(payload, &["/t/t", "/u/t/x", "/v/01", "/v/2", "/"]), written(payload, &[]));
    }

    #[test]
    fn c08_a_repeated_member_is_refused_at_any_depth() {
        let refused =
            "duplicate member: `a` is there more than once, and parsers differ in which one they take";
        for payload in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"c":2,"\u0061":3}}]"#] {
            assert_eq!(reason(payload), refused);
        }
    }

    #[test]
    fn c08_a_repeated_member_is_refused_in_what_is_ignored_too() {
        for payload in [r#"{"t":1,"t":2}"#, r#"{"t":{"a":1,"a":2}}"#] {
            let reason = written(payload, &["/t"]).unwrap_err().to_string();
            assert!(reason.contains("duplicate member"), "{payload}: {reason}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_refused_in_values_and_in_names() {
        for payload in [r#"["\ud800"]"#, r#"{"\ud800":1}"#, r#"["\udead"]"#] {
            let reason = reason(payload);
            assert!(reason.starts_with("not a string of Unicode text: "), "{payload}: {reason}");
        }
    }

    #[test]
    fn syntax_is_checked_to_the_end() {
        for payload in ["", "{", "[1,]", "{} {}", "nul", "01", "1.", "\"\u{1}\"", "{\"a\":1,}", "\u{feff}{}"]
        {
            let reason = reason(payload);
            assert!(reason.starts_with("not JSON: "), "{payload}: {reason}");
        }
    }

    #[test]
    fn what_a_handler_could_not_read_for_its_depth_is_refused() {
        let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(serde_json::from_str::<Value>(&nested(DEPTH)).is_ok());
        assert_eq!(written(nested(DEPTH), &[]), Ok(nested(DEPTH)));
        for depth in [DEPTH + 1, 10_000] {
            assert_eq!(reason(&nested(depth)), "nested more than 127 deep");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_written_or_refused(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let is_json = serde_json::from_slice::<Value>(&payload).is_ok();
            prop_assert!(is_json || written(payload, &[]).is_err());
        }

        #[test]
        fn what_is_written_is_canonical_already(payload in "[\\[\\]{}:,\"\\\\a01.e-]{0,24}") {
            if let Ok(once) = written(payload, &[]) {
                prop_assert_eq!(written(&once, &[]), Ok(once));
            }
        }
    }
}
