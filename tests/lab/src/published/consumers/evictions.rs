use anyhow::{Result, anyhow};
use log::{LevelFilter, Log, Metadata};
use tracing_subscriber::EnvFilter;

/// Has handstamp's log on standard error tell of every eviction. Its own word of them comes once in a while;
/// librdkafka warns of each, which the client passes on to `tracing` if somebody listens to `log`.
pub fn log_all() -> Result<()> {
    log::set_logger(&Listening).map_err(|error| anyhow!("{error}"))?;
    log::set_max_level(LevelFilter::Warn);
    let filter = EnvFilter::new("info,handstamp::librdkafka=debug");
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    Ok(())
}

struct Listening;

impl Log for Listening {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &log::Record<'_>) {}

    fn flush(&self) {}
}
