use std::sync::Arc;

use super::{Driver, Running, milliseconds};
use crate::apply::{Disposition, JobDone, JobFailure};
use crate::failure::FailureKind;
use crate::flow::{Event, JobId, LaneId, Millis, Offset};
use crate::inbox::Store;
use crate::worker::answer::{Answer, Ended};
use crate::worker::notice::Notice;
use crate::worker::{WorkerError, jobs};

/// What comes back from work that was started.
impl<DB: Store> Driver<DB> {
    pub(super) fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Job(job, ended) => self.job_ended(job, ended),
            Answer::Saved(saved) => self.step(Event::ProgressSaved { saved }),
            Answer::Committed(offsets, result) => {
                self.log.committed(result.as_ref().err());
                let positions = offsets.iter().map(|(tp, _, next)| self.position(*tp, next.0));
                self.observers.tell(&Notice::Committed {
                    group: Arc::clone(&self.group),
                    offsets: positions.collect(),
                    error: result.as_ref().err().map(ToString::to_string),
                });
                self.step(Event::Committed { offsets, ok: result.is_ok() });
            }
            Answer::Opened(opened) => self.opened(opened),
            Answer::TopicIds(ids) => self.compare_topic_ids(&ids),
            Answer::OffLog(off) => self.open_again(off),
            Answer::Stalled(stalled) => {
                self.log.stalled(stalled.len());
                self.open_again(stalled);
            }
        }
    }

    pub(super) fn job_ended(&mut self, id: JobId, ended: Ended) {
        let Some(running) = self.running.remove(&id) else { return };
        let outcome = jobs::outcome(&ended);
        let handlers = match ended {
            Ok(JobDone { dispositions, handlers }) => {
                for (offset, disposition) in running.offsets.iter().zip(dispositions) {
                    self.dealt_with(running.lane, *offset, disposition);
                }
                milliseconds(handlers)
            }
            Err(failed) => {
                self.job_failed(&running, failed);
                Millis(0)
            }
        };
        self.step(Event::Finished { job: id, outcome, handlers });
    }

    fn dealt_with(&mut self, lane: LaneId, offset: Offset, disposition: Disposition) {
        let (consumer, position) = (self.consumer(lane).name(), self.position(lane.tp, offset.0));
        self.log.done(consumer, &position, disposition);
        if disposition == Disposition::Parked {
            self.parked.notify_one();
        }
        self.observers.tell(&Notice::Done { consumer, position, disposition });
    }

    fn job_failed(&mut self, running: &Running, JobFailure { at, failure }: JobFailure) {
        let Running { lane, track, offsets, attempt, .. } = running;
        let Some(&offset) = offsets.get(at) else { return };
        let (consumer, position) = (self.consumer(*lane), self.position(lane.tp, offset.0));
        let (kind, name) = (failure.kind(), consumer.name());
        let alone = offsets.len() == 1;
        if !alone && matches!(kind, FailureKind::Handler | FailureKind::Rejected) {
            // Not an attempt: smaller ones are tried until it is alone, and that is told.
            return self.log.batch_failed(name, &position, offsets.len(), &failure);
        }
        self.failures.note((*lane, *track), offset, &failure);
        self.log.failed(name, &position, *attempt, &failure);
        let error = failure.to_string();
        if kind == FailureKind::TransactionEnded {
            self.parked.notify_one();
        }
        if matches!(kind, FailureKind::TransactionEnded | FailureKind::Configuration) {
            self.stopped.get_or_insert_with(|| match kind {
                FailureKind::TransactionEnded => WorkerError::TransactionEnded {
                    consumer: name.to_owned(),
                    handler: consumer.registration(None, &[]).handler.to_owned(),
                    error: error.clone(),
                },
                _ => WorkerError::Configuration(error.clone()),
            });
        }
        self.observers.tell(&Notice::Failed { consumer: name, position, kind, error, attempt: *attempt });
    }
}
