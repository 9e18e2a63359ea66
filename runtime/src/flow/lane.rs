use super::pace::Pace;
use super::retry::{self, Cause};
use super::watermark::Watermark;
use super::{JobId, LaneSnapshot, LaneStart, Millis, NextOffset, Offset, Outcome, Task};
use crate::laboratory::mutant;

/// One handler's way through one partition: its records in order, one job at a time, of one record or of
/// many.
#[derive(Debug)]
pub(super) struct Lane {
    watermark: Watermark,
    acknowledged: NextOffset,
    attempts: u32,
    state: State,
    first: FirstRecord,
    pace: Pace,
    /// Whether all records of a job are written at once.
    together: bool,
    /// The last record of a job that failed: one of those up to it is at fault, and alone pays.
    suspect_until: Option<Offset>,
    /// Whether the row was seen to be as expected since the last round of confirmation.
    confirmed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing to run, or not allowed to.
    Idle,
    /// Wants a permit.
    Ready,
    Running(JobId),
    /// In back-off; its record keeps its place.
    Waiting(Millis),
    /// Its record must not be run again.
    Halted,
}

/// What has been tried with the record that is first in line.
#[derive(Debug, Default)]
struct FirstRecord {
    failures: u32,
    interruptions: u32,
    park: bool,
}

/// What a lane runs next.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) offsets: Vec<Offset>,
    pub(super) attempt: u32,
    pub(super) task: Task,
    pub(super) watermark: NextOffset,
    pub(super) acknowledged: NextOffset,
}

impl Lane {
    pub(super) fn new(start: Option<NextOffset>, lane: LaneStart) -> Self {
        Self {
            watermark: Watermark::new(start),
            acknowledged: lane.acknowledged,
            attempts: lane.attempts.max(1),
            state: State::Idle,
            first: FirstRecord::default(),
            pace: Pace::new(lane.batch),
            together: lane.together,
            suspect_until: None,
            confirmed: true,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    pub(super) fn running(&self) -> Option<JobId> {
        match self.state {
            State::Running(job) => Some(job),
            _ => None,
        }
    }

    pub(super) fn watermark(&self) -> &Watermark {
        &self.watermark
    }

    pub(super) fn fetched(&mut self, offset: Offset) {
        self.watermark.fetched(offset);
    }

    pub(super) fn reached(&mut self, position: NextOffset) {
        self.watermark.reached(position);
    }

    /// Asks for a permit if there is something to run; whether it now does.
    pub(super) fn want(&mut self) -> bool {
        if self.state == State::Idle && self.watermark.first().is_some() {
            self.state = State::Ready;
            return true;
        }
        false
    }

    /// Ends the back-off.
    pub(super) fn wake(&mut self) -> bool {
        if let State::Waiting(_) = self.state {
            self.state = State::Idle;
        }
        self.want()
    }

    /// Starts nothing any more. What runs goes on.
    pub(super) fn retire(&mut self) {
        mutant!(DrainForgets => {
            while let Some(offset) = self.watermark.first() {
                self.watermark.finished(offset);
            }
        });
        if let State::Ready | State::Waiting(_) = self.state {
            self.state = State::Idle;
        }
    }

    pub(super) fn halt(&mut self) {
        self.state = State::Halted;
    }

    /// Starts the first record, and those behind it that `fits` lets in after it.
    pub(super) fn start(&mut self, job: JobId, mut fits: impl FnMut(Offset) -> bool) -> Option<Run> {
        let first = self.watermark.first().filter(|_| self.state == State::Ready)?;
        self.state = State::Running(job);
        let FirstRecord { failures, park, .. } = self.first;
        let most = match self.suspects() {
            _ if failures > 0 || park => 1,
            0 => self.pace.limit(),
            suspects if self.together => (suspects / 2).max(1),
            _ => 1,
        };
        let behind = self.watermark.unfinished().skip(1).take_while(|&offset| fits(offset));
        let offsets: Vec<_> = std::iter::once(first).chain(behind).take(most).collect();
        let run = Run {
            attempt: if park { failures } else { failures.saturating_add(1) },
            task: if park { Task::Park } else { Task::Apply },
            watermark: self.watermark.next_without(&offsets),
            acknowledged: self.acknowledged,
            offsets,
        };
        mutant!(FloorUnchecked => { return Some(Run { acknowledged: NextOffset(0), ..run }); });
        mutant!(BatchPassesPoison => {
            if let Some(last) = self.suspect_until.filter(|last| *last >= first) {
                let together: Vec<_> = self.watermark.unfinished().take_while(|at| *at <= last).collect();
                return Some(Run { watermark: self.watermark.next_without(&together), ..run });
            }
        });
        Some(run)
    }

    /// How many records are left of which one made a job fail. Each is tried alone; of those that are written
    /// at once, half of them, until the one is found.
    fn suspects(&self) -> usize {
        let Some(last) = self.suspect_until else { return 0 };
        self.watermark.unfinished().take_while(|offset| *offset <= last).count()
    }

    pub(super) fn finished(&mut self, offsets: &[Offset], took: Millis) {
        for &offset in offsets {
            self.watermark.finished(offset);
        }
        self.state = State::Idle;
        self.first = FirstRecord::default();
        self.pace.done(offsets.len(), took);
    }

    /// The job did not do it: sets what is tried next, and says how long to wait before.
    pub(super) fn failed(&mut self, offsets: &[Offset], outcome: Outcome, seed: u64, job: JobId) -> Millis {
        self.state = State::Idle;
        mutant!(EnvironmentIsAttempt => {
            if outcome == Outcome::Environment {
                return self.failed(offsets, Outcome::Failed, seed, job);
            }
        });
        if let (Outcome::Failed | Outcome::Rejected, [_, .., last]) = (outcome, offsets) {
            // Which of them it was is only known of one that runs alone; nothing counts as an attempt yet.
            // Looking for it says nothing new about batches.
            if self.suspects() == 0 {
                self.pace.failed(offsets.len());
            }
            self.suspect_until = Some(*last);
            return Millis(0);
        }
        if outcome == Outcome::Environment {
            self.pace.failed(offsets.len());
        }
        let first = &mut self.first;
        let cause = match outcome {
            Outcome::Unknown | Outcome::Cancelled => Cause::Unknown,
            Outcome::Failed | Outcome::Rejected if !first.park => {
                first.failures = first.failures.saturating_add(1);
                first.interruptions = 0;
                first.park = outcome == Outcome::Rejected || first.failures >= self.attempts;
                if first.park {
                    return Millis(0);
                }
                return retry::delay(Cause::Failure, first.failures, seed, job);
            }
            // Parking writes a row and calls no handler, so whatever stops it is not the message's fault.
            _ => Cause::Environment,
        };
        first.interruptions = first.interruptions.saturating_add(1);
        retry::delay(cause, first.interruptions, seed, job)
    }

    pub(super) fn wait_until(&mut self, at: Millis) {
        self.state = State::Waiting(at);
    }

    /// The row was seen to stand at `next` or above.
    pub(super) fn acknowledge(&mut self, next: NextOffset) {
        self.acknowledged = self.acknowledged.max(next);
        self.confirmed = true;
    }

    /// Whether the row was seen since this was asked last.
    pub(super) fn take_confirmed(&mut self) -> bool {
        std::mem::take(&mut self.confirmed)
    }

    /// Whether no job of its own is about to write the row.
    pub(super) fn rests(&self) -> bool {
        !matches!(self.state, State::Ready | State::Running(_))
    }

    pub(super) fn is_unsaved(&self) -> bool {
        self.watermark.next() > Some(self.acknowledged)
    }

    /// The row to write and what it must stand at.
    pub(super) fn progress(&self) -> (NextOffset, NextOffset) {
        let watermark = self.watermark.next().map_or(self.acknowledged, |next| next.max(self.acknowledged));
        mutant!(FloorUnchecked => { return (watermark, NextOffset(0)); });
        (watermark, self.acknowledged)
    }

    /// What Kafka may be told: dealt with, and known to stand in the row.
    pub(super) fn durable(&self) -> Option<NextOffset> {
        mutant!(CommitBeforeDatabase => {
            if let (State::Running(_), Some(first)) = (self.state, self.watermark.first()) {
                return Some(first.next());
            }
        });
        mutant!(OffsetAheadOfRow => { return self.watermark.next(); });
        self.watermark.next().map(|next| next.min(self.acknowledged))
    }

    pub(super) fn snapshot(&self) -> LaneSnapshot {
        LaneSnapshot {
            next: self.watermark.next(),
            acknowledged: self.acknowledged,
            running: self.running(),
            waiting_until: match self.state {
                State::Waiting(until) => Some(until),
                _ => None,
            },
            failures: self.first.failures,
            halted: self.state == State::Halted,
        }
    }
}
