//! The stamp: which keys a consumer has applied, written in the transaction of their effects.
//!
//! [`Store`] is everything that differs between databases; `postgres` and `sqlite` implement it, the same
//! functions in the same files, and are the only places with SQL. The other files say what is done with it.

mod access;
mod claim;
mod connections;
mod consumer;
pub mod consumers;
pub mod dead_letters;
mod effects;
mod loan;
mod open;
pub mod progress;
mod registration;
pub mod server;
mod store;
pub mod sweep;
pub(crate) mod transaction;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use access::Access;
#[cfg(feature = "kafka")]
pub(crate) use claim::Tables;
pub(crate) use claim::{Claimant, Claimed, Guard};
pub use connections::Connections;
pub use open::Inbox;
#[cfg(feature = "postgres")]
pub use postgres::effects::{Effect, EffectArguments, Effects};
pub use store::Store;
