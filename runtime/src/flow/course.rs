use super::{Disposition, Setback, Task, Verdict};
use crate::laboratory::mutant;

/// The course of one message through its transaction: what is to be done next, after what was answered.
///
/// What does the steps ([`Self::step`]) decides nothing; it tells how each went ([`Self::answer`]) until
/// the course has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    step: Step,
    /// What the open transaction is for.
    task: Task,
    keyed: bool,
    verdict: Verdict,
}

/// Whether there is something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// What the key and the handler need is there.
    Whole,
    /// A tombstone, which the handler or the key can do nothing with: moved past.
    SkippedTombstone,
    /// The same, kept as a dead letter.
    ParkedTombstone,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Read the message's key.
    ReadKey,
    /// Read what the handler takes.
    ReadArguments,
    /// Open a transaction: one in which the handler works, and which may be called off before it is open;
    /// or a short one that only writes.
    Begin(Task),
    /// Claim the key; without one, have the message judged alone.
    Claim {
        /// Whether there is a key.
        keyed: bool,
    },
    /// Call the handler, which may be called off.
    Call,
    /// Give the claimed key back: a key that stays says that its message was applied.
    GiveBack,
    /// Write a dead letter.
    Park,
    /// Write the progress, if everything holds.
    Guard {
        /// Whether the message is dealt with here and now, so that nobody else may have passed it.
        fresh: bool,
    },
    /// Commit.
    Commit,
    /// End the transaction without its effects, or the connection with it. What it was for comes with the
    /// answer: a connection that turns out to be lost puts the blame elsewhere.
    RollBack(Setback),
    /// Close the connection and list the message, in a transaction of its own: the handler ended the one
    /// it was given.
    List,
    /// Nothing any more.
    End(Result<Disposition, Setback>),
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It is done.
    Done,
    /// It was claimed, and this is to be done with it.
    Claimed(Verdict),
    /// It is not done, or not known to be.
    Failed(Setback),
}

impl Course {
    /// The course of a message that is to be applied, or given up.
    #[must_use]
    pub fn new(task: Task, content: Content) -> Self {
        let step = match content {
            Content::Whole => Step::ReadKey,
            // Before the key is read: one inside the payload cannot be read from a tombstone.
            Content::ParkedTombstone => Step::Begin(Task::Park),
            Content::SkippedTombstone => Step::End(Ok(Disposition::Skipped)),
        };
        let task = if content == Content::Whole { task } else { Task::Park };
        Self { step, task, keyed: false, verdict: Verdict::Fresh }
    }

    /// What is to be done now.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// Takes in how the step went.
    pub fn answer(&mut self, answer: Answer) {
        self.step = match (self.step, answer) {
            (Step::Claim { .. }, Answer::Claimed(verdict)) => self.claimed(verdict),
            // Answers to something else: nothing of it may be kept.
            (Step::Claim { .. }, Answer::Done) | (_, Answer::Claimed(_)) => self.failed(Setback::Environment),
            (_, Answer::Done) => self.done(),
            (_, Answer::Failed(setback)) => self.failed(setback),
        };
    }

    fn done(&mut self) -> Step {
        mutant!(NoCeiling => {
            if matches!(self.step, Step::Call | Step::Park) {
                return Step::Guard { fresh: false };
            }
        });
        match self.step {
            Step::ReadKey => {
                self.keyed = true;
                match self.task {
                    Task::Apply => Step::ReadArguments,
                    Task::Park => Step::Begin(Task::Park),
                }
            }
            Step::ReadArguments => Step::Begin(Task::Apply),
            Step::Begin(_) => Step::Claim { keyed: self.keyed },
            Step::GiveBack if self.verdict == Verdict::Fresh => Step::Park,
            Step::GiveBack => Step::Guard { fresh: false },
            Step::Call | Step::Park => Step::Guard { fresh: true },
            Step::Guard { .. } => Step::Commit,
            Step::Commit => Step::End(Ok(self.verdict.disposition(self.task))),
            Step::RollBack(setback) => self.rolled_back(setback),
            Step::List => Step::End(Err(Setback::TransactionEnded)),
            step @ (Step::Claim { .. } | Step::End(_)) => step,
        }
    }

    fn claimed(&mut self, verdict: Verdict) -> Step {
        self.verdict = verdict;
        mutant!(DuplicateIsCalled => { if verdict == Verdict::Duplicate { return Step::Call; } });
        mutant!(LateIsRemembered => {
            if verdict == Verdict::LateDuplicate {
                return Step::Guard { fresh: false };
            }
        });
        mutant!(ParkedKeepsKey => {
            if (verdict, self.task) == (Verdict::Fresh, Task::Park) {
                return Step::Park;
            }
        });
        match (verdict, self.task) {
            (Verdict::Fresh, Task::Apply) => Step::Call,
            // One that is late is not remembered again: its row may be that of a topic made anew under this
            // worker, and after the reset that follows it would pass for applied.
            (Verdict::Fresh, Task::Park) | (Verdict::LateDuplicate, _) if self.keyed => Step::GiveBack,
            (Verdict::Fresh, Task::Park) => Step::Park,
            // Its commit waits for the log: only then is what somebody else wrote known to be durable.
            _ => Step::Guard { fresh: false },
        }
    }

    fn failed(&mut self, setback: Setback) -> Step {
        mutant!(NoGuard => { if let Step::Guard { .. } = self.step { return Step::Commit; } });
        mutant!(EndedIsFailure => {
            if setback == Setback::TransactionEnded {
                return Step::RollBack(Setback::Handler);
            }
        });
        mutant!(UnknownIsParked => { if setback == Setback::Unknown { return self.give_up(); } });
        mutant!(CommitTimeoutIsFailure => {
            if setback == Setback::Unknown {
                return Step::End(Err(Setback::Handler));
            }
        });
        mutant!(RejectedIsKept => {
            if (self.step, setback) == (Step::Call, Setback::Rejected) {
                self.task = Task::Park;
                return Step::Park;
            }
        });
        match self.step {
            Step::ReadKey | Step::ReadArguments => self.give_up(),
            // At COMMIT above all: a message that may be applied is not given up.
            Step::Begin(_) | Step::Commit => Step::End(Err(setback)),
            Step::Call | Step::Guard { .. }
                if setback == Setback::TransactionEnded && self.task == Task::Apply =>
            {
                Step::List
            }
            Step::Claim { .. } | Step::Call | Step::GiveBack | Step::Park | Step::Guard { .. } => {
                Step::RollBack(setback)
            }
            Step::RollBack(_) => self.rolled_back(setback),
            Step::List => Step::End(Err(Setback::TransactionEnded)),
            Step::End(end) => Step::End(end),
        }
    }

    fn rolled_back(&mut self, setback: Setback) -> Step {
        match (setback, self.task) {
            (Setback::Rejected, Task::Apply) => self.give_up(),
            _ => Step::End(Err(setback)),
        }
    }

    /// It can never be applied: a transaction of its own, in which nothing of the handler's is.
    fn give_up(&mut self) -> Step {
        self.task = Task::Park;
        Step::Begin(Task::Park)
    }
}
