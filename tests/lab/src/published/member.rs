//! A consumer process, seen from outside.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use handstamp_tests::{ChildProcess, Signal, kafka_brokers};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::consumers::{Consumer, EVICTED, FINISHED, Reading, WORKING};

/// How long a process may take to die, and to say its last words.
const SOON: Duration = Duration::from_secs(30);
/// How often what it has printed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

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
                &self.consumer.name(),
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

    /// Waits until it has finished a message.
    pub async fn working(&self, within: Duration) -> Result<()> {
        let deadline = Instant::now() + within;
        while !self.has_worked() {
            ensure!(Instant::now() < deadline, "no message within {within:?}; {}", self.said());
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// What it took for its messages, once it has finished all of them.
    pub async fn finished(&self, within: Duration) -> Result<Reading> {
        let started = Instant::now();
        while started.elapsed() < within {
            let output = self.process.output();
            if let Some(reading) = output.lines().find_map(|line| line.strip_prefix(FINISHED)) {
                return serde_json::from_str(reading).context("the consumer's reading");
            }
            sleep(LOOK_EVERY).await;
        }
        bail!("not finished within {within:?}; it said:\n{}", self.process.output())
    }
}
