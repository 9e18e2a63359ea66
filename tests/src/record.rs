//! What tests write to a topic and read from it.

/// A record. Header names are bytes, since producers in other languages do not all write UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub(crate) partition: Option<i32>,
    /// Its message key.
    pub key: Option<Vec<u8>>,
    /// What it carries; none is a tombstone.
    pub payload: Option<Vec<u8>>,
    /// Names and values, in order.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Record {
    /// With a payload and nothing else; the partition is the producer's to choose.
    #[must_use]
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: Some(payload.into()), ..Self::default() }
    }

    /// Without a payload.
    #[must_use]
    pub fn tombstone() -> Self {
        Self::default()
    }

    /// To one partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// With a message key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// With one more header, after those it has.
    #[must_use]
    pub fn header(mut self, name: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// With one more header whose value is null.
    #[must_use]
    pub fn null_header(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), None));
        self
    }
}
