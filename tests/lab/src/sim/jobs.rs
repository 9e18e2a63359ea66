use handstamp::flow::{Answer, Disposition, JobId, JobRecord, Millis, Offset, Outcome, Setback, Step, Task};

use super::database::{Asked, Guard, Tracking, Transaction, TransactionId};
use super::kafka::{Kind, Record};
use super::knobs::Handlers;
use super::oracle::{Broken, Verdict};
use super::process::{Run, is_keyed};
use super::state::{self, Effect};
use super::world::{Orphan, Phase, World};

/// A job's transaction: does the steps of its course, each of them one that others come between.
impl World {
    pub(super) fn is_quiet(&self) -> bool {
        self.phase != Phase::Faults
    }

    pub(super) fn advance(&mut self, index: usize, id: JobId) -> Verdict {
        let Some(run) = self.processes[index].jobs.get(&id) else { return Ok(()) };
        if let Step::End(end) = run.course.step() {
            self.end(index, id, end);
        } else if let Some(answer) = self.work(index, id, run.course.step())? {
            self.answer(index, id, answer);
        }
        Ok(())
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
        Ok(match step {
            Step::Claim => self.claim(index, id, open),
            Step::GiveBack => {
                for effect in self.effects(index, id, |run, member| run.course.is_given_back(member)) {
                    self.database.give_back(open, state::key(effect.lane, effect.id));
                }
                Some(Answer::Done)
            }
            Step::Call(member) if self.knobs.handlers == Handlers::Recording => {
                Some(self.record(index, id, member))
            }
            Step::Call(member) => return self.call(index, id, open, &[member]),
            Step::CallTogether | Step::Write => {
                let run = &self.processes[index].jobs[&id];
                let all: Vec<_> =
                    (0..run.job.records.len()).filter(|&member| run.course.is_handled(member)).collect();
                return self.call(index, id, open, &all);
            }
            Step::Park(member) => {
                let letter = self.effect(index, id, member).place();
                if self.database.park(open, letter) { Some(Answer::Done) } else { self.wait() }
            }
            Step::Guard { fresh } => self.guard(index, id, open, fresh),
            Step::Commit => return self.commit(index, id, open).map(Some),
            Step::RollBack(setback) => {
                self.database.roll_back(open);
                Some(Answer::Failed(setback))
            }
            Step::List => {
                self.database.roll_back(open);
                Some(self.list(index, id))
            }
            Step::Begin(_) | Step::End(_) => None,
        })
    }

    /// What the handler writes for a record.
    fn effect(&self, index: usize, id: JobId, member: usize) -> Effect {
        let process = &self.processes[index];
        let job = &process.jobs[&id].job;
        let JobRecord { offset, handle } = job.records[member];
        let tracked = process.tracked(job.lane, job.epoch);
        let topic = tracked.map_or(handle.topic, |tracked| tracked.topic);
        Effect { lane: job.lane, topic, offset, id: handle.id, key: handle.key, failed: false }
    }

    fn effects(&self, index: usize, id: JobId, of: impl Fn(&Run, usize) -> bool) -> Vec<Effect> {
        let run = &self.processes[index].jobs[&id];
        let members = (0..run.job.records.len()).filter(|&member| of(run, member));
        members.map(|member| self.effect(index, id, member)).collect()
    }

    fn claim(&mut self, index: usize, id: JobId, open: TransactionId) -> Option<Answer> {
        let process = &self.processes[index];
        let run = &process.jobs[&id];
        let (lane, tracked) = (run.job.lane, process.tracked(run.job.lane, run.job.epoch));
        let asked: Vec<_> = run
            .job
            .records
            .iter()
            .map(|record| Asked {
                offset: record.offset,
                event: is_keyed(record.handle.kind).then_some(record.handle.id),
            })
            .collect();
        let relied = run.job.ahead.relied.clone();
        match self.database.claim(open, lane, tracked, &asked, &relied) {
            Some((found, row)) => Some(Answer::Claimed { found, row }),
            None => self.wait(),
        }
    }

    fn guard(
        &mut self,
        index: usize,
        id: JobId,
        open: TransactionId,
        fresh: Option<Offset>,
    ) -> Option<Answer> {
        let process = &self.processes[index];
        let job = &process.jobs[&id].job;
        let (lane, watermark, acknowledged) = (job.lane, job.watermark, job.acknowledged);
        let tracked = process.tracked(lane, job.epoch);
        let applied = self.effects(index, id, |run, member| run.course.is_handled(member));
        let applied = applied.iter().map(|effect| effect.offset).collect();
        let ahead = self.processes[index].jobs[&id].job.ahead.clone();
        let tracking = Tracking { lane, tracked, watermark, acknowledged, ahead, ceiling: fresh, applied };
        match self.database.guard(open, &tracking) {
            Guard::Blocked => self.wait(),
            Guard::Passed => Some(Answer::Done),
            refused => Some(Answer::Failed(self.refusal(refused))),
        }
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

    fn call(
        &mut self,
        index: usize,
        id: JobId,
        open: TransactionId,
        members: &[usize],
    ) -> Result<Option<Answer>, Broken> {
        let run = &self.processes[index].jobs[&id];
        let (cancelled, left) = (run.cancelled, run.work_left);
        let records: Vec<Record> = members.iter().map(|&member| run.job.records[member].handle).collect();
        if cancelled && !self.random.chance(self.knobs.trouble.deaf_to_cancel) {
            return Ok(Some(Answer::Failed(Setback::Cancelled)));
        }
        let left = left.unwrap_or_else(|| self.random.between(0, 3));
        if left > 0 {
            self.change(index, id, |run| run.work_left = Some(left - 1));
            return Ok(None);
        }
        self.change(index, id, |run| run.work_left = None);
        for (&member, record) in members.iter().zip(records) {
            let effect = self.effect(index, id, member);
            let answer = self.handle(open, effect, record)?;
            if answer != Answer::Done {
                return Ok(Some(answer));
            }
        }
        Ok(Some(Answer::Done))
    }

    /// A handler that waits for nothing: what fails is it, or later what it recorded.
    fn record(&self, index: usize, id: JobId, member: usize) -> Answer {
        let run = &self.processes[index].jobs[&id];
        match run.job.records[member].handle.kind {
            _ if run.cancelled => Answer::Failed(Setback::Cancelled),
            Kind::Rejected => Answer::Failed(Setback::Rejected),
            _ => Answer::Done,
        }
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
        if self.is_down() {
            return Answer::Failed(Setback::Environment);
        }
        let handled = self.effects(index, id, |run, member| run.course.is_handled(member));
        self.database.state.listed.extend(handled.iter().map(Effect::place));
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
            Step::Call(_) | Step::CallTogether | Step::Write if self.random.chance(300) => {
                Answer::Failed(Setback::Handler)
            }
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
        self.report.applied += committed.effects.len() as u64;
        self.report.parked += committed.letters.len() as u64;
        self.oracle.database_committed(&self.kafka, &self.database.state, committed)
    }

    pub(super) fn is_down(&self) -> bool {
        self.database.down_until > self.now
    }

    fn trouble(&mut self, per_mille: u64) -> bool {
        !self.is_quiet() && self.random.chance(per_mille)
    }

    fn breaks(&mut self, step: Step) -> bool {
        let statement =
            !matches!(step, Step::Begin(_) | Step::Commit | Step::RollBack(_) | Step::List | Step::End(_));
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
    fn end(&mut self, index: usize, id: JobId, end: Result<(), Setback>) {
        let Some(run) = self.processes[index].jobs.remove(&id) else { return };
        if let Some(open) = run.transaction {
            self.database.roll_back(open);
        }
        let batch = u64::from(run.job.records.len() > 1);
        self.report.batches += batch;
        let outcome = match end {
            Ok(()) => {
                let dispositions: Vec<_> = run.course.dispositions().collect();
                let known = dispositions.iter().filter(|disposition| is_known(**disposition));
                self.report.skipped += known.count() as u64;
                Outcome::of(&dispositions)
            }
            Err(setback) => {
                self.report.batches_failed += batch;
                Outcome::from(setback)
            }
        };
        if outcome == Outcome::TransactionEnded {
            self.mended.extend(run.job.records.iter().map(|record| record.handle.id));
        }
        // Everything: what else there is takes no time worth telling here.
        let handlers = Millis(self.now.0 - run.begun.0);
        self.processes[index].outcomes.push((id, outcome, handlers));
        self.note(|_| format!("p{index} {id:?} ended: {outcome:?}"));
    }
}

fn is_known(disposition: Disposition) -> bool {
    matches!(disposition, Disposition::Duplicate | Disposition::LateDuplicate | Disposition::AlreadyParked)
}
