use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use handstamp_tests::{ChildProcess, Signal};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::journal::{Journal, ProcessNumber};
use super::worker::Told;

/// How long a process may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(40);
/// A worker says that it drains for at most 10 s.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A worker process.
#[derive(Debug)]
pub struct Member {
    process: ChildProcess,
    number: ProcessNumber,
    post: String,
    said: watch::Receiver<Said>,
    journal: Arc<Journal>,
    log: PathBuf,
}

/// What one process has said so far.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// How often it was given a partition.
    pub started: u64,
    /// How often a partition was taken back.
    pub ended: u64,
    /// How many records it has dealt with.
    pub done: u64,
    /// The point at which its trigger went off.
    pub reached: Option<String>,
}

/// What librdkafka calls the one thread that every client has.
const CLIENT_THREAD: &str = "rdk:main";
/// A worker has one for its group, and another only for a moment, to ask something.
const CLIENTS: usize = 1;

impl Member {
    /// Waits until it has no more clients than it needs; whether that was before patience ended. One that was given
    /// up and is never done closing keeps its threads.
    pub async fn until_rid_of_clients(&self) -> Result<bool> {
        let deadline = Instant::now() + PATIENCE;
        while clients(self.process.id())? > CLIENTS {
            if Instant::now() > deadline {
                return Ok(false);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(true)
    }

    pub fn spawn(
        command: Command,
        number: ProcessNumber,
        post: &str,
        journal: &Arc<Journal>,
        logs: &Path,
    ) -> Self {
        let (saying, said) = watch::channel(Said::default());
        let (heard, name) = (Arc::clone(journal), post.to_owned());
        let process = ChildProcess::spawn_heard(command, move |line| {
            // Half a line is what a killed process was about to say.
            let Ok(told) = serde_json::from_str::<Told>(line) else { return };
            heard.hear(number, &name, &told);
            saying.send_modify(|said| said.note(told));
        });
        let log = logs.join(format!("{number}-{post}.log"));
        journal.enter(number, process.id());
        Self { process, number, post: post.to_owned(), said, journal: Arc::clone(journal), log }
    }

    /// Waits until it has said what is wanted.
    pub async fn until(&mut self, what: &str, wanted: impl FnMut(&Said) -> bool) -> Result<()> {
        match timeout(PATIENCE, self.said.wait_for(wanted)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => bail!("{} ended before {what}", self.post),
            Err(_) => bail!("{} is still not {what}", self.post),
        }
    }

    /// Waits until it has dealt with so many more records.
    pub async fn until_done(&mut self, more: u64) -> Result<()> {
        let target = self.said().done + more;
        self.until("applying", |said| said.done >= target).await
    }

    pub fn said(&self) -> Said {
        self.said.borrow().clone()
    }

    /// Whether it has logged this.
    pub fn has_logged(&self, words: &str) -> bool {
        self.process.output().contains(words)
    }

    pub fn number(&self) -> ProcessNumber {
        self.number
    }

    /// Whether it reads any partition.
    pub fn is_reading(&self) -> bool {
        !self.journal.held_by(self.number).is_empty()
    }

    /// Something is done to it now; returns what it reads.
    pub fn strike(&self) -> BTreeSet<i32> {
        self.journal.strike(self.number)
    }

    /// Waits until it has frozen itself at its point.
    pub async fn until_frozen(&mut self) -> Result<()> {
        self.until("frozen", |said| said.reached.is_some()).await?;
        // It says so before: thawed in between, it would stand still for ever.
        self.process.wait_until_frozen(PATIENCE).await;
        Ok(())
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it; whether it was reading. An error if something else had ended it before.
    pub async fn kill(self) -> Result<bool> {
        let reading = !self.strike().is_empty();
        self.process.signal(Signal::Kill);
        self.killed().await?;
        Ok(reading)
    }

    /// Waits until it has killed itself: the point, or `None` if it does not within `limit` and was killed.
    /// An error if something else had ended it before.
    pub async fn die(mut self, limit: Duration) -> Result<Option<String>> {
        let reached = timeout(limit, self.said.wait_for(|said| said.reached.is_some())).await.is_ok();
        self.strike();
        if !reached {
            self.process.signal(Signal::Kill);
        }
        let said = self.said.clone();
        self.killed().await?;
        let reached = said.borrow().reached.clone();
        Ok(reached)
    }

    /// Waits until it ends by itself, because of what it met; an error if it ends in another way.
    pub async fn give_up(&mut self) -> Result<()> {
        let status = self.process.wait(Duration::MAX).await;
        self.journal.leave(self.number);
        ensure!(status.code() == Some(1), "{} ended with {status}", self.post);
        Ok(())
    }

    async fn killed(mut self) -> Result<()> {
        let status = self.process.wait(PATIENCE).await;
        self.journal.leave(self.number);
        ensure!(status.signal() == Some(libc::SIGKILL), "{} had ended by itself: {status}", self.post);
        Ok(())
    }

    /// Tells it to stop, and returns how long it took.
    pub async fn stop(mut self) -> Result<Duration> {
        let asked = Instant::now();
        self.journal.ask_to_leave(self.number);
        self.process.signal(Signal::Terminate);
        let status = self.process.wait(STOP_LIMIT).await;
        self.journal.leave(self.number);
        ensure!(status.success(), "{} ended with {status}", self.post);
        Ok(asked.elapsed())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.log, self.process.output()) {
            eprintln!("cannot keep {}: {error}", self.log.display());
        }
    }
}

impl Said {
    fn note(&mut self, told: Told) {
        match told {
            Told::Started { .. } => self.started += 1,
            Told::Ended { .. } => self.ended += 1,
            Told::Done { .. } => self.done += 1,
            Told::Reached { point } => self.reached = Some(point),
            _ => {}
        }
    }
}

fn clients(process: u32) -> Result<usize> {
    let mut clients = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // One that has ended meanwhile has no name.
        let name = fs::read_to_string(thread?.path().join("comm")).unwrap_or_default();
        clients += usize::from(name.trim() == CLIENT_THREAD);
    }
    Ok(clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(script: &str, logs: &Path) -> Member {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Member::spawn(command, 0, "post", &Arc::new(Journal::new(1)), logs)
    }

    #[tokio::test]
    async fn a_worker_that_had_ended_by_itself_does_not_pass_for_killed() {
        let logs = tempfile::tempdir().expect("there is room");
        let mut member = member("exit 3", logs.path());
        member.until("over", |_| false).await.expect_err("it says nothing and ends");
        let error = member.kill().await.expect_err("it was not killed");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }

    #[tokio::test]
    async fn a_worker_that_ends_before_its_point_does_not_pass_for_one_that_never_gets_there() {
        let logs = tempfile::tempdir().expect("there is room");
        let error = member("exit 3", logs.path()).die(PATIENCE).await.expect_err("it did not kill itself");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }

    #[tokio::test]
    async fn a_worker_that_kills_itself_tells_where() {
        let logs = tempfile::tempdir().expect("there is room");
        let script = r#"echo '{"reached":{"point":"in-handler"}}'; kill -KILL $$"#;
        let died = member(script, logs.path()).die(PATIENCE).await.expect("it killed itself");
        assert_eq!(died.as_deref(), Some("in-handler"));
    }
}
