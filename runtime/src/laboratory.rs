//! Where the laboratory reaches in: points at which it kills the process, and known-bad changes that it
//! must catch. Both macros are empty in the crate that ships; only `tests/lab/instrumented`, which builds
//! these sources for the laboratory, sets `handstamp_laboratory`.
//!
//! Not among the changes, since they break nothing: a job that writes its last offset + 1 (a lane runs one job at
//! a time, in order, so that nothing unfinished is below it), and outcomes of an old epoch that are believed
//! (the inbox decides, not the epoch).

/// Marks a place between two steps. With a future: the place behind its first poll, when its request is
/// sent and not yet answered.
#[cfg(handstamp_laboratory)]
macro_rules! point {
    ($name:ident) => {
        $crate::laboratory::reached($crate::laboratory::Point::$name)
    };
    ($name:ident, $future:expr) => {
        $crate::laboratory::sent($crate::laboratory::Point::$name, $future)
    };
}

#[cfg(not(handstamp_laboratory))]
macro_rules! point {
    ($name:ident) => {};
    ($name:ident, $future:expr) => {
        $future
    };
}

pub(crate) use point;

/// Puts a known-bad change into the place where it would be made: what runs instead while that mutant is on.
#[cfg(handstamp_laboratory)]
macro_rules! mutant {
    ($name:ident => $wrong:block) => {
        if $crate::laboratory::is_on($crate::laboratory::Mutant::$name) $wrong
    };
}

#[cfg(not(handstamp_laboratory))]
macro_rules! mutant {
    ($name:ident => $wrong:block) => {};
}

pub(crate) use mutant;

#[cfg(handstamp_laboratory)]
pub use enabled::*;

#[cfg(handstamp_laboratory)]
mod enabled {
    use std::pin::pin;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::task::Poll;

    /// Defines an enumeration whose values have names on the command line.
    macro_rules! named {
        ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $text:literal,)+ }) => {
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name { $($(#[$doc])* $value,)+ }

            impl $name {
                /// All of them.
                pub const ALL: &'static [Self] = &[$(Self::$value),+];

                /// Its name on the command line.
                #[must_use]
                pub fn name(self) -> &'static str {
                    match self { $(Self::$value => $text,)+ }
                }

                /// The one of that name.
                #[must_use]
                pub fn find(name: &str) -> Option<Self> {
                    Self::ALL.iter().copied().find(|one| one.name() == name)
                }
            }
        };
    }

    named! {
        /// A place between two steps.
        Point {
            /// Records were taken from the client, and not yet handed over.
            AfterPoll = "after-poll",
            /// A job is about to open its transaction.
            BeforeBegin = "before-begin",
            /// The transaction is open.
            AfterBegin = "after-begin",
            /// The key is claimed, or known.
            AfterClaim = "after-claim",
            /// Inside the handler, its effects written; reached by the laboratory's handlers.
            InHandler = "in-handler",
            /// The handler has returned, and the progress is not yet written.
            BeforeGuard = "before-guard",
            /// The progress is written.
            BeforeCommit = "before-commit",
            /// COMMIT is sent, and not yet answered.
            CommitSent = "commit-sent",
            /// COMMIT was answered.
            AfterCommit = "after-commit",
            /// Offsets are about to be committed to Kafka.
            BeforeOffsetCommit = "before-offset-commit",
            /// Kafka has answered.
            AfterOffsetCommit = "after-offset-commit",
            /// In the callback that gives partitions.
            InAssignment = "in-assignment",
            /// In the callback that takes partitions back, before anything is drained.
            InRevocation = "in-revocation",
            /// In that callback, after everything is drained.
            AfterDrain = "after-drain",
            /// A dead letter is written, and not yet committed.
            InDeadLetter = "in-dead-letter",
            /// Progress that no message writes is about to be written.
            InProgressSave = "in-progress-save",
        }
    }

    named! {
        /// A known-bad change.
        Mutant {
            /// Kafka is told of a record as soon as its job starts.
            CommitBeforeDatabase = "commit-before-database",
            /// Kafka is told the highest offset seen.
            HighestOffsetSeen = "highest-offset-seen",
            /// Kafka is told what the row does not say yet.
            OffsetAheadOfRow = "offset-ahead-of-row",
            /// Offsets are taken to have no gaps.
            ContiguousOffsets = "contiguous-offsets",
            /// A record that does not fit into memory is dropped.
            DropWhenFull = "drop-when-full",
            /// A lane stays busy when its partition is closed under a job.
            LaneLeak = "lane-leak",
            /// A new epoch does not wait for a job of the old one.
            TwoJobsOfALane = "two-jobs-of-a-lane",
            /// A lane runs first what it read last.
            NewestFirst = "newest-first",
            /// What another member moved back is not committed again.
            NoReassert = "no-reassert",
            /// The rows of resting lanes are not read again.
            NoConfirm = "no-confirm",
            /// What a partition has not finished is forgotten when it is given up.
            DrainForgets = "drain-forgets",
            /// A lane that a handler stops is not saved while its partition is given up.
            StopForgetsRow = "stop-forgets-row",
            /// A partition is assigned anew while its old epoch goes on.
            ReassignLeavesOpen = "reassign-leaves-open",
            /// What was acknowledged is not compared.
            FloorUnchecked = "floor-unchecked",
            /// The database's failures count as attempts.
            EnvironmentIsAttempt = "environment-is-attempt",
            /// A partition that was paused stays so.
            NeverResumed = "never-resumed",
            /// COMMIT follows whatever the guard says.
            NoGuard = "no-guard",
            /// The guard writes in any transaction, and compares afterwards. It is SQL: only a database tells.
            GuardOutsideWhere = "guard-outside-where",
            /// The guard does not ask whether another member has passed the record.
            NoCeiling = "no-ceiling",
            /// A message whose COMMIT got no answer is given up.
            UnknownIsParked = "unknown-is-parked",
            /// A COMMIT that took too long counts as a failed attempt.
            CommitTimeoutIsFailure = "commit-timeout-is-failure",
            /// A transaction that the handler ended is an attempt like any other.
            EndedIsFailure = "ended-is-failure",
            /// A handler that rejects is not rolled back before its message is parked.
            RejectedIsKept = "rejected-is-kept",
            /// A message that is parked keeps its key in the inbox.
            ParkedKeepsKey = "parked-keeps-key",
            /// A late duplicate is remembered again.
            LateIsRemembered = "late-is-remembered",
            /// The handler is called although the key is known.
            DuplicateIsCalled = "duplicate-is-called",
            /// A key that comes twice in one transaction is new both times.
            TwinIsCalled = "twin-is-called",
            /// Where one of several fails, what it wrote is committed with the others.
            BatchKeepsFailed = "batch-keeps-failed",
            /// What a handler recorded is not written.
            RecordedIsForgotten = "recorded-is-forgotten",
            /// What failed together runs alone, each with the watermark of all.
            BatchPassesPoison = "batch-passes-poison",
            /// A track does not look at what the others have not finished.
            WatermarkOfTrack = "watermark-of-track",
            /// What was dealt with out of turn is not looked for in the row.
            AheadUnproved = "ahead-unproved",
            /// A record that is tried again comes behind another key.
            RetryChangesTrack = "retry-changes-track",
            /// Dead letters above `passed` are not looked at.
            ParkedBelowPassed = "parked-below-passed",
            /// What a row has forgotten is noticed by the guard alone, behind the handler.
            ForgotUntilGuard = "forgot-until-guard",
            /// A late record is one below `next`, not below `passed`.
            LateByNext = "late-by-next",
            /// Dead letters are not looked at.
            ParkedIsForgotten = "parked-is-forgotten",
            /// The progress of another topic of the name is gone on with.
            OtherTopic = "other-topic",
            /// The start believes Kafka alone.
            StartAtKafka = "start-at-kafka",
        }
    }

    /// The mutant that is on, by its place in [`Mutant::ALL`] from 1.
    static MUTANT: AtomicUsize = AtomicUsize::new(0);
    static ARRIVALS: AtomicU64 = AtomicU64::new(0);

    /// Turns one mutant on for the whole process, or all off, and begins to count anew.
    pub fn mutate(mutant: Option<Mutant>) {
        MUTANT.store(mutant.map_or(0, |mutant| mutant as usize + 1), Ordering::SeqCst);
        ARRIVALS.store(0, Ordering::SeqCst);
    }

    /// How often the place of the one that is on was reached since; most go wrong only under a condition.
    #[must_use]
    pub fn arrivals() -> u64 {
        ARRIVALS.load(Ordering::SeqCst)
    }

    /// Whether a mutant is on; that its place was reached is counted.
    pub(crate) fn is_on(mutant: Mutant) -> bool {
        let on = MUTANT.load(Ordering::Relaxed) == mutant as usize + 1;
        if on {
            ARRIVALS.fetch_add(1, Ordering::Relaxed);
        }
        on
    }

    static HOOK: OnceLock<fn(Point)> = OnceLock::new();

    /// Has `hook` called at every point. Only the first call counts.
    pub fn on_reach(hook: fn(Point)) {
        // A second hook would be one that a test forgot.
        let _first_wins = HOOK.set(hook);
    }

    /// Calls the hook, if there is one.
    pub fn reached(point: Point) {
        if let Some(hook) = HOOK.get() {
            hook(point);
        }
    }

    /// Runs a future; `point` is reached once its first poll is over.
    pub(crate) async fn sent<F: Future>(point: Point, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut sent = false;
        std::future::poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            if !std::mem::replace(&mut sent, true) {
                reached(point);
            }
            match polled {
                Poll::Ready(output) => Poll::Ready(output),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}
