//! SQLite, for tests and small tools: one writer at a time, no server, no transaction ids.
//!
//! A statement that fails does not undo the transaction here, so a handler that hides an error of the
//! database is not caught: that promise is PostgreSQL's.

mod consumers;
mod dead_letters;
mod effects;
mod migrations;
mod progress;
mod server;
mod stamp;
mod sweep;
