//! A consumer process, seen from outside.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use handstamp_tests::{ChildProcess, Signal, kafka_brokers};
use tokio::process::Command;

use super::consumers::{Consumer, EVICTED, FINISHED, WORKING};

/// How long a process may take to die, and to say its last words.
const SOON: Duration = Duration::from_secs(30);

/// What a consumer process is started with.
#[derive(Clone, Debug)]
pub struct Launch {
    pub consumer: Consumer,
    pub topic: String,
    pub group: String,
    pub database: String,
    pub options: Vec<String>,
}

/// One that runs.
pub struct Member {
    process: ChildProcess,
}

impl Launch {
    pub fn start(&self) -> Result<Member> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args([
                "consume",
                "--consumer",
                self.consumer.name(),
                "--topic",
                &self.topic,
                "--group",
                &self.group,
            ])
            .args(&self.options)
            .env("KAFKA_BROKERS", kafka_brokers())
            .env("DATABASE_URL", &self.database);
        Ok(Member { process: ChildProcess::spawn(command) })
    }
}

impl Member {
    /// Whether it has finished a message.
    pub fn has_worked(&self) -> bool {
        self.process.output().lines().any(|line| line == WORKING)
    }

    /// What it has printed.
    pub fn said(&self) -> String {
        format!("it said:\n{}", self.process.output())
    }

    /// How often its client was told that it polled too late.
    pub fn evictions(&self) -> u64 {
        self.process.output().lines().filter(|line| EVICTED.iter().any(|word| line.contains(word))).count()
            as u64
    }

    /// Kills it, and waits for its end: SIGKILL, or something else had ended it before.
    pub async fn kill(mut self) -> Result<()> {
        self.process.signal(Signal::Kill);
        let status = self.process.wait(SOON).await;
        ensure!(
            status.signal() == Some(libc::SIGKILL),
            "the consumer had ended by itself ({status}):\n{}",
            self.process.output()
        );
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(mut self) {
        self.process.signal(Signal::Terminate);
        self.process.wait(SOON).await;
    }

    /// How long it took for its messages, from the first that it got to the last that it finished.
    pub async fn finished(&self, within: Duration) -> Result<Duration> {
        let started = tokio::time::Instant::now();
        while started.elapsed() < within {
            if let Some(micros) = self.process.output().lines().find_map(|line| line.strip_prefix(FINISHED)) {
                return Ok(Duration::from_micros(micros.trim().parse().context("a number of microseconds")?));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("not finished within {within:?}; it said:\n{}", self.process.output())
    }
}
