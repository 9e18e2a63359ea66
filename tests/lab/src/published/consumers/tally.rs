//! What a consumer process tells whoever started it, a line each on standard output.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::meter::{Meter, Used};
use super::reading::Reading;

/// Printed once the first message is finished.
pub const WORKING: &str = "working";
/// Printed once the last is, followed by the [`Reading`].
pub const FINISHED: &str = "finished ";
/// What a line has that tells of an eviction: our own word, or the one in librdkafka's log.
pub const EVICTED: [&str; 2] = ["evicted", "MAXPOLL"];

/// When a message was finished.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Done {
    pub partition: i32,
    pub offset: i64,
    /// Since 1970, by the clock of the machine.
    pub micros: u64,
}

/// Counts what one process has finished.
pub struct Tally {
    meter: Meter,
    until: Option<u64>,
    begun: OnceLock<(Instant, Used)>,
    finished: AtomicU64,
    times: Option<(PathBuf, Mutex<Vec<Done>>)>,
}

impl Tally {
    pub fn new(meter: Meter, until: Option<u64>, times: Option<PathBuf>) -> Self {
        let times = times.map(|path| (path, Mutex::default()));
        Self { meter, until, begun: OnceLock::new(), finished: AtomicU64::new(0), times }
    }

    /// How many messages there are, if they are counted.
    pub fn until(&self) -> Option<u64> {
        self.until
    }

    /// The clock starts with the first call.
    pub fn begin(&self) {
        self.begun.get_or_init(|| (Instant::now(), self.meter.used()));
    }

    /// One more message was dealt with.
    pub fn finish(&self, partition: i32, offset: i64) {
        if let Some((_, times)) = &self.times {
            let done = Done { partition, offset, micros: now() };
            times.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        }
        let finished = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        if finished == 1 {
            println!("{WORKING}");
        }
        if self.until == Some(finished) {
            self.tell();
        }
    }

    fn tell(&self) {
        let Some((started, before)) = self.begun.get() else { return };
        let took = started.elapsed();
        let reading = Reading::of(took, self.meter.used().since(*before), Meter::peak_kb());
        if let Err(error) = self.write_times() {
            eprintln!("the times cannot be written: {error}");
        }
        println!("{FINISHED}{}", serde_json::json!(reading));
    }

    fn write_times(&self) -> std::io::Result<()> {
        let Some((path, times)) = &self.times else { return Ok(()) };
        let times = times.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::write(path, serde_json::to_vec(&*times)?)
    }
}

/// Microseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
