/// A consumer's number in the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerId(pub i16);

/// A registered consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its number.
    pub id: ConsumerId,
    /// Its name: the scope of deduplication.
    pub name: String,
    /// Where its keys come from.
    pub key_definition: String,
    /// The path of its handler.
    pub handler: String,
    /// Its Kafka group.
    pub group: Option<String>,
    /// The topics it reads; empty for other sources.
    pub topics: Vec<String>,
}
