use handstamp_tests::Record;

/// Why nobody can make anything of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    KeyMissing,
    KeyNull,
    KeyRepeated,
    /// Neither is the name of another header.
    KeyNotText,
    KeyTooLong,
    /// The payload ends in the middle.
    PayloadTorn,
}

const NOT_TEXT: &[u8] = b"\xff\xfe\xc3\x28";
/// As long as fits into a record with the usual limits of producers and brokers.
const LONG: usize = 990_000;

impl Defect {
    pub const ALL: [Self; 6] = [
        Self::KeyMissing,
        Self::KeyNull,
        Self::KeyRepeated,
        Self::KeyNotText,
        Self::KeyTooLong,
        Self::PayloadTorn,
    ];

    /// The record of an event, with this.
    pub fn spoil(self, record: Record, id: &str) -> Record {
        match self {
            Self::KeyMissing => record,
            Self::KeyNull => record.null_header("event_id"),
            Self::KeyRepeated => record.header("event_id", id).header("event_id", id),
            Self::KeyNotText => record.header("event_id", NOT_TEXT).header(NOT_TEXT, NOT_TEXT),
            Self::KeyTooLong => record.header("event_id", "x".repeat(LONG)),
            Self::PayloadTorn => Record::new(r#"{"event":"#).header("event_id", id),
        }
    }

    /// What its dead letter says.
    pub fn reason(self) -> &'static str {
        match self {
            Self::PayloadTorn => "decode",
            _ => "key",
        }
    }
}
