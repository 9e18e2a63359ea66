use proptest::prelude::*;

use super::*;

const DONE: Answer = Answer::Done;

/// What is left to do after these answers.
fn after(task: Task, answers: &[Answer]) -> Step {
    let mut course = Course::new(task, Content::Whole);
    for &answer in answers {
        course.answer(answer);
    }
    course.step()
}

/// As far as the handler, for a message that nothing is known of.
const CALLED: [Answer; 4] = [DONE, DONE, DONE, Answer::Claimed(Verdict::Fresh)];

fn after_call(answers: &[Answer]) -> Step {
    after(Task::Apply, &[&CALLED, answers].concat())
}

#[test]
fn handler_is_called_between_claim_and_guard() {
    assert_eq!(after_call(&[]), Step::Call);
    assert_eq!(after_call(&[DONE]), Step::Guard { fresh: true });
    assert_eq!(after_call(&[DONE, DONE]), Step::Commit);
    assert_eq!(after_call(&[DONE, DONE, DONE]), Step::End(Ok(Disposition::Applied)));
}

#[test]
fn what_is_known_is_committed_without_the_handler() {
    for (verdict, disposition) in
        [(Verdict::Duplicate, Disposition::Duplicate), (Verdict::AlreadyParked, Disposition::AlreadyParked)]
    {
        let claimed = [DONE, DONE, DONE, Answer::Claimed(verdict)];
        assert_eq!(after(Task::Apply, &claimed), Step::Guard { fresh: false });
        assert_eq!(after(Task::Apply, &[&claimed[..], &[DONE, DONE]].concat()), Step::End(Ok(disposition)));
    }
}

#[test]
fn tombstone_is_skipped_or_parked_without_a_key() {
    let skipped = Course::new(Task::Apply, Content::SkippedTombstone);
    assert_eq!(skipped.step(), Step::End(Ok(Disposition::Skipped)));
    let mut parked = Course::new(Task::Apply, Content::ParkedTombstone);
    assert_eq!(parked.step(), Step::Begin(Task::Park));
    parked.answer(DONE);
    assert_eq!(parked.step(), Step::Claim { keyed: false });
}

#[test]
fn unreadable_key_is_parked_without_claiming() {
    let unreadable = [Answer::Failed(Setback::Unreadable), DONE];
    assert_eq!(after(Task::Apply, &unreadable), Step::Claim { keyed: false });
    let claimed = [&unreadable[..], &[Answer::Claimed(Verdict::Fresh)]].concat();
    assert_eq!(after(Task::Apply, &claimed), Step::Park);
}

#[test]
fn parked_message_gives_its_key_back() {
    let claimed = [DONE, DONE, Answer::Claimed(Verdict::Fresh)];
    assert_eq!(after(Task::Park, &claimed), Step::GiveBack);
    assert_eq!(after(Task::Park, &[&claimed[..], &[DONE]].concat()), Step::Park);
}

#[test]
fn late_duplicate_gives_its_key_back() {
    let claimed = [DONE, DONE, DONE, Answer::Claimed(Verdict::LateDuplicate)];
    assert_eq!(after(Task::Apply, &claimed), Step::GiveBack);
    assert_eq!(after(Task::Apply, &[&claimed[..], &[DONE]].concat()), Step::Guard { fresh: false });
}

#[test]
fn rejected_message_is_parked_in_a_second_transaction() {
    let rejected = Answer::Failed(Setback::Rejected);
    assert_eq!(after_call(&[rejected]), Step::RollBack(Setback::Rejected));
    assert_eq!(after_call(&[rejected, rejected]), Step::Begin(Task::Park));
}

#[test]
fn lost_connection_is_blamed_instead_of_the_handler() {
    let failed = [Answer::Failed(Setback::Handler), Answer::Failed(Setback::Environment)];
    assert_eq!(after_call(&failed), Step::End(Err(Setback::Environment)));
}

#[test]
fn unknown_commit_is_never_parked() {
    let unknown = [DONE, DONE, Answer::Failed(Setback::Unknown)];
    assert_eq!(after_call(&unknown), Step::End(Err(Setback::Unknown)));
}

#[test]
fn transaction_ended_by_the_handler_is_listed_once_and_stops() {
    let ended = [DONE, Answer::Failed(Setback::TransactionEnded)];
    assert_eq!(after_call(&ended), Step::List);
    assert_eq!(after_call(&ended[1..]), Step::List, "also if it failed afterwards");
    for listed in [DONE, Answer::Failed(Setback::Environment)] {
        let ended = [&ended[..], &[listed]].concat();
        assert_eq!(after_call(&ended), Step::End(Err(Setback::TransactionEnded)));
    }
}

#[test]
fn reset_or_restore_is_noticed_before_the_handler_is_called() {
    let place = Place { offset: Offset(7), acknowledged: NextOffset(5) };
    let claim = |row| Claim { keyed: true, stamped: true, parked: false, row }.judge(Some(place));
    let row = |next| Some(ClaimedRow { next: NextOffset(next), passed: NextOffset(5) });
    assert_eq!(claim(None), Err(Setback::Superseded));
    assert_eq!(claim(row(4)), Err(Setback::WentBack));
    assert_eq!(claim(row(5)), Ok(Verdict::Fresh));
}

#[test]
fn forgotten_key_is_a_late_duplicate_below_what_was_passed() {
    let row = Some(ClaimedRow { next: NextOffset(2), passed: NextOffset(8) });
    let claim = Claim { keyed: true, stamped: true, parked: false, row };
    let judge = |offset| claim.judge(Some(Place { offset: Offset(offset), acknowledged: NextOffset(2) }));
    assert_eq!(judge(7), Ok(Verdict::LateDuplicate));
    assert_eq!(judge(8), Ok(Verdict::Fresh));
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let setback = prop::sample::select(vec![
        Setback::Environment,
        Setback::Unknown,
        Setback::Handler,
        Setback::Rejected,
        Setback::Unreadable,
        Setback::Cancelled,
        Setback::TransactionEnded,
    ]);
    let answer = prop_oneof![
        8 => Just(Answer::Done),
        4 => Just(Answer::Claimed(Verdict::Fresh)),
        1 => Just(Answer::Claimed(Verdict::Duplicate)),
        2 => setback.prop_map(Answer::Failed),
    ];
    prop::collection::vec(answer, 1..20)
}

proptest! {
    /// Also under answers that do not belong to the step.
    #[test]
    fn nothing_is_committed_that_was_not_claimed_and_guarded(
        answers in answers(),
        task in prop::sample::select(vec![Task::Apply, Task::Park]),
    ) {
        let mut course = Course::new(task, Content::Whole);
        let mut claimed = false;
        let mut guarded = false;
        for answer in answers {
            let step = course.step();
            match step {
                Step::Begin(_) => (claimed, guarded) = (false, false),
                Step::Claim { .. } => claimed = matches!(answer, Answer::Claimed(_)),
                Step::Guard { .. } => guarded = answer == Answer::Done,
                Step::Commit => prop_assert!(claimed && guarded),
                _ => {}
            }
            course.answer(answer);
            if let (Step::Commit, Answer::Done) = (step, answer) {
                prop_assert!(matches!(course.step(), Step::End(Ok(_))));
            }
        }
    }
}
