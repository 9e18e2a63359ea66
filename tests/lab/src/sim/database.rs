use std::collections::{BTreeMap, BTreeSet};

use handstamp::flow::start::{Identity, Row as StartRow};
use handstamp::flow::{LaneId, Millis, NextOffset, Offset, Save, SavedResult};

/// The database as the inbox uses it: what is committed, what is not yet, and who waits for whom.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) state: State,
    pub(super) down_until: Millis,
    backup: State,
    transactions: BTreeMap<TransactionId, Transaction>,
    next: TransactionId,
}

pub(super) type TransactionId = u64;

/// Two lanes of one topic and handler are one consumer, with one inbox.
type Consumer = (u16, u16);

/// What is committed.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) inbox: BTreeSet<(Consumer, u64)>,
    /// Without uniqueness, so that a second application shows.
    pub(super) effects: Vec<Effect>,
    applied: BTreeMap<(Consumer, u64), u32>,
    pub(super) parked: BTreeSet<(LaneId, Offset)>,
    pub(super) progress: BTreeMap<LaneId, Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) lane: LaneId,
    pub(super) offset: Offset,
    pub(super) id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) next: NextOffset,
    pub(super) passed: NextOffset,
    pub(super) incarnation: u32,
}

/// What is written, and locked, but not committed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transaction {
    key: Option<(Consumer, u64)>,
    pub(super) effect: Option<Effect>,
    pub(super) letter: Option<(LaneId, Offset)>,
    pub(super) progress: Option<(LaneId, Row)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Behind another transaction's lock.
    Blocked,
    New,
    /// Applied, parked or passed before.
    Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Blocked,
    Passed,
    WentBack,
    Superseded,
    /// Somebody else dealt with the record since the claim.
    Overtaken,
}

impl Database {
    pub(super) fn begin(&mut self) -> TransactionId {
        self.next += 1;
        self.transactions.insert(self.next, Transaction::default());
        self.next
    }

    pub(super) fn is_open(&self, id: TransactionId) -> bool {
        self.transactions.contains_key(&id)
    }

    /// Claims a record's key, or, to park it, its dead letter.
    pub(super) fn claim(&mut self, id: TransactionId, effect: Effect, park: bool) -> Claim {
        let Effect { lane, offset, .. } = effect;
        let key = (consumer(lane), effect.id);
        let letter = (lane, offset);
        let locked =
            self.others(id).any(|other| other.key == Some(key) || (park && other.letter == Some(letter)));
        if locked {
            return Claim::Blocked;
        }
        let passed = self.state.progress.get(&lane).is_some_and(|row| row.passed > NextOffset(offset.0));
        let parked = passed && self.state.parked.contains(&letter);
        if parked || self.state.inbox.contains(&key) {
            return Claim::Known;
        }
        let transaction = self.transaction(id);
        if park && !passed {
            transaction.letter = Some(letter);
            return Claim::New;
        }
        transaction.key = Some(key);
        if passed { Claim::Known } else { Claim::New }
    }

    pub(super) fn apply(&mut self, id: TransactionId, effect: Effect) {
        self.transaction(id).effect = Some(effect);
    }

    pub(super) fn guard(
        &mut self,
        id: TransactionId,
        save: &Save,
        offset: Offset,
        incarnation: Option<u32>,
    ) -> Guard {
        if self.is_locked(id, save.lane) {
            return Guard::Blocked;
        }
        let row = match self.state.checked(save, incarnation) {
            Ok(row) => row,
            Err(refused) => return refused,
        };
        let transaction = self.transaction(id);
        let writes = transaction.effect.is_some() || transaction.letter.is_some();
        if writes && row.passed > NextOffset(offset.0) {
            return Guard::Overtaken;
        }
        transaction.progress = Some((save.lane, row.raised(save.watermark)));
        Guard::Passed
    }

    /// What was committed.
    pub(super) fn commit(&mut self, id: TransactionId) -> Transaction {
        let transaction = self.transactions.remove(&id).expect("only open transactions are committed");
        let Transaction { key, effect, letter, progress } = transaction;
        self.state.inbox.extend(key);
        if let Some(effect) = effect {
            self.state.effects.push(effect);
            *self.state.applied.entry((consumer(effect.lane), effect.id)).or_default() += 1;
        }
        self.state.parked.extend(letter);
        self.state.progress.extend(progress);
        transaction
    }

    pub(super) fn roll_back(&mut self, id: TransactionId) {
        self.transactions.remove(&id);
    }

    /// One entry of a save; `None` while its row is locked.
    pub(super) fn save(&mut self, save: &Save, incarnation: Option<u32>) -> Option<SavedResult> {
        if self.is_locked(0, save.lane) {
            return None;
        }
        Some(match self.state.checked(save, incarnation) {
            Ok(row) => {
                self.state.progress.insert(save.lane, row.raised(save.watermark));
                SavedResult::Ok
            }
            Err(Guard::WentBack) => SavedResult::WentBack,
            Err(_) => SavedResult::Superseded,
        })
    }

    pub(super) fn crash(&mut self, until: Millis) {
        self.transactions.clear();
        self.down_until = until;
    }

    pub(super) fn back_up(&mut self) {
        self.backup = self.state.clone();
    }

    pub(super) fn restore(&mut self) {
        self.transactions.clear();
        self.state = self.backup.clone();
    }

    /// The row, made if there is none.
    pub(super) fn ensure_row(&mut self, lane: LaneId) -> Row {
        let row = Row { next: NextOffset(0), passed: NextOffset(0), incarnation: 0 };
        *self.state.progress.entry(lane).or_insert(row)
    }

    /// `progress reset`; it never lowers what was passed. `false` while the row is locked.
    pub(super) fn reset(&mut self, lane: LaneId, next: NextOffset) -> bool {
        if self.is_locked(0, lane) {
            return false;
        }
        let row = Row { next, passed: NextOffset(0), incarnation: 0 };
        let row = self.state.progress.entry(lane).or_insert(row);
        row.next = next;
        row.incarnation += 1;
        true
    }

    fn transaction(&mut self, id: TransactionId) -> &mut Transaction {
        self.transactions.get_mut(&id).expect("checked to be open")
    }

    fn others(&self, id: TransactionId) -> impl Iterator<Item = &Transaction> {
        self.transactions.iter().filter(move |(other, _)| **other != id).map(|(_, transaction)| transaction)
    }

    fn is_locked(&self, id: TransactionId, lane: LaneId) -> bool {
        self.others(id).any(|other| other.progress.is_some_and(|(locked, _)| locked == lane))
    }
}

impl State {
    /// The row, if it is ours and has not gone back.
    fn checked(&self, save: &Save, incarnation: Option<u32>) -> Result<Row, Guard> {
        let row = self.progress.get(&save.lane).ok_or(Guard::Superseded)?;
        if Some(row.incarnation) != incarnation {
            return Err(Guard::Superseded);
        }
        if row.next < save.acknowledged {
            return Err(Guard::WentBack);
        }
        Ok(*row)
    }

    /// The row as the start of a partition reads it.
    pub(super) fn start_row(&self, lane: LaneId, identity: &Identity) -> Option<StartRow> {
        let start = |row: &Row| StartRow { next: row.next, floor: NextOffset(0), identity: identity.clone() };
        self.progress.get(&lane).map(start)
    }

    pub(super) fn knows(&self, lane: LaneId) -> bool {
        self.progress.keys().any(|other| consumer(*other) == consumer(lane))
    }

    /// How often an event's effects are there.
    pub(super) fn applied(&self, lane: LaneId, id: u64) -> u32 {
        self.applied.get(&(consumer(lane), id)).copied().unwrap_or(0)
    }
}

impl Row {
    fn raised(self, watermark: NextOffset) -> Self {
        Self { next: self.next.max(watermark), passed: self.passed.max(watermark), ..self }
    }
}

fn consumer(lane: LaneId) -> Consumer {
    (lane.tp.topic, lane.handler)
}
