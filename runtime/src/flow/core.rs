use std::collections::{BTreeMap, BTreeSet};

use super::commit::Commits;
use super::line::Line;
use super::pace::Took;
use super::partition::Partition;
use super::save::Saves;
use super::{
    Action, Epoch, Event, JobId, LaneStart, Millis, NextOffset, Offset, OrderKey, Outcome, ReassignReason,
    Snapshot, StopReason, Tp, TrackId,
};
use crate::laboratory::mutant;

/// The core's limits and periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Jobs at a time, over all tracks: as many as there are connections for them. At least 1.
    pub max_running: usize,
    /// A partition that holds this many records is paused,
    pub records_high: usize,
    /// until it holds no more than this. What is left has to last until records come again: a client that has asked for
    /// others waits for their answer first.
    pub records_low: usize,
    /// With this many bytes held in all, every partition that holds a record is paused,
    pub bytes_high: usize,
    /// until no more than this are held. A partition that holds nothing may always fetch, so that one that
    /// is stuck does not starve the others.
    pub bytes_low: usize,
    /// How many bytes of records one job may take, unless a single one has more.
    pub batch_bytes: usize,
    /// The shortest time between two commits, and between two saves.
    pub commit_every: Millis,
    /// How often offsets are committed again that did not move: another member can move them back.
    pub assert_every: Millis,
    /// How often the row of a resting lane is read again: a database can be restored while nothing is
    /// written.
    pub confirm_every: Millis,
    /// Spreads retries.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_running: 8,
            records_high: 10_000,
            records_low: 5_000,
            bytes_high: 32 << 20,
            bytes_low: 24 << 20,
            batch_bytes: 4 << 20,
            commit_every: Millis(100),
            assert_every: Millis(5_000),
            confirm_every: Millis(10_000),
            seed: 0,
        }
    }
}

impl Config {
    /// For jobs of up to so many records: as many again are fetched meanwhile.
    #[must_use]
    pub fn with_batches_of(self, most: usize) -> Self {
        let high = self.records_high.max(most.saturating_mul(2));
        Self { records_high: high, records_low: self.records_low.max(high / 2), ..self }
    }
}

/// The decision core of one Kafka client. `R` is what the shell finds a record by.
#[derive(Debug)]
pub struct Core<R> {
    pub(super) config: Config,
    pub(super) now: Millis,
    pub(super) partitions: BTreeMap<Tp, Partition<R>>,
    /// Jobs that have not ended, those of closed epochs included: each holds a connection.
    pub(super) jobs: BTreeMap<JobId, Running>,
    pub(super) commits: Commits,
    pub(super) saves: Saves,
    pub(super) draining: BTreeSet<Tp>,
    /// Given up in this step.
    pub(super) released: Vec<Tp>,
    pub(super) lifecycle: Lifecycle,
    /// Tracks with a job that has not ended, whatever its epoch.
    pub(super) busy: BTreeSet<TrackId>,
    pub(super) ready: Line,
    pub(super) waiting: BTreeSet<(Millis, TrackId)>,
    pub(super) next_job: u64,
    bytes: usize,
    /// Whether too many bytes are held.
    short: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    Running,
    Stopping,
    Finished,
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) track: TrackId,
    pub(super) epoch: Epoch,
    pub(super) offsets: Vec<Offset>,
    pub(super) watermark: NextOffset,
    pub(super) started: Millis,
}

impl<R: Clone> Core<R> {
    /// A core without partitions.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            commits: Commits::default(),
            saves: Saves::default(),
            config,
            now: Millis(0),
            partitions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            draining: BTreeSet::new(),
            released: Vec::new(),
            lifecycle: Lifecycle::Running,
            busy: BTreeSet::new(),
            ready: Line::default(),
            waiting: BTreeSet::new(),
            next_job: 0,
            bytes: 0,
            short: false,
        }
    }

    /// Takes in what happened and appends what is to be done. A time before the last one counts as the
    /// last one.
    pub fn step(&mut self, now: Millis, event: Event<R>, actions: &mut Vec<Action<R>>) {
        self.now = self.now.max(now);
        match event {
            Event::Assigned { tp, epoch, start, lanes } => self.assigned(tp, epoch, start, &lanes, actions),
            Event::Record { tp, epoch, offset, key, bytes, handle } => {
                if self.fetched(tp, epoch, offset, key, bytes, handle) {
                    self.watch_memory(actions);
                    self.regulate(tp, actions);
                }
            }
            Event::Position { tp, epoch, position } => self.idle(tp, epoch, position),
            Event::Finished { job, outcome, handlers } => self.finished(job, outcome, handlers, actions),
            Event::ProgressSaved { saved } => self.progress_saved(&saved, actions),
            Event::Committed { offsets, ok } => self.committed(&offsets, ok),
            Event::Tick => {}
            Event::Revoke { tps } => self.revoke(tps, actions),
            Event::DrainDeadline { tps } => self.cut(&tps, actions),
            Event::Lost { tps } => self.lost(&tps, actions),
            Event::Drain => self.drain(actions),
        }
        self.wake();
        self.dispatch(actions);
        self.save(actions);
        self.commit(actions);
        self.release(actions);
    }

    /// When [`Event::Tick`] is due, if nothing else happens before.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Millis> {
        let retry = self.waiting.first().map(|&(at, ..)| at);
        [retry, self.next_save(), self.next_commit()].into_iter().flatten().min()
    }

    /// What the core knows.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            running: self.jobs.len(),
            bytes: self.bytes,
            stopping: self.lifecycle != Lifecycle::Running,
            partitions: self.partitions.values().map(Partition::snapshot).collect(),
        }
    }

    /// The partition, if this is still its epoch and it is not being given up.
    fn open(&mut self, tp: Tp, epoch: Epoch) -> Option<&mut Partition<R>> {
        self.partitions.get_mut(&tp).filter(|partition| partition.epoch == epoch && partition.is_open())
    }

    fn assigned(
        &mut self,
        tp: Tp,
        epoch: Epoch,
        start: Option<NextOffset>,
        lanes: &[LaneStart],
        actions: &mut Vec<Action<R>>,
    ) {
        let known = self.partitions.get(&tp).is_some_and(|partition| partition.epoch >= epoch);
        if known || self.lifecycle != Lifecycle::Running {
            return;
        }
        self.close(tp, actions);
        let partition = Partition::new(tp, epoch, start, lanes);
        self.saves.touch(partition.lane_ids());
        self.commits.touch(tp);
        self.partitions.insert(tp, partition);
        self.schedule_rounds();
    }

    /// Takes a record in; whether it is new.
    fn fetched(
        &mut self,
        tp: Tp,
        epoch: Epoch,
        offset: Offset,
        key: Option<OrderKey>,
        bytes: usize,
        handle: R,
    ) -> bool {
        let Some(partition) = self.open(tp, epoch) else { return false };
        mutant!(DropWhenFull => {
            if partition.paused {
                partition.reached(offset.next());
                return false;
            }
        });
        let Some(asking) = partition.fetched(offset, key, bytes, handle) else { return false };
        self.bytes += bytes;
        for track in asking {
            self.want(track);
        }
        true
    }

    fn idle(&mut self, tp: Tp, epoch: Epoch, position: NextOffset) {
        let Some(partition) = self.open(tp, epoch) else { return };
        partition.reached(position);
        let lanes = partition.lane_ids();
        self.saves.touch(lanes);
    }

    fn finished(&mut self, id: JobId, outcome: Outcome, handlers: Millis, actions: &mut Vec<Action<R>>) {
        let Some(job) = self.jobs.remove(&id) else { return };
        let Running { track, epoch, offsets, watermark, started } = job;
        let lane = track.lane;
        let offset = offsets.first().copied().unwrap_or(Offset(watermark.0));
        mutant!(LaneLeak => {
            if self.partitions.get(&lane.tp).is_none_or(|partition| partition.epoch != epoch) {
                return;
            }
        });
        self.busy.remove(&track);
        let current = self.partitions.get_mut(&lane.tp).filter(|partition| partition.epoch == epoch);

        let stop = match outcome {
            Outcome::TransactionEnded => Some(StopReason::TransactionEnded { lane, offset }),
            Outcome::Misconfigured => Some(StopReason::Misconfigured { lane, offset }),
            _ => None,
        };
        if let Some(reason) = stop {
            if let Some(state) = current.and_then(|partition| partition.lane(lane)) {
                state.halt(track.number);
            }
            mutant!(StopForgetsRow => { return self.stop(reason, actions); });
            // A drain that was under way already waits for this row, too.
            self.saves.touch([lane]);
            self.commits.touch(lane.tp);
            return self.stop(reason, actions);
        }
        let Some(partition) = current else { return self.queue(track) };
        match outcome {
            Outcome::WentBack => return self.reassign(lane.tp, ReassignReason::WentBack, actions),
            Outcome::Superseded => return self.reassign(lane.tp, ReassignReason::Superseded, actions),
            Outcome::Done | Outcome::Skipped => {
                let acknowledged = (outcome == Outcome::Done).then_some(watermark);
                let took = Took { all: Millis(self.now.0.saturating_sub(started.0)), handlers };
                let freed = partition.finished(track, &offsets, took, acknowledged);
                self.free(freed, actions);
                self.regulate(lane.tp, actions);
                self.want(track);
            }
            _ => self.failed(track, id, &offsets, outcome),
        }
        self.saves.touch([lane]);
        self.commits.touch(lane.tp);
    }

    fn failed(&mut self, track: TrackId, job: JobId, offsets: &[Offset], outcome: Outcome) {
        let (seed, now) = (self.config.seed, self.now);
        let TrackId { lane, number } = track;
        let Some(partition) = self.partitions.get_mut(&lane.tp) else { return };
        let open = partition.is_open();
        let Some(state) = partition.lane(lane) else { return };
        let delay = state.failed(number, offsets, outcome, seed, job);
        if !open {
            return;
        }
        if delay == Millis(0) {
            self.want(track);
        } else {
            state.wait_until(number, now + delay);
            self.waiting.insert((now + delay, track));
        }
    }

    /// Gives back what dropped records held.
    pub(super) fn free(&mut self, bytes: usize, actions: &mut Vec<Action<R>>) {
        self.bytes -= bytes;
        self.watch_memory(actions);
    }

    /// Pauses or resumes all partitions when a shortage of memory begins or ends.
    fn watch_memory(&mut self, actions: &mut Vec<Action<R>>) {
        let Config { bytes_high, bytes_low, .. } = self.config;
        let short = if self.short { self.bytes > bytes_low } else { self.bytes >= bytes_high };
        if short != self.short {
            self.short = short;
            let partitions = self.partitions.values_mut();
            actions.extend(partitions.filter_map(|partition| partition.regulate(&self.config, short)));
        }
    }

    /// Pauses or resumes one partition.
    fn regulate(&mut self, tp: Tp, actions: &mut Vec<Action<R>>) {
        let partition = self.partitions.get_mut(&tp);
        actions.extend(partition.and_then(|partition| partition.regulate(&self.config, self.short)));
    }
}
