use super::*;

#[test]
fn failing_record_keeps_its_place_and_is_parked_after_its_attempts() {
    let mut shell = Shell::assigned();
    shell.record(0);
    shell.record(1);
    let first = shell.start();
    shell.finish(first.id, Outcome::Failed);
    assert!(shell.started().is_empty(), "nothing overtakes it");
    shell.sleep();
    let second = shell.start();
    assert_eq!((second.offsets(), second.attempt, second.task), (vec![0], 2, Task::Apply));
    shell.finish(second.id, Outcome::Failed);
    let parked = shell.start();
    assert_eq!((parked.offsets(), parked.attempt, parked.task), (vec![0], 2, Task::Park));
    shell.finish(parked.id, Outcome::Done);
    let next = shell.start();
    assert_eq!((next.offsets(), next.attempt, next.task), (vec![1], 1, Task::Apply));
}

#[test]
fn rejected_record_is_parked_at_once() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Rejected);
    assert_eq!(shell.start().task, Task::Park);
}

#[test]
fn neither_the_environment_nor_an_unknown_commit_is_an_attempt() {
    let mut shell = Shell::assigned();
    shell.record(0);
    for outcome in [Outcome::Environment, Outcome::Unknown, Outcome::Cancelled].repeat(10) {
        let job = shell.start();
        assert_eq!((job.attempt, job.task), (1, Task::Apply));
        shell.finish(job.id, outcome);
        while shell.core.snapshot().running == 0 {
            shell.sleep();
        }
    }
}

#[test]
fn parking_that_fails_is_tried_for_ever() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Rejected);
    for outcome in [Outcome::Failed, Outcome::Rejected, Outcome::Environment, Outcome::Unknown].repeat(3) {
        let job = shell.start();
        assert_eq!((job.attempt, job.task), (1, Task::Park));
        shell.finish(job.id, outcome);
        while shell.core.snapshot().running == 0 {
            shell.sleep();
        }
    }
}

#[test]
fn unknown_commit_is_asked_again_soon() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Unknown);
    assert!(shell.sleep() <= Millis(50));
    assert_eq!(shell.start().offsets(), [0]);
}

#[test]
fn transaction_ended_by_its_handler_is_never_run_again() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::TransactionEnded);
    let reason = StopReason::TransactionEnded { lane: LANE, offset: Offset(0) };
    assert!(shell.has(&Action::Stop { reason }));
    assert!(shell.has(&Action::Released { tps: vec![TP] }));
    assert!(shell.has(&Action::Finished));
    assert!(shell.started().is_empty() && shell.commits().is_empty());
}
