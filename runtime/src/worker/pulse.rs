use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::flow::{Epoch, Tp};

/// How long a partition may be silent before its log is looked at.
const SILENCE: Duration = Duration::from_secs(30);

/// When each partition was last heard of, and where it stood: the client sometimes stops fetching a
/// partition for good, after a restart of its broker or around a pause, and says nothing.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    partitions: BTreeMap<Tp, Beat>,
}

#[derive(Debug)]
struct Beat {
    epoch: Epoch,
    next: i64,
    heard: Instant,
    paused: bool,
}

impl Pulse {
    pub(super) fn opened(&mut self, tp: Tp, epoch: Epoch, next: i64, now: Instant) {
        self.partitions.insert(tp, Beat { epoch, next, heard: now, paused: false });
    }

    /// The client stands at `next`.
    pub(super) fn at(&mut self, tp: Tp, epoch: Epoch, next: i64, now: Instant) {
        if let Some(beat) = self.partitions.get_mut(&tp)
            && beat.epoch == epoch
            && beat.next < next
        {
            (beat.next, beat.heard) = (next, now);
        }
    }

    pub(super) fn paused(&mut self, tp: Tp, paused: bool, now: Instant) {
        if let Some(beat) = self.partitions.get_mut(&tp) {
            (beat.paused, beat.heard) = (paused, now);
        }
    }

    pub(super) fn closed(&mut self, tp: Tp) {
        self.partitions.remove(&tp);
    }

    /// Partitions that have been silent for long, with where they stand; each again only after another
    /// such silence.
    pub(super) fn silent(&mut self, now: Instant) -> Vec<(Tp, Epoch, i64)> {
        let mut silent = Vec::new();
        for (tp, beat) in &mut self.partitions {
            if !beat.paused && now.duration_since(beat.heard) >= SILENCE {
                beat.heard = now;
                silent.push((*tp, beat.epoch, beat.next));
            }
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TP: Tp = Tp { topic: 0, partition: 3 };

    #[test]
    fn a_silent_partition_is_named_once_per_silence() {
        let (mut pulse, start) = (Pulse::default(), Instant::now());
        pulse.opened(TP, Epoch(1), 10, start);
        assert!(pulse.silent(start + SILENCE / 2).is_empty());
        assert_eq!(pulse.silent(start + SILENCE), [(TP, Epoch(1), 10)]);
        assert!(pulse.silent(start + SILENCE + SILENCE / 2).is_empty());
        assert_eq!(pulse.silent(start + SILENCE * 2), [(TP, Epoch(1), 10)]);
    }

    #[test]
    fn what_is_heard_of_or_paused_is_not_silent() {
        let (mut pulse, start) = (Pulse::default(), Instant::now());
        pulse.opened(TP, Epoch(1), 10, start);
        pulse.at(TP, Epoch(1), 11, start + SILENCE / 2);
        assert!(pulse.silent(start + SILENCE).is_empty());
        pulse.paused(TP, true, start + SILENCE);
        assert!(pulse.silent(start + SILENCE * 9).is_empty());
        pulse.paused(TP, false, start + SILENCE * 9);
        assert!(pulse.silent(start + SILENCE * 9 + SILENCE / 2).is_empty());
    }

    #[test]
    fn standing_still_is_silence() {
        let (mut pulse, start) = (Pulse::default(), Instant::now());
        pulse.opened(TP, Epoch(2), 10, start);
        pulse.at(TP, Epoch(2), 10, start + SILENCE);
        pulse.at(TP, Epoch(1), 99, start + SILENCE);
        assert_eq!(pulse.silent(start + SILENCE), [(TP, Epoch(2), 10)]);
    }
}
