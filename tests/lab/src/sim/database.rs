use std::collections::BTreeMap;

use handstamp::flow::{Claim, ClaimedRow, LaneId, Millis, NextOffset, Offset, SavedResult};

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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transaction {
    /// The key that it inserted: locked to the end, also if it is given back.
    locked: Option<Key>,
    key: Option<Key>,
    /// What its claim's statement saw, however long that waited for a lock.
    seen: Option<Seen>,
    pub(super) effect: Option<Effect>,
    pub(super) letter: Option<Letter>,
    pub(super) progress: Option<(LaneId, Row)>,
    condition: Condition,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    row: Option<Row>,
    parked: bool,
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracking {
    pub(super) lane: LaneId,
    pub(super) tracked: Option<Tracked>,
    pub(super) watermark: NextOffset,
    pub(super) acknowledged: NextOffset,
    /// What `passed` must not be above.
    pub(super) ceiling: Option<Offset>,
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

    /// Claims a record's key, if it has one; `None` behind another transaction's lock.
    pub(super) fn claim(
        &mut self,
        id: TransactionId,
        lane: LaneId,
        tracked: Option<Tracked>,
        offset: Offset,
        event: Option<u64>,
    ) -> Option<Claim> {
        let Seen { row, parked } = self.transaction(id).seen.unwrap_or_else(|| {
            let row = self.state.row(lane, tracked);
            let passed = row.filter(|row| offset.next() <= row.passed);
            let letter = passed.map(|row| (lane, row.tracked.topic, offset));
            let parked = letter.is_some_and(|letter| {
                self.state.letters.contains(&letter) || self.state.listed.contains(&letter)
            });
            Seen { row, parked }
        });
        self.transaction_mut(id).seen = Some(Seen { row, parked });
        let event = event.map(|event| key(lane, event));
        let mut stamped = false;
        if let Some(event) = event.filter(|_| !parked) {
            if self.others(id).any(|other| other.locked == Some(event)) {
                return None;
            }
            if !self.state.inbox.contains(&event) {
                stamped = true;
                let transaction = self.transaction_mut(id);
                (transaction.locked, transaction.key) = (Some(event), Some(event));
            }
        }
        let row = row.map(|row| ClaimedRow { next: row.next, passed: row.passed });
        Some(Claim { keyed: event.is_some(), stamped, parked, row })
    }

    /// The handler writes.
    pub(super) fn apply(&mut self, id: TransactionId, effect: Effect) {
        self.transaction_mut(id).effect = Some(effect);
    }

    /// A statement of the handler fails, and it does not say so.
    pub(super) fn abort(&mut self, id: TransactionId) {
        self.transaction_mut(id).condition = Condition::Aborted;
    }

    /// The handler commits by itself; what was committed.
    pub(super) fn commit_inside(&mut self, id: TransactionId) -> Transaction {
        let ended = Transaction { condition: Condition::Ended, ..Transaction::default() };
        let written = std::mem::replace(self.transaction_mut(id), ended);
        self.keep(written)
    }

    /// The handler rolls back by itself.
    pub(super) fn roll_back_inside(&mut self, id: TransactionId) {
        *self.transaction_mut(id) = Transaction { condition: Condition::Ended, ..Transaction::default() };
    }

    /// Deletes the key that was claimed; who waits for it goes on waiting.
    pub(super) fn give_back(&mut self, id: TransactionId) {
        self.transaction_mut(id).key = None;
    }

    /// Writes a dead letter; `false` behind another's lock.
    pub(super) fn park(&mut self, id: TransactionId, letter: Letter) -> bool {
        if self.others(id).any(|other| other.letter == Some(letter)) {
            return false;
        }
        self.transaction_mut(id).letter = Some(letter);
        true
    }

    pub(super) fn guard(&mut self, id: TransactionId, tracking: &Tracking) -> Guard {
        match self.transaction(id).condition {
            Condition::Aborted => return Guard::Aborted,
            Condition::Ended => return Guard::Ended,
            Condition::Sound if self.is_locked(id, tracking.lane) => return Guard::Blocked,
            Condition::Sound => {}
        }
        let Tracking { lane, tracked, watermark, acknowledged, ceiling } = *tracking;
        let row = match self.state.checked(lane, tracked, acknowledged) {
            Ok(row) => row,
            Err(Refused::WentBack) => return Guard::WentBack,
            Err(Refused::Superseded) => return Guard::Superseded,
        };
        if ceiling.is_some_and(|offset| offset.next() <= row.passed) {
            return Guard::Overtaken;
        }
        self.transaction_mut(id).progress = Some((lane, row.raised(watermark)));
        Guard::Passed
    }

    /// Answers a COMMIT; what was committed. An aborted or ended transaction answers as well.
    pub(super) fn commit(&mut self, id: TransactionId) -> Transaction {
        let written = self.transactions.remove(&id).unwrap_or_default();
        if written.condition == Condition::Aborted { Transaction::default() } else { self.keep(written) }
    }

    fn keep(&mut self, written: Transaction) -> Transaction {
        self.state.inbox.extend(written.key);
        if let Some(effect) = written.effect {
            self.state.wrote(effect);
        }
        self.state.letters.extend(written.letter);
        self.state.progress.extend(written.progress);
        written
    }

    pub(super) fn roll_back(&mut self, id: TransactionId) {
        self.transactions.remove(&id);
    }

    /// One entry of a save; `None` while its row is locked.
    pub(super) fn save(&mut self, tracking: &Tracking) -> Option<SavedResult> {
        let Tracking { lane, tracked, watermark, acknowledged, .. } = *tracking;
        if self.is_locked(0, lane) {
            return None;
        }
        Some(match self.state.checked(lane, tracked, acknowledged) {
            Ok(row) => {
                self.state.progress.insert(lane, row.raised(watermark));
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
        *self.state.progress.entry(lane).or_insert_with(|| Row::new(topic))
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
        self.others(id).any(|other| other.progress.is_some_and(|(locked, _)| locked == lane))
    }
}
