use super::core::{Core, Running};
use super::lane::Lane;
use super::{Action, JobId, LaneId, Tp};

/// Whose turn it is: lanes in back-off, lanes in line, and the permits they wait for.
impl<R: Clone> Core<R> {
    /// Ends the back-offs that are due.
    pub(super) fn wake(&mut self) {
        while let Some(&(at, lane)) = self.waiting.first()
            && at <= self.now
        {
            self.waiting.pop_first();
            let partition = self.partitions.get_mut(&lane.tp);
            if partition.and_then(|partition| partition.lane(lane)).is_some_and(Lane::wake) {
                self.ready.push_back(lane);
            }
        }
    }

    /// Puts a lane in line if it has something to run.
    pub(super) fn want(&mut self, lane: LaneId) {
        let partition = self.partitions.get_mut(&lane.tp).filter(|partition| partition.is_open());
        if partition.and_then(|partition| partition.lane(lane)).is_some_and(Lane::want) {
            self.ready.push_back(lane);
        }
    }

    /// Puts a lane in line again that had to wait for a job of an earlier epoch.
    pub(super) fn queue(&mut self, lane: LaneId) {
        let partition = self.partitions.get_mut(&lane.tp);
        if partition.and_then(|partition| partition.lane(lane)).is_some_and(|lane| lane.is_ready()) {
            self.ready.push_back(lane);
        }
    }

    /// Takes a partition's lanes out of every line.
    pub(super) fn unqueue(&mut self, tp: Tp) {
        self.ready.retain(|lane| lane.tp != tp);
        self.waiting.retain(|(_, lane)| lane.tp != tp);
    }

    /// Hands out permits, to the lane that has waited longest.
    pub(super) fn dispatch(&mut self, actions: &mut Vec<Action<R>>) {
        while self.jobs.len() < self.config.max_running.max(1) {
            let Some(lane) = self.ready.pop_front() else { break };
            if self.busy.contains(&lane) {
                continue;
            }
            let id = JobId(self.next_job);
            let Some(partition) = self.partitions.get_mut(&lane.tp) else { continue };
            let Some(job) = partition.start(lane, id, self.config.batch_bytes) else { continue };
            self.next_job += 1;
            self.busy.insert(lane);
            let offsets = job.records.iter().map(|record| record.offset).collect();
            let (epoch, watermark, started) = (job.epoch, job.watermark, self.now);
            let running = Running { lane, epoch, offsets, watermark, started };
            self.jobs.insert(id, running);
            actions.push(Action::Start(job));
        }
    }
}
