use std::collections::BTreeSet;

use super::core::Core;
use super::retry::{self, Cause};
use super::{Action, JobId, LaneId, Millis, ReassignReason, Save, Saved, SavedResult};
use crate::laboratory::mutant;

/// Progress that no job's transaction writes: skipped records, idle positions, rows to be read again.
#[derive(Debug, Default)]
pub(super) struct Saves {
    /// Lanes whose watermark may be above their row.
    touched: BTreeSet<LaneId>,
    /// Lanes whose row is to be read again, wherever their watermark is.
    unconfirmed: BTreeSet<LaneId>,
    in_flight: BTreeSet<LaneId>,
    failed: u32,
    not_before: Millis,
    /// When rows are read again next.
    pub(super) confirm_at: Millis,
}

impl Saves {
    pub(super) fn touch(&mut self, lanes: impl IntoIterator<Item = LaneId>) {
        self.touched.extend(lanes);
    }

    pub(super) fn carries(&self, lane: LaneId) -> bool {
        self.in_flight.contains(&lane)
    }

    fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    fn is_wanted(&self) -> bool {
        !self.touched.is_empty() || !self.unconfirmed.is_empty()
    }
}

impl<R: Clone> Core<R> {
    /// Asks for the next save, when there is one to ask for and it is time.
    pub(super) fn save(&mut self, actions: &mut Vec<Action<R>>) {
        self.select_unsaved();
        if !self.saves.is_idle() {
            return;
        }
        if self.now >= self.saves.confirm_at && !self.partitions.is_empty() {
            self.saves.confirm_at = self.now + self.config.confirm_every;
            self.select_unconfirmed();
        }
        if !self.saves.is_wanted() || !(self.now >= self.saves.not_before || self.must_hurry_save()) {
            return;
        }
        let lanes: BTreeSet<_> = self.saves.touched.union(&self.saves.unconfirmed).copied().collect();
        self.saves.unconfirmed.clear();
        let saves: Vec<_> = lanes.iter().filter_map(|&lane| self.save_of(lane)).collect();
        self.saves.in_flight = saves.iter().map(|save| save.lane).collect();
        self.saves.not_before = self.now + self.config.commit_every;
        if !saves.is_empty() {
            actions.push(Action::SaveProgress(saves));
        }
    }

    pub(super) fn progress_saved(&mut self, saved: &[Saved], actions: &mut Vec<Action<R>>) {
        self.saves.in_flight.clear();
        let failed = saved.iter().any(|saved| saved.result == SavedResult::Failed);
        self.saves.failed = if failed { self.saves.failed.saturating_add(1) } else { 0 };
        if failed {
            let wait =
                retry::delay(Cause::Environment, self.saves.failed, self.config.seed, JobId(self.now.0));
            self.saves.not_before = self.now + wait;
        }
        for &Saved { lane, epoch, watermark, result } in saved {
            let current = self.partitions.get_mut(&lane.tp).filter(|partition| partition.epoch == epoch);
            let Some(partition) = current else { continue };
            match result {
                SavedResult::Ok => {
                    if let Some(state) = partition.lane(lane) {
                        state.acknowledge(watermark);
                    }
                }
                SavedResult::Failed => {}
                SavedResult::WentBack => self.reassign(lane.tp, ReassignReason::WentBack, actions),
                SavedResult::Superseded => self.reassign(lane.tp, ReassignReason::Superseded, actions),
            }
            self.saves.touch([lane]);
            self.commits.touch(lane.tp);
        }
    }

    pub(super) fn next_save(&self) -> Option<Millis> {
        if !self.saves.is_idle() || self.partitions.is_empty() {
            return None;
        }
        let wanted = self.saves.is_wanted().then_some(self.saves.not_before);
        Some(wanted.map_or(self.saves.confirm_at, |at| at.min(self.saves.confirm_at)))
    }

    /// Keeps of the touched lanes those that need it: nothing else is going to write their row.
    fn select_unsaved(&mut self) {
        let partitions = &self.partitions;
        self.saves.touched.retain(|lane| {
            let state = partitions.get(&lane.tp).filter(|partition| !partition.is_cut());
            let state = state.and_then(|partition| partition.lane_ref(*lane));
            state.is_some_and(|state| state.rests() && state.is_unsaved())
        });
    }

    fn select_unconfirmed(&mut self) {
        mutant!(NoConfirm => { return; });
        for partition in self.partitions.values_mut().filter(|partition| partition.is_open()) {
            for (lane, state) in partition.lanes_mut() {
                if !state.take_confirmed() && state.rests() {
                    self.saves.unconfirmed.insert(lane);
                }
            }
        }
    }

    fn save_of(&self, lane: LaneId) -> Option<Save> {
        let partition = self.partitions.get(&lane.tp)?;
        Some(partition.lane_ref(lane)?.save(lane, partition.epoch))
    }

    /// Whether a partition waits to be given back, and saving has not just failed.
    fn must_hurry_save(&self) -> bool {
        self.saves.failed == 0 && self.saves.touched.iter().any(|lane| self.draining.contains(&lane.tp))
    }
}
