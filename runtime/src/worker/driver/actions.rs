use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Driver, Running};
use crate::apply;
use crate::flow::{Action, Job, StopReason, Task};
use crate::inbox::Store;
use crate::laboratory::point;
use crate::message::Message;
use crate::source::kafka::Command;
use crate::worker::answer::Answer;
use crate::worker::jobs;

/// What the core says is done, and nothing else.
impl<DB: Store> Driver<DB> {
    pub(super) fn perform(&mut self) {
        // Some actions make the core speak again.
        while !self.actions.is_empty() {
            for action in std::mem::take(&mut self.actions) {
                self.act(action);
            }
        }
    }

    pub(super) fn act(&mut self, action: Action<Arc<Message>>) {
        match action {
            Action::Start(job) => self.start(job),
            Action::Cancel { job } => {
                if let Some(cancel) = self.running.get_mut(&job).and_then(|running| running.cancel.take()) {
                    let _ended = cancel.send(());
                }
            }
            Action::SaveProgress(saves) => {
                let (pool, answer) = (self.connections.pool().clone(), self.answer.clone());
                let rows = saves.iter().map(|save| self.row(save.lane, save.epoch)).collect();
                tokio::spawn(jobs::save(pool, saves, rows, answer));
            }
            Action::Commit(offsets) => {
                let (broker, answer) = (self.broker.clone(), self.answer.clone());
                tokio::spawn(async move {
                    let asked = offsets.iter().map(|(tp, _, next)| (*tp, next.0)).collect();
                    point!(BeforeOffsetCommit);
                    let result = broker.commit(asked).await;
                    point!(AfterOffsetCommit);
                    let _gone = answer.send(Answer::Committed(offsets, result));
                });
            }
            Action::Pause { tp, epoch } => {
                self.pulse.paused(tp, true, Instant::now());
                self.broker.command(Command::Pause(tp, epoch));
            }
            Action::Resume { tp, epoch } => {
                self.pulse.paused(tp, false, Instant::now());
                self.broker.command(Command::Resume(tp, epoch));
            }
            Action::Reassign { tp, epoch, reason } => {
                self.log.reassigned(self.topics.name(tp), tp.partition, reason);
                if self.owned.epoch(tp) == Some(epoch) {
                    self.open(&[tp]);
                }
            }
            Action::Released { tps } => self.owned.released(&tps),
            Action::Stop { reason } => {
                let (StopReason::TransactionEnded { lane, offset }
                | StopReason::Misconfigured { lane, offset }) = reason;
                let position = self.position(lane.tp, offset.0);
                self.log.stopped(&position);
                self.begin_to_stop();
            }
            Action::Finished => self.finished = true,
        }
    }

    pub(super) fn start(&mut self, job: Job<Arc<Message>>) {
        let (cancel, cancelled) = oneshot::channel();
        let offsets: Vec<_> = job.records.iter().map(|record| record.offset).collect();
        let first = offsets.first().copied();
        let running =
            Running { lane: job.lane, track: job.track, offsets, attempt: job.attempt, cancel: Some(cancel) };
        self.running.insert(job.id, running);
        let task = match job.task {
            Task::Apply => apply::Task::Apply,
            Task::Park => self.failures.park((job.lane, job.track), first, job.attempt),
        };
        let (consumer, row) = (self.consumer(job.lane), self.row(job.lane, job.epoch));
        let (connections, answer) = (self.connections.clone(), self.answer.clone());
        tokio::spawn(jobs::run(consumer, connections, job, row, task, cancelled, answer));
    }
}
