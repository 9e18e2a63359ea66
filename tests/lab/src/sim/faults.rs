use handstamp::flow::{LaneId, Millis, NextOffset, Step, Tp};

use super::process::Process;
use super::world::{Orphan, Phase, World};

impl World {
    /// One fault, chosen by this seed's weights.
    pub(super) fn strike(&mut self) {
        type Fault = fn(&mut World);
        let faults = self.knobs.faults;
        let choices: [(u64, Fault); 12] = [
            (faults.kill, Self::kill_one),
            (faults.freeze, Self::freeze_one),
            (faults.evict, Self::evict_one),
            (faults.rebalance, Self::rebalance),
            (faults.crash, Self::crash_database),
            (faults.restore * 3, |world| world.database.back_up()),
            (faults.restore, Self::restore_database),
            (faults.reset, Self::reset_progress),
            (faults.rewind, Self::rewind),
            (faults.expire, Self::expire),
            (faults.recreate, Self::recreate_topic),
            (faults.forget, Self::forget_key),
        ];
        let total: u64 = choices.iter().map(|(weight, _)| weight).sum();
        if total == 0 {
            return;
        }
        let mut drawn = self.random.below(total);
        for (weight, fault) in choices {
            if drawn < weight {
                return fault(self);
            }
            drawn -= weight;
        }
    }

    /// The end of all faults: whoever is down comes back.
    pub(super) fn calm(&mut self) {
        self.note(|_| "all is quiet now".to_owned());
        self.phase = Phase::Quiet;
        self.database.down_until = self.now;
        for index in 0..self.processes.len() {
            self.processes[index].frozen_until = self.now;
            if !self.processes[index].alive {
                self.restart(index);
            }
        }
    }

    /// A new process in the place of one that has ended.
    pub(super) fn restart(&mut self, index: usize) {
        self.kafka.evict(index);
        self.processes[index] = Process::new(&self.knobs);
    }

    fn any_process(&mut self) -> usize {
        self.random.index(self.processes.len())
    }

    pub(super) fn any_tp(&mut self) -> Tp {
        let tps: Vec<_> = self.kafka.logs.keys().copied().collect();
        self.random.pick(&tps)
    }

    fn kill_one(&mut self) {
        let index = self.any_process();
        let process = &mut self.processes[index];
        if !process.alive {
            return;
        }
        self.report.kills += 1;
        process.alive = false;
        let runs = std::mem::take(&mut process.jobs);
        let orphans = runs.into_values().filter_map(|run| {
            run.transaction.map(|transaction| Orphan { transaction, sent: run.course.step() == Step::Commit })
        });
        self.orphans.extend(orphans);
        if let Some(offsets) = process.commit.take() {
            let commits = offsets.into_iter().map(|(tp, epoch, next)| process.commit_of(tp, epoch, next));
            self.kafka.stray.push(commits.collect());
        }
        self.note(|_| format!("p{index} is killed"));
    }

    fn freeze_one(&mut self) {
        let index = self.any_process();
        if self.processes[index].runs(self.now) {
            self.report.freezes += 1;
            self.freeze(index);
            self.note(|world| format!("p{index} is frozen until {:?}", world.processes[index].frozen_until));
        }
    }

    fn evict_one(&mut self) {
        let index = self.any_process();
        if self.processes[index].member {
            self.report.evictions += 1;
            self.evict(index);
        }
    }

    fn rebalance(&mut self) {
        let tp = self.any_tp();
        self.revoke(tp);
    }

    fn crash_database(&mut self) {
        self.report.database_crashes += 1;
        let ticks = self.random.between(0, 50);
        self.database.crash(self.now + Millis(ticks * self.knobs.tick));
        self.note(|_| "the database crashes".to_owned());
    }

    fn restore_database(&mut self) {
        self.report.restores += 1;
        self.oracle.going_back(&self.database.state);
        self.database.restore();
        self.note(|world| format!("the database is restored: {:?}", world.database.state.progress));
    }

    fn reset_progress(&mut self) {
        let tp = self.any_tp();
        let handlers = self.lanes(tp).count();
        let handler = u16::try_from(self.random.index(handlers)).expect("as many as were drawn");
        let lane = LaneId { tp, handler };
        let Some(row) = self.database.state.progress.get(&lane).cloned() else { return };
        let next = NextOffset(self.random.below(row.next.0.unsigned_abs() + 1).cast_signed());
        if self.database.reset(lane, row.tracked.topic, next) {
            self.report.resets += 1;
            self.note(|_| format!("progress of {lane:?} is reset to {next}"));
        }
    }

    /// Another member moves a committed offset back.
    fn rewind(&mut self) {
        let tp = self.any_tp();
        if let Some(committed) = self.kafka.committed.get_mut(&tp) {
            let before = committed.0;
            committed.0 = self.random.below(before.unsigned_abs() + 1).cast_signed();
            self.report.offsets_moved_back += 1;
            self.note(|world| {
                format!("Kafka's {before} for {tp:?} is moved to {:?}", world.kafka.committed[&tp])
            });
        }
    }

    fn expire(&mut self) {
        let tp = self.any_tp();
        if self.kafka.committed.remove(&tp).is_some() {
            self.report.offsets_expired += 1;
            self.note(|_| format!("Kafka's offset for {tp:?} expires"));
        }
    }
}
