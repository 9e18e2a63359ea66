//! A seeded simulation of everything around the decision core.
//!
//! Kafka (a log with gaps, a group that evicts, offsets that move back), the database (locks of open
//! transactions, crashes, commits nobody hears of, restores to an older state), handlers that misbehave, and the
//! worker processes are models; [`handstamp::flow`], which decides everything else, is the code that ships. One seed draws every rate, then goes through a
//! phase of faults, a quiet one in which everything must drain, and a clean end.

mod database;
mod faults;
mod group;
mod handler;
mod jobs;
mod kafka;
mod knobs;
mod moves;
mod oracle;
mod process;
pub(crate) mod random;
mod report;
mod state;
mod topics;
mod world;

pub use self::report::{Promise, Report, Violation};
use self::world::World;
use handstamp::laboratory::Mutant;

/// Seeds at which known mistakes show.
const REGRESSIONS: &str = include_str!("regressions.txt");

/// Runs one seed. With `trace` it prints its knobs and every step.
pub fn run(seed: u64, trace: bool) -> (Report, Option<Violation>) {
    let mut world = World::new(seed, trace);
    let verdict = world.run();
    let mut report = world.report;
    let violation = verdict.err().map(|(promise, facts)| {
        report.violations = 1;
        Violation { seed, step: report.steps, promise, facts }
    });
    (report, violation)
}

/// The seeds of `regressions.txt`, each with the mutant that makes its mistake.
pub fn regressions() -> impl Iterator<Item = (u64, Mutant)> {
    REGRESSIONS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut words = line.split_whitespace();
        let seed = words.next().and_then(|seed| seed.parse().ok());
        seed.zip(words.next().and_then(Mutant::find)).unwrap_or_else(|| panic!("regressions.txt: {line}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_holds_on_three_hundred_seeds() {
        for seed in regressions().map(|(seed, _)| seed).chain(0..300) {
            let (_, violation) = run(seed, false);
            if let Some(violation) = violation {
                panic!("{violation}; replay: cargo run --release --bin lab -- sim --seed {seed}");
            }
        }
    }

    #[test]
    fn seed_replays_step_by_step() {
        assert_eq!(run(7, false), run(7, false));
    }
}
