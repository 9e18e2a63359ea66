use proptest::prelude::*;

use super::*;

const DONE: Answer = Answer::Done;
const REJECTED: Answer = Answer::Failed(Setback::Rejected);

/// The course of one message that has a key.
fn course(intent: Intent) -> Course {
    Course::new(vec![member(7, intent, Some(0))])
}

fn member(offset: i64, intent: Intent, key: Option<usize>) -> Member {
    let place = Place { offset: Offset(offset), acknowledged: NextOffset(0) };
    Member { intent, place: Some(place), key }
}

/// A claim before which everything below `passed` was dealt with.
fn claimed(found: &[Found], passed: i64) -> Answer {
    let row = Some(ClaimedRow { next: NextOffset(0), passed: NextOffset(passed), forgot: false });
    Answer::Claimed { found: found.to_vec(), row }
}

const NEW: Found = Found { stamped: true, parked: false, ahead: false };
const KNOWN: Found = Found { stamped: false, parked: false, ahead: false };
const PARKED: Found = Found { stamped: false, parked: true, ahead: false };

/// What is left to do after these answers.
fn after(mut course: Course, answers: &[Answer]) -> Step {
    for answer in answers {
        course.answer(answer.clone());
    }
    course.step()
}

/// Behind the claim of a message that nothing is known of.
fn after_call(answers: &[Answer]) -> Step {
    after(course(Intent::Apply), &[&[DONE, claimed(&[NEW], 0)], answers].concat())
}

fn end(mut course: Course, answers: &[Answer]) -> Vec<Disposition> {
    for answer in answers {
        course.answer(answer.clone());
    }
    assert_eq!(course.step(), Step::End(Ok(())));
    course.dispositions().collect()
}

#[test]
fn handler_is_called_between_claim_and_guard() {
    assert_eq!(after_call(&[]), Step::Call(0));
    assert_eq!(after_call(&[DONE]), Step::Guard { fresh: Some(Offset(7)) });
    assert_eq!(after_call(&[DONE, DONE]), Step::Commit);
    let answers = [DONE, claimed(&[NEW], 0), DONE, DONE, DONE];
    assert_eq!(end(course(Intent::Apply), &answers), [Disposition::Applied]);
}

#[test]
fn what_is_known_is_committed_without_the_handler() {
    for (found, disposition) in [(KNOWN, Disposition::Duplicate), (PARKED, Disposition::AlreadyParked)] {
        let answers = [DONE, claimed(&[found], 0), DONE, DONE];
        assert_eq!(after(course(Intent::Apply), &answers[..2]), Step::Guard { fresh: None });
        assert_eq!(end(course(Intent::Apply), &answers), [disposition]);
    }
}

#[test]
fn skipped_tombstones_need_no_transaction() {
    let skipped = Course::new(vec![member(7, Intent::Skip, None); 2]);
    assert_eq!(end(skipped, &[]), [Disposition::Skipped; 2]);
}

#[test]
fn message_without_a_key_is_parked_after_it_was_judged() {
    let keyless = Course::new(vec![member(7, Intent::Park, None)]);
    assert_eq!(after(keyless.clone(), &[]), Step::Begin(Task::Park));
    assert_eq!(after(keyless.clone(), &[DONE]), Step::Claim);
    assert_eq!(after(keyless, &[DONE, claimed(&[KNOWN], 0)]), Step::Park(0));
}

#[test]
fn parked_message_gives_its_key_back() {
    let parked = course(Intent::Park);
    assert_eq!(after(parked.clone(), &[DONE, claimed(&[NEW], 0)]), Step::GiveBack);
    assert_eq!(after(parked, &[DONE, claimed(&[NEW], 0), DONE]), Step::Park(0));
}

#[test]
fn late_duplicate_gives_its_key_back() {
    let late = course(Intent::Apply);
    assert_eq!(after(late.clone(), &[DONE, claimed(&[NEW], 8)]), Step::GiveBack);
    assert_eq!(after(late, &[DONE, claimed(&[NEW], 8), DONE]), Step::Guard { fresh: None });
}

#[test]
fn rejected_message_is_parked_in_a_second_transaction() {
    assert_eq!(after_call(&[REJECTED]), Step::RollBack(Setback::Rejected));
    assert_eq!(after_call(&[REJECTED, REJECTED]), Step::Begin(Task::Park));
    let parked = [DONE, claimed(&[NEW], 0), DONE, DONE, DONE, DONE];
    let answers = [&[DONE, claimed(&[NEW], 0), REJECTED, REJECTED][..], &parked].concat();
    assert_eq!(end(course(Intent::Apply), &answers), [Disposition::Parked]);
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
    let claim = |row| Claim { keyed: true, found: NEW, row }.judge(Some(place));
    let row = |next| Some(ClaimedRow { next: NextOffset(next), passed: NextOffset(5), forgot: false });
    assert_eq!(claim(None), Err(Setback::Superseded));
    assert_eq!(claim(row(4)), Err(Setback::WentBack));
    assert_eq!(claim(row(5)), Ok(Verdict::Fresh));
}

#[test]
fn forgotten_key_is_a_late_duplicate_below_what_was_passed() {
    let row = Some(ClaimedRow { next: NextOffset(2), passed: NextOffset(8), forgot: false });
    let claim = Claim { keyed: true, found: NEW, row };
    let judge = |offset| claim.judge(Some(Place { offset: Offset(offset), acknowledged: NextOffset(2) }));
    assert_eq!(judge(7), Ok(Verdict::LateDuplicate));
    assert_eq!(judge(8), Ok(Verdict::Fresh));
    let ahead = Claim { keyed: true, found: Found { ahead: true, ..NEW }, row };
    let place = Place { offset: Offset(9), acknowledged: NextOffset(2) };
    assert_eq!(ahead.judge(Some(place)), Ok(Verdict::LateDuplicate), "or dealt with out of turn");
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
    let found = prop::sample::select(vec![NEW, NEW, NEW, KNOWN, PARKED]);
    let answer = prop_oneof![
        12 => Just(Answer::Done),
        4 => prop::collection::vec(found, 1..4).prop_map(|found| claimed(&found, 0)),
        2 => setback.prop_map(Answer::Failed),
    ];
    prop::collection::vec(answer, 1..30)
}

fn intents() -> impl Strategy<Value = Vec<Intent>> {
    prop::collection::vec(prop::sample::select(vec![Intent::Apply, Intent::Park, Intent::Skip]), 1..4)
}

proptest! {
    /// Also under answers that do not belong to the step.
    #[test]
    fn nothing_is_committed_that_was_not_claimed_and_guarded(answers in answers(), intents in intents()) {
        let members = (0..).zip(&intents).map(|(offset, &intent)| member(offset, intent, Some(0)));
        let mut course = Course::new(members.collect());
        let mut claimed = false;
        let mut guarded = false;
        for answer in answers {
            let step = course.step();
            match step {
                Step::Begin(_) => (claimed, guarded) = (false, false),
                Step::Claim => claimed = matches!(answer, Answer::Claimed { .. }),
                Step::Guard { .. } => guarded = answer == Answer::Done,
                Step::Commit => prop_assert!(claimed && guarded),
                _ => {}
            }
            course.answer(answer.clone());
            if let (Step::Commit, Answer::Done) = (step, answer) {
                prop_assert_eq!(course.step(), Step::End(Ok(())));
            }
        }
    }
}
