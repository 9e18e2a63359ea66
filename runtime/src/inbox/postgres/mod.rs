//! PostgreSQL 15 or newer. Every name is schema-qualified and nothing is set for longer than a transaction,
//! so that a pooler in transaction mode may stand in between.

mod consumers;
mod dead_letters;
pub(super) mod effects;
mod migrations;
mod progress;
mod server;
mod stamp;
mod sweep;
