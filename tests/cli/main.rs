//! The operator's tool, as a process of its own, on real services.

mod consumers;
mod dlq;
mod migrate;
mod progress;
mod refusals;
mod reset;
mod tool;
