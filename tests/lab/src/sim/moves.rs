use handstamp::flow::{Event, JobId, Tp};

use super::oracle::Verdict;
use super::process::{Process, Stage};
use super::report::Promise;
use super::world::{Phase, World};

/// One thing that can happen next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    Produce,
    EndOrphan(usize),
    ArriveStray(usize),
    Assign(Tp),
    Evict(usize),
    Restart(usize),
    Rejoin(usize),
    Locate(usize, Tp),
    Poll(usize, Tp),
    Idle(usize, Tp),
    LookAgain(usize, Tp),
    Cut(usize, Tp),
    Deliver(usize),
    Report(usize),
    Advance(usize, JobId),
    CommitOffsets(usize),
    Save(usize),
    Wake(usize),
}

/// What can happen next, and making it happen.
impl World {
    pub(super) fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        if (self.produced.len() as u64) < self.knobs.records {
            moves.push(Move::Produce);
        }
        moves.extend((0..self.orphans.len()).map(Move::EndOrphan));
        moves.extend((0..self.kafka.stray.len()).map(Move::ArriveStray));
        if self.phase != Phase::Shutdown
            && self.processes.iter().any(|process| process.alive && process.member)
        {
            let free = self.kafka.owners.iter().filter(|(_, owner)| owner.is_none());
            moves.extend(free.map(|(&tp, _)| Move::Assign(tp)));
        }
        for (index, process) in self.processes.iter().enumerate() {
            if process.finished {
                // Somebody has mended its handler.
                if self.phase != Phase::Shutdown {
                    moves.push(Move::Restart(index));
                }
            } else if process.runs(self.now) {
                self.moves_of(index, process, &mut moves);
            } else if process.member {
                moves.push(Move::Evict(index));
            } else if !process.alive {
                moves.push(Move::Restart(index));
            }
        }
        moves
    }

    fn moves_of(&self, index: usize, process: &Process, moves: &mut Vec<Move>) {
        for (&tp, assignment) in &process.assignments {
            match assignment.leaving {
                Some(leaving) if !leaving.cut && leaving.deadline <= self.now => {
                    moves.push(Move::Cut(index, tp));
                }
                Some(_) => {}
                None if assignment.stage != Stage::Fetching => moves.push(Move::Locate(index, tp)),
                None if process.waits() => {}
                None => {
                    let log = &self.kafka.logs[&tp];
                    if self.is_stale(index, tp) {
                        moves.push(Move::LookAgain(index, tp));
                    }
                    if assignment.position > log.end {
                        continue;
                    }
                    let early = self.phase == Phase::Faults && self.knobs.trouble.early_record > 0;
                    let more = log.records.range(assignment.position..).next().is_some();
                    if more && (early || !assignment.paused) {
                        moves.push(Move::Poll(index, tp));
                    } else if !more && assignment.told != Some(log.end) {
                        moves.push(Move::Idle(index, tp));
                    }
                }
            }
        }
        if !process.member && !process.waits() {
            moves.push(Move::Rejoin(index));
        }
        if !process.events.is_empty() {
            moves.push(Move::Deliver(index));
        }
        if !process.outcomes.is_empty() {
            moves.push(Move::Report(index));
        }
        moves.extend(process.jobs.keys().map(|&job| Move::Advance(index, job)));
        if process.commit.is_some() {
            moves.push(Move::CommitOffsets(index));
        }
        if process.save.is_some() {
            moves.push(Move::Save(index));
        }
        if process.core.next_wakeup().is_some_and(|at| at <= self.now) {
            moves.push(Move::Wake(index));
        }
    }

    /// How often, in a thousand, this seed puts such a move off.
    pub(super) fn laziness(&self, chosen: Move) -> u64 {
        let slow = &self.knobs.slow;
        match chosen {
            Move::Advance(..) | Move::Save(_) | Move::EndOrphan(_) => slow.database,
            Move::Poll(..) | Move::Idle(..) => slow.poll,
            Move::LookAgain(..) => slow.notice,
            Move::Deliver(_) | Move::Report(_) | Move::Wake(_) => slow.core,
            Move::CommitOffsets(_) | Move::ArriveStray(_) => slow.offsets,
            Move::Assign(_) | Move::Locate(..) | Move::Evict(_) | Move::Restart(_) | Move::Rejoin(_) => {
                slow.assignment
            }
            Move::Produce => slow.producer,
            Move::Cut(..) => 0,
        }
    }

    pub(super) fn make(&mut self, chosen: Move) -> Verdict {
        match chosen {
            Move::Produce => self.produce(),
            Move::EndOrphan(index) => return self.end_orphan(index),
            Move::ArriveStray(index) => {
                let offsets = self.kafka.stray.swap_remove(index);
                return self.accept(&offsets);
            }
            Move::Assign(tp) => self.give(tp),
            Move::Evict(index) => self.evict(index),
            Move::Restart(index) => self.restart(index),
            Move::Rejoin(index) => self.rejoin(index),
            Move::Locate(index, tp) => self.locate(index, tp),
            Move::Poll(index, tp) => self.poll(index, tp),
            Move::Idle(index, tp) => self.idle(index, tp),
            Move::LookAgain(index, tp) => self.look_again(index, tp),
            Move::Cut(index, tp) => self.cut(index, tp),
            Move::Deliver(index) => {
                if let Some(event) = self.processes[index].events.pop_front() {
                    return self.feed(index, event);
                }
            }
            Move::Report(index) => {
                let outcomes = self.processes[index].outcomes.len();
                let chosen = self.random.index(outcomes);
                let (job, outcome, handlers) = self.processes[index].outcomes.swap_remove(chosen);
                return self.feed(index, Event::Finished { job, outcome, handlers });
            }
            Move::Advance(index, job) => return self.advance(index, job),
            Move::CommitOffsets(index) => return self.commit_offsets(index),
            Move::Save(index) => return self.save(index),
            Move::Wake(index) => {
                self.feed(index, Event::Tick)?;
                if self.processes[index].core.next_wakeup().is_some_and(|at| at <= self.now) {
                    return Err((Promise::Liveness, format!("p{index} asks to be woken without end")));
                }
            }
        }
        Ok(())
    }
}
