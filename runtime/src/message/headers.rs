use std::fmt;
use std::iter::FusedIterator;

use bytes::Bytes;

/// A message's headers: raw bytes, in the order sent, repeats included.
///
/// Stored as they are kept with dead letters: name length (4 bytes, big endian), name, value length
/// (4 bytes, all ones for null), value, repeated.
#[derive(Clone, PartialEq, Eq)]
pub struct Headers(Bytes);

const NULL: u32 = u32::MAX;

impl Headers {
    /// Takes headers as [`Headers::as_encoded`] gives them; a torn tail ends the iteration.
    #[must_use]
    pub fn encoded(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The stored form.
    #[must_use]
    pub fn as_encoded(&self) -> &[u8] {
        &self.0
    }

    /// Every header: name and value; `None` is a null value.
    #[must_use]
    pub fn iter(&self) -> HeadersIter<'_> {
        HeadersIter(&self.0)
    }

    /// The values of every header called `name`, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Option<&'a [u8]>> + 'a {
        self.iter().filter(move |(n, _)| *n == name.as_bytes()).map(|(_, value)| value)
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        f.debug_map().entries(self.iter().map(|(name, value)| (text(name), value.map(text)))).finish()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a [u8], Option<&'a [u8]>);
    type IntoIter = HeadersIter<'a>;

    fn into_iter(self) -> HeadersIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Headers`].
#[derive(Clone, Debug)]
pub struct HeadersIter<'a>(&'a [u8]);

impl<'a> Iterator for HeadersIter<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = decode(self.0)?;
        let (value, rest) = decode(rest)?;
        let header = (name?, value);
        // Only now: behind a torn header nothing can be told apart.
        self.0 = rest;
        Some(header)
    }
}

impl FusedIterator for HeadersIter<'_> {}

/// Takes a length and as many bytes off the front; a null has no bytes.
fn decode(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, bytes) = bytes.split_first_chunk()?;
    match u32::from_be_bytes(*length) {
        NULL => Some((None, bytes)),
        length => {
            let (value, bytes) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            Some((Some(value), bytes))
        }
    }
}

/// Appends one header in the stored form.
///
/// # Panics
/// At 4 GiB: no source comes near, and a shortened value would pass for a sound one.
pub(crate) fn encode(out: &mut Vec<u8>, name: &[u8], value: Option<&[u8]>) {
    for bytes in [Some(name), value] {
        let length = bytes.map_or(Some(NULL), |bytes| u32::try_from(bytes.len()).ok().filter(|&n| n != NULL));
        out.extend_from_slice(&length.expect("a header of 4 GiB").to_be_bytes());
        out.extend_from_slice(bytes.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Header = (Vec<u8>, Option<Vec<u8>>);

    fn encoded(headers: &[Header]) -> Headers {
        let mut bytes = Vec::new();
        for (name, value) in headers {
            encode(&mut bytes, name, value.as_deref());
        }
        Headers::encoded(bytes.into())
    }

    fn decoded(headers: &Headers) -> Vec<Header> {
        headers.iter().map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect()
    }

    fn headers() -> impl Strategy<Value = Vec<Header>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..8);
        proptest::collection::vec((bytes(), proptest::option::of(bytes())), 0..6)
    }

    proptest! {
        #[test]
        fn headers_come_back_as_they_were_sent(headers in headers()) {
            prop_assert_eq!(decoded(&encoded(&headers)), headers);
        }

        #[test]
        fn a_torn_tail_ends_the_headers_where_it_begins(headers in headers(), torn in 0_usize..100) {
            let whole = encoded(&headers);
            let torn = whole.as_encoded().len().saturating_sub(torn);
            let some = decoded(&Headers::encoded(Bytes::copy_from_slice(&whole.as_encoded()[..torn])));
            prop_assert_eq!(&some, &headers[..some.len()]);
        }
    }

    #[test]
    fn the_stored_form_is_pinned() {
        let headers = encoded(&[(b"ab".to_vec(), Some(b"c".to_vec())), (b"d".to_vec(), None)]);
        assert_eq!(headers.as_encoded(), b"\0\0\0\x02ab\0\0\0\x01c\0\0\0\x01d\xff\xff\xff\xff");
    }

    #[test]
    fn nothing_is_read_behind_a_header_that_makes_no_sense() {
        let mut headers = HeadersIter(b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!((headers.next(), headers.next()), (None, None));
    }

    #[test]
    fn c05_headers_keep_bytes_order_and_repeats() {
        let sent = [
            (b"event_id".to_vec(), Some(b"evt-3".to_vec())),
            (b"x-bin".to_vec(), Some(vec![0x00, 0xff, 0x10])),
            (vec![0xc3, 0x28], Some(vec![0xc3, 0x28])),
            (b"x-bin".to_vec(), None),
        ];
        assert_eq!(decoded(&encoded(&sent)), sent);
    }
}
