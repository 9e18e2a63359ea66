use proptest::prelude::*;

use super::*;

fn with_backlog(records: std::ops::Range<i64>) -> Shell {
    let mut shell = Shell { batch: 100, ..Shell::new(Config::default()) };
    shell.assign(TP, EPOCH, Some(0), 0);
    shell.kafka_answers(true);
    for offset in records {
        shell.record(offset);
    }
    shell
}

/// As [`with_backlog`], with the first record done and the next ones under way together.
fn under_way(records: i64) -> (Shell, Job<i64>) {
    let mut shell = with_backlog(0..records);
    let first = shell.start();
    shell.finish(first.id, Outcome::Done);
    let job = shell.start();
    (shell, job)
}

#[test]
fn a_backlog_is_taken_many_at_a_time_in_order() {
    let (mut shell, job) = under_way(10);
    assert_eq!(job.offsets(), (1..10).collect::<Vec<_>>());
    assert_eq!((job.watermark, job.attempt, job.task), (NextOffset(10), 1, Task::Apply));
    shell.finish(job.id, Outcome::Done);
    shell.after(100);
    assert_eq!(shell.kafka_answers(true), 10);
}

#[test]
fn a_record_that_comes_alone_does_not_wait_for_others() {
    let mut shell = with_backlog(0..1);
    assert_eq!(shell.start().offsets(), [0]);
}

#[test]
fn records_that_come_while_a_batch_runs_are_behind_its_watermark() {
    let (mut shell, job) = under_way(3);
    shell.record(3);
    shell.finish(job.id, Outcome::Done);
    let next = shell.start();
    assert_eq!((next.offsets(), next.watermark), (vec![3], NextOffset(4)));
}

#[test]
fn a_batch_takes_no_more_bytes_than_it_may_and_one_record_always() {
    let config = Config { batch_bytes: 25, ..Config::default() };
    let mut shell = Shell { batch: 100, ..Shell::new(config) };
    shell.assign(TP, EPOCH, Some(0), 0);
    for offset in 0..6 {
        shell.feed(Event::Record {
            tp: TP,
            epoch: EPOCH,
            offset: Offset(offset),
            key: None,
            bytes: if offset == 3 { 50 } else { 10 },
            handle: offset,
        });
    }
    for expected in [&[0][..], &[1, 2], &[3], &[4, 5]] {
        let job = shell.start();
        assert_eq!(job.offsets(), expected);
        shell.finish(job.id, Outcome::Done);
    }
}

#[test]
fn after_a_failure_each_runs_alone_and_only_the_one_at_fault_pays() {
    for outcome in [Outcome::Failed, Outcome::Rejected] {
        let (mut shell, batch) = under_way(4);
        shell.finish(batch.id, outcome);
        let alone = shell.start();
        assert_eq!((alone.offsets(), alone.attempt, alone.task), (vec![1], 1, Task::Apply));
        shell.finish(alone.id, Outcome::Done);
        let at_fault = shell.start();
        assert_eq!((at_fault.offsets(), at_fault.attempt), (vec![2], 1));
        shell.finish(at_fault.id, outcome);
        if outcome == Outcome::Failed {
            shell.sleep();
            let again = shell.start();
            assert_eq!((again.offsets(), again.attempt, again.task), (vec![2], 2, Task::Apply));
            shell.finish(again.id, outcome);
        }
        let parked = shell.start();
        assert_eq!((parked.offsets(), parked.task), (vec![2], Task::Park));
        shell.finish(parked.id, Outcome::Done);
        assert_eq!(shell.start().offsets(), [3]);
    }
}

#[test]
fn records_behind_a_batch_that_failed_are_taken_together_again() {
    let (mut shell, batch) = under_way(4);
    for offset in 4..10 {
        shell.record(offset);
    }
    shell.finish(batch.id, Outcome::Failed);
    for offset in 1..4 {
        let alone = shell.start();
        assert_eq!(alone.offsets(), [offset]);
        shell.finish(alone.id, Outcome::Done);
    }
    assert_eq!(shell.start().offsets(), (4..10).collect::<Vec<_>>());
}

/// Gives a handler that takes all at once a backlog in which some are poison; how many jobs there were, how many
/// batches failed, and which records were parked.
fn halve(records: i64, poison: &[i64]) -> (u32, u32, Vec<i64>) {
    let mut shell = Shell { batch: 100, together: true, ..Shell::new(Config::default()) };
    shell.assign(TP, EPOCH, Some(0), 0);
    shell.kafka_answers(true);
    shell.record(0);
    for offset in 1..=records {
        shell.record(offset);
    }
    let (mut jobs, mut failed, mut parked, mut next) = (0, 0, Vec::new(), 0);
    while next <= records {
        let job = shell.start();
        jobs += 1;
        let offsets = job.offsets();
        assert_eq!(offsets[0], next, "in order");
        if job.task == Task::Apply && offsets.iter().any(|offset| poison.contains(offset)) {
            failed += u32::from(offsets.len() > 1);
            shell.finish(job.id, Outcome::Failed);
            if offsets.len() == 1 {
                shell.sleep();
            }
            continue;
        }
        if job.task == Task::Park {
            parked.extend(&offsets);
        }
        next += i64::try_from(offsets.len()).expect("few");
        shell.finish(job.id, Outcome::Done);
    }
    (jobs, failed, parked)
}

#[test]
fn a_handler_that_takes_all_at_once_is_given_halves_until_the_poison_is_found() {
    for poison in 1..=64 {
        let (jobs, failed, parked) = halve(64, &[poison]);
        assert_eq!(parked, [poison]);
        assert!(failed <= 6, "{failed} batches failed for {poison}");
        assert!(jobs <= 30, "{jobs} jobs for {poison}");
    }
}

#[test]
fn several_poisons_in_a_batch_are_found_one_after_the_other() {
    let (_, failed, parked) = halve(64, &[3, 4, 40, 64]);
    assert_eq!(parked, [3, 4, 40, 64]);
    assert!(failed <= 4 * 6, "{failed} batches failed");
}

#[test]
fn what_is_the_databases_fault_is_tried_again_in_smaller_batches_and_never_parked() {
    let (mut shell, batch) = under_way(9);
    assert_eq!(batch.offsets().len(), 8);
    shell.finish(batch.id, Outcome::Environment);
    shell.sleep();
    let again = shell.start();
    assert_eq!((again.offsets(), again.attempt), (vec![1, 2, 3, 4], 1));
    for _ in 0..50 {
        shell.sleep();
    }
    shell.finish(again.id, Outcome::Environment);
    shell.sleep();
    let job = shell.start();
    assert_eq!((job.task, job.attempt), (Task::Apply, 1));
}

#[test]
fn a_batch_whose_commit_is_unknown_is_run_again_whole() {
    let (mut shell, batch) = under_way(5);
    shell.finish(batch.id, Outcome::Unknown);
    shell.sleep();
    let again = shell.start();
    assert_eq!((again.offsets(), again.attempt, again.task), (batch.offsets(), 1, Task::Apply));
}

#[test]
fn a_batch_whose_handler_ended_the_transaction_is_not_run_again() {
    let (mut shell, batch) = under_way(5);
    shell.finish(batch.id, Outcome::TransactionEnded);
    assert!(shell.started().is_empty());
    let reason = StopReason::TransactionEnded { lane: LANE, offset: Offset(1) };
    assert!(shell.has(&Action::Stop { reason }));
}

/// Goes through the steps of a course; the call of the message that `fails` does.
fn steps(members: Vec<Member>, found: &[Found], fails: Option<usize>) -> (Vec<Step>, Course) {
    let mut course = Course::new(members);
    let mut taken = Vec::new();
    while !matches!(course.step(), Step::End(_)) {
        taken.push(course.step());
        let row = Some(ClaimedRow { next: NextOffset(0), passed: NextOffset(0), forgot: false });
        course.answer(match course.step() {
            Step::Claim => Answer::Claimed { found: found.to_vec(), row },
            Step::Call(member) if Some(member) == fails => Answer::Failed(Setback::Handler),
            Step::RollBack(setback) => Answer::Failed(setback),
            _ => Answer::Done,
        });
    }
    (taken, course)
}

const NEW: Found = Found { stamped: true, parked: false, ahead: false };
const KNOWN: Found = Found { stamped: false, parked: false, ahead: false };

fn member(offset: i64, intent: Intent, key: usize) -> Member {
    let place = Place { offset: Offset(offset), acknowledged: NextOffset(0) };
    Member { intent, place: Some(place), key: Some(key) }
}

fn dispositions(course: &Course) -> Vec<Disposition> {
    course.dispositions().collect()
}

#[test]
fn messages_are_handled_in_order_between_one_claim_and_one_guard() {
    let members = vec![member(4, Intent::Apply, 0), member(7, Intent::Apply, 1)];
    let (taken, course) = steps(members, &[NEW; 2], None);
    let guard = Step::Guard { fresh: Some(Offset(4)) };
    let (begin, claim) = (Step::Begin(Task::Apply), Step::Claim);
    assert_eq!(taken, [begin, claim, Step::Call(0), Step::Call(1), guard, Step::Commit]);
    assert_eq!(dispositions(&course), [Disposition::Applied; 2]);
}

#[test]
fn of_two_messages_with_one_key_the_first_is_applied() {
    let members = vec![member(0, Intent::Apply, 0), member(1, Intent::Apply, 0)];
    let (taken, course) = steps(members, &[NEW; 2], None);
    assert!(taken.contains(&Step::Call(0)) && !taken.contains(&Step::Call(1)));
    assert_eq!(dispositions(&course), [Disposition::Applied, Disposition::Duplicate]);
}

#[test]
fn a_known_key_does_not_hold_the_guard_down() {
    let members = vec![member(0, Intent::Apply, 0), member(1, Intent::Apply, 1)];
    let (taken, course) = steps(members, &[KNOWN, NEW], None);
    assert!(taken.contains(&Step::Guard { fresh: Some(Offset(1)) }));
    assert_eq!(dispositions(&course), [Disposition::Duplicate, Disposition::Applied]);
}

#[test]
fn a_message_that_cannot_be_read_is_parked_beside_the_others_and_gives_its_key_back() {
    let members = vec![member(0, Intent::Park, 0), member(1, Intent::Apply, 1)];
    let (taken, course) = steps(members, &[NEW; 2], None);
    assert!(taken.contains(&Step::GiveBack) && taken.contains(&Step::Park(0)));
    assert_eq!([course.is_given_back(0), course.is_given_back(1)], [true, false]);
    assert_eq!(dispositions(&course), [Disposition::Parked, Disposition::Applied]);
}

#[test]
fn a_parked_message_leaves_its_key_to_a_later_one_that_is_applied() {
    let members = vec![member(0, Intent::Park, 0), member(1, Intent::Apply, 0)];
    let (taken, course) = steps(members, &[NEW; 2], None);
    assert!(taken.contains(&Step::Park(0)) && !taken.contains(&Step::GiveBack));
    assert_eq!(dispositions(&course), [Disposition::Parked, Disposition::Applied]);
}

#[test]
fn a_twin_of_an_applied_message_that_cannot_be_read_is_a_duplicate() {
    let members = vec![member(0, Intent::Apply, 0), member(1, Intent::Park, 0)];
    let (_, course) = steps(members, &[NEW; 2], None);
    assert_eq!(dispositions(&course), [Disposition::Applied, Disposition::Duplicate]);
}

#[test]
fn a_rejected_message_among_others_is_not_given_up_with_them() {
    let members = vec![member(0, Intent::Apply, 0), member(1, Intent::Apply, 1)];
    let mut course = Course::new(members);
    let row = Some(ClaimedRow { next: NextOffset(0), passed: NextOffset(0), forgot: false });
    let rejected = Answer::Failed(Setback::Rejected);
    for answer in [Answer::Done, Answer::Claimed { found: vec![NEW; 2], row }, rejected.clone(), rejected] {
        course.answer(answer);
    }
    assert_eq!(course.step(), Step::End(Err(Setback::Rejected)));
}

#[test]
fn an_ended_transaction_is_listed_with_those_it_was_for() {
    let members = vec![member(0, Intent::Apply, 0), member(1, Intent::Apply, 1)];
    let mut course = Course::new(members);
    let row = Some(ClaimedRow { next: NextOffset(0), passed: NextOffset(0), forgot: false });
    let claimed = Answer::Claimed { found: vec![NEW, KNOWN], row };
    for answer in [Answer::Done, claimed, Answer::Done, Answer::Failed(Setback::TransactionEnded)] {
        course.answer(answer);
    }
    assert_eq!(course.step(), Step::List);
    assert_eq!([course.is_handled(0), course.is_handled(1)], [true, false]);
}

#[test]
fn a_handler_that_takes_all_at_once_is_called_once_before_dead_letters_are_written() {
    let members = [Intent::Apply, Intent::Park, Intent::Apply, Intent::Apply].into_iter().enumerate();
    let members: Vec<_> =
        (0..).zip(members).map(|(offset, (key, intent))| member(offset, intent, key)).collect();
    let mut course = Course::together(members);
    let mut taken = Vec::new();
    while !matches!(course.step(), Step::End(_)) {
        taken.push(course.step());
        let row = Some(ClaimedRow { next: NextOffset(0), passed: NextOffset(0), forgot: false });
        course.answer(match course.step() {
            Step::Claim => Answer::Claimed { found: vec![NEW, NEW, KNOWN, NEW], row },
            _ => Answer::Done,
        });
    }
    let guard = Step::Guard { fresh: Some(Offset(0)) };
    let (begin, claim) = (Step::Begin(Task::Apply), Step::Claim);
    assert_eq!(taken, [begin, claim, Step::GiveBack, Step::CallTogether, Step::Park(1), guard, Step::Commit]);
    assert_eq!((0..4).filter(|member| course.is_handled(*member)).collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn what_handlers_record_is_written_once_behind_all_of_them() {
    let intents = [Intent::Apply, Intent::Park, Intent::Apply].into_iter().enumerate();
    let members = || (0..).zip(intents.clone()).map(|(offset, (key, intent))| member(offset, intent, key));
    let row = Some(ClaimedRow { next: NextOffset(0), passed: NextOffset(0), forgot: false });
    let to_the_end = |found: Found| {
        let (mut course, mut taken) = (Course::new(members().collect()).recorded(), Vec::new());
        while !matches!(course.step(), Step::End(_)) {
            taken.push(course.step());
            course.answer(match course.step() {
                Step::Claim => Answer::Claimed { found: vec![found; 3], row },
                _ => Answer::Done,
            });
        }
        taken
    };
    let (begin, guard) = (Step::Begin(Task::Apply), Step::Guard { fresh: Some(Offset(0)) });
    assert_eq!(
        to_the_end(NEW),
        [
            begin,
            Step::Claim,
            Step::GiveBack,
            Step::Call(0),
            Step::Park(1),
            Step::Call(2),
            Step::Write,
            guard,
            Step::Commit
        ]
    );
    assert!(!to_the_end(KNOWN).contains(&Step::Write));
}

#[test]
fn if_what_was_recorded_cannot_be_written_nothing_is_kept() {
    let ended = |setback| {
        let mut course = Course::new(vec![member(0, Intent::Apply, 0)]).recorded();
        let row = Some(ClaimedRow { next: NextOffset(0), passed: NextOffset(0), forgot: false });
        let claimed = Answer::Claimed { found: vec![NEW], row };
        for answer in [Answer::Done, claimed, Answer::Done, Answer::Failed(setback)] {
            course.answer(answer);
        }
        course.step()
    };
    assert_eq!(ended(Setback::Handler), Step::RollBack(Setback::Handler));
    assert_eq!(ended(Setback::TransactionEnded), Step::List);
}

proptest! {
    #[test]
    fn if_a_message_fails_nothing_is_committed(
        intents in prop::collection::vec(
            prop::sample::select(vec![Intent::Apply, Intent::Park, Intent::Skip]), 2..8),
        fails in any::<prop::sample::Index>(),
    ) {
        let members = intents.iter().enumerate().zip(0..);
        let members: Vec<_> = members.map(|((key, &intent), offset)| member(offset, intent, key)).collect();
        let fails = fails.index(members.len());
        let found = vec![NEW; members.len()];
        let (taken, course) = steps(members, &found, Some(fails));
        let called = taken.contains(&Step::Call(fails));
        prop_assert_eq!(called, taken.contains(&Step::RollBack(Setback::Handler)));
        prop_assert_ne!(called, taken.contains(&Step::Commit) || taken.is_empty());
        prop_assert_eq!(course.step() == Step::End(Ok(())), !called);
    }
}
