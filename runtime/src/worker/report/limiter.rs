use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Lets the first of a kind through and then one in a while, with how many were held back, so that
/// an outage is a line and not a flood.
#[derive(Debug, Default)]
pub(in crate::worker) struct Limiter {
    seen: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    spoken: Instant,
    held_back: u64,
}

/// How long repeats of one kind are held back.
const EVERY: Duration = Duration::from_secs(30);

impl Limiter {
    /// Whether to speak now of `kind`; if so, how many were held back since the last time.
    pub(in crate::worker) fn speak(&mut self, kind: &str, now: Instant) -> Option<u64> {
        match self.seen.get_mut(kind) {
            Some(seen) if now.duration_since(seen.spoken) < EVERY => {
                seen.held_back += 1;
                None
            }
            Some(seen) => {
                seen.spoken = now;
                Some(std::mem::take(&mut seen.held_back))
            }
            None => {
                self.seen.insert(kind.to_owned(), Seen { spoken: now, held_back: 0 });
                Some(0)
            }
        }
    }

    /// The trouble is over: the next of this kind is a first again. Whether there was any.
    pub(super) fn over(&mut self, kind: &str) -> bool {
        !self.seen.is_empty() && self.seen.remove(kind).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_and_repeats_are_counted() {
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        assert_eq!(limiter.speak("broker", start), Some(0));
        assert_eq!(limiter.speak("broker", start + Duration::from_secs(1)), None);
        assert_eq!(limiter.speak("broker", start + Duration::from_secs(2)), None);
        assert_eq!(limiter.speak("other", start + Duration::from_secs(2)), Some(0));
        assert_eq!(limiter.speak("broker", start + EVERY), Some(2));
        assert_eq!(limiter.speak("broker", start + EVERY * 2), Some(0));
    }

    #[test]
    fn after_recovery_the_next_is_a_first_again() {
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        assert!(!limiter.over("broker"));
        limiter.speak("broker", start);
        assert!(limiter.over("broker"));
        assert_eq!(limiter.speak("broker", start), Some(0));
    }
}
