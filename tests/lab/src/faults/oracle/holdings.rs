use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::PgConnection;

use super::Verdict;
use crate::faults::ledger::{Book, Fate};

/// What the database holds at the end.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// In the order in which they were written.
    pub effects: Vec<Effect>,
    /// Partition and offset of every dead letter that is open.
    pub letters: Vec<(i32, i64)>,
    /// Accounts that were ever paid into.
    pub balances: HashMap<i64, i64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Effect {
    pub event: i64,
    pub account: i64,
    pub amount: i64,
    pub partition: i32,
    pub position: i64,
}

impl Holdings {
    /// Reads them.
    pub async fn read(connection: &mut PgConnection) -> sqlx::Result<Self> {
        let effects: Vec<(i64, i64, i64, i32, i64)> =
            sqlx::query_as("SELECT event, account, amount, partition, position FROM effects ORDER BY id")
                .fetch_all(&mut *connection)
                .await?;
        let effect = |(event, account, amount, partition, position)| Effect {
            event,
            account,
            amount,
            partition,
            position,
        };
        let effects = effects.into_iter().map(effect).collect();
        let letters = sqlx::query_as(
            r#"SELECT partition, "offset" FROM handstamp.dead_letters WHERE closed_at IS NULL"#,
        )
        .fetch_all(&mut *connection)
        .await?;
        let balances: Vec<(i64, i64)> = sqlx::query_as("SELECT id, balance FROM account WHERE balance <> 0")
            .fetch_all(connection)
            .await?;
        Ok(Self { effects, letters, balances: balances.into_iter().collect() })
    }

    /// Compares them with what was written to the topic.
    pub fn judge(&self, book: &Book) -> Verdict {
        let mut verdict = Verdict::default();
        let mut applied: BTreeMap<i64, u64> = BTreeMap::new();
        let mut sums: HashMap<i64, i64> = HashMap::new();
        let mut last: HashMap<(i32, Option<i64>), i64> = HashMap::new();
        for effect in &self.effects {
            if !effect.is_asked_for(book) {
                verdict.foreign += 1;
                verdict.example(|| format!("not what its record asks for: {effect:?}"));
            }
            let times = applied.entry(effect.event).or_default();
            *times += 1;
            if *times > 1 {
                verdict.applied_twice += 1;
                verdict.example(|| format!("applied again: {effect:?}"));
            }
            *sums.entry(effect.account).or_default() += effect.amount;
            let one_after_the_other = (effect.partition, book.keyed.then_some(effect.account));
            let before = last.insert(one_after_the_other, effect.position).unwrap_or(-1);
            if before >= effect.position {
                verdict.out_of_order += 1;
                verdict.example(|| format!("after offset {before}: {effect:?}"));
            }
        }
        let accounts: BTreeSet<&i64> = sums.keys().chain(self.balances.keys()).collect();
        let differing = accounts.iter().filter(|account| sums.get(account) != self.balances.get(account));
        verdict.unbalanced = count(differing);
        self.judge_fates(book, &applied, &mut verdict);
        verdict
    }

    fn judge_fates(&self, book: &Book, applied: &BTreeMap<i64, u64>, verdict: &mut Verdict) {
        let mut letters: HashMap<(i32, i64), u64> = HashMap::new();
        for letter in &self.letters {
            *letters.entry(*letter).or_default() += 1;
        }
        let mut missing = BTreeSet::new();
        let mut listed: BTreeMap<i64, u64> = BTreeMap::new();
        for (partition, log) in (0..).zip(&book.logs) {
            for (offset, number) in (0..).zip(log) {
                let event = i64::try_from(*number).expect("numbers fit");
                let is_applied = applied.contains_key(&event);
                let dead = letters.get(&(partition, offset)).copied().unwrap_or(0);
                let fate = book.events[*number].fate;
                let gone = book.gone.contains(&(partition, offset));
                let to_apply = !gone && matches!(fate, Fate::Applied(_) | Fate::Listed(_));
                let to_park = !gone && matches!(fate, Fate::Parked(_) | Fate::Unreadable(_));
                let is_listed = matches!(fate, Fate::Listed(_));
                if is_listed {
                    *listed.entry(event).or_default() += dead;
                }
                let lost = to_apply && !is_applied && missing.insert(event);
                let unparked = to_park && dead == 0;
                let wrongly_dead = !is_listed && dead > u64::from(to_park);
                let both = !is_listed && dead > 0 && is_applied;
                verdict.lost += u64::from(lost);
                verdict.unparked += u64::from(unparked);
                verdict.wrongly_dead += u64::from(wrongly_dead);
                verdict.dead_and_applied += u64::from(both);
                for (is, what) in [
                    (lost, "lost"),
                    (unparked, "not parked"),
                    (wrongly_dead, "dead"),
                    (both, "dead and applied"),
                ] {
                    if is {
                        verdict
                            .example(|| format!("{what}: event {event} at {partition}@{offset}, {fate:?}"));
                    }
                }
            }
        }
        for (event, letters) in listed {
            verdict.unparked += u64::from(letters == 0);
            verdict.wrongly_dead += u64::from(letters > 1);
            if letters != 1 {
                verdict.example(|| format!("listed {letters} times: event {event}"));
            }
        }
    }
}

impl Effect {
    /// Whether the record from which it claims to come was there to be read, and asks for it.
    fn is_asked_for(&self, book: &Book) -> bool {
        if book.gone.contains(&(self.partition, self.position)) {
            return false;
        }
        let record = || {
            let log = book.logs.get(usize::try_from(self.partition).ok()?)?;
            let number = *log.get(usize::try_from(self.position).ok()?)?;
            Some((i64::try_from(number).ok()?, book.events.get(number)?))
        };
        record().is_some_and(|(number, event)| {
            (number, event.account, event.amount) == (self.event, self.account, self.amount)
        })
    }
}

fn count(items: impl Iterator) -> u64 {
    u64::try_from(items.count()).expect("counts fit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::ledger::Event;
    use crate::faults::worker::{Mischief, Trouble};

    /// One partition: a good event, a poison one, another good one, and the first once more.
    fn book() -> Book {
        let event = |fate| Event { account: 1, amount: 10, fate };
        let good = event(Fate::Applied(Trouble::None));
        let events = vec![good, event(Fate::Parked(Trouble::Rejected)), good];
        Book { events, logs: vec![vec![0, 1, 2, 0]], ..Book::default() }
    }

    fn effect(event: i64) -> Effect {
        Effect { event, account: 1, amount: 10, partition: 0, position: event }
    }

    fn holdings() -> Holdings {
        let effects = vec![effect(0), effect(2)];
        Holdings { effects, letters: vec![(0, 1)], balances: HashMap::from([(1, 20)]) }
    }

    fn judged(change: impl FnOnce(&mut Holdings)) -> Verdict {
        judged_by(&book(), change)
    }

    fn judged_by(book: &Book, change: impl FnOnce(&mut Holdings)) -> Verdict {
        let mut holdings = holdings();
        change(&mut holdings);
        Verdict { examples: Vec::new(), ..holdings.judge(book) }
    }

    /// The record at the offset was deleted before it was read.
    fn without(offset: i64) -> Book {
        Book { gone: BTreeSet::from([(0, offset)]), ..book() }
    }

    #[test]
    fn what_was_done_right_is_not_blamed() {
        assert_eq!(judged(|_| {}), Verdict::default());
    }

    #[test]
    fn an_event_without_effect_is_lost() {
        let verdict = judged(|holdings| {
            holdings.effects.pop();
            holdings.balances.insert(1, 10);
        });
        assert_eq!(verdict, Verdict { lost: 1, ..Verdict::default() });
    }

    #[test]
    fn a_poison_record_without_letter_is_missed() {
        let verdict = judged(|holdings| holdings.letters.clear());
        assert_eq!(verdict, Verdict { unparked: 1, ..Verdict::default() });
    }

    #[test]
    fn records_that_were_deleted_are_not_missed() {
        let verdict = judged_by(&without(2), |holdings| {
            holdings.effects.pop();
            holdings.balances.insert(1, 10);
        });
        assert_eq!(verdict, Verdict::default());
        assert_eq!(judged_by(&without(1), |holdings| holdings.letters.clear()), Verdict::default());
    }

    #[test]
    fn an_event_of_which_one_record_of_two_was_deleted_is_missed() {
        let verdict = judged_by(&without(3), |holdings| {
            holdings.effects.remove(0);
            holdings.balances.insert(1, 10);
        });
        assert_eq!(verdict, Verdict { lost: 1, ..Verdict::default() });
    }

    #[test]
    fn an_effect_of_a_record_that_was_deleted_is_foreign() {
        assert_eq!(judged_by(&without(2), |_| {}), Verdict { foreign: 1, ..Verdict::default() });
    }

    #[test]
    fn an_event_applied_again_from_another_record_is_applied_twice() {
        let verdict = judged(|holdings| {
            holdings.effects.push(Effect { position: 3, ..effect(0) });
            holdings.balances.insert(1, 30);
        });
        assert_eq!(verdict, Verdict { applied_twice: 1, ..Verdict::default() });
    }

    #[test]
    fn an_effect_that_its_record_does_not_ask_for_is_foreign() {
        let foreign: [fn(&mut Effect); 5] = [
            |effect| effect.position = 3,
            |effect| effect.position = 9,
            |effect| effect.partition = 1,
            |effect| effect.account = 2,
            |effect| effect.amount = 11,
        ];
        for change in foreign {
            let verdict = judged(|holdings| change(&mut holdings.effects[1]));
            assert_eq!(verdict.foreign, 1, "{verdict:?}");
        }
    }

    #[test]
    fn an_effect_of_an_unknown_event_is_foreign() {
        let verdict = judged(|holdings| {
            holdings.effects.push(Effect { position: 3, ..effect(7) });
            holdings.balances.insert(1, 30);
        });
        assert_eq!(verdict, Verdict { foreign: 1, ..Verdict::default() });
    }

    #[test]
    fn effects_that_changed_places_are_out_of_order() {
        let verdict = judged(|holdings| holdings.effects.reverse());
        assert_eq!(verdict, Verdict { out_of_order: 1, ..Verdict::default() });
    }

    #[test]
    fn where_keys_have_an_order_only_effects_of_one_account_can_be_out_of_it() {
        let reversed = |accounts: [i64; 2]| {
            let mut holdings = holdings();
            for (effect, account) in holdings.effects.iter_mut().zip(accounts) {
                effect.account = account;
            }
            holdings.effects.reverse();
            holdings.judge(&Book { keyed: true, ..book() }).out_of_order
        };
        assert_eq!((reversed([1, 2]), reversed([1, 1])), (0, 1));
    }

    #[test]
    fn a_letter_of_an_applied_event_is_dead_and_applied() {
        let verdict = judged(|holdings| holdings.letters.push((0, 2)));
        assert_eq!(verdict, Verdict { dead_and_applied: 1, wrongly_dead: 1, ..Verdict::default() });
    }

    /// The first event is one whose handler commits by itself, at the first of its records.
    fn listed(letters: &[(i32, i64)]) -> Verdict {
        let mut book = book();
        book.events[0].fate = Fate::Listed(Trouble::Misbehaves(Mischief::Commits));
        let mut holdings = holdings();
        holdings.letters.extend(letters);
        Verdict { examples: Vec::new(), ..holdings.judge(&book) }
    }

    #[test]
    fn an_event_whose_handler_ends_the_transaction_is_applied_and_listed_once() {
        assert_eq!(listed(&[(0, 0)]), Verdict::default());
        assert_eq!(listed(&[]), Verdict { unparked: 1, ..Verdict::default() });
        assert_eq!(listed(&[(0, 0), (0, 3)]), Verdict { wrongly_dead: 1, ..Verdict::default() });
    }

    #[test]
    fn a_balance_that_is_not_the_sum_of_its_effects_is_unbalanced() {
        let verdict = judged(|holdings| {
            holdings.balances.insert(1, 30);
        });
        assert_eq!(verdict, Verdict { unbalanced: 1, ..Verdict::default() });
    }
}
