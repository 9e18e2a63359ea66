use std::collections::BTreeSet;

use super::pace::{Pace, Took};
use super::retry::{self, Cause};
use super::{JobId, LaneStart, Millis, Offset, Outcome, Task, TrackSnapshot};
use crate::laboratory::mutant;

/// Records of a lane that run one after the other: one job at a time, of one record or of many.
#[derive(Debug)]
pub(super) struct Track {
    /// Its records that are not finished.
    pub(super) queue: BTreeSet<Offset>,
    attempts: u32,
    state: State,
    first: FirstRecord,
    pace: Pace,
    /// Whether all records of a job are written at once.
    together: bool,
    /// The last record of a job that failed: one of those up to it is at fault, and alone pays.
    pub(super) suspect_until: Option<Offset>,
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

/// What a track runs next.
#[derive(Debug)]
pub(super) struct Turn {
    /// In order, and not empty.
    pub(super) offsets: Vec<Offset>,
    pub(super) attempt: u32,
    pub(super) task: Task,
}

impl Track {
    pub(super) fn new(lane: &LaneStart) -> Self {
        Self {
            queue: BTreeSet::new(),
            attempts: lane.attempts.max(1),
            state: State::Idle,
            first: FirstRecord::default(),
            pace: Pace::new(lane.batch),
            together: lane.together,
            suspect_until: None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
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

    /// Asks for a permit if there is something to run, of its own or of what is `free`; whether it now does.
    pub(super) fn want(&mut self, free: &BTreeSet<Offset>) -> bool {
        if self.state == State::Idle && !(self.queue.is_empty() && free.is_empty()) {
            self.state = State::Ready;
            return true;
        }
        false
    }

    /// Ends the back-off.
    pub(super) fn wake(&mut self) {
        if let State::Waiting(_) = self.state {
            self.state = State::Idle;
        }
    }

    /// Starts nothing any more. What runs goes on.
    pub(super) fn retire(&mut self) {
        if let State::Ready | State::Waiting(_) = self.state {
            self.state = State::Idle;
        }
    }

    pub(super) fn halt(&mut self) {
        self.state = State::Halted;
    }

    /// Starts the lowest of its own records and of those that are `free`, and behind it as many as are let in and
    /// have no more than `most_bytes` together. `None` if others were quicker.
    ///
    /// What is free and not taken stays behind what is: a record that has failed is always the first.
    pub(super) fn start(
        &mut self,
        job: JobId,
        free: &mut BTreeSet<Offset>,
        bytes: impl Fn(Offset) -> usize,
        most_bytes: usize,
    ) -> Option<Turn> {
        if self.state != State::Ready {
            return None;
        }
        let FirstRecord { failures, park, .. } = self.first;
        let most = match self.suspects() {
            _ if failures > 0 || park => 1,
            0 => self.pace.limit(),
            suspects if self.together => (suspects / 2).max(1),
            _ => 1,
        };
        let mut offsets: Vec<_> =
            self.queue.iter().take(most).chain(free.iter().take(most)).copied().collect();
        offsets.sort_unstable();
        offsets.truncate(most);
        let mut left = most_bytes;
        let fits = |(index, offset): &(usize, &Offset)| {
            let bytes = bytes(**offset);
            let fits = *index == 0 || bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        };
        let fitting = offsets.iter().enumerate().take_while(fits).count();
        offsets.truncate(fitting);
        mutant!(NewestFirst => { offsets = self.queue.last().copied().into_iter().collect(); });
        if offsets.is_empty() {
            self.state = State::Idle;
            return None;
        }
        self.queue.extend(offsets.iter().filter(|offset| free.remove(offset)));
        self.state = State::Running(job);
        Some(Turn {
            offsets,
            attempt: if park { failures } else { failures.saturating_add(1) },
            task: if park { Task::Park } else { Task::Apply },
        })
    }

    /// How many records are left of which one made a job fail. Each is tried alone; of those that are written
    /// at once, half of them, until the one is found.
    fn suspects(&self) -> usize {
        let Some(last) = self.suspect_until else { return 0 };
        self.queue.iter().take_while(|offset| **offset <= last).count()
    }

    pub(super) fn finished(&mut self, offsets: &[Offset], took: Took) {
        for offset in offsets {
            self.queue.remove(offset);
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

    pub(super) fn snapshot(&self) -> TrackSnapshot {
        TrackSnapshot {
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
