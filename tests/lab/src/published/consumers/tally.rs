//! What a consumer process tells whoever started it, a line each on standard output.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Printed once the first message is finished.
pub const WORKING: &str = "working";
/// Printed once the last is, followed by microseconds.
pub const FINISHED: &str = "finished ";
/// What a line has that tells of an eviction: our own word, or the one in librdkafka's log.
pub const EVICTED: [&str; 2] = ["evicted", "MAXPOLL"];

/// Counts what one process has finished.
pub struct Tally {
    until: Option<u64>,
    begun: OnceLock<Instant>,
    finished: AtomicU64,
}

impl Tally {
    pub fn new(until: Option<u64>) -> Self {
        Self { until, begun: OnceLock::new(), finished: AtomicU64::new(0) }
    }

    /// The clock starts with the first call.
    pub fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    /// One more message was dealt with.
    pub fn finish(&self) {
        let finished = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        if finished == 1 {
            println!("{WORKING}");
        }
        if self.until == Some(finished) {
            let took = self.begun.get().map(Instant::elapsed).unwrap_or_default();
            println!("{FINISHED}{}", took.as_micros());
        }
    }
}
