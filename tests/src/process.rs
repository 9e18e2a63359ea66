//! Processes that tests start, freeze and kill.

use std::env;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::eventually;

/// A signal for a [`ChildProcess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGKILL: it gets no chance to tidy up.
    Kill,
    /// SIGTERM: it shuts down in order.
    Terminate,
    /// SIGSTOP: it freezes where it is, with its connections open.
    Freeze,
    /// SIGCONT: it goes on.
    Thaw,
}

impl Signal {
    fn number(self) -> libc::c_int {
        match self {
            Self::Kill => libc::SIGKILL,
            Self::Terminate => libc::SIGTERM,
            Self::Freeze => libc::SIGSTOP,
            Self::Thaw => libc::SIGCONT,
        }
    }
}

/// A process of its own whose output is collected. Killed when dropped.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    output: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl ChildProcess {
    /// Starts it; standard output and error go into [`output`](Self::output).
    #[must_use]
    pub fn spawn(command: Command) -> Self {
        let output = Arc::default();
        let said = keeping(Arc::clone(&output));
        Self::start(command, output, said)
    }

    /// Starts it; `hear` is given each line of its standard output, which is not kept. It is dropped when
    /// there is no more.
    #[must_use]
    pub fn spawn_heard(command: Command, hear: impl FnMut(&str) + Send + 'static) -> Self {
        Self::start(command, Arc::default(), hear)
    }

    fn start(
        mut command: Command,
        output: Arc<Mutex<String>>,
        said: impl FnMut(&str) + Send + 'static,
    ) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot start {:?}: {error}", command.as_std()));
        let mut readers = Vec::new();
        readers.extend(child.stdout.take().map(|pipe| read(pipe, said)));
        readers.extend(child.stderr.take().map(|pipe| read(pipe, keeping(Arc::clone(&output)))));
        Self { child, output, readers }
    }

    /// Its id, until it has been waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id().expect("the process has not ended")
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = libc::pid_t::try_from(self.id()).expect("process ids fit pid_t");
        // SAFETY: no precondition. The child has not been waited for, so the id is still its own.
        let sent = unsafe { libc::kill(id, signal.number()) };
        assert_eq!(sent, 0, "cannot signal process {id}: {}", std::io::Error::last_os_error());
    }

    /// Waits until it stands still, whoever has frozen it.
    pub async fn wait_until_frozen(&self, within: Duration) {
        let stat = format!("/proc/{}/stat", self.id());
        eventually(within, async || {
            let stat = std::fs::read_to_string(&stat)?;
            // The name before it is in parentheses, and may hold any.
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            ensure!(state == Some('T'), "its state is {state:?}");
            Ok(())
        })
        .await;
    }

    /// Kills it and waits until it is gone.
    pub async fn kill(&mut self) {
        self.signal(Signal::Kill);
        self.wait(Duration::from_secs(10)).await;
    }

    /// Waits for its end and for all of its output.
    pub async fn wait(&mut self, within: Duration) -> ExitStatus {
        let status = timeout(within, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("still running after {within:?}; {}", self.said()));
        for reader in self.readers.drain(..) {
            reader.await.expect("output is text");
        }
        status.expect("a child can be waited for")
    }

    /// Waits until a line with `text` in it has been printed.
    pub async fn wait_for_line(&self, text: &str, within: Duration) {
        eventually(within, async || {
            ensure!(self.output().contains(text), "no line with {text:?}; {}", self.said());
            Ok(())
        })
        .await;
    }

    /// What it has printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn said(&self) -> String {
        format!("it said:\n{}", self.output())
    }
}

fn read(
    pipe: impl AsyncRead + Send + Unpin + 'static,
    mut hear: impl FnMut(&str) + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut lines = BufReader::new(pipe).lines();
        while let Some(line) = lines.next_line().await.expect("output is text") {
            hear(&line);
        }
    })
}

fn keeping(output: Arc<Mutex<String>>) -> impl FnMut(&str) + Send + 'static {
    move |line| {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push_str(line);
        output.push('\n');
    }
}

/// The path of a binary of this workspace, built with the same profile as the test that asks.
#[must_use]
pub fn built_binary(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a process knows its path");
    let profile = test.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
    let binary = profile.join(name);
    assert!(binary.exists(), "{} is not built: `cargo build --bin {name}`", binary.display());
    binary
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> ChildProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ChildProcess::spawn(command)
    }

    #[tokio::test]
    async fn all_output_is_there_once_the_process_has_ended() {
        let mut process = shell("echo one; echo two >&2; exit 3");
        assert_eq!(process.wait(SOON).await.code(), Some(3));
        let mut lines: Vec<_> = process.output().lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["one", "two"]);
    }

    #[tokio::test]
    async fn every_line_is_heard_before_the_process_has_been_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two; echo three >&2"]);
        let (heard, lines) = std::sync::mpsc::channel();
        let mut process = ChildProcess::spawn_heard(command, move |line| {
            heard.send(line.to_owned()).expect("the test listens");
        });
        process.wait(SOON).await;
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(process.output(), "three\n");
    }

    #[tokio::test]
    async fn a_killed_process_dies_of_sigkill() {
        let mut process = shell("trap '' TERM; echo ready; read line; sleep 60");
        process.signal(Signal::Kill);
        assert_eq!(process.wait(SOON).await.signal(), Some(libc::SIGKILL));
    }

    #[tokio::test]
    async fn a_frozen_process_says_nothing_until_it_is_thawed() {
        let mut process = shell("trap 'echo got it; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
        process.wait_for_line("ready", SOON).await;
        process.signal(Signal::Freeze);
        process.signal(Signal::Terminate);
        let frozen = timeout(Duration::from_millis(200), process.child.wait()).await;
        assert!(frozen.is_err() && !process.output().contains("got it"));
        process.signal(Signal::Thaw);
        assert!(process.wait(SOON).await.success());
    }

    #[tokio::test]
    #[should_panic(expected = "it said:\nhello")]
    async fn a_line_that_never_comes_is_reported_with_what_came() {
        shell("echo hello; sleep 60").wait_for_line("goodbye", Duration::from_millis(500)).await;
    }
}
