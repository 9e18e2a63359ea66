use handstamp::flow::{JobId, Outcome, Save, Task};

use super::database::{Claim, Effect, Guard};
use super::kafka::Kind;
use super::oracle::Verdict;
use super::process::Step;
use super::world::{Phase, World};

/// A job's transaction: begin, claim, handle, guard, commit, each a step that others come between.
impl World {
    pub(super) fn is_quiet(&self) -> bool {
        self.phase != Phase::Faults
    }

    pub(super) fn advance(&mut self, index: usize, id: JobId) -> Verdict {
        let Some(run) = self.processes[index].jobs.get(&id) else { return Ok(()) };
        let (job, step, transaction, cancelled) = (run.job.clone(), run.step, run.transaction, run.cancelled);
        if job.handle.kind == Kind::Tombstone && job.task == Task::Apply {
            self.end(index, id, Outcome::Skipped);
            return Ok(());
        }
        if self.breaks(step) || transaction.is_some_and(|open| !self.database.is_open(open)) {
            if step == Step::Commit {
                return self.commit_unknown(index, id);
            }
            self.report.environment_errors += 1;
            self.end(index, id, Outcome::Environment);
            return Ok(());
        }
        let park = job.task == Task::Park;
        let effect = Effect { lane: job.lane, offset: job.offset, id: job.handle.id };
        let Some(open) = transaction else {
            let open = self.database.begin();
            self.processes[index].jobs.entry(id).and_modify(|run| run.transaction = Some(open));
            self.go(index, id, Step::Claim);
            return Ok(());
        };
        match step {
            Step::Begin => {}
            Step::Claim => match self.database.claim(open, effect, park) {
                Claim::Blocked => self.wait(index, id),
                Claim::New if !park => {
                    let left = self.random.between(0, 3);
                    self.go(index, id, Step::Handle { left });
                }
                Claim::New => self.go(index, id, Step::Guard),
                Claim::Known => {
                    self.report.skipped += 1;
                    self.go(index, id, Step::Guard);
                }
            },
            Step::Handle { .. } if cancelled && !self.random.chance(self.knobs.trouble.deaf_to_cancel) => {
                self.end(index, id, Outcome::Cancelled);
            }
            Step::Handle { left: 0 } => match job.handle.kind {
                Kind::Poison => self.end(index, id, Outcome::Failed),
                Kind::Flaky if self.random.chance(500) => self.end(index, id, Outcome::Failed),
                Kind::Rejected => self.end(index, id, Outcome::Rejected),
                Kind::Plain | Kind::Flaky | Kind::Tombstone => {
                    self.database.apply(open, effect);
                    self.go(index, id, Step::Guard);
                }
            },
            Step::Handle { left } => self.go(index, id, Step::Handle { left: left - 1 }),
            Step::Guard => {
                let (watermark, acknowledged) = (job.watermark, job.acknowledged);
                let save = Save { lane: job.lane, epoch: job.epoch, watermark, acknowledged };
                let incarnation = self.processes[index].incarnations.get(&(job.lane, job.epoch)).copied();
                match self.database.guard(open, &save, job.offset, incarnation) {
                    Guard::Blocked => self.wait(index, id),
                    Guard::Passed => self.go(index, id, Step::Commit),
                    Guard::WentBack => self.end(index, id, Outcome::WentBack),
                    Guard::Superseded => self.end(index, id, Outcome::Superseded),
                    Guard::Overtaken => {
                        self.report.overtaken += 1;
                        self.end(index, id, Outcome::Unknown);
                    }
                }
            }
            Step::Commit if !self.is_quiet() && self.random.chance(self.knobs.trouble.unknown_commit) => {
                return self.commit_unknown(index, id);
            }
            Step::Commit => {
                self.commit_transaction(open)?;
                self.end(index, id, Outcome::Done);
            }
        }
        Ok(())
    }

    /// The connection breaks at COMMIT: it may be there or not.
    fn commit_unknown(&mut self, index: usize, id: JobId) -> Verdict {
        self.report.unknown_commits += 1;
        let open = self.processes[index].jobs.get(&id).and_then(|run| run.transaction);
        if let Some(open) = open.filter(|&open| self.database.is_open(open))
            && self.random.chance(500)
        {
            self.commit_transaction(open)?;
        }
        self.end(index, id, Outcome::Unknown);
        Ok(())
    }

    pub(super) fn end_orphan(&mut self, index: usize) -> Verdict {
        let orphan = self.orphans.swap_remove(index);
        if orphan.sent && self.database.is_open(orphan.transaction) && self.random.chance(500) {
            return self.commit_transaction(orphan.transaction);
        }
        self.database.roll_back(orphan.transaction);
        Ok(())
    }

    fn commit_transaction(&mut self, open: u64) -> Verdict {
        let committed = self.database.commit(open);
        self.note(|_| format!("committed {committed:?}"));
        self.report.applied += u64::from(committed.effect.is_some());
        self.report.parked += u64::from(committed.letter.is_some());
        self.oracle.database_committed(&self.kafka, &self.database.state, &committed)
    }

    fn breaks(&mut self, step: Step) -> bool {
        if self.database.down_until > self.now {
            return true;
        }
        let statement = matches!(step, Step::Begin | Step::Claim | Step::Guard);
        statement && !self.is_quiet() && self.random.chance(self.knobs.trouble.environment)
    }

    /// Behind a lock; `lock_timeout` ends it at some time.
    fn wait(&mut self, index: usize, id: JobId) {
        if self.random.chance(20) {
            self.end(index, id, Outcome::Environment);
        }
    }

    fn go(&mut self, index: usize, id: JobId, step: Step) {
        if let Some(run) = self.processes[index].jobs.get_mut(&id) {
            run.step = step;
        }
    }

    /// Whatever is still open is rolled back; the core hears of it later.
    fn end(&mut self, index: usize, id: JobId, outcome: Outcome) {
        let process = &mut self.processes[index];
        if let Some(open) = process.jobs.remove(&id).and_then(|run| run.transaction) {
            self.database.roll_back(open);
        }
        process.outcomes.push((id, outcome));
        self.note(|_| format!("p{index} {id:?} ended: {outcome:?}"));
    }
}
