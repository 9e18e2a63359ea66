use std::collections::BTreeSet;

use handstamp::flow::{Action, Event, LaneId, Millis, NextOffset, Tp};

use super::database::{Database, TransactionId};
use super::kafka::{Kafka, Record};
use super::knobs::Knobs;
use super::oracle::{Oracle, Verdict};
use super::process::Process;
use super::random::Random;
use super::report::{Promise, Report};

/// Everything outside the cores, and a clock that moves a little with every step.
#[derive(Debug)]
pub(super) struct World {
    pub(super) random: Random,
    pub(super) knobs: Knobs,
    pub(super) now: Millis,
    pub(super) kafka: Kafka,
    pub(super) database: Database,
    pub(super) processes: Vec<Process>,
    /// Transactions whose process is gone.
    pub(super) orphans: Vec<Orphan>,
    pub(super) oracle: Oracle,
    pub(super) report: Report,
    pub(super) produced: Vec<(Tp, Record)>,
    /// Events whose handlers have been mended.
    pub(super) mended: BTreeSet<u64>,
    /// Events that are not sent again, since their keys may be forgotten.
    pub(super) retired: BTreeSet<u64>,
    pub(super) phase: Phase,
    pub(super) trace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Faults,
    /// Nothing goes wrong any more, everything must drain.
    Quiet,
    /// Every process is asked to stop.
    Shutdown,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Orphan {
    pub(super) transaction: TransactionId,
    /// Its COMMIT was on the way.
    pub(super) sent: bool,
}

impl World {
    pub(super) fn new(seed: u64, trace: bool) -> Self {
        let mut random = Random::new(seed);
        let knobs = Knobs::draw(&mut random);
        Self {
            random,
            now: Millis(0),
            kafka: Kafka::new(&knobs.topics),
            database: Database::default(),
            processes: (0..knobs.processes).map(|_| Process::new(&knobs)).collect(),
            orphans: Vec::new(),
            oracle: Oracle::new(knobs.order),
            report: Report { seeds: 1, ..Report::default() },
            produced: Vec::new(),
            mended: BTreeSet::new(),
            retired: BTreeSet::new(),
            phase: Phase::Faults,
            trace,
            knobs,
        }
    }

    /// Faults, then quiet, then a clean end.
    pub(super) fn run(&mut self) -> Verdict {
        self.note(|world| format!("{:#?}", world.knobs));
        while self.report.steps < self.knobs.faulty_steps {
            self.step()?;
        }
        self.calm();
        self.until("drain", |world| world.is_drained() && world.is_known_by_owners())?;
        self.phase = Phase::Shutdown;
        for process in &mut self.processes {
            process.events.push_back(Event::Drain);
        }
        self.until("finish", |world| world.processes.iter().all(|process| process.finished))?;
        if !self.is_drained() {
            return Err((Promise::Liveness, "a clean end leaves something to be delivered again".to_owned()));
        }
        Ok(())
    }

    pub(super) fn lanes(&self, tp: Tp) -> impl Iterator<Item = LaneId> + use<> {
        let handlers = self.knobs.topics[usize::from(tp.topic)].handlers;
        (0..handlers).map(move |handler| LaneId { tp, handler })
    }

    pub(super) fn note(&self, text: impl FnOnce(&Self) -> String) {
        if self.trace {
            println!("{:>6} {:>8} ms  {}", self.report.steps, self.now.0, text(self));
        }
    }

    /// Tells a core what happened, and does what it says.
    pub(super) fn feed(&mut self, index: usize, event: Event<Record>) -> Verdict {
        let mut actions = Vec::new();
        self.note(|_| format!("p{index} <- {event:?}"));
        let process = &mut self.processes[index];
        process.core.step(self.now, event, &mut actions);
        for action in &actions {
            self.note(|_| format!("p{index} -> {action:?}"));
            if let Action::Start(job) = action
                && self.processes[index].runs_beside(job)
            {
                let facts = format!("p{index} runs two jobs of track {} of {:?}", job.track, job.lane);
                return Err((Promise::OneJobPerTrack, facts));
            }
            self.report.reassignments += u64::from(matches!(action, Action::Reassign { .. }));
        }
        for tp in self.processes[index].perform(actions, self.knobs.handlers, self.now) {
            if let Some(owner) = self.kafka.owners.get_mut(&tp) {
                owner.take_if(|owner| *owner == index);
            }
        }
        Ok(())
    }

    fn until(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) -> Verdict {
        // In units of work: how long a slow disk takes is not the core's fault.
        let records = self.kafka.logs.values().map(|log| log.records.len() as u64).sum::<u64>();
        let limit = self.report.steps + 5_000 + 400 * records;
        while !done(self) {
            if self.report.steps > limit {
                return Err(self.stuck(what));
            }
            self.step()?;
        }
        Ok(())
    }

    /// Everything produced is dealt with, and Kafka and every owner know it.
    fn is_drained(&mut self) -> bool {
        let produced = self.produced.len() as u64 >= self.knobs.records;
        produced && self.kafka.stray.is_empty() && self.kafka.is_drained() && self.is_settled()
    }

    fn is_settled(&mut self) -> bool {
        let lanes: Vec<_> = self.kafka.logs.keys().flat_map(|&tp| self.lanes(tp)).collect();
        lanes.into_iter().all(|lane| {
            let lowest = self.oracle.lowest_unsettled(&self.kafka, &self.database.state, lane);
            lowest.0 == self.kafka.logs[&lane.tp].end
        })
    }

    /// Whether each owner knows that nothing is left of a partition, and nobody believes to own it who
    /// does not: such a one can still move Kafka's offset.
    fn is_known_by_owners(&self) -> bool {
        let settled =
            |process: &Process| process.member && process.events.is_empty() && process.commit.is_none();
        let stale =
            |index: usize| self.processes[index].assignments.keys().any(|&tp| self.is_stale(index, tp));
        if !self.processes.iter().all(settled) || (0..self.processes.len()).any(stale) {
            return false;
        }
        self.kafka.logs.iter().all(|(&tp, log)| {
            let owner = self.kafka.owners[&tp].map(|index| &self.processes[index]);
            let known = owner.map(|owner| owner.core.snapshot().partitions).unwrap_or_default();
            known.iter().any(|known| known.tp == tp && known.durable == Some(NextOffset(log.end)))
        })
    }

    /// What stands in the way at the end: records that nobody will read again, or else something stuck.
    fn stuck(&mut self, what: &str) -> (Promise, String) {
        let mut promise = Promise::Liveness;
        let mut facts = vec![format!("did not {what}")];
        for (tp, log) in &self.kafka.logs {
            let committed = self.kafka.committed.get(tp).copied();
            let owner = self.kafka.owners[tp];
            facts.push(format!("{tp:?} ends at {}, Kafka has {committed:?}, owner {owner:?}", log.end));
            for lane in self.lanes(*tp) {
                let row = self.database.state.progress.get(&lane).map(|row| row.next);
                let lowest = self.oracle.lowest_unsettled(&self.kafka, &self.database.state, lane);
                facts.push(format!("{lane:?}: row {row:?}, dealt with below {lowest}"));
                if lowest.0 < log.end && committed.min(row) > Some(lowest) {
                    promise = Promise::NoneLost;
                }
            }
        }
        for (index, process) in self.processes.iter().enumerate() {
            self.note(|_| format!("p{index} {:#?} {:#?}", process.core.snapshot(), process.assignments));
        }
        (promise, facts.join("; "))
    }

    fn step(&mut self) -> Verdict {
        self.report.steps += 1;
        let tick = self.random.between(0, self.knobs.tick);
        self.now = self.now + Millis(tick);
        if self.phase == Phase::Faults && self.random.chance(self.knobs.faults.rate) {
            self.strike();
            return Ok(());
        }
        let moves = self.moves();
        if moves.is_empty() {
            return self.sleep();
        }
        let chosen = self.random.pick(&moves);
        if self.phase == Phase::Faults && self.random.chance(self.laziness(chosen)) {
            return Ok(());
        }
        self.make(chosen)
    }

    /// Nothing can happen: on to when something is due.
    fn sleep(&mut self) -> Verdict {
        let due = self.processes.iter().filter(|process| process.alive).flat_map(|process| {
            let thaw = (process.frozen_until > self.now).then_some(process.frozen_until);
            let cut = process.assignments.values().filter_map(|assignment| assignment.leaving);
            let cut = cut.filter(|leaving| !leaving.cut).map(|leaving| leaving.deadline);
            let wake = process.core.next_wakeup();
            [thaw, wake].into_iter().flatten().chain(cut)
        });
        let due = due.filter(|&due| due > self.now).min();
        match due {
            Some(due) => self.now = due,
            None if self.phase == Phase::Faults => {}
            None => return Err(self.stuck("go on, although nothing is due")),
        }
        Ok(())
    }
}
