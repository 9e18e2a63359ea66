use handstamp::{KeySource, Message};
use serde_json::Value;

use crate::Target;

const POINTERS: [&str; 5] = ["/id", "/a/id", "/a/0", "/~1~0", "/"];

/// Compares keys in the payload with what a value model reads there.
pub const JSON: Target = Target { name: "json", run };

fn run(bytes: &[u8]) {
    let message = Message::builder().payload(bytes).build();
    let document = serde_json::from_slice::<Value>(bytes);
    for pointer in POINTERS {
        let Ok(key) = KeySource::Json(pointer).read(&message) else { continue };
        let key = key.to_string();
        // The model refuses more: numbers beyond doubles, lone surrogates, great depth.
        let Ok(document) = &document else { continue };
        match document.pointer(pointer) {
            Some(Value::String(text)) => assert_eq!(&key, text),
            Some(Value::Number(rounded)) if rounded.is_f64() => {
                assert!(key.len() > 18, "{key} is an integer");
            }
            Some(Value::Number(integer)) => assert_eq!(key, integer.to_string()),
            other => panic!("{pointer} has the key {key:?} and the value {other:?}"),
        }
    }
}
