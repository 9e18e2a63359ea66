use std::fmt;

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
    pub fn get<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Option<&'a [u8]>> + 'a {
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

impl<'a> HeadersIter<'a> {
    fn length(&mut self) -> Option<u32> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*length))
    }

    fn bytes(&mut self, length: u32) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for HeadersIter<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let length = self.length()?;
        let name = self.bytes(length)?;
        let value = match self.length()? {
            NULL => None,
            length => Some(self.bytes(length)?),
        };
        Some((name, value))
    }
}

/// Appends one header in the stored form.
pub(crate) fn encode(out: &mut Vec<u8>, name: &[u8], value: Option<&[u8]>) {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(NULL - 1).to_be_bytes();
    out.extend_from_slice(&length(name));
    out.extend_from_slice(name);
    match value {
        Some(value) => {
            out.extend_from_slice(&length(value));
            out.extend_from_slice(value);
        }
        None => out.extend_from_slice(&NULL.to_be_bytes()),
    }
}
