use std::collections::BTreeMap;

use handstamp::flow::{LaneId, NextOffset, Offset, Tp};

use super::database::{State, Transaction};
use super::kafka::{Kafka, Kind};
use super::report::Promise;

/// Judges every commit against what was produced. It sees the world, never a core.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// Up to here everything is known to be dealt with; forgotten when a database goes back.
    settled: BTreeMap<LaneId, i64>,
    /// A database that went back leaves Kafka's offsets ahead of it: excused up to where its rows were.
    excused: BTreeMap<Tp, NextOffset>,
}

pub(super) type Verdict = Result<(), (Promise, String)>;

impl Oracle {
    pub(super) fn database_committed(
        &mut self,
        kafka: &Kafka,
        state: &State,
        committed: &Transaction,
    ) -> Verdict {
        if let Some(effect) = committed.effect {
            let times = state.applied(effect.lane, effect.id);
            if times > 1 {
                return Err((Promise::NoneTwice, format!("{effect:?} is there {times} times")));
            }
            let mut before = state.effects.iter().rev().filter(|other| other.lane == effect.lane).skip(1);
            if let Some(before) = before.next().filter(|before| before.offset >= effect.offset) {
                return Err((Promise::Order, format!("{effect:?} came after {before:?}")));
            }
        }
        if let Some((lane, offset)) = committed.letter
            && kafka.logs[&lane.tp].records[&offset.0].kind == Kind::Plain
        {
            return Err((Promise::OnlyBadParked, format!("{lane:?} gave up a good record at {offset}")));
        }
        let position = committed.effect.map(|effect| (effect.lane, effect.offset)).or(committed.letter);
        if let Some(position) = position
            && state.parked.contains(&position)
            && state.effects.iter().any(|effect| (effect.lane, effect.offset) == position)
        {
            return Err((Promise::ParkedOrApplied, format!("{position:?} is both")));
        }
        match committed.progress {
            Some((lane, row)) => self.row_moved(kafka, state, lane, row.next),
            None => Ok(()),
        }
    }

    pub(super) fn row_moved(
        &mut self,
        kafka: &Kafka,
        state: &State,
        lane: LaneId,
        next: NextOffset,
    ) -> Verdict {
        let lowest = self.lowest_unsettled(kafka, state, lane);
        if next > lowest {
            return Err((
                Promise::OffsetsBehind,
                format!("row of {lane:?} is {next}, {lowest} is not dealt with"),
            ));
        }
        Ok(())
    }

    pub(super) fn offset_committed(
        &mut self,
        kafka: &Kafka,
        state: &State,
        lanes: impl Iterator<Item = LaneId>,
        next: NextOffset,
    ) -> Verdict {
        for lane in lanes {
            let lowest = self.lowest_unsettled(kafka, state, lane);
            if next > lowest && self.excused.get(&lane.tp) < Some(&next) {
                let facts = format!("Kafka has {next} for {lane:?}, {lowest} is not dealt with");
                return Err((Promise::OffsetsBehind, facts));
            }
        }
        Ok(())
    }

    /// The database is about to be replaced by an older one.
    pub(super) fn going_back(&mut self, state: &State) {
        self.settled.clear();
        for (lane, row) in &state.progress {
            // Not `next`: a reset lowers it, and what is known of it in a process stays as it was.
            let excused = self.excused.entry(lane.tp).or_insert(row.passed);
            *excused = row.passed.max(*excused);
        }
    }

    /// The lowest offset of a lane that is not dealt with: the end of the log if there is none.
    pub(super) fn lowest_unsettled(&mut self, kafka: &Kafka, state: &State, lane: LaneId) -> NextOffset {
        let log = &kafka.logs[&lane.tp];
        let from = self.settled.entry(lane).or_default();
        let open = log.records.range(*from..).find(|&(&offset, record)| {
            record.kind != Kind::Tombstone
                && state.applied(lane, record.id) == 0
                && !state.parked.contains(&(lane, Offset(offset)))
        });
        *from = open.map_or(log.end, |(&offset, _)| offset);
        NextOffset(*from)
    }
}
