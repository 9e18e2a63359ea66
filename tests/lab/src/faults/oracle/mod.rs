//! Sees what happened, by connections of its own and from nothing that the runtime says of itself.

mod verdict;
mod watch;

pub use self::verdict::{Holdings, Verdict};
pub use self::watch::{Subject, Watch, Watched};
