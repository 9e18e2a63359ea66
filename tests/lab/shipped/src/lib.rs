//! What all variants of the published experiments do to the database, and those that are handstamp as it ships.

mod deposit;
mod handlers;
mod stall;
mod work;
mod worker;

pub use deposit::Deposit;
pub use stall::Stall;
pub use work::{CREDIT, OnCall, RECORD, Work};
pub use worker::{Handling, Source, Told, run};
