//! The decision core: which record runs when, what may be committed, what is tried again.
//!
//! [`Core`] is told what happened ([`Event`]) and answers with what to do ([`Action`]). It reads no
//! clock, does no I/O and draws no random numbers, so the simulator runs the code that ships. The shell
//! around it decides nothing.
//!
//! One core serves one Kafka client. Each partition has one [`LaneId`] per handler, and a lane has one track,
//! or several that run side by side, as its [`Order`] says. A track runs one job at a time, in the order of
//! offsets; a job takes the first records of a backlog, as many as the track's pace allows. A record is done
//! when all its handlers are done with it. A lane has one row of progress, which no track raises above what
//! another has not finished. What belongs to a partition is keyed by its [`Epoch`], so that nothing of an
//! earlier assignment can move the offsets of a later one.
//!
//! What happens inside a job is decided here, too: [`Course`] leads its messages through their transaction.

mod action;
mod commit;
mod core;
mod course;
mod dispatch;
mod drain;
mod event;
mod lane;
mod line;
mod member;
mod offsets;
mod order;
mod pace;
mod partition;
mod range;
mod retry;
mod save;
mod setback;
mod snapshot;
pub mod start;
mod step;
#[cfg(test)]
mod tests;
mod track;
mod verdict;
mod watermark;

use std::fmt;
use std::ops::Add;

pub use self::action::{Action, Ahead, Job, JobRecord, ReassignReason, Save, StopReason, Task};
pub use self::core::{Config, Core};
pub use self::course::Course;
pub use self::event::{Event, LaneStart, Outcome, Saved, SavedResult};
pub use self::member::{Intent, Member};
pub use self::offsets::Offsets;
pub use self::order::Order;
pub use self::range::OutOfRange;
pub use self::setback::Setback;
pub use self::snapshot::{LaneSnapshot, PartitionSnapshot, Snapshot, TrackSnapshot};
pub use self::step::{Answer, Step};
use self::verdict::{Claim, Verdict};
pub use self::verdict::{ClaimedRow, Disposition, Found, Place};

/// A record's place in its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    /// What is to be read after this record.
    #[must_use]
    pub fn next(self) -> NextOffset {
        NextOffset(self.0.saturating_add(1))
    }
}

/// The offset to read next, as Kafka commits it: everything below has been dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextOffset(pub i64);

/// One assignment of one partition. The shell counts them up; a number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// One run of one or more records of a track. A retry is another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A hash of a Kafka message key: the same for the same key, which may be that of another one, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OrderKey(pub u64);

/// Milliseconds: a span, or a time on a monotonic clock whose zero is the shell's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Add for Millis {
    type Output = Self;

    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A partition of one of the client's topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tp {
    /// The topic's place in the client's list.
    pub topic: u16,
    /// Kafka's number of the partition.
    pub partition: i32,
}

/// One handler's way through one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId {
    /// The partition.
    pub tp: Tp,
    /// The handler's place among those of the topic.
    pub handler: u16,
}

/// One of the tracks of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TrackId {
    lane: LaneId,
    number: u16,
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NextOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
