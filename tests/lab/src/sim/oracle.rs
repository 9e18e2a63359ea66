use std::collections::BTreeMap;

use handstamp::flow::{LaneId, NextOffset, Offset, Order, Tp};

use super::database::Transaction;
use super::kafka::{Kafka, Kind};
use super::report::Promise;
use super::state::{self, Effect, Row, State};

/// Judges every commit against what was produced. It sees the world, never a core.
#[derive(Debug)]
pub(super) struct Oracle {
    order: Order,
    /// Up to here everything is known to be dealt with; forgotten when a database goes back.
    settled: BTreeMap<LaneId, i64>,
    /// A database that went back leaves Kafka's offsets ahead of it: excused up to where its rows were.
    excused: BTreeMap<Tp, NextOffset>,
}

/// A promise that was broken, and how.
pub(super) type Broken = (Promise, String);

pub(super) type Verdict = Result<(), Broken>;

impl Oracle {
    pub(super) fn new(order: Order) -> Self {
        Self { order, settled: BTreeMap::new(), excused: BTreeMap::new() }
    }

    pub(super) fn database_committed(
        &mut self,
        kafka: &Kafka,
        state: &State,
        committed: &Transaction,
    ) -> Verdict {
        for effect in &committed.effects {
            let times = state.applied(effect.lane, effect.id);
            if times > 1 {
                return Err((Promise::NoneTwice, format!("{effect:?} is there {times} times")));
            }
            if effect.failed {
                return Err((Promise::FailureLeavesNothing, format!("{effect:?} is there")));
            }
        }
        // Offsets of a topic that is gone say nothing: under its row, records of the new one may be read.
        let effects = committed.effects.iter().filter(|effect| effect.topic == kafka.topic(effect.lane.tp));
        let letters = committed.letters.iter().filter(|(lane, topic, _)| *topic == kafka.topic(lane.tp));
        for effect in effects.clone() {
            self.came_in_order(state, effect, committed.effects.len())?;
        }
        for (lane, _, offset) in letters.clone() {
            let record = kafka.logs[&lane.tp].records.get(&offset.0);
            if record.is_some_and(|record| !record.kind.may_be_parked()) {
                return Err((Promise::OnlyBadParked, format!("{lane:?} gave up a good record at {offset}")));
            }
        }
        for place in effects.map(Effect::place).chain(letters.copied()) {
            if state.letters.contains(&place) && state.effects.iter().any(|effect| effect.place() == place) {
                return Err((Promise::ParkedOrApplied, format!("{place:?} is both")));
            }
        }
        match &committed.progress {
            Some((lane, row)) => self.row_moved(kafka, state, *lane, row),
            None => Ok(()),
        }
    }

    pub(super) fn row_moved(&mut self, kafka: &Kafka, state: &State, lane: LaneId, row: &Row) -> Verdict {
        // What is written about a topic that is gone is of no use to anybody, and does no harm.
        if row.tracked.topic != kafka.topic(lane.tp) {
            return Ok(());
        }
        let (next, lowest) = (row.next, self.lowest_unsettled(kafka, state, lane));
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
            self.excuse(lane.tp, row.passed);
        }
    }

    /// An offset that Kafka may be told although it is ahead.
    fn excuse(&mut self, tp: Tp, next: NextOffset) {
        let excused = self.excused.entry(tp).or_insert(next);
        *excused = next.max(*excused);
    }

    /// All partitions of a topic begin anew.
    pub(super) fn start_over(&mut self, topic: u16) {
        self.settled.retain(|lane, _| lane.tp.topic != topic);
        self.excused.retain(|tp, _| tp.topic != topic);
    }

    /// The lowest offset of a lane that is not dealt with: the end of the log if there is none.
    pub(super) fn lowest_unsettled(&mut self, kafka: &Kafka, state: &State, lane: LaneId) -> NextOffset {
        let (log, topic) = (&kafka.logs[&lane.tp], kafka.topic(lane.tp));
        let from = self.settled.entry(lane).or_default();
        let open = log.records.range(*from..).find(|&(&offset, record)| {
            record.kind != Kind::Tombstone
                && state.applied(lane, record.id) == 0
                && !state.spoilt.contains(&state::key(lane, record.id))
                && !state.letters.contains(&(lane, topic, Offset(offset)))
        });
        *from = open.map_or(log.end, |(&offset, _)| offset);
        NextOffset(*from)
    }

    /// Compares the effects of the last transaction that have an order among each other, and the one before.
    fn came_in_order(&self, state: &State, of: &Effect, last: usize) -> Verdict {
        let ordered = |other: &Effect| match self.order {
            Order::Partition => true,
            Order::Key => of.key.is_some() && other.key == of.key,
            Order::None => false,
        };
        let same =
            state.effects.iter().rev().filter(|other| (other.lane, other.topic) == (of.lane, of.topic));
        let latest: Vec<_> = same.filter(|other| ordered(other)).take(last + 1).collect();
        match latest.windows(2).find(|pair| pair[1].offset >= pair[0].offset) {
            Some(pair) => Err((Promise::Order, format!("{:?} came after {:?}", pair[0], pair[1]))),
            None => Ok(()),
        }
    }
}
