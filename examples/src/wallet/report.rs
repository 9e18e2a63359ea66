//! How workers tell what they have done: a line on standard output for each message.

use std::fmt;
use std::str::FromStr;

/// What became of a message. The line is written after the commit, so a kill in between swallows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    Applied,
    /// Its key was there already.
    Skipped,
    /// Given up and kept as a dead letter.
    Parked,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applied => "applied",
            Self::Skipped => "skipped",
            Self::Parked => "parked",
        })
    }
}

impl FromStr for Report {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "applied" => Ok(Self::Applied),
            "skipped" => Ok(Self::Skipped),
            "parked" => Ok(Self::Parked),
            _ => Err(()),
        }
    }
}

pub fn tell(report: Report) {
    println!("{report}");
}

/// What all workers have told, and how often they were killed.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub applied: u64,
    pub skipped: u64,
    pub parked: u64,
    pub kills: u32,
    /// For each worker, how much since it was last started.
    pub since_start: Vec<u64>,
}

impl Tally {
    pub fn new(workers: usize) -> Self {
        Self { since_start: vec![0; workers], ..Self::default() }
    }

    pub fn add(&mut self, worker: usize, report: Report) {
        match report {
            Report::Applied => self.applied += 1,
            Report::Skipped => self.skipped += 1,
            Report::Parked => self.parked += 1,
        }
        self.since_start[worker] += 1;
    }

    pub fn killed(&mut self, worker: usize) {
        self.kills += 1;
        self.since_start[worker] = 0;
    }

    /// The workers that have told anything since they were last started.
    pub fn busy(&self) -> Vec<usize> {
        (0..self.since_start.len()).filter(|&worker| self.since_start[worker] > 0).collect()
    }

    pub fn total(&self) -> u64 {
        self.applied + self.skipped + self.parked
    }
}
