//! What the tests share: servers, databases, topics, processes, waiting.
//!
//! Everything here panics when it fails, with the cause: a test has no other use for an error.
#![allow(clippy::missing_panics_doc, reason = "said once, above")]

mod database;
mod eventually;
mod instance;
mod introduce;
mod process;
mod raw_producer;
mod record;
mod services;
mod topic;
mod worker;

use uuid::Uuid;

pub use database::TestDatabase;
pub use eventually::eventually;
pub use instance::{PrivateKafka, PrivatePostgres};
pub use introduce::introduce;
pub use process::{ChildProcess, Signal, built_binary};
pub use record::Record;
pub use services::{kafka_brokers, postgres_url};
pub use topic::TestTopic;
pub use worker::Running;

/// A name that no other test uses: for topics, groups, databases, consumers.
#[must_use]
pub fn unique(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}
