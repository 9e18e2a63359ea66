use std::collections::BTreeSet;

use super::pace::Took;
use super::track::{Track, Turn};
use super::watermark::Watermark;
use super::{
    Ahead, Epoch, JobId, LaneId, LaneSnapshot, LaneStart, Millis, NextOffset, Offset, Offsets, Order,
    OrderKey, Outcome, Save,
};
use crate::laboratory::mutant;

/// One handler's way through one partition: one row of progress, and one watermark over all its tracks.
#[derive(Debug)]
pub(super) struct Lane {
    watermark: Watermark,
    acknowledged: NextOffset,
    /// What the row was given above what is acknowledged.
    ahead: Offsets,
    order: Order,
    tracks: Vec<Track>,
    /// Records that any track may take, and none has.
    free: BTreeSet<Offset>,
    /// Whether the row was seen to be as expected since the last round of confirmation.
    confirmed: bool,
}

/// What a track of the lane runs next.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) turn: Turn,
    pub(super) watermark: NextOffset,
    pub(super) acknowledged: NextOffset,
    pub(super) ahead: Ahead,
}

impl Lane {
    pub(super) fn new(start: Option<NextOffset>, lane: &LaneStart) -> Self {
        Self {
            watermark: Watermark::new(start),
            acknowledged: lane.acknowledged,
            ahead: Offsets::default(),
            order: lane.order,
            tracks: (0..lane.order.tracks()).map(|_| Track::new(lane)).collect(),
            free: BTreeSet::new(),
            confirmed: true,
        }
    }

    pub(super) fn is_ready(&self, track: u16) -> bool {
        self.tracks.get(usize::from(track)).is_some_and(Track::is_ready)
    }

    pub(super) fn running(&self) -> impl Iterator<Item = JobId> {
        self.tracks.iter().filter_map(Track::running)
    }

    pub(super) fn has_passed(&self, offset: Offset) -> bool {
        self.watermark.has_passed(offset)
    }

    /// Takes a record in; the track that is to ask for a permit for it, if one has time.
    pub(super) fn fetched(&mut self, offset: Offset, key: Option<OrderKey>) -> Option<u16> {
        self.watermark.fetched(offset);
        let track = self.order.track(key);
        match track.and_then(|track| self.track(track)) {
            Some(own) => own.queue.insert(offset),
            None => self.free.insert(offset),
        };
        track.or_else(|| (0..).zip(&self.tracks).find(|(_, track)| track.is_idle()).map(|(number, _)| number))
    }

    pub(super) fn reached(&mut self, position: NextOffset) {
        self.watermark.reached(position);
    }

    /// Has a track ask for a permit if there is something to run; whether it now does.
    pub(super) fn want(&mut self, track: u16) -> bool {
        self.tracks.get_mut(usize::from(track)).is_some_and(|track| track.want(&self.free))
    }

    /// Ends the back-off of a track.
    pub(super) fn wake(&mut self, track: u16) {
        if let Some(track) = self.track(track) {
            track.wake();
        }
    }

    /// Starts nothing any more. What runs goes on.
    pub(super) fn retire(&mut self) {
        mutant!(DrainForgets => {
            let left: Vec<_> = self.watermark.unfinished().collect();
            for offset in left {
                self.watermark.finished(offset);
            }
        });
        self.tracks.iter_mut().for_each(Track::retire);
    }

    pub(super) fn halt(&mut self, track: u16) {
        if let Some(track) = self.track(track) {
            track.halt();
        }
    }

    /// Starts what is first in a track that has its turn.
    pub(super) fn start(
        &mut self,
        track: u16,
        job: JobId,
        bytes: impl Fn(Offset) -> usize,
        most_bytes: usize,
    ) -> Option<Run> {
        let track = self.tracks.get_mut(usize::from(track))?;
        let turn = track.start(job, &mut self.free, bytes, most_bytes)?;
        // What other tracks have not finished bounds it: the row must not pass what may still fail.
        let watermark = self.watermark.next_without(&turn.offsets);
        mutant!(WatermarkOfTrack => {
            let own = track.queue.iter().find(|offset| !turn.offsets.contains(offset));
            let watermark = self.watermark.lowest(own.copied()).unwrap_or(watermark);
            return Some(self.run(turn, watermark));
        });
        mutant!(FloorUnchecked => {
            return Some(Run { acknowledged: NextOffset(0), ..self.run(turn, watermark) });
        });
        mutant!(BatchPassesPoison => {
            if let Some(last) = track.suspect_until.filter(|last| *last >= turn.offsets[0]) {
                let together: Vec<_> = self.watermark.unfinished().take_while(|at| *at <= last).collect();
                let watermark = self.watermark.next_without(&together);
                return Some(self.run(turn, watermark));
            }
        });
        Some(self.run(turn, watermark))
    }

    fn run(&self, turn: Turn, watermark: NextOffset) -> Run {
        let mut added = Offsets::default();
        for &offset in turn.offsets.iter().filter(|offset| offset.0 >= watermark.0) {
            added.insert(self.watermark.gap(offset).unwrap_or(offset), offset.next());
        }
        let ahead = Ahead { relied: self.relied(), added };
        Run { turn, watermark, acknowledged: self.acknowledged, ahead }
    }

    /// What has to stand in the row: what was dealt with out of turn, whether it is passed now or not. A record is
    /// not applied where one before it, of the same key, is not there any more.
    fn relied(&self) -> Offsets {
        mutant!(AheadUnproved => { return Offsets::default(); });
        self.ahead.clone()
    }

    /// These are dealt with; the row was committed at `acknowledged` unless there was nothing to write.
    pub(super) fn finished(
        &mut self,
        track: u16,
        offsets: &[Offset],
        took: Took,
        acknowledged: Option<NextOffset>,
    ) {
        for &offset in offsets {
            let gap = self.watermark.finished(offset);
            if acknowledged.is_some_and(|next| offset.0 >= next.0) {
                self.ahead.insert(gap.unwrap_or(offset), offset.next());
            }
        }
        if let Some(track) = self.track(track) {
            track.finished(offsets, took);
        }
        if let Some(next) = acknowledged {
            self.acknowledge(next);
        }
    }

    /// As [`Track::failed`].
    pub(super) fn failed(
        &mut self,
        track: u16,
        offsets: &[Offset],
        outcome: Outcome,
        seed: u64,
        job: JobId,
    ) -> Millis {
        mutant!(RetryChangesTrack => {
            let next = usize::from(track + 1) % self.tracks.len();
            for offset in offsets {
                self.tracks[usize::from(track)].queue.remove(offset);
                self.tracks[next].queue.insert(*offset);
            }
        });
        self.track(track).map_or(Millis(0), |track| track.failed(offsets, outcome, seed, job))
    }

    pub(super) fn wait_until(&mut self, track: u16, at: Millis) {
        if let Some(track) = self.track(track) {
            track.wait_until(at);
        }
    }

    /// The row was seen to stand at `next` or above.
    pub(super) fn acknowledge(&mut self, next: NextOffset) {
        self.acknowledged = self.acknowledged.max(next);
        self.ahead.remove_below(self.acknowledged);
        self.confirmed = true;
    }

    /// Whether the row was seen since this was asked last.
    pub(super) fn take_confirmed(&mut self) -> bool {
        std::mem::take(&mut self.confirmed)
    }

    /// Whether no job of its own is about to write the row.
    pub(super) fn rests(&self) -> bool {
        !self.tracks.iter().any(|track| track.is_ready() || track.running().is_some())
    }

    pub(super) fn is_unsaved(&self) -> bool {
        self.watermark.next() > Some(self.acknowledged)
    }

    /// What is to be written of the row, and what it must say.
    pub(super) fn save(&self, lane: LaneId, epoch: Epoch) -> Save {
        let acknowledged = self.acknowledged;
        let watermark = self.watermark.next().map_or(acknowledged, |next| next.max(acknowledged));
        let relied = self.relied();
        mutant!(FloorUnchecked => { return Save { lane, epoch, watermark, acknowledged: NextOffset(0), relied }; });
        Save { lane, epoch, watermark, acknowledged, relied }
    }

    /// What Kafka may be told: dealt with, and known to stand in the row.
    pub(super) fn durable(&self) -> Option<NextOffset> {
        mutant!(CommitBeforeDatabase => {
            if let (Some(_), Some(first)) = (self.running().next(), self.watermark.unfinished().next()) {
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
            tracks: self.tracks.iter().map(Track::snapshot).collect(),
        }
    }

    fn track(&mut self, track: u16) -> Option<&mut Track> {
        self.tracks.get_mut(usize::from(track))
    }
}
