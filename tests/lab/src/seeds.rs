//! Runs many seeds on all cores.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::sim::{self, Report, Violation};

/// Kept seeds first, then the others up to `seeds`, in order.
pub fn run_all(seeds: u64) -> (Report, Vec<Violation>) {
    let kept: BTreeSet<u64> = sim::regressions().map(|(seed, _)| seed).collect();
    let others = (0..seeds).filter(|seed| !kept.contains(seed));
    let queue: Vec<_> = kept.iter().copied().chain(others).collect();
    let next = AtomicUsize::new(0);
    let results = on_all_cores(|| {
        let mut report = Report::default();
        let mut violations = Vec::new();
        while let Some(&seed) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (one, violation) = sim::run(seed, false);
            report += one;
            violations.extend(violation);
        }
        (report, violations)
    });
    let mut report = Report::default();
    let mut violations = Vec::new();
    for (part, found) in results {
        report += part;
        violations.extend(found);
    }
    violations.sort_by_key(|violation| violation.seed);
    (report, violations)
}

/// The lowest seed below `seeds` that breaks a promise, and how many were run for it.
pub fn first_violation(seeds: u64) -> Option<(Violation, u64)> {
    let next = AtomicU64::new(0);
    let lowest = AtomicU64::new(seeds);
    let found = on_all_cores(|| {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= lowest.load(Ordering::Relaxed) {
                return None;
            }
            if let (_, Some(violation)) = sim::run(seed, false) {
                lowest.fetch_min(seed, Ordering::Relaxed);
                return Some(violation);
            }
        }
    });
    let first = found.into_iter().flatten().min_by_key(|violation| violation.seed)?;
    Some((first, next.load(Ordering::Relaxed)))
}

fn on_all_cores<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("the simulation does not panic")).collect()
    })
}
