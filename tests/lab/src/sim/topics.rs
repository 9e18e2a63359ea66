use handstamp::flow::{Event, LaneId, Offset, Tp};

use super::process::Stage;
use super::state;
use super::world::World;

/// Topics that are made anew under running workers, and keys that are forgotten.
impl World {
    /// Somebody deletes a topic and makes one of the same name. No client notices by itself: it goes on
    /// reading and committing at the offsets that it had.
    pub(super) fn recreate_topic(&mut self) {
        let topic = self.any_tp().topic;
        self.report.topics_recreated += 1;
        self.kafka.recreate(topic);
        self.oracle.start_over(topic);
        self.note(|_| format!("topic {topic} is deleted and made anew"));
    }

    /// Whether a partition is read as one of a topic that is gone.
    pub(super) fn is_stale(&self, index: usize, tp: Tp) -> bool {
        let process = &self.processes[index];
        process.assignments.get(&tp).is_some_and(|assignment| {
            let tracked = process.tracked(LaneId { tp, handler: 0 }, assignment.epoch);
            tracked.is_some_and(|tracked| tracked.topic != self.kafka.topic(tp))
        })
    }

    /// The worker compares topic ids, or its position is not in the log any more: the partition is given
    /// up, and looked up anew.
    pub(super) fn look_again(&mut self, index: usize, tp: Tp) {
        let process = &mut self.processes[index];
        if process.assignments.get(&tp).is_some_and(|at| at.stage == Stage::Fetching) {
            process.events.push_back(Event::Lost { tps: vec![tp] });
            process.assign(tp);
            self.note(|_| format!("p{index} finds that {tp:?} is not what it was"));
        }
    }

    /// The inbox forgets a key that nothing can deliver again above what was passed.
    pub(super) fn forget_key(&mut self) {
        if self.produced.is_empty() {
            return;
        }
        let picked = self.random.index(self.produced.len());
        let (tp, record) = self.produced[picked];
        // A record of a topic that is gone may still be in somebody's memory.
        if self.kafka.topic(tp) > 0 {
            return;
        }
        let lanes: Vec<_> = self.lanes(tp).collect();
        for lane in lanes {
            let key = state::key(lane, record.id);
            if self.database.state.inbox.contains(&key) && self.is_passed_everywhere(lane, record.id) {
                self.database.state.inbox.remove(&key);
                self.retired.insert(record.id);
                self.report.keys_forgotten += 1;
                self.note(|_| format!("{lane:?} forgets {}", record.id));
            }
        }
    }

    fn is_passed_everywhere(&self, lane: LaneId, id: u64) -> bool {
        let logs = self.kafka.logs.iter().filter(|(tp, _)| tp.topic == lane.tp.topic);
        let mut records = logs.flat_map(|(&tp, log)| {
            log.records
                .iter()
                .filter(move |(_, record)| record.id == id)
                .map(move |(&offset, _)| (tp, offset))
        });
        records.all(|(tp, offset)| {
            let row = self.database.state.progress.get(&LaneId { tp, handler: lane.handler });
            row.is_some_and(|row| {
                row.tracked.topic == self.kafka.topic(tp) && Offset(offset).next() <= row.passed
            })
        })
    }
}
