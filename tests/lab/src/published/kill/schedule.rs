//! When the consumers die.

use std::time::Duration;

use crate::sim::random::Random;

const LEAST: u64 = 1_000;
const MOST: u64 = 8_000;

/// How long each consumer works before it is killed, in each run the same for all variants.
pub fn pauses(seed: u64, run: u64, kills: usize) -> Vec<Duration> {
    let mut random = Random::new(seed.wrapping_add(run));
    (0..kills).map(|_| Duration::from_millis(random.between(LEAST, MOST))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_schedule_and_another_run_another() {
        assert_eq!(pauses(1, 1, 20), pauses(1, 1, 20));
        assert_ne!(pauses(1, 1, 20), pauses(1, 2, 20));
    }

    #[test]
    fn kills_are_one_to_eight_seconds_apart() {
        let pauses = pauses(7, 1, 1_000);
        assert!(
            pauses.iter().all(|pause| (1..=8).contains(&pause.as_secs()) && *pause <= Duration::from_secs(8))
        );
        assert!(pauses.iter().any(|pause| *pause < Duration::from_secs(2)), "none is short");
        assert!(pauses.iter().any(|pause| *pause > Duration::from_secs(7)), "none is long");
    }
}
