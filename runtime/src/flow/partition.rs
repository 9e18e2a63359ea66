use std::collections::BTreeMap;

use super::lane::{Lane, Run};
use super::pace::Took;
use super::{
    Action, Config, Epoch, Job, JobId, JobRecord, LaneId, LaneStart, NextOffset, Offset, OrderKey,
    PartitionSnapshot, Tp, TrackId,
};
use crate::laboratory::mutant;

/// How often a commit may fail while a partition is given up: the others of the group are waiting.
const DRAIN_COMMITS: u32 = 3;

/// One assignment of one partition.
#[derive(Debug)]
pub(super) struct Partition<R> {
    pub(super) tp: Tp,
    pub(super) epoch: Epoch,
    phase: Phase,
    pub(super) paused: bool,
    lanes: Vec<Lane>,
    committed: Option<NextOffset>,
    held: BTreeMap<Offset, Held<R>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Starts and takes in nothing; `cut` once the time for a good end is over.
    Draining {
        commits_left: u32,
        cut: bool,
    },
}

/// A record in memory, until all handlers are done with it.
#[derive(Debug)]
struct Held<R> {
    bytes: usize,
    handle: R,
    handlers_left: usize,
}

impl<R> Partition<R> {
    pub(super) fn new(tp: Tp, epoch: Epoch, start: Option<NextOffset>, lanes: &[LaneStart]) -> Self {
        Self {
            tp,
            epoch,
            lanes: lanes.iter().map(|lane| Lane::new(start, lane)).collect(),
            phase: Phase::Open,
            paused: false,
            committed: None,
            held: BTreeMap::new(),
        }
    }

    pub(super) fn lane(&mut self, lane: LaneId) -> Option<&mut Lane> {
        self.lanes.get_mut(usize::from(lane.handler))
    }

    pub(super) fn lane_ref(&self, lane: LaneId) -> Option<&Lane> {
        self.lanes.get(usize::from(lane.handler))
    }

    pub(super) fn lanes_mut(&mut self) -> impl Iterator<Item = (LaneId, &mut Lane)> {
        self.lane_ids().zip(&mut self.lanes)
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lane_ids().zip(&self.lanes)
    }

    pub(super) fn lane_ids(&self) -> impl Iterator<Item = LaneId> + use<R> {
        let tp = self.tp;
        (0..u16::MAX).take(self.lanes.len()).map(move |handler| LaneId { tp, handler })
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Takes a record in; the tracks that are to ask for a permit for it. `None` for one that was read before: it
    /// is here, or dealt with.
    pub(super) fn fetched(
        &mut self,
        offset: Offset,
        key: Option<OrderKey>,
        bytes: usize,
        handle: R,
    ) -> Option<Vec<TrackId>> {
        if self.lanes.iter().all(|lane| lane.has_passed(offset)) {
            return None;
        }
        self.held.insert(offset, Held { bytes, handle, handlers_left: self.lanes.len() });
        let asking = self.lanes_mut().filter_map(|(lane, state)| {
            let number = state.fetched(offset, key)?;
            Some(TrackId { lane, number })
        });
        Some(asking.collect())
    }

    /// Starts what is first in a track that has its turn.
    pub(super) fn start(&mut self, track: TrackId, id: JobId, most_bytes: usize) -> Option<Job<R>>
    where
        R: Clone,
    {
        let TrackId { lane, number } = track;
        let epoch = self.epoch;
        let state = self.lanes.get_mut(usize::from(lane.handler))?;
        let held = &self.held;
        let bytes = |offset| held.get(&offset).map_or(usize::MAX, |held| held.bytes);
        let Run { turn, watermark, acknowledged, ahead } = state.start(number, id, bytes, most_bytes)?;
        let records = turn.offsets.iter().filter_map(|&offset| {
            let handle = held.get(&offset)?.handle.clone();
            Some(JobRecord { offset, handle })
        });
        Some(Job {
            id,
            lane,
            track: number,
            epoch,
            records: records.collect(),
            attempt: turn.attempt,
            task: turn.task,
            watermark,
            acknowledged,
            ahead,
        })
    }

    /// One handler is done with these records; the bytes that are free now.
    pub(super) fn finished(
        &mut self,
        TrackId { lane, number }: TrackId,
        offsets: &[Offset],
        took: Took,
        acknowledged: Option<NextOffset>,
    ) -> usize {
        if let Some(state) = self.lane(lane) {
            state.finished(number, offsets, took, acknowledged);
        }
        offsets.iter().map(|offset| self.let_go(*offset)).sum()
    }

    fn let_go(&mut self, offset: Offset) -> usize {
        let Some(held) = self.held.get_mut(&offset) else { return 0 };
        held.handlers_left -= 1;
        if held.handlers_left > 0 {
            return 0;
        }
        self.held.remove(&offset).map_or(0, |held| held.bytes)
    }

    /// The consumer stands here, and every record before it has been taken in.
    pub(super) fn reached(&mut self, position: NextOffset) {
        for lane in &mut self.lanes {
            lane.reached(position);
        }
    }

    /// Pauses or resumes fetching; `short` when too many bytes are held in all.
    pub(super) fn regulate(&mut self, config: &Config, short: bool) -> Option<Action<R>> {
        mutant!(NeverResumed => { if self.paused { return None; } });
        let Self { tp, epoch, .. } = *self;
        let records = self.held.len();
        let mark = if self.paused { config.records_low + 1 } else { config.records_high };
        let pause = records >= mark || (short && records > 0);
        if pause == self.paused || !self.is_open() {
            return None;
        }
        self.paused = pause;
        Some(if pause { Action::Pause { tp, epoch } } else { Action::Resume { tp, epoch } })
    }

    /// Starts and takes in nothing any more; the bytes that are free now.
    ///
    /// Only the payloads go: a lane that forgot its unfinished offsets would claim to be past them.
    pub(super) fn drain(&mut self) -> usize {
        self.phase = Phase::Draining { commits_left: DRAIN_COMMITS, cut: false };
        for lane in &mut self.lanes {
            lane.retire();
        }
        self.forget()
    }

    /// Drops the payloads; the bytes that are free now.
    pub(super) fn forget(&mut self) -> usize {
        std::mem::take(&mut self.held).into_values().map(|held| held.bytes).sum()
    }

    /// Ends a drain that takes too long. `false` where none goes on.
    pub(super) fn cut(&mut self) -> bool {
        let Phase::Draining { commits_left, cut: false } = self.phase else { return false };
        self.phase = Phase::Draining { commits_left: commits_left.min(1), cut: true };
        true
    }

    pub(super) fn is_cut(&self) -> bool {
        matches!(self.phase, Phase::Draining { cut: true, .. })
    }

    /// Kafka answered a commit.
    pub(super) fn committed(&mut self, next: NextOffset, ok: bool) {
        if ok {
            self.committed = Some(next);
        } else if let Phase::Draining { commits_left, .. } = &mut self.phase {
            *commits_left = commits_left.saturating_sub(1);
        }
    }

    /// What to commit, moved or not.
    pub(super) fn commit(&self) -> Option<(Tp, Epoch, NextOffset)> {
        let allowed = !matches!(self.phase, Phase::Draining { commits_left: 0, .. });
        self.durable().filter(|_| allowed).map(|durable| (self.tp, self.epoch, durable))
    }

    pub(super) fn running(&self) -> impl Iterator<Item = JobId> {
        self.lanes.iter().flat_map(Lane::running)
    }

    /// What Kafka may be told: the lowest of all handlers.
    pub(super) fn durable(&self) -> Option<NextOffset> {
        self.lanes.iter().map(Lane::durable).min().flatten()
    }

    /// Whether Kafka is to be told something new, and may still be.
    pub(super) fn wants_commit(&self) -> bool {
        self.commit().is_some_and(|(.., durable)| self.committed != Some(durable))
    }

    pub(super) fn snapshot(&self) -> PartitionSnapshot {
        PartitionSnapshot {
            tp: self.tp,
            epoch: self.epoch,
            records: self.held.len(),
            paused: self.paused,
            draining: !self.is_open(),
            durable: self.durable(),
            committed: self.committed,
            lanes: self.lanes.iter().map(Lane::snapshot).collect(),
        }
    }
}
