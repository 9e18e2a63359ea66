use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// How often each promise was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Events without their effect.
    pub lost: u64,
    /// Records without the dead letter that they should have.
    pub unparked: u64,
    /// Effects that are not what the record asks for from which they claim to come.
    pub foreign: u64,
    /// Effects that an event has too many.
    pub applied_twice: u64,
    /// Effects whose record stands before one that was applied earlier, in the same partition.
    pub out_of_order: u64,
    /// Open dead letters of events that are applied.
    pub dead_and_applied: u64,
    /// Dead letters of records that nothing was wrong with, or more than one of a record.
    pub wrongly_dead: u64,
    /// Accounts that do not hold the sum of their effects.
    pub unbalanced: u64,
    /// Records below a committed offset that were neither applied nor parked.
    pub early_offsets: u64,
    /// Times that not everything was dealt with soon after the last fault.
    pub stuck: u64,
    /// A few of all these, in words.
    #[serde(skip)]
    pub examples: Vec<String>,
}

impl Verdict {
    const EXAMPLES: usize = 10;

    /// How often any of them was.
    pub fn breaches(&self) -> u64 {
        let Self {
            lost,
            unparked,
            foreign,
            applied_twice,
            out_of_order,
            dead_and_applied,
            wrongly_dead,
            unbalanced,
            early_offsets,
            stuck,
            examples: _,
        } = self;
        lost + unparked
            + foreign
            + applied_twice
            + out_of_order
            + dead_and_applied
            + wrongly_dead
            + unbalanced
            + early_offsets
            + stuck
    }

    /// Keeps the first few.
    pub fn example(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(text());
        }
    }
}

impl AddAssign for Verdict {
    fn add_assign(&mut self, other: Self) {
        let Self {
            lost,
            unparked,
            foreign,
            applied_twice,
            out_of_order,
            dead_and_applied,
            wrongly_dead,
            unbalanced,
            early_offsets,
            stuck,
            examples,
        } = other;
        self.lost += lost;
        self.unparked += unparked;
        self.foreign += foreign;
        self.applied_twice += applied_twice;
        self.out_of_order += out_of_order;
        self.dead_and_applied += dead_and_applied;
        self.wrongly_dead += wrongly_dead;
        self.unbalanced += unbalanced;
        self.early_offsets += early_offsets;
        self.stuck += stuck;
        self.examples.extend(examples);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, applied_twice, out_of_order, dead_and_applied, stuck, .. } = self;
        write!(
            f,
            "lost {lost}, applied twice {applied_twice}, out of order {out_of_order}, \
             dead and applied {dead_and_applied}, stuck {stuck}"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// One verdict for each promise, in which that one was broken once.
    fn each_broken_once() -> Vec<Verdict> {
        let none = serde_json::to_value(Verdict::default()).expect("numbers");
        let names: Vec<_> = none.as_object().expect("it has fields").keys().cloned().collect();
        let broken = |name: String| {
            let mut verdict: Value = none.clone();
            verdict[name] = json!(1);
            serde_json::from_value(verdict).expect("a verdict")
        };
        names.into_iter().map(broken).collect()
    }

    #[test]
    fn each_broken_promise_is_a_breach() {
        for verdict in each_broken_once() {
            assert_eq!(verdict.breaches(), 1, "{verdict:?}");
        }
    }

    #[test]
    fn no_breach_is_lost_when_verdicts_are_added_up() {
        for verdict in each_broken_once() {
            let mut sum = verdict.clone();
            sum += verdict.clone();
            assert_eq!(sum.breaches(), 2, "{verdict:?}");
        }
    }
}
