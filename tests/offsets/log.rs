//! What workers say to the person on call, kept so that tests can read it.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use handstamp_tests::eventually;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

static LINES: Mutex<String> = Mutex::new(String::new());
static KEEP: Once = Once::new();
static TRAP: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the lines of all workers of this process from now on.
pub fn keep() {
    KEEP.call_once(|| {
        let filter = EnvFilter::new("handstamp=info,handstamp::librdkafka=debug");
        tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(Kept).init();
    });
}

/// Panics at the next line of a poll thread with this text, once, as a subscriber with a mistake would.
pub fn panic_at(text: &str) {
    *TRAP.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
}

/// The lines of one group.
pub fn of(group: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.lines().filter(|line| line.contains(group)).map(str::to_owned).collect()
}

/// Waits until a group's worker has said this.
pub async fn says(group: &str, text: &str, within: Duration) -> String {
    eventually(within, async || {
        let lines = of(group);
        let line = lines.iter().find(|line| line.contains(text)).cloned();
        ensure!(line.is_some(), "no line with {text:?} among {lines:#?}");
        Ok(line.unwrap_or_default())
    })
    .await
}

struct Kept;

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if thread::current().name() == Some("handstamp-poll") {
            let sprung =
                TRAP.lock().unwrap_or_else(PoisonError::into_inner).take_if(|trap| text.contains(&**trap));
            assert!(sprung.is_none(), "a mistake in a subscriber");
        }
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_str(&text);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Kept {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}
