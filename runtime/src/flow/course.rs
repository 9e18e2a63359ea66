use super::{Answer, Claim, ClaimedRow, Disposition, Found, Intent, Member, Setback, Step, Task, Verdict};
use crate::laboratory::mutant;

/// The course of a job's messages through their transaction: claimed together, handled in order, committed
/// together. It says what is to be done next, after what was answered.
///
/// What does the steps ([`Self::step`]) decides nothing; it tells how each went ([`Self::answer`]) until
/// the course has ended. Of several messages of which one fails nothing is kept: each is then sent on a course
/// of its own, so that only the one at fault pays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    step: Step,
    members: Vec<Member>,
    /// Whether the handler takes all of them at once.
    together: bool,
    /// Whether the handler only records what it writes.
    recorded: bool,
    /// One for each member, once they are claimed.
    verdicts: Vec<Verdict>,
    /// For each member, whether it is the first with a new key that nothing is applied under.
    given_back: Vec<bool>,
}

impl Course {
    /// The course of these messages, in the order of their offsets, whose handler takes them one at a time.
    #[must_use]
    pub fn new(members: Vec<Member>) -> Self {
        Self::of(members, false)
    }

    /// The course of these messages, in the order of their offsets, whose handler takes all of them at once.
    #[must_use]
    pub fn together(members: Vec<Member>) -> Self {
        Self::of(members, true)
    }

    /// The same, of a handler that only records what it writes.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self { recorded: true, ..self }
    }

    fn of(members: Vec<Member>, together: bool) -> Self {
        let any = |intent| members.iter().any(|member| member.intent == intent);
        let step = match (any(Intent::Apply), any(Intent::Park)) {
            (true, _) => Step::Begin(Task::Apply),
            (false, true) => Step::Begin(Task::Park),
            (false, false) => Step::End(Ok(())),
        };
        Self { step, members, together, recorded: false, verdicts: Vec::new(), given_back: Vec::new() }
    }

    /// What is to be done now.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// Whether a message was new and for the handler: what one that ended the transaction may have kept.
    #[must_use]
    pub fn is_handled(&self, member: usize) -> bool {
        self.is(member, Verdict::Fresh, Intent::Apply)
    }

    /// Whether the key of a message is to be given back.
    #[must_use]
    pub fn is_given_back(&self, member: usize) -> bool {
        self.given_back.get(member) == Some(&true)
    }

    /// What became of each message, once the course has ended well.
    pub fn dispositions(&self) -> impl Iterator<Item = Disposition> {
        self.members.iter().enumerate().map(|(index, member)| {
            match (member.intent.task(), self.verdicts.get(index)) {
                (Some(task), Some(verdict)) => verdict.disposition(task),
                _ => Disposition::Skipped,
            }
        })
    }

    /// Takes in how the step went.
    pub fn answer(&mut self, answer: Answer) {
        self.step = match (self.step, answer) {
            (Step::Claim, Answer::Claimed { found, row }) => self.claimed(&found, row),
            // Answers to something else: nothing of it may be kept.
            (Step::Claim, Answer::Done) | (_, Answer::Claimed { .. }) => self.failed(Setback::Environment),
            (_, Answer::Done) => self.done(),
            (_, Answer::Failed(setback)) => self.failed(setback),
        };
    }

    fn done(&mut self) -> Step {
        match self.step {
            Step::Begin(_) => Step::Claim,
            Step::GiveBack => self.first(),
            Step::CallTogether => self.next(0),
            Step::Call(member) | Step::Park(member) => self.next(member + 1),
            Step::Write => self.guard(),
            Step::Guard { .. } => Step::Commit,
            Step::Commit => Step::End(Ok(())),
            Step::RollBack(setback) => self.rolled_back(setback),
            Step::List => Step::End(Err(Setback::TransactionEnded)),
            step @ (Step::Claim | Step::End(_)) => step,
        }
    }

    fn claimed(&mut self, found: &[Found], row: Option<ClaimedRow>) -> Step {
        if found.len() != self.members.len() {
            return Step::RollBack(Setback::Environment);
        }
        self.verdicts.clear();
        // A new key belongs to the first message that is applied under it.
        let mut taken = vec![false; self.members.len()];
        for (member, found) in self.members.iter().zip(found) {
            let stamped = found.stamped && member.key.is_some_and(|key| is_free(&taken, key));
            let found = Found { stamped, ..*found };
            let claim = Claim { keyed: member.key.is_some(), found, row };
            let verdict = match claim.judge(member.place) {
                Ok(verdict) => verdict,
                Err(setback) => return Step::RollBack(setback),
            };
            if let Some(taken) = member.key.and_then(|key| taken.get_mut(key))
                && keeps_key(verdict, member.intent)
            {
                *taken = true;
            }
            self.verdicts.push(verdict);
        }
        let first = |index: usize| self.members[index].key == Some(index);
        let unused = |index: usize| first(index) && found[index].stamped && !taken[index];
        self.given_back = (0..self.members.len()).map(unused).collect();
        if self.given_back.contains(&true) { Step::GiveBack } else { self.first() }
    }

    /// The step for what was claimed.
    fn first(&self) -> Step {
        if self.together && self.any_handled() { Step::CallTogether } else { self.next(0) }
    }

    fn any_handled(&self) -> bool {
        (0..self.members.len()).any(|member| self.is_handled(member))
    }

    /// The step for the first message from this one on for which there is something to do.
    fn next(&self, first: usize) -> Step {
        let left = || first..self.members.len();
        mutant!(DuplicateIsCalled => {
            if let Some(known) = left().find(|&member| self.is(member, Verdict::Duplicate, Intent::Apply)) {
                return Step::Call(known);
            }
        });
        let is_due = |member: &usize| match self.members[*member].intent {
            Intent::Apply => !self.together && self.is_handled(*member),
            Intent::Park | Intent::Skip => self.is_dealt_with(*member),
        };
        match left().find(is_due) {
            Some(member) if self.members[member].intent == Intent::Park => Step::Park(member),
            Some(member) => Step::Call(member),
            None if self.recorded && self.any_handled() => {
                mutant!(RecordedIsForgotten => { return self.guard(); });
                Step::Write
            }
            None => self.guard(),
        }
    }

    /// Duplicates are committed as well: their commit waits for the log, and only then is what somebody else
    /// wrote known to be durable.
    fn guard(&self) -> Step {
        mutant!(NoCeiling => { return Step::Guard { fresh: None }; });
        let fresh = (0..self.members.len()).filter(|&member| self.is_dealt_with(member));
        let places = fresh.filter_map(|member| self.members[member].place);
        Step::Guard { fresh: places.map(|place| place.offset).min() }
    }

    /// Whether a message is dealt with in this transaction, by the handler or as a dead letter.
    fn is_dealt_with(&self, member: usize) -> bool {
        self.is_handled(member) || self.is(member, Verdict::Fresh, Intent::Park)
    }

    fn is(&self, member: usize, verdict: Verdict, intent: Intent) -> bool {
        let found = (self.verdicts.get(member), self.members.get(member));
        matches!(found, (Some(of), Some(member)) if (*of, member.intent) == (verdict, intent))
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
            if let (Step::Call(member), Setback::Rejected) = (self.step, setback) {
                self.members[member].intent = Intent::Park;
                return Step::Park(member);
            }
        });
        mutant!(BatchKeepsFailed => {
            if let (Step::Call(member), Setback::Handler, [_, _, ..]) = (self.step, setback, &*self.members) {
                return self.next(member + 1);
            }
        });
        match self.step {
            // At COMMIT above all: a message that may be applied is not given up.
            Step::Begin(_) | Step::Commit => Step::End(Err(setback)),
            Step::Call(_) | Step::CallTogether | Step::Write | Step::Guard { .. }
                if setback == Setback::TransactionEnded && self.calls_the_handler() =>
            {
                Step::List
            }
            Step::Claim
            | Step::GiveBack
            | Step::Call(_)
            | Step::CallTogether
            | Step::Write
            | Step::Park(_)
            | Step::Guard { .. } => Step::RollBack(setback),
            Step::RollBack(_) => self.rolled_back(setback),
            Step::List => Step::End(Err(Setback::TransactionEnded)),
            Step::End(end) => Step::End(end),
        }
    }

    fn calls_the_handler(&self) -> bool {
        self.members.iter().any(|member| member.intent == Intent::Apply)
    }

    fn rolled_back(&mut self, setback: Setback) -> Step {
        match (setback, &*self.members) {
            (Setback::Rejected, [Member { intent: Intent::Apply, .. }]) => self.give_up(),
            _ => Step::End(Err(setback)),
        }
    }

    /// It can never be applied: a transaction of its own, in which nothing of the handler's is.
    fn give_up(&mut self) -> Step {
        for member in self.members.iter_mut().filter(|member| member.intent == Intent::Apply) {
            member.intent = Intent::Park;
        }
        Step::Begin(Task::Park)
    }
}

/// Whether a message leaves its key in the inbox. One that is late does not: its row may be that of a topic
/// made anew under this worker, and after the reset that follows it would pass for applied.
fn keeps_key(verdict: Verdict, intent: Intent) -> bool {
    mutant!(LateIsRemembered => { if verdict == Verdict::LateDuplicate { return true; } });
    mutant!(ParkedKeepsKey => { if (verdict, intent) == (Verdict::Fresh, Intent::Park) { return true; } });
    (verdict, intent) == (Verdict::Fresh, Intent::Apply)
}

/// Whether no message before has taken this key.
fn is_free(taken: &[bool], key: usize) -> bool {
    mutant!(TwinIsCalled => { return true; });
    taken.get(key) == Some(&false)
}
