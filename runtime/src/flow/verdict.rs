use super::{NextOffset, Offset, Setback, Task};
use crate::laboratory::mutant;

/// What the database says of a message that asks to be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether its key is new, and now belongs to this transaction. Messages with one key all say the same.
    pub stamped: bool,
    /// Whether a dead letter gives it up, by its position.
    pub parked: bool,
    /// Whether its record was dealt with out of turn, above the row's `next`.
    pub ahead: bool,
}

/// What is known of a message that asks to be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) keyed: bool,
    /// Its key is new only if no message before has taken it.
    pub(super) found: Found,
    pub(super) row: Option<ClaimedRow>,
}

/// A progress row at the time of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedRow {
    /// Everything below is dealt with, unless a reset has lowered it.
    pub next: NextOffset,
    /// The highest `next` ever reached.
    pub passed: NextOffset,
    /// Whether something is not there that was committed above `next`.
    pub forgot: bool,
}

/// Where a message stands whose progress is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its offset.
    pub offset: Offset,
    /// What the row's `next` is at least, unless the database went back in time.
    pub acknowledged: NextOffset,
}

/// What is to be done with a claimed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing is known of it: it is to be applied.
    Fresh,
    /// Its key has been applied.
    Duplicate,
    /// Its key is unknown, but everything up to its offset was dealt with before.
    LateDuplicate,
    /// It was given up before.
    AlreadyParked,
}

/// What became of a message that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Disposition {
    /// The handler ran, and its effects are committed.
    Applied,
    /// Its key was in the inbox already; the handler was not called.
    Duplicate,
    /// Its offset was passed before and its key forgotten since; the handler was not called.
    LateDuplicate,
    /// It was given up before; the handler was not called.
    AlreadyParked,
    /// It was given up now: a dead letter is written.
    Parked,
    /// It has no payload, which the handler or the key needs; the handler was not called.
    Skipped,
}

impl Claim {
    /// Judges the message. The order of the rules is part of the promise: what was parked has no key in
    /// the inbox, and what was passed may have none any more.
    ///
    /// # Errors
    /// If the row is not the one that the partition was assigned with.
    pub(super) fn judge(&self, place: Option<Place>) -> Result<Verdict, Setback> {
        let mut late = false;
        if let Some(place) = place {
            let row = self.row.ok_or(Setback::Superseded)?;
            if row.next < place.acknowledged {
                return Err(Setback::WentBack);
            }
            if row.forgot {
                mutant!(ForgotUntilGuard => { return Ok(Verdict::Fresh); });
                return Err(Setback::WentBack);
            }
            late = self.found.ahead || place.offset.next() <= row.passed;
            mutant!(LateByNext => { late = place.offset.next() <= row.next; });
        }
        mutant!(ParkedBelowPassed => { if self.found.parked && self.found.ahead { return Ok(Verdict::Fresh); } });
        mutant!(ParkedIsForgotten => { if self.found.parked { return Ok(Verdict::Fresh); } });
        Ok(if self.found.parked {
            Verdict::AlreadyParked
        } else if self.keyed && !self.found.stamped {
            Verdict::Duplicate
        } else if late {
            Verdict::LateDuplicate
        } else {
            Verdict::Fresh
        })
    }
}

impl Verdict {
    /// What has become of the message once the transaction for `task` is committed.
    pub(super) fn disposition(self, task: Task) -> Disposition {
        match (self, task) {
            (Self::Fresh, Task::Apply) => Disposition::Applied,
            (Self::Fresh, Task::Park) => Disposition::Parked,
            (Self::Duplicate, _) => Disposition::Duplicate,
            (Self::LateDuplicate, _) => Disposition::LateDuplicate,
            (Self::AlreadyParked, _) => Disposition::AlreadyParked,
        }
    }
}
