//! Sees what happened, by connections of its own and from nothing that the runtime says of itself.

mod copies;
mod holdings;
mod verdict;
mod watch;

pub use self::copies::{Copies, Letter};
pub use self::holdings::Holdings;
pub use self::verdict::Verdict;
pub use self::watch::{LookingAway, Subject, Watch, Watched};
