//! What all variants of the published experiments do to the database, and the one that is handstamp as it ships.

mod deposit;
mod stall;
mod work;
mod worker;

pub use deposit::Deposit;
pub use stall::Stall;
pub use work::Work;
pub use worker::{Source, Told, run};
