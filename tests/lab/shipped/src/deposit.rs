use serde::{Deserialize, Serialize};

/// The payload of every message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposit {
    /// Counts from 0, in the order of production.
    pub number: u64,
    /// Who gets it.
    pub account: i64,
    /// How much.
    pub amount: i64,
}
