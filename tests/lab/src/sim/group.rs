use handstamp::flow::start::{self, First, Place, Progress, StartOffset};
use handstamp::flow::{
    Ahead, Event, LaneStart, Millis, NextOffset, Offset, Offsets, OrderKey, Save, Saved, SavedResult, Tp,
};

use super::database::Tracking;
use super::kafka::{self, Commit, Kind, Record};
use super::knobs::{Handlers, Knobs};
use super::oracle::Verdict;
use super::process::{Leaving, Stage};
use super::world::World;

/// The message keys of records that follow each other. Some share a track, and some records have none.
const KEYS: [Option<u64>; 16] = [
    Some(1),
    Some(1),
    Some(2),
    None,
    Some(17),
    Some(2),
    Some(1),
    Some(3),
    Some(4),
    None,
    Some(18),
    Some(1),
    Some(5),
    Some(3),
    Some(2),
    Some(17),
];

/// The group: who has which partition, what is read from it, and what is committed.
impl World {
    pub(super) fn produce(&mut self) {
        let tps: Vec<_> = self.kafka.logs.keys().copied().collect();
        let tp = self.random.pick(&tps);
        let rates = self.knobs.records_of;
        let twin = self.random.chance(rates.duplicate) && !self.produced.is_empty();
        let record = if twin {
            let earlier = self.random.index(self.produced.len());
            let (original, record) = self.produced[earlier];
            // Another topic is another consumer, where the event is new.
            let known = original.topic == tp.topic && !self.retired.contains(&record.id);
            if known { record } else { self.new_record() }
        } else {
            self.new_record()
        };
        let record = Record { topic: self.kafka.topic(tp), ..record };
        let gap = if self.random.chance(rates.gap) { self.random.between(1, 3) } else { 0 };
        let marker = u64::from(self.random.chance(rates.gap));
        let log = self.kafka.logs.get_mut(&tp).expect("one of the logs");
        let offset = log.end + gap.cast_signed();
        log.records.insert(offset, record);
        log.end = offset + 1 + marker.cast_signed();
        self.produced.push((tp, record));
        self.note(|_| format!("produced {tp:?}@{offset} {record:?}"));
    }

    fn new_record(&mut self) -> Record {
        let rates = self.knobs.records_of;
        let kinds = [
            (rates.tombstone, Kind::Tombstone),
            (rates.poison, Kind::Poison),
            (rates.rejected, Kind::Rejected),
            (rates.flaky, Kind::Flaky),
            (rates.unreadable, Kind::Keyless),
            (rates.unreadable, Kind::Garbled),
            (rates.unreadable, Kind::KeptTombstone),
            (rates.hiding, Kind::Hiding),
            (rates.ending, Kind::Committing),
            (rates.ending, Kind::RollingBack),
        ];
        let kind = kinds.into_iter().find(|&(rate, _)| self.random.chance(rate));
        let id = self.produced.len() as u64;
        let key = KEYS[self.produced.len() * 7 % KEYS.len()];
        Record { id, key, topic: 0, kind: kind.map_or(Kind::Plain, |(_, kind)| kind) }
    }

    /// The coordinator gives a free partition to a member.
    pub(super) fn give(&mut self, tp: Tp) {
        let members =
            self.processes.iter().enumerate().filter(|(_, process)| process.member && process.alive);
        let members: Vec<_> = members.map(|(index, _)| index).collect();
        let index = self.random.pick(&members);
        // A member in the middle of a rebalance gets nothing new before that is over.
        let process = &mut self.processes[index];
        if !process.assignments.contains_key(&tp) && !process.waits() {
            self.kafka.owners.insert(tp, Some(index));
            process.assign(tp);
            self.note(|_| format!("{tp:?} is given to p{index}"));
        }
    }

    pub(super) fn evict(&mut self, index: usize) {
        self.note(|_| format!("p{index} is thrown out of the group"));
        self.kafka.evict(index);
        self.processes[index].member = false;
    }

    /// The process finds out that it was thrown out.
    pub(super) fn rejoin(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.member = true;
        let tps = std::mem::take(&mut process.assignments).into_keys().collect();
        process.events.push_back(Event::Lost { tps });
    }

    /// The coordinator wants a partition back.
    pub(super) fn revoke(&mut self, tp: Tp) {
        let Some(index) = self.kafka.owners[&tp] else { return };
        let deadline = self.now + self.knobs.drain;
        let process = &mut self.processes[index];
        let Some(assignment) = process.assignments.get_mut(&tp) else { return };
        if process.member && assignment.leaving.is_none() {
            assignment.leaving = Some(Leaving { deadline, cut: false });
            process.events.push_back(Event::Revoke { tps: vec![tp] });
            self.report.revocations += 1;
            self.note(|_| format!("{tp:?} is taken back from p{index}"));
        }
    }

    pub(super) fn cut(&mut self, index: usize, tp: Tp) {
        let process = &mut self.processes[index];
        if let Some(leaving) = process.assignments.get_mut(&tp).and_then(|at| at.leaving.as_mut()) {
            leaving.cut = true;
            process.events.push_back(Event::DrainDeadline { tps: vec![tp] });
            self.report.drains_cut += 1;
        }
    }

    /// Finds out where a partition starts: Kafka's offset first, the rows some time later.
    pub(super) fn locate(&mut self, index: usize, tp: Tp) {
        let Some(assignment) = self.processes[index].assignments.get_mut(&tp) else { return };
        let Stage::Asked(committed) = assignment.stage else {
            assignment.stage = Stage::Asked(self.kafka.committed.get(&tp).copied());
            return;
        };
        if self.database.down_until > self.now {
            return;
        }
        let epoch = assignment.epoch;
        let topic = self.kafka.topic(tp);
        let lanes: Vec<_> = self.lanes(tp).collect();
        let state = &self.database.state;
        let progress = lanes.iter().map(|&lane| Progress {
            consumer: "consumer",
            row: state.start_row(lane),
            known: state.knows(lane),
            first: First::Beginning,
        });
        let place = Place { topic: "topic".to_owned(), partition: tp.partition };
        let decided =
            start::decide(&place, committed, &kafka::identity(topic), &progress.collect::<Vec<_>>());
        let Ok(start) = decided else {
            // Somebody is woken up and runs `handstamp progress reset --to-start`.
            self.report.refused_starts += 1;
            if let Some(assignment) = self.processes[index].assignments.get_mut(&tp) {
                assignment.stage = Stage::Wanted;
            }
            for lane in lanes {
                self.database.reset(lane, topic, NextOffset(0));
            }
            return;
        };
        let start = match start.offset {
            StartOffset::At(next) => Some(next),
            StartOffset::Beginning | StartOffset::End => None,
        };
        let rows: Vec<_> = lanes.iter().map(|&lane| (lane, self.database.ensure_row(lane, topic))).collect();
        let Knobs { order, attempts, batch, handlers, .. } = self.knobs;
        let together = handlers != Handlers::Each;
        let lanes = rows.iter().map(|(_, row)| {
            let acknowledged = row.next;
            LaneStart { acknowledged, order, attempts, batch, together }
        });
        let lanes = lanes.collect();
        let process = &mut self.processes[index];
        process.rows.extend(rows.iter().map(|(lane, row)| ((*lane, epoch), row.tracked)));
        process.events.push_back(Event::Assigned { tp, epoch, start, lanes });
        if let Some(assignment) = process.assignments.get_mut(&tp) {
            assignment.stage = Stage::Fetching;
            assignment.position = start.map_or(0, |next| next.0);
        }
        self.note(|_| format!("p{index} reads {tp:?} from {start:?} in {epoch:?}"));
    }

    pub(super) fn poll(&mut self, index: usize, tp: Tp) {
        let process = &mut self.processes[index];
        let Some(assignment) = process.assignments.get_mut(&tp) else { return };
        if assignment.paused && !self.random.chance(self.knobs.trouble.early_record) {
            return;
        }
        let next = self.kafka.logs[&tp].records.range(assignment.position..).next();
        let Some((&offset, &handle)) = next else { return };
        assignment.position = offset + 1;
        let epoch = assignment.epoch;
        let key = handle.key.map(OrderKey);
        process.events.push_back(Event::Record { tp, epoch, offset: Offset(offset), key, bytes: 10, handle });
        self.report.deliveries += 1;
    }

    /// A poll returns nothing; the consumer has read past whatever markers stand at the end.
    pub(super) fn idle(&mut self, index: usize, tp: Tp) {
        let end = self.kafka.logs[&tp].end;
        let process = &mut self.processes[index];
        if let Some(assignment) = process.assignments.get_mut(&tp) {
            assignment.position = end;
            assignment.told = Some(end);
            let (epoch, position) = (assignment.epoch, NextOffset(end));
            process.events.push_back(Event::Position { tp, epoch, position });
        }
    }

    pub(super) fn commit_offsets(&mut self, index: usize) -> Verdict {
        let Some(offsets) = self.processes[index].commit.take() else { return Ok(()) };
        let quiet = self.is_quiet();
        let trouble = self.knobs.trouble;
        let process = &self.processes[index];
        let plain: Vec<_> =
            offsets.iter().map(|&(tp, epoch, next)| process.commit_of(tp, epoch, next)).collect();
        let late = !quiet && self.random.chance(trouble.offset_commit_late);
        let failed = !quiet && self.random.chance(trouble.offset_commit_failed);
        let mut ok = self.processes[index].member;
        if late {
            self.kafka.stray.push(plain);
            ok = false;
        } else if failed {
            // Half of those that fail have arrived.
            if ok && self.random.chance(500) {
                self.accept(&plain)?;
            }
            ok = false;
        } else if ok {
            self.accept(&plain)?;
        }
        self.report.offset_commits += u64::from(ok);
        self.report.offset_commits_failed += u64::from(!ok);
        self.feed(index, Event::Committed { offsets, ok })
    }

    /// Kafka takes any member's word for any partition.
    pub(super) fn accept(&mut self, offsets: &[Commit]) -> Verdict {
        for &Commit { tp, next, topic } in offsets {
            let lanes = self.lanes(tp);
            // One of a topic that is gone: Kafka cannot tell, and the next start refuses to believe it.
            let foreign = topic.is_some_and(|topic| topic != self.kafka.topic(tp));
            if !foreign {
                self.oracle.offset_committed(&self.kafka, &self.database.state, lanes, next)?;
            }
            let before = self.kafka.committed.insert(tp, next);
            self.report.offsets_moved_back += u64::from(before > Some(next));
            self.note(|_| format!("Kafka has {next} for {tp:?}"));
        }
        Ok(())
    }

    pub(super) fn save(&mut self, index: usize) -> Verdict {
        let Some(saves) = self.processes[index].save.take() else { return Ok(()) };
        let down = self.database.down_until > self.now;
        let fails = |world: &mut Self| {
            down || (!world.is_quiet() && world.random.chance(world.knobs.trouble.save_failed))
        };
        let mut answers = Vec::new();
        for save in saves {
            let tracking = Tracking {
                lane: save.lane,
                tracked: self.processes[index].tracked(save.lane, save.epoch),
                watermark: save.watermark,
                acknowledged: save.acknowledged,
                ahead: Ahead { relied: save.relied.clone(), added: Offsets::default() },
                ceiling: None,
                applied: Vec::new(),
            };
            let before = fails(self);
            let result = if before { None } else { self.database.save(&tracking) };
            if result == Some(SavedResult::Ok) {
                let row = self.database.state.progress[&save.lane].clone();
                self.oracle.row_moved(&self.kafka, &self.database.state, save.lane, &row)?;
            }
            // Some are written although nobody hears of it.
            let result = result.filter(|_| !fails(self)).unwrap_or(SavedResult::Failed);
            let Save { lane, epoch, watermark, .. } = save;
            answers.push(Saved { lane, epoch, watermark, result });
        }
        self.feed(index, Event::ProgressSaved { saved: answers })
    }

    pub(super) fn freeze(&mut self, index: usize) {
        let ticks = self.random.between(1, 200);
        self.processes[index].frozen_until = self.now + Millis(ticks * self.knobs.tick);
    }
}
