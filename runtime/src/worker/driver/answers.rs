use std::sync::Arc;

use super::{Driver, Running};
use crate::apply;
use crate::failure::FailureKind;
use crate::flow::{Event, JobId};
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
        let Running { lane, offset, attempt, .. } = running;
        let (consumer, position) = (self.consumer(lane), self.position(lane.tp, offset.0));
        let outcome = jobs::outcome(&ended);
        match ended {
            Ok(disposition) => {
                self.log.done(consumer.name(), &position, disposition);
                if disposition == apply::Disposition::Parked {
                    self.parked.notify_one();
                }
                self.observers.tell(&Notice::Done { consumer: consumer.name(), position, disposition });
            }
            Err(failure) => {
                self.failures.note(lane, offset, &failure);
                self.log.failed(consumer.name(), &position, attempt, &failure);
                let kind = failure.kind();
                let error = failure.to_string();
                if kind == FailureKind::TransactionEnded {
                    self.parked.notify_one();
                }
                if matches!(kind, FailureKind::TransactionEnded | FailureKind::Configuration) {
                    self.stopped.get_or_insert_with(|| match kind {
                        FailureKind::TransactionEnded => WorkerError::TransactionEnded {
                            consumer: consumer.name().to_owned(),
                            handler: consumer.registration(None, &[]).handler.to_owned(),
                            error: error.clone(),
                        },
                        _ => WorkerError::Configuration(error.clone()),
                    });
                }
                self.observers.tell(&Notice::Failed {
                    consumer: consumer.name(),
                    position,
                    kind,
                    error,
                    attempt,
                });
            }
        }
        self.step(Event::Finished { job: id, outcome });
    }
}
