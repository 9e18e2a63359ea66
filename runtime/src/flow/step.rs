use super::{ClaimedRow, Found, Offset, Setback, Task};

/// What is to be done next. Messages are named by their place in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Open a transaction: one in which the handler works, and which may be called off before it is open;
    /// or a short one that only writes.
    Begin(Task),
    /// Claim all keys, in one order that everybody keeps; have messages without one judged alone.
    Claim,
    /// Give back the keys that nothing is applied under ([`super::Course::is_given_back`]): a key that stays
    /// says that its message was applied.
    GiveBack,
    /// Call the handler, which may be called off.
    Call(usize),
    /// Call the handler, which may be called off, once for all that is new to it
    /// ([`super::Course::is_handled`]).
    CallTogether,
    /// Write what the handler has recorded; this, too, may be called off.
    Write,
    /// Write a dead letter.
    Park(usize),
    /// Write the progress, if everything holds.
    Guard {
        /// The lowest offset that is dealt with here and now: nobody else may have passed it.
        fresh: Option<Offset>,
    },
    /// Commit.
    Commit,
    /// End the transaction without its effects, or the connection with it. What it was for comes with the
    /// answer: a connection that turns out to be lost puts the blame elsewhere.
    RollBack(Setback),
    /// Close the connection and list what was for the handler ([`super::Course::is_handled`]), in a
    /// transaction of its own: the handler ended the one it was given.
    List,
    /// Nothing any more. If it went well, [`super::Course::dispositions`] tells what became of each message;
    /// otherwise nothing of any is kept.
    End(Result<(), Setback>),
}

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// What the database says of the messages.
    Claimed {
        /// One for each, in their order.
        found: Vec<Found>,
        /// The row of their partition, where identity and incarnation match.
        row: Option<ClaimedRow>,
    },
    /// It is not done, or not known to be.
    Failed(Setback),
}
