use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::meter::Used;

/// What a consumer process has taken for its messages, from the first that it got to the last that it finished.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Reading {
    pub micros: u64,
    /// Processor time of the process.
    pub consumer_cpu_ms: u64,
    /// Processor time of all processes of PostgreSQL, where they can be seen.
    pub database_cpu_ms: Option<u64>,
    /// The most memory that the process has had, since it was started.
    pub peak_kb: u64,
}

impl Reading {
    pub fn of(took: Duration, used: Used, peak_kb: u64) -> Self {
        Self {
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            consumer_cpu_ms: used.consumer_ms,
            database_cpu_ms: used.database_ms,
            peak_kb,
        }
    }

    pub fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros).as_secs_f64()
    }
}
