//! Work that is started for the core: one message or a batch, or progress that no message writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::Pool;
use tokio::sync::{mpsc, oneshot};

use super::answer::{Answer, Ended, Row};
use crate::apply::{self, Consumer, JobFailure};
use crate::failure::{Failure, FailureKind};
use crate::flow::{Ahead, Job, JobId, LaneId, Offset, Offsets, Outcome, Save, Saved, SavedResult, Setback};
use crate::inbox::dead_letters::Reason;
use crate::inbox::progress::{self, Tracking};
use crate::inbox::{Connections, Store};
use crate::laboratory::point;
use crate::message::Message;

/// Why the first message of each track of a lane failed the last time: what its dead letter will say.
#[derive(Debug, Default)]
pub(super) struct Failures(BTreeMap<(LaneId, u16), (Offset, Reason, String)>);

impl Failures {
    pub(super) fn note(&mut self, track: (LaneId, u16), offset: Offset, failure: &Failure) {
        let reason = match failure.kind() {
            FailureKind::Handler => Reason::Failed,
            FailureKind::Key => Reason::Key,
            FailureKind::Decode => Reason::Decode,
            FailureKind::Rejected => Reason::Rejected,
            // Nothing that is parked for.
            _ => return,
        };
        self.0.insert(track, (offset, reason, failure.to_string()));
    }

    pub(super) fn park(&self, track: (LaneId, u16), offset: Option<Offset>, attempts: u32) -> apply::Task {
        let (reason, error) = match self.0.get(&track) {
            Some((at, reason, error)) if Some(*at) == offset => (*reason, error.clone()),
            _ => (Reason::Failed, "the cause was not kept".to_owned()),
        };
        apply::Task::Park { reason, error, attempts }
    }
}

/// Tells how a job ended, whatever happens to its task.
struct Report {
    job: JobId,
    ended: Option<Ended>,
    answer: mpsc::UnboundedSender<Answer>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let ended = self.ended.take().unwrap_or_else(|| {
            let failure =
                Failure::new(FailureKind::Unknown, "the task of this message ended without an answer");
            Err(JobFailure { at: 0, failure })
        });
        let _gone = self.answer.send(Answer::Job(self.job, ended));
    }
}

/// Runs the messages of a job. The task owns a connection, so it is never aborted; `cancelled` ends only what
/// the handler does.
pub(super) async fn run<DB: Store>(
    consumer: Arc<dyn Consumer<DB>>,
    connections: Connections<DB>,
    job: Job<Arc<Message>>,
    row: Option<Row>,
    task: apply::Task,
    cancelled: oneshot::Receiver<()>,
    answer: mpsc::UnboundedSender<Answer>,
) {
    let mut report = Report { job: job.id, ended: None, answer };
    let Some(row) = row else {
        let failure =
            Failure::new(FailureKind::Superseded, "the partition was given up before the message ran");
        report.ended = Some(Err(JobFailure { at: 0, failure }));
        return;
    };
    let tracking = Tracking {
        partition: row.partition,
        watermark: job.watermark.0,
        acknowledged: job.acknowledged.0,
        ahead: job.ahead,
    };
    let apply = apply::Job { attempt: job.attempt, tracking: Some(tracking), task };
    // A sender that is gone has not called anything off.
    let cancelled = async {
        if cancelled.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let messages: Vec<_> = job.records.iter().map(|record| &*record.handle).collect();
    report.ended = Some(consumer.run(&connections, &messages, &apply, Box::pin(cancelled)).await);
}

/// What the core makes of it.
pub(super) fn outcome(ended: &Ended) -> Outcome {
    match ended {
        Ok(done) => Outcome::of(&done.dispositions),
        Err(failed) => Outcome::from(Setback::from(failed.failure.kind())),
    }
}

/// Writes progress that no message writes; one whose epoch is over has no row any more.
pub(super) async fn save<DB: Store>(
    pool: Pool<DB>,
    asked: Vec<Save>,
    rows: Vec<Option<Row>>,
    answer: mpsc::UnboundedSender<Answer>,
) {
    let found: Vec<_> = asked.iter().zip(rows).collect();
    let writes: Vec<_> = found
        .iter()
        .filter_map(|(save, row)| {
            let row = row.clone()?;
            let tracking = Tracking {
                partition: row.partition,
                watermark: save.watermark.0,
                acknowledged: save.acknowledged.0,
                ahead: Ahead { relied: save.relied.clone(), added: Offsets::default() },
            };
            Some(progress::Save { consumer: row.consumer, tracking })
        })
        .collect();
    point!(InProgressSave);
    let mut written = match progress::save(&pool, &writes).await {
        Ok(saved) => saved.into_iter().map(result).collect(),
        Err(error) => {
            tracing::debug!(%error, "progress was not saved, trying again");
            vec![SavedResult::Failed; writes.len()]
        }
    }
    .into_iter();
    let saved = found
        .into_iter()
        .map(|(save, row)| Saved {
            lane: save.lane,
            epoch: save.epoch,
            watermark: save.watermark,
            result: row.and_then(|_| written.next()).unwrap_or(SavedResult::Failed),
        })
        .collect();
    let _gone = answer.send(Answer::Saved(saved));
}

fn result(saved: progress::Saved) -> SavedResult {
    match saved {
        progress::Saved::Written => SavedResult::Ok,
        progress::Saved::WentBack => SavedResult::WentBack,
        progress::Saved::Superseded => SavedResult::Superseded,
    }
}
