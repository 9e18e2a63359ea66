use super::OrderKey;

/// How many messages of a partition may be under way side by side where not all of them are in order: enough
/// to keep a pool of connections busy, few enough that a backlog still makes long transactions.
const TRACKS: u16 = 16;

/// Which messages of a partition are applied one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// All of them.
    Partition,
    /// Those of one Kafka message key. Messages without one have no order.
    Key,
    /// None: each is applied as soon as somebody has time for it.
    None,
}

impl Order {
    /// What it is on a database where so many transactions write at a time. With one nothing is gained by any other
    /// order than the partition's, and rows are simpler.
    pub(crate) fn with_writers(self, writers: usize) -> Self {
        if writers == 1 { Self::Partition } else { self }
    }

    /// How many tracks a lane has.
    pub(super) fn tracks(self) -> u16 {
        match self {
            Self::Partition => 1,
            Self::Key | Self::None => TRACKS,
        }
    }

    /// The one track that a record may run in; `None` if any may.
    pub(super) fn track(self, key: Option<OrderKey>) -> Option<u16> {
        match self {
            Self::Partition => Some(0),
            Self::Key => key.and_then(|OrderKey(hash)| u16::try_from(hash % u64::from(TRACKS)).ok()),
            Self::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_writes_at_a_time_every_order_is_the_partitions() {
        for order in [Order::Partition, Order::Key, Order::None] {
            assert_eq!(order.with_writers(1), Order::Partition);
            assert_eq!(order.with_writers(2), order);
        }
    }
}
