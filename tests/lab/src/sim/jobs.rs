use handstamp::flow::{self, Answer, Claim, JobId, Outcome, Place, Setback, Step, Task};

use super::database::{Guard, Tracking, Transaction, TransactionId};
use super::kafka::Kind;
use super::oracle::{Broken, Verdict};
use super::process::Run;
use super::state::Effect;
use super::world::{Orphan, Phase, World};

/// A job's transaction: does the steps of its course, each of them one that others come between.
impl World {
    pub(super) fn is_quiet(&self) -> bool {
        self.phase != Phase::Faults
    }

    pub(super) fn advance(&mut self, index: usize, id: JobId) -> Verdict {
        loop {
            let Some(run) = self.processes[index].jobs.get(&id) else { return Ok(()) };
            let (step, kind) = (run.course.step(), run.job.handle.kind);
            let answer = match step {
                Step::ReadKey if kind == Kind::Keyless => Answer::Failed(Setback::Unreadable),
                Step::ReadArguments if kind == Kind::Garbled => Answer::Failed(Setback::Unreadable),
                Step::ReadKey | Step::ReadArguments => Answer::Done,
                Step::End(end) => {
                    self.end(index, id, end.map_or_else(Outcome::from, Outcome::from));
                    return Ok(());
                }
                _ => match self.work(index, id, step)? {
                    Some(answer) => {
                        self.answer(index, id, answer);
                        return Ok(());
                    }
                    None => return Ok(()),
                },
            };
            self.answer(index, id, answer);
        }
    }

    /// Does a step that takes time; `None` if it is not over.
    fn work(&mut self, index: usize, id: JobId, step: Step) -> Result<Option<Answer>, Broken> {
        let Some(run) = self.processes[index].jobs.get(&id) else { return Ok(None) };
        let open = run.transaction.filter(|&open| self.database.is_open(open));
        if let Step::Begin(task) = step {
            return Ok(Some(self.begin(index, id, task)));
        }
        let Some(open) = open else { return Ok(Some(self.without_connection(index, id, step))) };
        if self.breaks(step) {
            return Ok(Some(self.break_statement(index, id, open, step)));
        }
        let run = &self.processes[index].jobs[&id];
        let (job, tracked) = (run.job.clone(), self.processes[index].tracked(run.job.lane, run.job.epoch));
        let topic = tracked.map_or(job.handle.topic, |tracked| tracked.topic);
        let effect = Effect { lane: job.lane, topic, offset: job.offset, id: job.handle.id };
        Ok(match step {
            Step::Claim { keyed } => {
                let event = keyed.then_some(job.handle.id);
                match self.database.claim(open, job.lane, tracked, job.offset, event) {
                    None => self.wait(),
                    Some(claim) => Some(self.judge(index, id, claim)),
                }
            }
            Step::Call => return self.call(index, id, open, effect),
            Step::GiveBack => {
                self.database.give_back(open);
                Some(Answer::Done)
            }
            Step::Park => {
                let parked = self.database.park(open, (job.lane, topic, job.offset));
                if parked { Some(Answer::Done) } else { self.wait() }
            }
            Step::Guard { fresh } => {
                let ceiling = fresh.then_some(job.offset);
                let (watermark, acknowledged) = (job.watermark, job.acknowledged);
                let tracking = Tracking { lane: job.lane, tracked, watermark, acknowledged, ceiling };
                match self.database.guard(open, &tracking) {
                    Guard::Blocked => self.wait(),
                    Guard::Passed => Some(Answer::Done),
                    refused => Some(Answer::Failed(self.refusal(refused))),
                }
            }
            Step::Commit => return self.commit(index, id, open).map(Some),
            Step::RollBack(setback) => {
                self.database.roll_back(open);
                Some(Answer::Failed(setback))
            }
            Step::List => {
                self.database.roll_back(open);
                Some(self.list(index, id))
            }
            Step::ReadKey | Step::ReadArguments | Step::Begin(_) | Step::End(_) => None,
        })
    }

    fn begin(&mut self, index: usize, id: JobId, task: Task) -> Answer {
        if self.is_down() || self.trouble(self.knobs.trouble.environment) {
            self.report.environment_errors += 1;
            return Answer::Failed(Setback::Environment);
        }
        let cancelled = self.processes[index].jobs[&id].cancelled;
        if cancelled && task == Task::Apply && self.random.chance(500) {
            return Answer::Failed(Setback::Cancelled);
        }
        let open = self.database.begin();
        self.change(index, id, |run| run.transaction = Some(open));
        Answer::Done
    }

    fn judge(&mut self, index: usize, id: JobId, claim: Claim) -> Answer {
        let job = &self.processes[index].jobs[&id].job;
        let place = Place { offset: job.offset, acknowledged: job.acknowledged };
        match claim.judge(Some(place)) {
            Ok(verdict) => {
                self.report.skipped += u64::from(verdict != flow::Verdict::Fresh);
                Answer::Claimed(verdict)
            }
            Err(setback) => Answer::Failed(setback),
        }
    }

    fn call(
        &mut self,
        index: usize,
        id: JobId,
        open: TransactionId,
        effect: Effect,
    ) -> Result<Option<Answer>, Broken> {
        let run = &self.processes[index].jobs[&id];
        let (cancelled, record, left) = (run.cancelled, run.job.handle, run.work_left);
        if cancelled && !self.random.chance(self.knobs.trouble.deaf_to_cancel) {
            return Ok(Some(Answer::Failed(Setback::Cancelled)));
        }
        let left = left.unwrap_or_else(|| self.random.between(0, 3));
        if left == 0 {
            return self.handle(open, effect, record).map(Some);
        }
        self.change(index, id, |run| run.work_left = Some(left - 1));
        Ok(None)
    }

    fn refusal(&mut self, refused: Guard) -> Setback {
        match refused {
            Guard::WentBack => Setback::WentBack,
            Guard::Superseded => Setback::Superseded,
            Guard::Aborted => Setback::Handler,
            Guard::Ended => Setback::TransactionEnded,
            Guard::Overtaken => {
                self.report.overtaken += 1;
                Setback::Environment
            }
            Guard::Blocked | Guard::Passed => Setback::Environment,
        }
    }

    fn commit(&mut self, index: usize, id: JobId, open: TransactionId) -> Result<Answer, Broken> {
        if self.trouble(self.knobs.trouble.unknown_commit) {
            self.report.unknown_commits += 1;
            match self.random.below(3) {
                0 => self.commit_transaction(open)?,
                1 => self.database.roll_back(open),
                // On its way, or held up in the server, while the message is run again.
                _ => self.orphans.push(Orphan { transaction: open, sent: true }),
            }
            self.change(index, id, |run| run.transaction = None);
            return Ok(Answer::Failed(Setback::Unknown));
        }
        if self.trouble(self.knobs.trouble.environment) {
            // The server says so: it is rolled back.
            self.database.roll_back(open);
            self.report.environment_errors += 1;
            return Ok(Answer::Failed(Setback::Environment));
        }
        self.commit_transaction(open)?;
        Ok(Answer::Done)
    }

    fn list(&mut self, index: usize, id: JobId) -> Answer {
        let run = &self.processes[index].jobs[&id];
        let (lane, epoch, offset) = (run.job.lane, run.job.epoch, run.job.offset);
        let topic =
            self.processes[index].tracked(lane, epoch).map_or(run.job.handle.topic, |tracked| tracked.topic);
        if self.is_down() {
            return Answer::Failed(Setback::Environment);
        }
        self.database.state.listed.insert((lane, topic, offset));
        Answer::Done
    }

    /// The connection was lost with whatever stood in it.
    fn without_connection(&mut self, index: usize, id: JobId, step: Step) -> Answer {
        match step {
            Step::Commit => {
                self.report.unknown_commits += 1;
                Answer::Failed(Setback::Unknown)
            }
            // The handler blames itself; the rollback then finds out.
            Step::Call if self.random.chance(300) => Answer::Failed(Setback::Handler),
            Step::RollBack(Setback::Handler) => Answer::Failed(Setback::Environment),
            Step::RollBack(setback) => Answer::Failed(setback),
            Step::List => self.list(index, id),
            _ => {
                self.report.environment_errors += 1;
                Answer::Failed(Setback::Environment)
            }
        }
    }

    /// A statement fails by no fault of the record's. Half the time the connection is lost with it, and
    /// the server has yet to find out.
    fn break_statement(&mut self, index: usize, id: JobId, open: TransactionId, step: Step) -> Answer {
        self.report.environment_errors += 1;
        if self.random.chance(500) {
            self.orphans.push(Orphan { transaction: open, sent: false });
            self.change(index, id, |run| run.transaction = None);
            return self.without_connection(index, id, step);
        }
        Answer::Failed(Setback::Environment)
    }

    pub(super) fn end_orphan(&mut self, index: usize) -> Verdict {
        let orphan = self.orphans.swap_remove(index);
        if orphan.sent && self.database.is_open(orphan.transaction) && self.random.chance(500) {
            return self.commit_transaction(orphan.transaction);
        }
        self.database.roll_back(orphan.transaction);
        Ok(())
    }

    fn commit_transaction(&mut self, open: TransactionId) -> Verdict {
        let committed = self.database.commit(open);
        self.committed(&committed)
    }

    pub(super) fn committed(&mut self, committed: &Transaction) -> Verdict {
        self.note(|_| format!("committed {committed:?}"));
        self.report.applied += u64::from(committed.effect.is_some());
        self.report.parked += u64::from(committed.letter.is_some());
        self.oracle.database_committed(&self.kafka, &self.database.state, committed)
    }

    pub(super) fn is_down(&self) -> bool {
        self.database.down_until > self.now
    }

    fn trouble(&mut self, per_mille: u64) -> bool {
        !self.is_quiet() && self.random.chance(per_mille)
    }

    fn breaks(&mut self, step: Step) -> bool {
        let statement = matches!(
            step,
            Step::Claim { .. } | Step::Call | Step::GiveBack | Step::Park | Step::Guard { .. }
        );
        statement && self.trouble(self.knobs.trouble.environment)
    }

    /// Behind a lock; `lock_timeout` ends it at some time.
    fn wait(&mut self) -> Option<Answer> {
        self.random.chance(20).then_some(Answer::Failed(Setback::Environment))
    }

    fn answer(&mut self, index: usize, id: JobId, answer: Answer) {
        self.note(|world| {
            format!("p{index} {id:?} {:?}: {answer:?}", world.processes[index].jobs[&id].course.step())
        });
        self.change(index, id, |run| run.course.answer(answer));
    }

    fn change(&mut self, index: usize, id: JobId, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.processes[index].jobs.get_mut(&id) {
            change(run);
        }
    }

    /// The core hears of it later.
    fn end(&mut self, index: usize, id: JobId, outcome: Outcome) {
        let process = &mut self.processes[index];
        let run = process.jobs.remove(&id);
        let event = run.as_ref().map(|run| run.job.handle.id);
        if let Some(open) = run.and_then(|run| run.transaction) {
            self.database.roll_back(open);
        }
        process.outcomes.push((id, outcome));
        if outcome == Outcome::TransactionEnded {
            self.mended.extend(event);
        }
        self.note(|_| format!("p{index} {id:?} ended: {outcome:?}"));
    }
}
