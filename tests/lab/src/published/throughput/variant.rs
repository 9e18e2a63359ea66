use super::super::consumers::Consumer;

/// What is compared.
pub struct Variant {
    pub name: &'static str,
    pub consumer: Consumer,
    pub kind: Kind,
    /// It gets one in so many of the messages, so that slow variants do not take all of the time.
    pub one_in: u64,
    /// Messages a second, of a consumer in Python on another machine.
    pub published: Option<f64>,
    pub what: &'static str,
}

/// What bounds a variant: only within a kind bars are high enough to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A transaction for each message.
    Each,
    /// Many messages to a transaction, their statements one after the other.
    Batch,
    /// Many messages to a transaction, and to a statement.
    Bulk,
}

/// A variant is a line here, a consumer by that name, and what is claimed of it in `ratios.rs`. All have the same
/// six lanes and a pool to match, unless they say that they have one.
pub const VARIANTS: [Variant; 18] = [
    published("a1", Consumer::A1, 445.1, "one lane, no inbox, automatic offset commits"),
    published("a2", Consumer::A2, 447.5, "the same, 100 taken at a time"),
    published("b", Consumer::B, 347.8, "one lane, no inbox, an offset commit for each message"),
    published("seed_loop", Consumer::SeedLoop, 323.0, "one lane, inbox, an offset commit for each message"),
    variant(
        "handwritten",
        Consumer::Handwritten,
        Kind::Each,
        40,
        "inbox, `pool.begin()` for each message, offsets committed in the background",
    ),
    variant(
        "handwritten_kept",
        Consumer::HandwrittenKept,
        Kind::Each,
        40,
        "the same, on a connection that the lane keeps",
    ),
    variant("batch1", Consumer::Batch1, Kind::Each, 40, "handstamp with batch = 1"),
    variant("raw_each", Consumer::RawEach, Kind::Each, 40, "the statements alone, from memory"),
    variant(
        "handwritten_batch",
        Consumer::HandwrittenBatch,
        Kind::Batch,
        8,
        "one lane, 500 to a transaction",
    ),
    variant("pipelined", Consumer::Pipelined, Kind::Batch, 4, "500 to a transaction, statements pipelined"),
    variant("no_inbox", Consumer::NoInbox, Kind::Batch, 4, "500 to a transaction, nothing remembered"),
    variant("adaptive", Consumer::C, Kind::Batch, 4, "handstamp as it is without options"),
    variant(
        "write_only",
        Consumer::WriteOnly,
        Kind::Batch,
        4,
        "handstamp with a handler that records what it writes",
    ),
    variant("raw", Consumer::Raw, Kind::Batch, 4, "the statements alone, 500 to a transaction, from memory"),
    variant(
        "handwritten_bulk",
        Consumer::HandwrittenBulk,
        Kind::Bulk,
        1,
        "set-based, up to 5,000 to a transaction",
    ),
    variant("bulk_no_inbox", Consumer::BulkNoInbox, Kind::Bulk, 1, "the same, nothing remembered"),
    variant("bulk", Consumer::Bulk, Kind::Bulk, 1, "handstamp with a handler that takes Vecs"),
    variant("bulk_raw", Consumer::BulkRaw, Kind::Bulk, 1, "the set-based statements alone, from memory"),
];

const fn variant(
    name: &'static str,
    consumer: Consumer,
    kind: Kind,
    one_in: u64,
    what: &'static str,
) -> Variant {
    Variant { name, consumer, kind, one_in, published: None, what }
}

const fn published(name: &'static str, consumer: Consumer, figure: f64, what: &'static str) -> Variant {
    Variant { published: Some(figure), ..variant(name, consumer, Kind::Each, 100, what) }
}

impl Variant {
    /// How many of so many messages it gets.
    pub fn share(&self, messages: u64) -> u64 {
        (messages / self.one_in).max(1)
    }
}
