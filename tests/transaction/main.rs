//! The inbox transaction on real databases. `both` is compiled once for each of them.

mod database;
mod messages;
mod postgres;
mod sqlite;
