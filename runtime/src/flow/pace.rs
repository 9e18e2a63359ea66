use super::Millis;

/// How long the handlers of a transaction should take: short enough that nobody waits long for its locks.
const TARGET: Millis = Millis(50);
/// Where the rest of it (BEGIN, claim, guard, COMMIT) takes long by itself they may take so many times as long, so that most
/// of the time is the handlers',
const SHARE: u64 = 9;
/// but never longer than this.
const LONGEST: Millis = Millis(500);
/// How many more records a full transaction that was quick lets into the next, once one was slow or failed; up to then
/// at least twice as many.
const STEP: usize = 16;
/// How many records a transaction may take after several have failed in a row,
const SMALL: usize = 4;
/// how many failures that are,
const FAILURES: u32 = 2;
/// and how many records have to pass before it grows again.
const PROBATION: usize = 100;

/// How long a transaction took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) all: Millis,
    /// How much of it the handlers had.
    pub(super) handlers: Millis,
}

/// How many records a lane takes into one transaction: more while it has a backlog and all goes well, half
/// after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    most: usize,
    limit: usize,
    failures: u32,
    probation: usize,
    /// Whether nothing is known yet that speaks against more.
    doubles: bool,
}

impl Pace {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), limit: 1, failures: 0, probation: 0, doubles: true }
    }

    pub(super) fn limit(self) -> usize {
        if self.probation > 0 { self.limit.min(SMALL) } else { self.limit }
    }

    /// A transaction of so many records was committed.
    pub(super) fn done(&mut self, records: usize, Took { all, handlers }: Took) {
        self.probation = self.probation.saturating_sub(records);
        if records > 1 {
            self.failures = 0;
        }
        let rest = all.0.saturating_sub(handlers.0);
        let target = Millis(rest.saturating_mul(SHARE).clamp(TARGET.0, LONGEST.0));
        if handlers > target {
            self.doubles = false;
            // As many as would have taken that long, but not less than half of what it was: one that is slow, alone or
            // among others, says little about those that follow.
            let fitting = records.saturating_mul(index(target)) / index(handlers);
            self.limit = fitting.max(self.limit / 2).clamp(1, self.limit);
        } else if self.probation == 0 && records >= self.limit {
            let step = if self.doubles { self.limit.max(STEP) } else { STEP };
            self.limit = self.limit.saturating_add(step).min(self.most);
        }
    }

    /// One of so many records failed.
    pub(super) fn failed(&mut self, records: usize) {
        if records < 2 {
            return;
        }
        self.limit = (records / 2).max(1);
        self.doubles = false;
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.probation = PROBATION;
        }
    }
}

fn index(span: Millis) -> usize {
    usize::try_from(span.0).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Took = took(5, 5);

    const fn took(all: u64, handlers: u64) -> Took {
        Took { all: Millis(all), handlers: Millis(handlers) }
    }

    /// Full transactions until the pace does not change any more.
    fn settle(pace: &mut Pace, took: impl Fn(usize) -> Took) -> usize {
        for _ in 0..1_000 {
            let records = pace.limit();
            pace.done(records, took(records));
        }
        pace.limit()
    }

    #[test]
    fn a_lane_begins_with_one_record() {
        assert_eq!(Pace::new(500).limit(), 1);
    }

    #[test]
    fn a_backlog_grows_the_transaction_up_to_the_most() {
        assert_eq!(settle(&mut Pace::new(500), |_| QUICK), 500);
    }

    #[test]
    fn a_lane_with_a_backlog_is_fast_after_few_transactions() {
        let mut pace = Pace::new(500);
        for _ in 0..7 {
            pace.done(pace.limit(), QUICK);
        }
        assert_eq!(pace.limit(), 500);
    }

    #[test]
    fn after_a_failure_it_grows_step_by_step() {
        let mut pace = Pace::new(500);
        settle(&mut pace, |_| QUICK);
        pace.failed(100);
        pace.done(50, QUICK);
        assert_eq!(pace.limit(), 50 + STEP);
    }

    #[test]
    fn a_lane_that_may_take_one_stays_at_one() {
        assert_eq!(settle(&mut Pace::new(1), |_| QUICK), 1);
        assert_eq!(settle(&mut Pace::new(0), |_| QUICK), 1);
    }

    #[test]
    fn slow_handlers_keep_the_transaction_short() {
        let limit = settle(&mut Pace::new(500), |records| took(10 * records as u64, 10 * records as u64));
        assert!((1..=5 + STEP).contains(&limit), "{limit}");
        assert_eq!(
            settle(&mut Pace::new(500), |records| took(200 * records as u64, 200 * records as u64)),
            1
        );
    }

    #[test]
    fn one_slow_record_does_not_make_the_transactions_that_follow_small() {
        let mut pace = Pace::new(500);
        settle(&mut pace, |_| QUICK);
        pace.done(1, took(1_000, 1_000));
        assert_eq!(pace.limit(), 250);
    }

    #[test]
    fn a_slow_disk_is_no_slow_handler() {
        let mut pace = Pace::new(500);
        for _ in 0..1_000 {
            pace.done(pace.limit(), took(2_000, 40));
        }
        assert_eq!(pace.limit(), 500);
    }

    #[test]
    fn where_commits_are_slow_handlers_may_take_nine_times_as_long_but_not_for_ever() {
        let settled = |rest: u64| {
            let mut pace = Pace::new(5_000);
            for _ in 0..1_000 {
                let handlers = pace.limit() as u64;
                pace.done(pace.limit(), took(handlers + rest, handlers));
            }
            pace.limit() as u64
        };
        for (rest, most) in [(0, TARGET.0), (20, 20 * SHARE), (1_000, LONGEST.0)] {
            let limit = settled(rest);
            assert!((most - STEP as u64..=most + STEP as u64).contains(&limit), "{rest} ms: {limit}");
        }
    }

    #[test]
    fn a_trickle_does_not_grow_it() {
        let mut pace = Pace::new(500);
        pace.done(1, QUICK);
        let grown = pace.limit();
        for _ in 0..100 {
            pace.done(1, QUICK);
        }
        assert_eq!(pace.limit(), grown);
    }

    #[test]
    fn a_failure_halves_it_and_it_grows_again() {
        let mut pace = Pace::new(500);
        settle(&mut pace, |_| QUICK);
        pace.failed(500);
        assert_eq!(pace.limit(), 250);
        assert_eq!(settle(&mut pace, |_| QUICK), 500);
    }

    #[test]
    fn after_two_failures_in_a_row_it_stays_small_until_a_hundred_records_have_passed() {
        let mut pace = Pace::new(500);
        settle(&mut pace, |_| QUICK);
        pace.failed(500);
        for _ in 0..20 {
            pace.done(1, QUICK);
        }
        pace.failed(250);
        for passed in (0..PROBATION).step_by(SMALL) {
            assert!(pace.limit() <= SMALL, "{passed}: {}", pace.limit());
            pace.done(SMALL, QUICK);
        }
        assert!(pace.limit() > SMALL);
    }

    #[test]
    fn one_that_fails_alone_says_nothing_about_transactions_of_many() {
        let mut pace = Pace::new(500);
        settle(&mut pace, |_| QUICK);
        pace.failed(1);
        assert_eq!(pace.limit(), 500);
    }
}
