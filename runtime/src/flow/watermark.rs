use std::collections::BTreeMap;

use super::{NextOffset, Offset};
use crate::laboratory::mutant;

/// How far a lane has got: the one place that says which offset everything below is dealt with.
///
/// Offsets have gaps (compaction, transaction markers), so nothing is ever inferred from their being
/// contiguous: the watermark is the lowest record that is fetched and unfinished, or else the horizon.
#[derive(Clone, Debug)]
pub(super) struct Watermark {
    /// Each with the first offset of the gap before it.
    unfinished: BTreeMap<Offset, Offset>,
    /// Nothing below is still to be fetched. `None` until the log's start is known.
    horizon: Option<NextOffset>,
}

impl Watermark {
    pub(super) fn new(start: Option<NextOffset>) -> Self {
        Self { unfinished: BTreeMap::new(), horizon: start }
    }

    /// Whether a record was fetched before, or lies below where reading started.
    pub(super) fn has_passed(&self, offset: Offset) -> bool {
        self.horizon >= Some(offset.next())
    }

    pub(super) fn fetched(&mut self, offset: Offset) {
        let gap = self.horizon.map_or(offset, |horizon| offset.min(Offset(horizon.0)));
        self.unfinished.insert(offset, gap);
        mutant!(ContiguousOffsets => {
            if self.horizon < Some(NextOffset(offset.0)) {
                return;
            }
        });
        self.reached(offset.next());
    }

    /// The first offset of the gap before the record, which is finished with it.
    pub(super) fn finished(&mut self, offset: Offset) -> Option<Offset> {
        self.unfinished.remove(&offset)
    }

    /// The first offset of the gap before a record that is not finished.
    pub(super) fn gap(&self, offset: Offset) -> Option<Offset> {
        self.unfinished.get(&offset).copied()
    }

    /// The consumer stands here, and every record before it has been fetched.
    pub(super) fn reached(&mut self, position: NextOffset) {
        self.horizon = self.horizon.max(Some(position));
    }

    /// The records that are not finished, in order.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = Offset> {
        self.unfinished.keys().copied()
    }

    /// Everything below is dealt with; `None` while that cannot be said.
    pub(super) fn next(&self) -> Option<NextOffset> {
        mutant!(HighestOffsetSeen => { return self.horizon; });
        self.lowest(self.unfinished().next())
    }

    /// What [`Self::next`] will be once these, too, are finished. They are in order, and not empty.
    pub(super) fn next_without(&self, taken: &[Offset]) -> NextOffset {
        let other = self.unfinished().find(|offset| taken.binary_search(offset).is_err());
        self.lowest(other).unwrap_or_else(|| NextOffset(taken.first().map_or(0, |first| first.0)))
    }

    pub(super) fn lowest(&self, unfinished: Option<Offset>) -> Option<NextOffset> {
        unfinished.map(|offset| NextOffset(offset.0)).or(self.horizon)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn watermark_is_the_lowest_record_not_finished(
            start in prop::option::of(0_i64..5),
            gaps in prop::collection::vec(0_i64..4, 1..40),
            finish in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
            idle in 0_i64..3,
        ) {
            let mut watermark = Watermark::new(start.map(NextOffset));
            let mut fetched = Vec::new();
            let mut at = start.unwrap_or(7);
            for gap in gaps {
                at += gap;
                watermark.fetched(Offset(at));
                fetched.push(at);
                at += 1;
            }
            at += idle;
            watermark.reached(NextOffset(at));

            let mut finished = BTreeSet::new();
            for index in finish {
                let offset = *index.get(&fetched);
                let unfinished = |without: Option<i64>| {
                    let open = |o: &&i64| !finished.contains(*o) && Some(**o) != without;
                    fetched.iter().find(open).copied().unwrap_or(at)
                };
                prop_assert_eq!(watermark.next(), Some(NextOffset(unfinished(None))));
                prop_assert_eq!(watermark.next_without(&[Offset(offset)]), NextOffset(unfinished(Some(offset))));
                watermark.finished(Offset(offset));
                finished.insert(offset);
            }
        }
    }

    #[test]
    fn nothing_is_claimed_before_the_start_of_the_log_is_known() {
        assert_eq!(Watermark::new(None).next(), None);
    }

    #[test]
    fn position_never_moves_the_watermark_back() {
        let mut watermark = Watermark::new(Some(NextOffset(5)));
        watermark.reached(NextOffset(3));
        assert_eq!(watermark.next(), Some(NextOffset(5)));
    }
}
