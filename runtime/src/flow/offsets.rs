use std::collections::BTreeMap;

use super::{NextOffset, Offset};

/// A set of offsets, as spans that do not touch each other: each from one offset to below another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offsets(BTreeMap<Offset, NextOffset>);

impl Offsets {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The spans, in order.
    pub fn spans(&self) -> impl Iterator<Item = (Offset, NextOffset)> {
        self.0.iter().map(|(&first, &end)| (first, end))
    }

    /// Adds those from `first` to below `end`.
    pub fn insert(&mut self, first: Offset, end: NextOffset) {
        let (mut first, mut end) = (first, end);
        while let Some((&other, &other_end)) = self.0.range(..=Offset(end.0)).next_back()
            && other_end.0 >= first.0
        {
            self.0.remove(&other);
            (first, end) = (first.min(other), end.max(other_end));
        }
        self.0.insert(first, end);
    }

    pub(super) fn remove_below(&mut self, limit: NextOffset) {
        while let Some((&first, &end)) = self.0.first_key_value()
            && first.0 < limit.0
        {
            self.0.remove(&first);
            if end > limit {
                self.0.insert(Offset(limit.0), end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn members(offsets: &Offsets) -> BTreeSet<i64> {
        offsets.spans().flat_map(|(first, end)| first.0..end.0).collect()
    }

    proptest! {
        #[test]
        fn it_has_what_was_inserted_and_not_removed_in_spans_that_do_not_touch(
            steps in prop::collection::vec((any::<bool>(), 0_i64..50, 1_i64..6), 0..40),
        ) {
            let (mut offsets, mut expected) = (Offsets::default(), BTreeSet::new());
            for (insert, at, length) in steps {
                if insert {
                    offsets.insert(Offset(at), NextOffset(at + length));
                    expected.extend(at..at + length);
                } else {
                    offsets.remove_below(NextOffset(at));
                    expected.retain(|offset| *offset >= at);
                }
                prop_assert_eq!(members(&offsets), expected.clone());
                let spans: Vec<_> = offsets.spans().collect();
                prop_assert!(spans.windows(2).all(|pair| pair[0].1.0 < pair[1].0.0));
            }
        }
    }
}
