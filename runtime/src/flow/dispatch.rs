use super::core::{Core, Running};
use super::{Action, JobId, Tp, TrackId};

/// Whose turn it is: tracks in back-off, tracks in line, and the permits they wait for.
impl<R: Clone> Core<R> {
    /// Ends the back-offs that are due.
    pub(super) fn wake(&mut self) {
        while let Some(&(at, track)) = self.waiting.first()
            && at <= self.now
        {
            self.waiting.pop_first();
            let partition = self.partitions.get_mut(&track.lane.tp);
            if let Some(lane) = partition.and_then(|partition| partition.lane(track.lane)) {
                lane.wake(track.number);
            }
            self.want(track);
        }
    }

    /// Puts a track in line if it has something to run.
    pub(super) fn want(&mut self, track: TrackId) {
        let TrackId { lane, number } = track;
        let partition = self.partitions.get_mut(&lane.tp).filter(|partition| partition.is_open());
        if partition.and_then(|partition| partition.lane(lane)).is_some_and(|lane| lane.want(number)) {
            self.ready.push(track);
        }
    }

    /// Puts a track in line again that had to wait for a job of an earlier epoch.
    pub(super) fn queue(&mut self, track: TrackId) {
        let TrackId { lane, number } = track;
        let partition = self.partitions.get_mut(&lane.tp);
        if partition.and_then(|partition| partition.lane(lane)).is_some_and(|lane| lane.is_ready(number)) {
            self.ready.push(track);
        }
    }

    /// Takes a partition's tracks out of every line.
    pub(super) fn unqueue(&mut self, tp: Tp) {
        self.ready.remove(tp);
        self.waiting.retain(|(_, track)| track.lane.tp != tp);
    }

    /// Hands out permits.
    pub(super) fn dispatch(&mut self, actions: &mut Vec<Action<R>>) {
        while self.jobs.len() < self.config.max_running.max(1) {
            let Some(track) = self.ready.pop() else { break };
            if self.busy.contains(&track) {
                continue;
            }
            let id = JobId(self.next_job);
            let Some(partition) = self.partitions.get_mut(&track.lane.tp) else { continue };
            let Some(job) = partition.start(track, id, self.config.batch_bytes) else {
                // It will not write the row, so that somebody else has to.
                self.saves.touch([track.lane]);
                continue;
            };
            self.next_job += 1;
            self.busy.insert(track);
            let offsets = job.records.iter().map(|record| record.offset).collect();
            let (epoch, watermark, started) = (job.epoch, job.watermark, self.now);
            let running = Running { track, epoch, offsets, watermark, started };
            self.jobs.insert(id, running);
            actions.push(Action::Start(job));
        }
    }
}
