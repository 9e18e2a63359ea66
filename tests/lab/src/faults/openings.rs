use std::collections::{BTreeMap, BTreeSet};

/// What became of partitions that the group gave to somebody.
#[derive(Debug, Default)]
pub struct Openings {
    /// Since a partition was last looked at anew.
    heard: BTreeMap<i32, Vec<Opening>>,
    /// Partitions that are refused on purpose.
    meant: BTreeSet<i32>,
    refusals: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Opening {
    Read(i64),
    Refused(String),
}

impl Openings {
    /// A partition is read from this offset.
    pub fn read(&mut self, partition: i32, from: i64) {
        self.heard.entry(partition).or_default().push(Opening::Read(from));
    }

    /// A partition is not read.
    pub fn refused(&mut self, partition: i32, reason: &str) {
        self.heard.entry(partition).or_default().push(Opening::Refused(reason.to_owned()));
        if !self.meant.contains(&partition) {
            self.refusals.push(format!("{partition}: {reason}"));
        }
    }

    /// What was heard of the partition until now does not count any more.
    pub fn forget(&mut self, partition: i32) {
        self.heard.remove(&partition);
    }

    /// Whether refusals of the partition are meant from now on.
    pub fn mean(&mut self, partition: i32, refused: bool) {
        if refused {
            self.meant.insert(partition);
        } else {
            self.meant.remove(&partition);
        }
    }

    /// Where the partition was read from first.
    pub fn first_read(&self, partition: i32) -> Option<i64> {
        self.heard.get(&partition)?.iter().find_map(|opening| match opening {
            Opening::Read(from) => Some(*from),
            Opening::Refused(_) => None,
        })
    }

    /// Why the partition was refused first.
    pub fn first_refusal(&self, partition: i32) -> Option<String> {
        self.heard.get(&partition)?.iter().find_map(|opening| match opening {
            Opening::Read(_) => None,
            Opening::Refused(reason) => Some(reason.clone()),
        })
    }

    /// Refusals that nobody meant.
    pub fn refusals(&self) -> Vec<String> {
        self.refusals.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_nobody_meant_is_told() {
        let mut openings = Openings::default();
        openings.mean(1, true);
        openings.refused(0, "gone");
        openings.refused(1, "gone");
        openings.mean(1, false);
        openings.refused(1, "still gone");
        assert_eq!(openings.refusals(), ["0: gone", "1: still gone"]);
    }

    #[test]
    fn a_partition_was_read_first_where_it_was_after_the_last_look() {
        let mut openings = Openings::default();
        openings.read(0, 7);
        openings.forget(0);
        openings.refused(0, "gone");
        openings.read(0, 9);
        openings.read(0, 12);
        assert_eq!(openings.first_read(0), Some(9));
        assert_eq!(openings.first_refusal(0).as_deref(), Some("gone"));
    }
}
