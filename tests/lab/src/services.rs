//! Where Kafka and PostgreSQL are.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Returns once `DATABASE_URL` and `KAFKA_BROKERS` are set: if they are not, this process goes on as a child of
/// `tests/services run`, which starts the services, sets both, and stops what it started.
pub fn require() -> Result<()> {
    let given = |name| env::var(name).is_ok_and(|value| !value.is_empty());
    if given("DATABASE_URL") && given("KAFKA_BROKERS") {
        return Ok(());
    }
    let services = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../services"));
    ensure!(
        services.exists(),
        "set DATABASE_URL and KAFKA_BROKERS, or run this in a checkout of the repository: its `tests/services` \
         would provide both"
    );
    let lab = env::current_exe().context("this process does not know its own path")?;
    let error = Command::new(services).arg("run").arg(lab).args(env::args_os().skip(1)).exec();
    Err(error)
        .context("cannot start `tests/services`; set DATABASE_URL and KAFKA_BROKERS to use other services")
}
