use std::collections::{BTreeMap, BTreeSet};

use handstamp::flow::start::Row as StartRow;
use handstamp::flow::{LaneId, NextOffset, Offset, Offsets};

use super::kafka::{self, TopicId};

/// What is committed.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) inbox: BTreeSet<Key>,
    /// Without uniqueness, so that a second application shows.
    pub(super) effects: Vec<Effect>,
    applied: BTreeMap<Key, u32>,
    /// Keys that a handler committed by itself before their records were applied. Nothing tells them from
    /// others, so that their records are listed for people.
    pub(super) spoilt: BTreeSet<Key>,
    pub(super) letters: BTreeSet<Letter>,
    /// Letters of handlers that ended their transaction.
    pub(super) listed: BTreeSet<Letter>,
    pub(super) progress: BTreeMap<LaneId, Row>,
}

/// Two lanes of one topic and handler are one consumer, with one inbox.
pub(super) type Consumer = (u16, u16);

/// An event's id, as a consumer remembers it.
pub(super) type Key = (Consumer, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) lane: LaneId,
    /// The topic of the row.
    pub(super) topic: TopicId,
    pub(super) offset: Offset,
    pub(super) id: u64,
    /// The record's message key.
    pub(super) key: Option<u64>,
    /// Whether the handler that wrote it then failed.
    pub(super) failed: bool,
}

/// A dead letter's place: by the topic of the row.
pub(super) type Letter = (LaneId, TopicId, Offset);

/// Which row a process was assigned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) topic: TopicId,
    pub(super) incarnation: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) tracked: Tracked,
    pub(super) next: NextOffset,
    pub(super) passed: NextOffset,
    pub(super) floor: NextOffset,
    /// What is dealt with at `next` or above.
    pub(super) ahead: BTreeSet<i64>,
}

/// Why a row is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    WentBack,
    Superseded,
}

impl State {
    /// The row that was assigned, if it still is.
    pub(super) fn row(&self, lane: LaneId, tracked: Option<Tracked>) -> Option<Row> {
        self.progress.get(&lane).cloned().filter(|row| Some(row.tracked) == tracked)
    }

    /// The row, if it is ours and has not gone back.
    pub(super) fn checked(
        &self,
        lane: LaneId,
        tracked: Option<Tracked>,
        acknowledged: NextOffset,
        relied: &Offsets,
    ) -> Result<Row, Refused> {
        let row = self.row(lane, tracked).ok_or(Refused::Superseded)?;
        if row.next < acknowledged || !row.has(relied) { Err(Refused::WentBack) } else { Ok(row) }
    }

    /// The row as the start of a partition reads it.
    pub(super) fn start_row(&self, lane: LaneId) -> Option<StartRow> {
        let start = |row: &Row| StartRow {
            next: row.next,
            floor: row.floor,
            identity: kafka::identity(row.tracked.topic),
        };
        self.progress.get(&lane).map(start)
    }

    pub(super) fn knows(&self, lane: LaneId) -> bool {
        self.progress.keys().any(|other| consumer(*other) == consumer(lane))
    }

    pub(super) fn wrote(&mut self, effect: Effect) {
        self.effects.push(effect);
        *self.applied.entry(key(effect.lane, effect.id)).or_default() += 1;
    }

    /// How often an event's effects are there.
    pub(super) fn applied(&self, lane: LaneId, id: u64) -> u32 {
        self.applied.get(&key(lane, id)).copied().unwrap_or(0)
    }
}

impl Effect {
    /// Where a dead letter of its record would be.
    pub(super) fn place(&self) -> Letter {
        (self.lane, self.topic, self.offset)
    }
}

impl Row {
    pub(super) fn new(topic: TopicId) -> Self {
        let start = NextOffset(0);
        let tracked = Tracked { topic, incarnation: 0 };
        Self { tracked, next: start, passed: start, floor: start, ahead: BTreeSet::new() }
    }

    pub(super) fn raised(mut self, watermark: NextOffset, added: &Offsets) -> Self {
        (self.next, self.passed) = (self.next.max(watermark), self.passed.max(watermark));
        self.ahead.extend(members(added));
        self.ahead.retain(|offset| *offset >= self.next.0);
        self
    }

    /// Whether all of these were dealt with, in turn or ahead of it.
    pub(super) fn has(&self, relied: &Offsets) -> bool {
        members(relied).all(|offset| offset < self.next.0 || self.ahead.contains(&offset))
    }

    /// Whether a record was dealt with, in turn or ahead of it.
    pub(super) fn is_past(&self, offset: Offset) -> bool {
        offset.next() <= self.passed || self.ahead.contains(&offset.0)
    }
}

fn members(offsets: &Offsets) -> impl Iterator<Item = i64> {
    offsets.spans().flat_map(|(first, end)| first.0..end.0)
}

pub(super) fn consumer(lane: LaneId) -> Consumer {
    (lane.tp.topic, lane.handler)
}

pub(super) fn key(lane: LaneId, id: u64) -> Key {
    (consumer(lane), id)
}
