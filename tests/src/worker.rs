//! A worker that runs beside a test.

use std::time::Duration;

use handstamp::{Disposition, Notice, Position, Store, WorkerBuilder, WorkerError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

/// How long anything may take that takes a moment on an idle machine.
const SOON: Duration = Duration::from_secs(30);

/// A worker that was started, and what it tells.
#[derive(Debug)]
pub struct Running {
    notices: mpsc::UnboundedReceiver<Notice>,
    heard: Vec<Notice>,
    stop: Option<oneshot::Sender<()>>,
    run: JoinHandle<Result<(), WorkerError>>,
}

impl Running {
    /// Starts a worker.
    #[must_use]
    pub fn start<DB: Store, S: Send + 'static>(builder: WorkerBuilder<DB, S>) -> Self {
        let (told, notices) = mpsc::unbounded_channel();
        let (stop, stopping) = oneshot::channel();
        let builder = builder
            .observe(move |notice| {
                // A test that has heard enough goes on without listening.
                let _gone = told.send(notice.clone());
            })
            .with_graceful_shutdown(async {
                if stopping.await.is_err() {
                    std::future::pending::<()>().await;
                }
            });
        Self { notices, heard: Vec::new(), stop: Some(stop), run: tokio::spawn(builder.run()) }
    }

    /// The next notice that is wanted; those before it are passed over.
    pub async fn next(&mut self, limit: Duration, wanted: impl Fn(&Notice) -> bool) -> Notice {
        let deadline = Instant::now() + limit;
        loop {
            match timeout_at(deadline, self.notices.recv()).await {
                Ok(Some(notice)) => {
                    self.heard.push(notice.clone());
                    if wanted(&notice) {
                        return notice;
                    }
                }
                Ok(None) => {
                    panic!("the worker ended: {:?}; before: {:#?}", (&mut self.run).await, self.last())
                }
                Err(elapsed) => panic!("not told within {limit:?} ({elapsed}), but: {:#?}", self.last()),
            }
        }
    }

    /// Waits until `count` more messages are dealt with, and returns where they stood and what became of them.
    pub async fn until_done(&mut self, count: usize) -> Vec<(Position, Disposition)> {
        let mut done = Vec::with_capacity(count);
        while done.len() < count {
            let notice = self.next(SOON, |notice| matches!(notice, Notice::Done { .. })).await;
            if let Notice::Done { position, disposition, .. } = notice {
                done.push((position, disposition));
            }
        }
        done
    }

    /// Waits until `next` is committed to Kafka for a partition, which then has nothing left to commit.
    pub async fn until_committed(&mut self, partition: i32, next: i64) {
        self.next(SOON, |notice| match notice {
            Notice::Committed { offsets, error: None, .. } => {
                offsets.iter().any(|at| at.partition == partition && at.offset == next)
            }
            _ => false,
        })
        .await;
    }

    /// What was told so far, the notices passed over included.
    pub fn heard(&mut self) -> &[Notice] {
        while let Ok(notice) = self.notices.try_recv() {
            self.heard.push(notice);
        }
        &self.heard
    }

    /// Tells it to stop, and does not wait for it.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ended = stop.send(());
        }
    }

    /// Tells it to stop, and returns what `run` did.
    ///
    /// # Errors
    /// Those of the worker.
    pub async fn stop(mut self) -> Result<(), WorkerError> {
        self.ask_to_stop();
        self.ended().await
    }

    /// Waits until `run` returns, by itself or because it was asked to.
    ///
    /// # Errors
    /// Those of the worker.
    pub async fn ended(&mut self) -> Result<(), WorkerError> {
        let ended = timeout(SOON, &mut self.run).await;
        ended
            .unwrap_or_else(|_| panic!("still running, after: {:#?}", self.last()))
            .expect("run does not panic")
    }

    fn last(&self) -> &[Notice] {
        &self.heard[self.heard.len().saturating_sub(20)..]
    }
}
