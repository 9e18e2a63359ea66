//! Everything random about a run, drawn from one seed.

use std::time::Duration;

use crate::options::Plan;

/// `SplitMix64`: small, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// One of `0..bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_micros()).unwrap_or(u64::MAX);
        least + Duration::from_micros(self.below(span.saturating_add(1)))
    }
}

/// One hard kill.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// Since the kill before it.
    pub after: Duration,
    /// How far into the work of its slice it strikes.
    pub into_work: Duration,
    /// Picks the worker.
    pub victim: u64,
}

/// How far into a slice a kill may strike.
const INTO_WORK: Duration = Duration::from_millis(100);

/// When the workers die.
pub fn kills(plan: &Plan) -> Vec<Kill> {
    let mut random = Random::new(plan.seed);
    (0..plan.kills)
        .map(|_| Kill {
            after: random.between(plan.min_pause, plan.max_pause),
            into_work: random.between(Duration::ZERO, INTO_WORK),
            victim: random.next(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        let mut random = Random::new(0);
        assert_eq!(random.next(), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn pauses_stay_between_their_bounds() {
        let (least, most) = (Duration::from_millis(10), Duration::from_millis(12));
        let mut random = Random::new(7);
        assert!((0..1_000).all(|_| (least..=most).contains(&random.between(least, most))));
        assert_eq!(random.between(least, least), least);
    }
}
