use std::collections::{BTreeMap, VecDeque};

use super::{LaneId, Tp, TrackId};

/// Tracks in line for a permit. Lanes take turns, so that one of many tracks does not push back the others.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Those that have tracks in line, each once.
    lanes: VecDeque<LaneId>,
    tracks: BTreeMap<LaneId, VecDeque<u16>>,
}

impl Line {
    pub(super) fn push(&mut self, TrackId { lane, number }: TrackId) {
        let tracks = self.tracks.entry(lane).or_default();
        if tracks.is_empty() {
            self.lanes.push_back(lane);
        }
        tracks.push_back(number);
    }

    /// The track that has waited longest, of the lane whose turn it is.
    pub(super) fn pop(&mut self) -> Option<TrackId> {
        let lane = self.lanes.pop_front()?;
        let tracks = self.tracks.get_mut(&lane)?;
        let number = tracks.pop_front()?;
        if tracks.is_empty() {
            self.tracks.remove(&lane);
        } else {
            self.lanes.push_back(lane);
        }
        Some(TrackId { lane, number })
    }

    /// Takes a partition's tracks out.
    pub(super) fn remove(&mut self, tp: Tp) {
        self.lanes.retain(|lane| lane.tp != tp);
        self.tracks.retain(|lane, _| lane.tp != tp);
    }
}
