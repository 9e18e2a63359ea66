use std::collections::{BTreeMap, BTreeSet};

use handstamp::flow::{Ahead, ClaimedRow, Found, LaneId, Millis, NextOffset, Offset, Offsets, SavedResult};

use super::kafka::TopicId;
use super::state::{Effect, Key, Letter, Refused, Row, State, Tracked, key};

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

/// What is written, and locked, but not committed.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    /// The keys that it inserted: locked to the end, also if they are given back.
    locked: BTreeSet<Key>,
    keys: BTreeSet<Key>,
    /// What its claim's statement saw, however long that waited for a lock.
    seen: Option<Seen>,
    pub(super) effects: Vec<Effect>,
    pub(super) letters: Vec<Letter>,
    pub(super) progress: Option<(LaneId, Row)>,
    condition: Condition,
}

#[derive(Clone, Debug)]
struct Seen {
    row: Option<Row>,
    /// For each record.
    parked: Vec<bool>,
}

/// A record as it asks to be claimed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) offset: Offset,
    /// `None` without a key.
    pub(super) event: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Condition {
    #[default]
    Sound,
    /// A statement failed: COMMIT will roll back, and not say so.
    Aborted,
    /// The handler has ended it: every statement commits by itself.
    Ended,
}

/// The row that a transaction writes, and what must hold.
#[derive(Clone, Debug)]
pub(super) struct Tracking {
    pub(super) lane: LaneId,
    pub(super) tracked: Option<Tracked>,
    pub(super) watermark: NextOffset,
    pub(super) acknowledged: NextOffset,
    pub(super) ahead: Ahead,
    /// What `passed` must not be above.
    pub(super) ceiling: Option<Offset>,
    /// What nobody else must have dealt with.
    pub(super) applied: Vec<Offset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Blocked,
    Passed,
    WentBack,
    Superseded,
    /// Somebody else dealt with the record since the claim.
    Overtaken,
    /// The handler hid that a statement failed.
    Aborted,
    /// The handler ended the transaction.
    Ended,
}

impl Database {
    pub(super) fn begin(&mut self) -> TransactionId {
        self.next += 1;
        self.transactions.insert(self.next, Transaction::default());
        self.next
    }

    /// Whether a connection with this transaction is still there.
    pub(super) fn is_open(&self, id: TransactionId) -> bool {
        self.transactions.contains_key(&id)
    }

    /// Claims the keys of records in the order of the keys; `None` behind another transaction's lock, with
    /// those before it claimed.
    pub(super) fn claim(
        &mut self,
        id: TransactionId,
        lane: LaneId,
        tracked: Option<Tracked>,
        asked: &[Asked],
        relied: &Offsets,
    ) -> Option<(Vec<Found>, Option<ClaimedRow>)> {
        let seen = self.transaction(id).seen.clone().unwrap_or_else(|| self.look(lane, tracked, asked));
        self.transaction_mut(id).seen = Some(seen.clone());
        let Seen { row, parked } = seen;
        let keyed = asked.iter().zip(&parked).filter(|(_, parked)| !**parked);
        let keys: BTreeSet<_> =
            keyed.filter_map(|(asked, _)| asked.event).map(|event| key(lane, event)).collect();
        for key in keys {
            if self.others(id).any(|other| other.locked.contains(&key)) {
                return None;
            }
            if !self.state.inbox.contains(&key) {
                let transaction = self.transaction_mut(id);
                transaction.locked.insert(key);
                transaction.keys.insert(key);
            }
        }
        let new = &self.transaction(id).keys;
        let found = asked.iter().zip(parked).map(|(asked, parked)| Found {
            stamped: asked.event.is_some_and(|event| new.contains(&key(lane, event))),
            parked,
            ahead: row.as_ref().is_some_and(|row| row.ahead.contains(&asked.offset.0)),
        });
        let found: Vec<_> = found.collect();
        let row = row.map(|row| ClaimedRow { next: row.next, passed: row.passed, forgot: !row.has(relied) });
        Some((found, row))
    }

    fn look(&self, lane: LaneId, tracked: Option<Tracked>, asked: &[Asked]) -> Seen {
        let row = self.state.row(lane, tracked);
        let parked = asked.iter().map(|Asked { offset, .. }| {
            let past = row.as_ref().filter(|row| row.is_past(*offset));
            let letter = past.map(|row| (lane, row.tracked.topic, *offset));
            letter.is_some_and(|letter| {
                self.state.letters.contains(&letter) || self.state.listed.contains(&letter)
            })
        });
        let parked = parked.collect();
        Seen { row, parked }
    }

    /// The handler writes; `false` if a statement before has failed. Behind the end of its transaction every
    /// statement commits by itself: nobody promises anything about these, and they are not kept.
    pub(super) fn apply(&mut self, id: TransactionId, effect: Effect) -> bool {
        let transaction = self.transaction_mut(id);
        if transaction.condition == Condition::Sound {
            transaction.effects.push(effect);
        }
        transaction.condition != Condition::Aborted
    }

    /// Whether the handler has ended it.
    pub(super) fn is_ended(&self, id: TransactionId) -> bool {
        self.transaction(id).condition == Condition::Ended
    }

    /// A statement of the handler fails, and it does not say so.
    pub(super) fn abort(&mut self, id: TransactionId) {
        let transaction = self.transaction_mut(id);
        if transaction.condition == Condition::Sound {
            transaction.condition = Condition::Aborted;
        }
    }

    /// The handler commits by itself, and with it the keys of records that were still to come; what was
    /// committed.
    pub(super) fn commit_inside(&mut self, id: TransactionId) -> Transaction {
        let ended = Transaction { condition: Condition::Ended, ..Transaction::default() };
        let written = std::mem::replace(self.transaction_mut(id), ended);
        let applied: BTreeSet<_> = written.effects.iter().map(|effect| key(effect.lane, effect.id)).collect();
        self.state.spoilt.extend(written.keys.difference(&applied));
        self.keep(written)
    }

    /// The handler rolls back by itself.
    pub(super) fn roll_back_inside(&mut self, id: TransactionId) {
        *self.transaction_mut(id) = Transaction { condition: Condition::Ended, ..Transaction::default() };
    }

    /// Deletes a key that was claimed; who waits for it goes on waiting.
    pub(super) fn give_back(&mut self, id: TransactionId, key: Key) {
        self.transaction_mut(id).keys.remove(&key);
    }

    /// Writes a dead letter; `false` behind another's lock.
    pub(super) fn park(&mut self, id: TransactionId, letter: Letter) -> bool {
        if self.others(id).any(|other| other.letters.contains(&letter)) {
            return false;
        }
        self.transaction_mut(id).letters.push(letter);
        true
    }

    pub(super) fn guard(&mut self, id: TransactionId, tracking: &Tracking) -> Guard {
        match self.transaction(id).condition {
            Condition::Aborted => return Guard::Aborted,
            Condition::Ended => return Guard::Ended,
            Condition::Sound if self.is_locked(id, tracking.lane) => return Guard::Blocked,
            Condition::Sound => {}
        }
        let &Tracking { lane, tracked, watermark, acknowledged, ceiling, .. } = tracking;
        let Tracking { ahead, applied, .. } = tracking;
        let row = match self.state.checked(lane, tracked, acknowledged, &ahead.relied) {
            Ok(row) => row,
            Err(Refused::WentBack) => return Guard::WentBack,
            Err(Refused::Superseded) => return Guard::Superseded,
        };
        let is_ahead = |offset: &Offset| row.ahead.contains(&offset.0);
        if ceiling.is_some_and(|offset| offset.next() <= row.passed) || applied.iter().any(is_ahead) {
            return Guard::Overtaken;
        }
        self.transaction_mut(id).progress = Some((lane, row.raised(watermark, &ahead.added)));
        Guard::Passed
    }

    /// Answers a COMMIT; what was committed. An aborted or ended transaction answers as well.
    pub(super) fn commit(&mut self, id: TransactionId) -> Transaction {
        let written = self.transactions.remove(&id).unwrap_or_default();
        if written.condition == Condition::Aborted { Transaction::default() } else { self.keep(written) }
    }

    fn keep(&mut self, written: Transaction) -> Transaction {
        self.state.inbox.extend(&written.keys);
        for effect in &written.effects {
            self.state.wrote(*effect);
        }
        self.state.letters.extend(&written.letters);
        self.state.progress.extend(written.progress.clone());
        written
    }

    pub(super) fn roll_back(&mut self, id: TransactionId) {
        self.transactions.remove(&id);
    }

    /// One entry of a save; `None` while its row is locked.
    pub(super) fn save(&mut self, tracking: &Tracking) -> Option<SavedResult> {
        let &Tracking { lane, tracked, watermark, acknowledged, ref ahead, .. } = tracking;
        if self.is_locked(0, lane) {
            return None;
        }
        Some(match self.state.checked(lane, tracked, acknowledged, &ahead.relied) {
            Ok(row) => {
                self.state.progress.insert(lane, row.raised(watermark, &ahead.added));
                SavedResult::Ok
            }
            Err(Refused::WentBack) => SavedResult::WentBack,
            Err(Refused::Superseded) => SavedResult::Superseded,
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
    pub(super) fn ensure_row(&mut self, lane: LaneId, topic: TopicId) -> Row {
        self.state.progress.entry(lane).or_insert_with(|| Row::new(topic)).clone()
    }

    /// `progress reset`: never lowers what was passed, unless the topic is another one. `false` while the
    /// row is locked.
    pub(super) fn reset(&mut self, lane: LaneId, topic: TopicId, next: NextOffset) -> bool {
        if self.is_locked(0, lane) {
            return false;
        }
        let row = self.state.progress.entry(lane).or_insert_with(|| Row::new(topic));
        if row.tracked.topic != topic {
            (row.tracked.topic, row.passed) = (topic, NextOffset(0));
            row.ahead.clear();
        }
        (row.next, row.floor) = (next, next);
        row.tracked.incarnation += 1;
        true
    }

    fn transaction(&self, id: TransactionId) -> &Transaction {
        &self.transactions[&id]
    }

    fn transaction_mut(&mut self, id: TransactionId) -> &mut Transaction {
        self.transactions.get_mut(&id).expect("checked to be open")
    }

    fn others(&self, id: TransactionId) -> impl Iterator<Item = &Transaction> {
        self.transactions.iter().filter(move |(other, _)| **other != id).map(|(_, transaction)| transaction)
    }

    fn is_locked(&self, id: TransactionId, lane: LaneId) -> bool {
        self.others(id).any(|other| other.progress.as_ref().is_some_and(|(locked, _)| *locked == lane))
    }
}
