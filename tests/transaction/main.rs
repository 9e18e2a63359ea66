//! The inbox transaction on real databases. `both` is compiled once for each of them.

#![allow(clippy::duplicate_mod, reason = "`both` is compiled once for each database")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod database;
mod link;
mod messages;
mod postgres;
mod sqlite;
