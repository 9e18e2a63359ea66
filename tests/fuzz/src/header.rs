use bytes::Bytes;
use handstamp::{Headers, Key, KeySource, Message};

use crate::Target;
use crate::input::with_headers;

const ID: KeySource = KeySource::Header("id");
const ID_IN_ANY_CASE: KeySource = KeySource::HttpHeader("Id");
const UNQUOTED: KeySource = KeySource::Unquoted(&ID);
const UUID: KeySource = KeySource::Uuid(&UNQUOTED);
const LONGEST_STORED: usize = 65;

/// Takes bytes for headers in their stored form, and for a message key.
pub const HEADER: Target = Target { name: "header", run };

fn run(bytes: &[u8]) {
    let headers = Headers::encoded(Bytes::copy_from_slice(bytes));
    let message = with_headers(&headers).key(bytes).build();
    assert!(headers.iter().eq(&message.headers()), "headers come back as they were sent");

    if let Some(id) = read(ID, &message) {
        let values: Vec<_> = headers.get_all("id").collect();
        assert_eq!(values, [Some(id.to_string().as_bytes())], "a key is the one header of its name");
    }
    if let (Some(exact), Some(any_case)) = (read(ID, &message), read(ID_IN_ANY_CASE, &message)) {
        assert_eq!(exact, any_case, "the exact name is one of any letter case");
    }
    if let Some(uuid) = read(UUID, &message) {
        assert_eq!(uuid.stored().len(), 17, "a UUID is stored in 16 bytes");
    }
    if let Some(key) = read(KeySource::MessageKey, &message) {
        assert!(bytes.len() > 64 || &key.stored()[1..] == bytes, "a short message key is stored as it is");
    }
}

fn read(source: KeySource, message: &Message) -> Option<Key> {
    let key = source.read(message).ok()?;
    assert!(key.stored().len() <= LONGEST_STORED, "a key is stored in few bytes");
    Some(key)
}
