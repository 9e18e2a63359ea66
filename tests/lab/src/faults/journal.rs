use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::time::{sleep, timeout};

use super::ledger::index;
use super::member::PATIENCE;
use super::openings::Openings;
use super::worker::{Ending, Told};

/// What all worker processes of a stage have said, put together.
#[derive(Debug)]
pub struct Journal(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    /// Which process reads a partition, by what was said last.
    owners: Vec<Option<Reader>>,
    /// How often the record of each offset was dealt with, by partition.
    dealt: Vec<Vec<u8>>,
    struck: Vec<Struck>,
    /// Records of which a COMMIT went unheard.
    unheard: BTreeSet<(i32, i64)>,
    counts: Counts,
    recoveries: Vec<Duration>,
    openings: Openings,
    /// Partition and offset of each start.
    starts: Vec<(i32, i64)>,
    processes: BTreeMap<ProcessNumber, u32>,
    /// Told to stop: what they read is given up in good order.
    leaving: BTreeSet<ProcessNumber>,
}

/// A process among all of a stage, in the order of starting.
pub type ProcessNumber = u32;

#[derive(Clone, Debug)]
struct Reader {
    process: ProcessNumber,
    post: String,
}

/// Something was done to a process, and these are the partitions it read then.
#[derive(Debug)]
struct Struck {
    /// `None` if it was done to all of them.
    process: Option<ProcessNumber>,
    partitions: BTreeSet<i32>,
    at: Instant,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Records that were dealt with, each as often as it was.
    pub deliveries: u64,
    /// Those of them whose handler ran.
    pub applied: u64,
    /// Those of them that the inbox knew already.
    pub duplicates: u64,
    /// Records that were dealt with, though a process had said so before.
    pub redeliveries: u64,
    /// Partitions that another member read before their reader had said that it was over.
    pub takeovers: u64,
    /// How often a partition was given to a member.
    pub starts: u64,
    pub rebuilds: u64,
    /// Unheard COMMITs after which the record was found applied.
    pub unheard_done: u64,
    /// Unheard COMMITs after which the record was applied again.
    pub unheard_undone: u64,
    /// Failures by kind.
    pub failures: HashMap<String, u64>,
    /// Failures that the database or the way to it was blamed for, by what was said.
    pub environment: HashMap<String, u64>,
}

impl Journal {
    pub fn new(partitions: usize) -> Self {
        let pages =
            Pages { owners: vec![None; partitions], dealt: vec![Vec::new(); partitions], ..Pages::default() };
        Self(Mutex::new(pages))
    }

    /// A process was started.
    pub fn enter(&self, process: ProcessNumber, id: u32) {
        self.pages().processes.insert(process, id);
    }

    /// A process has ended.
    pub fn leave(&self, process: ProcessNumber) {
        self.pages().processes.remove(&process);
    }

    /// A process is told to stop.
    pub fn ask_to_leave(&self, process: ProcessNumber) {
        self.pages().leaving.insert(process);
    }

    /// The ids of the processes that run.
    pub fn processes(&self) -> Vec<u32> {
        self.pages().processes.values().copied().collect()
    }

    /// Something is done to this process now: how long until others go on with what it reads? Returns that.
    pub fn strike(&self, process: ProcessNumber) -> BTreeSet<i32> {
        let partitions = self.held_by(process);
        self.pages().strike(Some(process), partitions.clone());
        partitions
    }

    /// Something is done to what all of them need.
    pub fn strike_all(&self) {
        let mut pages = self.pages();
        let partitions = (0..).zip(&pages.owners).filter(|(_, reader)| reader.is_some());
        let partitions = partitions.map(|(partition, _)| partition).collect();
        pages.strike(None, partitions);
    }

    pub fn hear(&self, process: ProcessNumber, post: &str, told: &Told) {
        let mut pages = self.pages();
        match told {
            Told::Started { partition, offset } => {
                pages.openings.read(*partition, *offset);
                pages.starts.push((*partition, *offset));
                pages.started(process, post, *partition);
            }
            Told::Ended { partition } => {
                let owner = &mut pages.owners[index(*partition)];
                if owner.as_ref().is_some_and(|reader| reader.process == process) {
                    *owner = None;
                }
            }
            Told::Done { partition, offset, ending } => pages.done(process, *partition, *offset, *ending),
            Told::Failed { partition, offset, kind, error, .. } => {
                *pages.counts.failures.entry(kind.clone()).or_default() += 1;
                if kind == "Environment" {
                    *pages.counts.environment.entry(error.clone()).or_default() += 1;
                }
                if kind == "Unknown" {
                    pages.unheard.insert((*partition, *offset));
                }
            }
            Told::Rebuilt { .. } => pages.counts.rebuilds += 1,
            Told::Refused { partition, reason } => pages.openings.refused(*partition, reason),
            Told::Reached { .. } => {}
        }
    }

    pub fn counts(&self) -> Counts {
        self.pages().counts.clone()
    }

    /// From what was done to a process until one of its partitions went on elsewhere.
    pub fn recoveries(&self) -> Vec<Duration> {
        self.pages().recoveries.clone()
    }

    pub fn refusals(&self) -> Vec<String> {
        self.pages().openings.refusals()
    }

    /// What becomes of partitions that members are given is asked from now on.
    pub fn forget_openings(&self) {
        let mut pages = self.pages();
        let partitions = pages.owners.len();
        for partition in (0..).take(partitions) {
            pages.openings.forget(partition);
        }
    }

    /// From now on a refusal of the partition is, or is not, what somebody wants to see. What was heard of it
    /// before does not count any more.
    pub fn mean_refusal(&self, partition: i32, meant: bool) {
        let mut pages = self.pages();
        pages.openings.forget(partition);
        pages.openings.mean(partition, meant);
    }

    /// Waits until the partition is read: from where it was first.
    pub async fn until_opened(&self, partition: i32) -> Result<i64> {
        Self::until(|| self.pages().openings.first_read(partition).is_some()).await;
        self.pages().openings.first_read(partition).with_context(|| format!("{partition} is not read"))
    }

    /// Waits until the partition is refused: why it was first.
    pub async fn until_refused(&self, partition: i32) -> Result<String> {
        Self::until(|| self.pages().openings.first_refusal(partition).is_some()).await;
        self.pages().openings.first_refusal(partition).with_context(|| format!("{partition} is not refused"))
    }

    /// Where partitions were started, each time, in order.
    pub fn starts(&self) -> Vec<(i32, i64)> {
        self.pages().starts.clone()
    }

    /// The partitions that this process reads, or read when it was last heard.
    pub fn held_by(&self, process: ProcessNumber) -> BTreeSet<i32> {
        let pages = self.pages();
        let held = (0..).zip(&pages.owners).filter(|(_, o)| o.as_ref().is_some_and(|r| r.process == process));
        held.map(|(partition, _)| partition).collect()
    }

    /// Waits until other processes read all of these; whether they did before patience ended.
    pub async fn until_read_elsewhere(&self, process: ProcessNumber, partitions: &BTreeSet<i32>) -> bool {
        let read = || {
            let pages = self.pages();
            let owner = |partition: &i32| pages.owners[index(*partition)].as_ref();
            partitions
                .iter()
                .all(|partition| owner(partition).is_some_and(|reader| reader.process != process))
        };
        Self::until(read).await
    }

    /// Waits until so many more records are applied; whether they were before patience ended.
    pub async fn until_applied(&self, more: u64) -> bool {
        let target = self.pages().counts.applied + more;
        Self::until(|| self.pages().counts.applied >= target).await
    }

    /// Waits until so many clients were made anew in all; whether they were before patience ended.
    pub async fn until_rebuilt(&self, times: u64) -> bool {
        Self::until(|| self.pages().counts.rebuilds >= times).await
    }

    /// Waits until every record before these offsets was dealt with at least once, for ever if need be.
    pub async fn until_heard(&self, ends: &[i64]) {
        Self::once(|| self.pages().heard(ends)).await;
    }

    async fn until(is: impl Fn() -> bool) -> bool {
        timeout(PATIENCE, Self::once(is)).await.is_ok()
    }

    async fn once(is: impl Fn() -> bool) {
        while !is() {
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn strike(&mut self, process: Option<ProcessNumber>, partitions: BTreeSet<i32>) {
        if !partitions.is_empty() {
            self.struck.push(Struck { process, partitions, at: Instant::now() });
        }
    }

    fn heard(&self, ends: &[i64]) -> bool {
        let whole = |(dealt, end): (&Vec<u8>, &i64)| {
            i64::try_from(dealt.len()).is_ok_and(|length| length >= *end) && !dealt.contains(&0)
        };
        self.dealt.iter().zip(ends).all(whole)
    }

    fn started(&mut self, process: ProcessNumber, post: &str, partition: i32) {
        self.counts.starts += 1;
        let before = self.owners[index(partition)].replace(Reader { process, post: post.to_owned() });
        if before.is_some_and(|reader| reader.post != post && !self.leaving.contains(&reader.process)) {
            self.counts.takeovers += 1;
        }
    }

    fn done(&mut self, process: ProcessNumber, partition: i32, offset: i64, ending: Ending) {
        self.counts.deliveries += 1;
        match ending {
            Ending::Applied => self.counts.applied += 1,
            Ending::Known => self.counts.duplicates += 1,
            Ending::Parked | Ending::Skipped => {}
        }
        let dealt = &mut self.dealt[index(partition)];
        let offset_index = usize::try_from(offset).expect("offsets are not negative");
        if dealt.len() <= offset_index {
            dealt.resize(offset_index + 1, 0);
        }
        if dealt[offset_index] > 0 {
            self.counts.redeliveries += 1;
        }
        dealt[offset_index] = dealt[offset_index].saturating_add(1);
        if self.unheard.remove(&(partition, offset)) {
            match ending {
                Ending::Applied => self.counts.unheard_undone += 1,
                _ => self.counts.unheard_done += 1,
            }
        }
        let recoveries = &mut self.recoveries;
        self.struck.retain(|struck| {
            let over = struck.process != Some(process) && struck.partitions.contains(&partition);
            if over {
                recoveries.push(struck.at.elapsed());
            }
            !over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(journal: &Journal, process: ProcessNumber, offset: i64, ending: Ending) {
        journal.hear(process, "post", &Told::Done { partition: 0, offset, ending });
    }

    #[test]
    fn a_record_that_is_dealt_with_twice_was_redelivered() {
        let journal = Journal::new(1);
        done(&journal, 1, 0, Ending::Applied);
        done(&journal, 1, 1, Ending::Applied);
        assert_eq!(journal.counts().redeliveries, 0);
        done(&journal, 2, 0, Ending::Known);
        assert_eq!(journal.counts().redeliveries, 1);
    }

    #[test]
    fn all_is_heard_once_no_offset_is_missing() {
        let journal = Journal::new(2);
        done(&journal, 1, 1, Ending::Applied);
        assert!(!journal.pages().heard(&[2, 0]));
        done(&journal, 2, 0, Ending::Applied);
        assert!(journal.pages().heard(&[2, 0]));
        assert!(!journal.pages().heard(&[3, 0]));
    }

    #[test]
    fn a_partition_taken_before_its_reader_let_go_is_a_takeover() {
        let journal = Journal::new(2);
        for partition in 0..2 {
            journal.hear(1, "a", &Told::Started { partition, offset: 0 });
        }
        journal.hear(1, "a", &Told::Ended { partition: 1 });
        for partition in 0..2 {
            journal.hear(2, "b", &Told::Started { partition, offset: 0 });
        }
        assert_eq!(journal.counts().takeovers, 1);
    }

    #[test]
    fn recovery_ends_when_another_process_goes_on() {
        let journal = Journal::new(1);
        journal.hear(1, "a", &Told::Started { partition: 0, offset: 0 });
        journal.strike(1);
        done(&journal, 1, 0, Ending::Applied);
        assert!(journal.recoveries().is_empty());
        done(&journal, 2, 1, Ending::Applied);
        assert_eq!(journal.recoveries().len(), 1);
    }

    #[test]
    fn an_unheard_commit_is_told_by_what_is_found_behind_it() {
        let journal = Journal::new(1);
        for offset in 0..2 {
            let (kind, error) = ("Unknown".to_owned(), "committing".to_owned());
            let failed = Told::Failed { partition: 0, offset, attempt: 1, kind, error };
            journal.hear(1, "a", &failed);
        }
        done(&journal, 1, 0, Ending::Known);
        done(&journal, 1, 1, Ending::Applied);
        let counts = journal.counts();
        assert_eq!((counts.unheard_done, counts.unheard_undone), (1, 1));
    }
}
