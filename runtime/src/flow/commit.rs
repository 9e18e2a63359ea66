use std::collections::BTreeSet;

use super::core::Core;
use super::partition::Partition;
use super::{Action, Epoch, Millis, NextOffset, Tp};
use crate::laboratory::mutant;

/// What Kafka is told, and when. A failed commit is not repeated but superseded by the next.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// Partitions whose durable offset may have moved.
    touched: BTreeSet<Tp>,
    in_flight: BTreeSet<Tp>,
    failed: bool,
    not_before: Millis,
    /// When everything is committed again that did not move.
    pub(super) assert_at: Millis,
}

impl Commits {
    pub(super) fn touch(&mut self, tp: Tp) {
        self.touched.insert(tp);
    }

    pub(super) fn carries(&self, tp: Tp) -> bool {
        self.in_flight.contains(&tp)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }
}

impl<R: Clone> Core<R> {
    /// Asks for the next commit, when there is one to ask for and it is time.
    pub(super) fn commit(&mut self, actions: &mut Vec<Action<R>>) {
        mutant!(NoReassert => { self.commits.assert_at = Millis(u64::MAX); });
        let partitions = &self.partitions;
        let wants = |tp: &Tp| partitions.get(tp).is_some_and(Partition::wants_commit);
        self.commits.touched.retain(wants);
        if !self.commits.is_idle() {
            return;
        }
        let all = self.now >= self.commits.assert_at;
        let some = self.now >= self.commits.not_before || self.must_hurry_commit();
        let offsets: Vec<_> = if all {
            self.commits.assert_at = self.now + self.config.assert_every;
            // A partition that is given up would never be rid of a commit in flight.
            let partitions = self.partitions.values();
            let asserted = partitions.filter(|partition| partition.is_open() || partition.wants_commit());
            asserted.filter_map(Partition::commit).collect()
        } else if some {
            let touched = self.commits.touched.iter();
            touched.filter_map(|tp| self.partitions.get(tp)?.commit()).collect()
        } else {
            return;
        };
        if offsets.is_empty() {
            return;
        }
        self.commits.in_flight = offsets.iter().map(|&(tp, ..)| tp).collect();
        self.commits.not_before = self.now + self.config.commit_every;
        actions.push(Action::Commit(offsets));
    }

    pub(super) fn committed(&mut self, offsets: &[(Tp, Epoch, NextOffset)], ok: bool) {
        self.commits.in_flight.clear();
        self.commits.failed = !ok;
        if !ok {
            self.commits.not_before = self.now + self.config.commit_every;
        }
        for &(tp, epoch, next) in offsets {
            let current = self.partitions.get_mut(&tp).filter(|partition| partition.epoch == epoch);
            if let Some(partition) = current {
                partition.committed(next, ok);
            }
            self.commits.touch(tp);
        }
    }

    pub(super) fn next_commit(&self) -> Option<Millis> {
        if !self.commits.is_idle() || self.partitions.is_empty() {
            return None;
        }
        let wanted = (!self.commits.touched.is_empty()).then_some(self.commits.not_before);
        Some(wanted.map_or(self.commits.assert_at, |at| at.min(self.commits.assert_at)))
    }

    /// Starts the periods when the first partition comes.
    pub(super) fn schedule_rounds(&mut self) {
        if self.partitions.len() == 1 {
            self.commits.assert_at = self.now + self.config.assert_every;
            self.saves.confirm_at = self.now + self.config.confirm_every;
        }
    }

    /// Whether a partition waits to be given back, and committing has not just failed.
    fn must_hurry_commit(&self) -> bool {
        !self.commits.failed && self.commits.touched.iter().any(|tp| self.draining.contains(tp))
    }
}
