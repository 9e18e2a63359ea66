//! Where the laboratory reaches in: points at which it kills the process, and known-bad changes that it
//! must catch. Both macros are empty in the crate that ships; only `tests/lab/instrumented`, which builds
//! these sources for the laboratory, sets `handstamp_laboratory`.

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

#[cfg(handstamp_laboratory)]
pub use enabled::*;

#[cfg(handstamp_laboratory)]
mod enabled {
    use std::pin::pin;
    use std::sync::OnceLock;
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
