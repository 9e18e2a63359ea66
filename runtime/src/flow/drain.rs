use super::core::{Core, Lifecycle};
use super::{Action, ReassignReason, StopReason, Tp};
use crate::laboratory::mutant;

/// How partitions end: given up in good order, cut short, lost, assigned anew.
impl<R: Clone> Core<R> {
    pub(super) fn revoke(&mut self, tps: Vec<Tp>, actions: &mut Vec<Action<R>>) {
        let mut freed = 0;
        for tp in tps {
            let Some(partition) = self.partitions.get_mut(&tp) else {
                self.released.push(tp);
                continue;
            };
            if !partition.is_open() {
                continue;
            }
            freed += partition.drain();
            self.saves.touch(partition.lane_ids());
            self.draining.insert(tp);
            self.unqueue(tp);
            self.commits.touch(tp);
        }
        // At the end, or a shortage that is over would resume partitions that are next in the list.
        self.free(freed, actions);
    }

    /// Cancels the handlers that still run, and waits for nothing but the last commit.
    pub(super) fn cut(&mut self, tps: &[Tp], actions: &mut Vec<Action<R>>) {
        for tp in tps {
            let Some(partition) = self.partitions.get_mut(tp) else { continue };
            if partition.cut() {
                actions.extend(partition.running().map(|job| Action::Cancel { job }));
            }
        }
    }

    pub(super) fn lost(&mut self, tps: &[Tp], actions: &mut Vec<Action<R>>) {
        for &tp in tps {
            self.close(tp, actions);
        }
    }

    pub(super) fn drain(&mut self, actions: &mut Vec<Action<R>>) {
        if self.lifecycle == Lifecycle::Running {
            self.lifecycle = Lifecycle::Stopping;
            let fetching =
                self.partitions.values().filter(|partition| partition.is_open() && !partition.paused);
            actions
                .extend(fetching.map(|partition| Action::Pause { tp: partition.tp, epoch: partition.epoch }));
            let tps = self.partitions.keys().copied().collect();
            self.revoke(tps, actions);
        }
    }

    pub(super) fn stop(&mut self, reason: StopReason, actions: &mut Vec<Action<R>>) {
        actions.push(Action::Stop { reason });
        self.drain(actions);
    }

    pub(super) fn reassign(&mut self, tp: Tp, reason: ReassignReason, actions: &mut Vec<Action<R>>) {
        let Some(partition) = self.partitions.get(&tp) else { return };
        let (open, epoch) = (partition.is_open(), partition.epoch);
        mutant!(ReassignLeavesOpen => { return actions.push(Action::Reassign { tp, epoch, reason }); });
        self.close(tp, actions);
        if open {
            actions.push(Action::Reassign { tp, epoch, reason });
        }
    }

    /// Forgets a partition. Its jobs keep their permits until they end.
    pub(super) fn close(&mut self, tp: Tp, actions: &mut Vec<Action<R>>) {
        let Some(mut partition) = self.partitions.remove(&tp) else { return };
        if !partition.is_cut() {
            actions.extend(partition.running().map(|job| Action::Cancel { job }));
        }
        mutant!(TwoJobsOfALane => { self.busy.retain(|track| track.lane.tp != tp); });
        self.unqueue(tp);
        if self.draining.remove(&tp) {
            self.released.push(tp);
        }
        self.free(partition.forget(), actions);
    }

    /// Gives back the partitions that have nothing left to do.
    pub(super) fn release(&mut self, actions: &mut Vec<Action<R>>) {
        let drained: Vec<_> = self.draining.iter().copied().filter(|&tp| self.is_drained(tp)).collect();
        for tp in drained {
            self.close(tp, actions);
        }
        if !self.released.is_empty() {
            actions.push(Action::Released { tps: std::mem::take(&mut self.released) });
        }
        let idle = self.partitions.is_empty() && self.jobs.is_empty() && self.commits.is_idle();
        if self.lifecycle == Lifecycle::Stopping && idle {
            self.lifecycle = Lifecycle::Finished;
            actions.push(Action::Finished);
        }
    }

    fn is_drained(&self, tp: Tp) -> bool {
        let Some(partition) = self.partitions.get(&tp) else { return true };
        let settled = partition.is_cut()
            || partition.lanes().all(|(lane, state)| {
                state.running().next().is_none() && !state.is_unsaved() && !self.saves.carries(lane)
            });
        settled && !partition.wants_commit() && !self.commits.carries(tp)
    }
}
