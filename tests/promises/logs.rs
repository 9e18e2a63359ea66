use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use handstamp_tests::eventually;

/// What is logged on this thread. The tasks of a `#[tokio::test]` all run on it.
pub struct Logs(Lines);

type Lines = Arc<Mutex<Vec<u8>>>;

thread_local! {
    static LISTENING: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

impl Logs {
    /// Listens until dropped.
    pub fn capture() -> Self {
        // One subscriber for all: of several that come and go, tracing may ask the wrong one whether
        // anybody is interested, and remember its answer.
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| ToListener).init());
        let lines = Lines::default();
        LISTENING.set(Some(Arc::clone(&lines)));
        Self(lines)
    }

    /// The lines that have `text` in them.
    pub fn with(&self, text: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = String::from_utf8_lossy(&lines);
        lines.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }

    /// Waits for a line that has `text` in it.
    pub async fn wait_for(&self, text: &str) {
        eventually(Duration::from_secs(30), async || {
            ensure!(!self.with(text).is_empty(), "no line with {text:?} in {:#?}", self.with(""));
            Ok(())
        })
        .await;
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        LISTENING.set(None);
    }
}

/// Writes to whoever listens on the thread that logs.
struct ToListener;

impl Write for ToListener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LISTENING.with_borrow(|listening| {
            if let Some(lines) = listening {
                lines.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
