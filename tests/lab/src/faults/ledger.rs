use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use handstamp_tests::Record;
use rdkafka::Offset;

use super::defect::Defect;
use super::worker::{ATTEMPTS, Deposit, Trouble};

/// What was written to a topic: the truth that everything else is compared with.
#[derive(Debug)]
pub struct Ledger(Mutex<Book>);

/// The ledger at one moment.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// By number.
    pub events: Vec<Event>,
    /// The event of each offset, by partition.
    pub logs: Vec<Vec<usize>>,
    /// Records behind one that is not acknowledged yet, by partition and offset.
    pub ahead: BTreeMap<(i32, i64), usize>,
    /// Records that the broker did not acknowledge.
    pub unwritten: u64,
    /// Partition and offset of records that were deleted before anybody dealt with them.
    pub gone: BTreeSet<(i32, i64)>,
    /// Whether only the records of an account, whose message key is the same, have to be applied in order.
    pub keyed: bool,
}

/// An event; each of its records is the same.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub account: i64,
    pub amount: i64,
    pub fate: Fate,
}

/// What has to become of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Applied, whatever its handler does at first.
    Applied(Trouble),
    /// A dead letter for each of its records, and no effect.
    Parked(Trouble),
    /// The same, since nobody can make anything of its records.
    Unreadable(Defect),
    /// Applied, and one dead letter in all: its handler ends the transaction by itself.
    Listed(Trouble),
    /// Neither: it has no payload.
    Skipped,
}

impl Ledger {
    pub fn new(partitions: usize, keyed: bool) -> Self {
        Self(Mutex::new(Book { logs: vec![Vec::new(); partitions], keyed, ..Book::default() }))
    }

    /// Makes a new event, and returns its number.
    pub fn add(&self, event: Event) -> usize {
        let mut book = self.book();
        book.events.push(event);
        book.events.len() - 1
    }

    pub fn event(&self, number: usize) -> Event {
        self.book().events[number]
    }

    /// A record of the event was acknowledged. Nobody else writes to the topic, without transactions: the
    /// offsets of a partition have no gaps, and acknowledgements of several producers come in any order.
    pub fn written(&self, number: usize, partition: i32, offset: i64) {
        let mut book = self.book();
        let Book { logs, ahead, .. } = &mut *book;
        let log = &mut logs[index(partition)];
        let mut end = i64::try_from(log.len()).expect("offsets fit");
        // The answer to an earlier try was lost: librdkafka is told that the record is there, and not where.
        let offset = if Offset::from_raw(offset) == Offset::Invalid { end } else { offset };
        let twice = offset < end || ahead.insert((partition, offset), number).is_some();
        assert!(!twice, "offset {offset} of partition {partition} was given twice");
        while let Some(number) = ahead.remove(&(partition, end)) {
            log.push(number);
            end += 1;
        }
    }

    /// These records were deleted on purpose before anybody dealt with them.
    pub fn deleted(&self, partition: i32, offsets: Range<i64>) {
        self.book().gone.extend(offsets.map(|offset| (partition, offset)));
    }

    pub fn not_written(&self) {
        self.book().unwritten += 1;
    }

    /// The offset behind the last record of each partition.
    pub fn ends(&self) -> Vec<i64> {
        self.book().logs.iter().map(|log| i64::try_from(log.len()).expect("offsets fit")).collect()
    }

    /// The events between two offsets, as far as they are known by now and somebody has to deal with them.
    pub fn between(&self, partition: usize, from: i64, to: i64) -> Vec<(i64, usize, Event)> {
        let book = self.book();
        let log = &book.logs[partition];
        let records = (from..to).zip(log.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)));
        let there = |(offset, _): &(i64, &usize)| {
            i32::try_from(partition).is_ok_and(|partition| !book.gone.contains(&(partition, *offset)))
        };
        records.filter(there).map(|(offset, number)| (offset, *number, book.events[*number])).collect()
    }

    pub fn snapshot(&self) -> Book {
        self.book().clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Event {
    /// The payload of its records.
    pub fn payload(&self, number: usize) -> Option<Vec<u8>> {
        let trouble = match self.fate {
            Fate::Applied(trouble) | Fate::Parked(trouble) | Fate::Listed(trouble) => trouble,
            Fate::Unreadable(_) => Trouble::None,
            Fate::Skipped => return None,
        };
        let event = i64::try_from(number).expect("numbers fit");
        let deposit = Deposit { event, account: self.account, amount: self.amount, trouble };
        Some(serde_json::to_vec(&deposit).expect("numbers and strings"))
    }

    /// One of its records, for those that are not the load's.
    pub fn record(&self, number: usize) -> Record {
        let record = self.payload(number).map_or_else(Record::tombstone, Record::new);
        let (record, id) = (record.key(self.account.to_string()), format!("event-{number}"));
        match self.fate {
            Fate::Unreadable(defect) => defect.spoil(record, &id),
            _ => record.header("event_id", id),
        }
    }
}

impl Fate {
    /// Fails as often as this, then works.
    pub fn flaky(times: u32) -> Self {
        assert!(times < ATTEMPTS, "it would be parked");
        Self::Applied(Trouble::Fails(times))
    }
}

pub fn index(partition: i32) -> usize {
    usize::try_from(partition).expect("partitions are numbered from 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_in_the_log_once_all_before_them_are_acknowledged() {
        let ledger = Ledger::new(1, false);
        ledger.written(7, 0, 1);
        assert_eq!(ledger.ends(), [0]);
        ledger.written(5, 0, 0);
        assert_eq!(ledger.snapshot().logs, [[5, 7]]);
    }
}
