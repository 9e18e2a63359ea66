//! The processes that apply the credits: started, killed, started again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::broker::Broker;
use crate::options::Plan;
use crate::report::Tally;

pub struct Workers {
    workers: Vec<Worker>,
    tally: watch::Sender<Tally>,
}

struct Worker {
    launch: Launch,
    child: Child,
    /// Ends when everything that the process has told is counted.
    listener: JoinHandle<()>,
}

/// How one worker is started, every time.
struct Launch {
    number: usize,
    arguments: Vec<String>,
    brokers: String,
    database: String,
    log: PathBuf,
}

impl Workers {
    /// Starts all of them. Their logs go to `directory`.
    pub fn start(plan: &Plan, broker: &Broker, database: &str, directory: &Path) -> Result<Self> {
        let (tally, _) = watch::channel(Tally::new(plan.workers as usize));
        let workers = (0..plan.workers as usize)
            .map(|number| {
                let launch = Launch {
                    number,
                    arguments: arguments(plan, broker, number),
                    brokers: broker.servers(),
                    database: database.to_owned(),
                    log: directory.join(format!("worker-{number}.log")),
                };
                Worker::start(launch, &tally)
            })
            .collect::<Result<_>>()?;
        Ok(Self { workers, tally })
    }

    /// What they have told so far.
    pub fn tally(&self) -> watch::Receiver<Tally> {
        self.tally.subscribe()
    }

    /// Kills a worker that has worked since it was started, and starts it again.
    pub async fn kill_one(&mut self, choice: u64) -> Result<()> {
        self.check()?;
        let mut busy = self.tally.borrow().busy();
        let Some(pick) = choice.checked_rem(busy.len() as u64) else {
            bail!("no worker has done anything since it was started: {}", self.logs());
        };
        let number = busy.swap_remove(usize::try_from(pick)?);
        self.workers[number].kill_and_restart(&self.tally).await
    }

    /// Fails if a worker has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        for Worker { launch, child, .. } in &mut self.workers {
            if let Some(status) = child.try_wait()? {
                bail!("worker {} ended by itself ({status}): see {}", launch.number, launch.log.display());
            }
        }
        Ok(())
    }

    /// Lets them finish and leave their group; then says what they have told in all.
    pub async fn stop(mut self) -> Result<Tally> {
        for worker in &mut self.workers {
            drop(worker.child.stdin.take());
        }
        for Worker { mut child, listener, .. } in self.workers {
            if timeout(PATIENCE, child.wait()).await.is_err() {
                child.kill().await?;
            }
            listener.await?;
        }
        Ok(self.tally.borrow().clone())
    }

    /// Where to look when they do not work.
    pub fn logs(&self) -> String {
        let logs = self.workers.iter().map(|worker| worker.launch.log.display().to_string());
        format!("see {}", logs.collect::<Vec<_>>().join(", "))
    }
}

impl Worker {
    fn start(launch: Launch, tally: &watch::Sender<Tally>) -> Result<Self> {
        let (child, listener) = launch.start(tally)?;
        Ok(Self { launch, child, listener })
    }

    async fn kill_and_restart(&mut self, tally: &watch::Sender<Tally>) -> Result<()> {
        // SIGKILL; and its exit is awaited, so that two processes never share a name in the group.
        self.child.kill().await.context("cannot kill a worker")?;
        (&mut self.listener).await?;
        tally.send_modify(|tally| tally.killed(self.launch.number));
        (self.child, self.listener) = self.launch.start(tally)?;
        Ok(())
    }
}

impl Launch {
    fn start(&self, tally: &watch::Sender<Tally>) -> Result<(Child, JoinHandle<()>)> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("worker")
            .args(&self.arguments)
            // Not as arguments, which everybody can read: they may hold passwords.
            .env("KAFKA_BROKERS", &self.brokers)
            .env("DATABASE_URL", &self.database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a worker process")?;
        let told = child.stdout.take().context("a worker process without standard output")?;
        Ok((child, tokio::spawn(listen(told, self.number, tally.clone()))))
    }
}

/// How long a worker may take to finish.
const PATIENCE: Duration = Duration::from_secs(15);

/// Counts what one process tells, also what is still in the pipe when it is dead.
async fn listen(told: ChildStdout, worker: usize, tally: watch::Sender<Tally>) {
    let mut lines = BufReader::new(told).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(report) = line.parse() {
            tally.send_modify(|tally| tally.add(worker, report));
        }
    }
}

fn arguments(plan: &Plan, broker: &Broker, worker: usize) -> Vec<String> {
    let mut arguments = vec![
        format!("--topic={}", plan.run),
        format!("--group={}", plan.run),
        format!("--handler-sleep={}", plan.handler_sleep),
    ];
    let properties = broker.membership(plan, worker);
    arguments.extend(properties.iter().map(|(name, value)| format!("--property={name}={value}")));
    if plan.without_inbox {
        arguments.push("--without-inbox".to_owned());
    }
    arguments
}
