use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kinds of a fault, each of which has to be seen so often.
#[derive(Debug)]
pub struct Tally<K> {
    each: u64,
    marks: Mutex<Vec<Mark<K>>>,
}

#[derive(Debug)]
struct Mark<K> {
    kind: K,
    tried: u64,
    missed: u64,
    seen: u64,
}

impl<K: Copy + PartialEq> Tally<K> {
    pub fn new(each: u64, kinds: impl IntoIterator<Item = K>) -> Self {
        let mark = |kind| Mark { kind, tried: 0, missed: 0, seen: 0 };
        Self { each, marks: Mutex::new(kinds.into_iter().map(mark).collect()) }
    }

    /// The kind that was tried least of those that are to be tried more; none once that is under way for all,
    /// or was in vain too often.
    pub fn next(&self) -> Option<K> {
        let (each, mut marks) = (self.each, self.marks());
        let open = marks.iter_mut().filter(|mark| mark.tried - mark.missed < each && mark.missed <= each);
        let next = open.min_by_key(|mark| mark.tried)?;
        next.tried += 1;
        Some(next.kind)
    }

    /// What came of a try.
    pub fn note(&self, kind: K, seen: bool) {
        if let Some(mark) = self.marks().iter_mut().find(|mark| mark.kind == kind) {
            mark.seen += u64::from(seen);
            mark.missed += u64::from(!seen);
        }
    }

    /// The kinds that were seen often enough, and those that were not.
    pub fn split(&self) -> (Vec<K>, Vec<K>) {
        let marks = self.marks();
        let (seen, missed): (Vec<_>, Vec<_>) = marks.iter().partition(|mark| mark.seen >= self.each);
        let kinds = |marks: Vec<&Mark<K>>| marks.into_iter().map(|mark| mark.kind).collect();
        (kinds(seen), kinds(missed))
    }

    fn marks(&self) -> MutexGuard<'_, Vec<Mark<K>>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_take_turns_until_each_was_seen() {
        let tally = Tally::new(2, ["a", "b"]);
        let order: Vec<_> =
            std::iter::from_fn(|| tally.next().inspect(|kind| tally.note(*kind, true))).collect();
        assert_eq!(order, ["a", "b", "a", "b"]);
        assert_eq!(tally.split(), (vec!["a", "b"], vec![]));
    }

    #[test]
    fn a_kind_that_is_never_seen_is_not_tried_for_ever() {
        let tally = Tally::new(1, ["a"]);
        let tries = std::iter::from_fn(|| tally.next().inspect(|kind| tally.note(*kind, false))).count();
        assert_eq!(tries, 2);
        assert_eq!(tally.split(), (vec![], vec!["a"]));
    }
}
