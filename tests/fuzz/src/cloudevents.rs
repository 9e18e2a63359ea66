use handstamp::KeySource;

use crate::Target;
use crate::input::{split, with_headers};

const BINARY: KeySource = KeySource::Composite(&[KeySource::Header("ce_source"), KeySource::Header("ce_id")]);
const STRUCTURED: KeySource = KeySource::Composite(&[KeySource::Json("/source"), KeySource::Json("/id")]);

/// Takes bytes for the headers and the payload of a `CloudEvent`.
pub const CLOUDEVENTS: Target = Target { name: "cloudevents", run };

fn run(bytes: &[u8]) {
    let (headers, payload) = split(bytes);
    let message = with_headers(&headers).payload(payload).build();
    let Ok(key) = KeySource::CloudEvents.read(&message) else { return };

    let content_type: Vec<_> = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type"))
        .map(|(_, value)| value)
        .collect();
    assert!(content_type.len() <= 1, "the content type is told once");
    let content_type = content_type.first().copied().flatten().unwrap_or_default().to_ascii_lowercase();
    let is_structured = content_type.trim_ascii_start().starts_with(b"application/cloudevents");
    let mode = if is_structured { STRUCTURED } else { BINARY };
    assert_eq!(mode.read(&message), Ok(key), "the content type alone tells where the attributes are");
}
