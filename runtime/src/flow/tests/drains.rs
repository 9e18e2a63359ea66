use super::*;

fn released(shell: &Shell) -> bool {
    shell.has(&Action::Released { tps: vec![TP] })
}

#[test]
fn drain_finishes_what_runs_and_commits_nothing_behind_it() {
    let mut shell = Shell::assigned();
    for offset in 0..3 {
        shell.record(offset);
    }
    let job = shell.start();
    shell.feed(Event::Revoke { tps: vec![TP] });
    shell.record(3);
    shell.feed(Event::Position { tp: TP, epoch: EPOCH, position: NextOffset(9) });
    assert!(!released(&shell));
    shell.finish(job.id, Outcome::Done);
    assert!(shell.started().is_empty() && !released(&shell));
    assert_eq!(shell.kafka_answers(true), 1, "at once: the others are waiting");
    assert!(released(&shell));
}

#[test]
fn drain_saves_skipped_records_before_it_commits_them() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.feed(Event::Revoke { tps: vec![TP] });
    shell.finish(job.id, Outcome::Skipped);
    assert!(shell.commits().is_empty());
    shell.database_answers(SavedResult::Ok);
    assert_eq!(shell.kafka_answers(true), 1);
    assert!(released(&shell));
}

#[test]
fn drain_that_a_handler_stops_saves_what_is_dealt_with() {
    let mut shell = Shell::assigned();
    shell.record(0);
    shell.record(1);
    let skipped = shell.start();
    shell.finish(skipped.id, Outcome::Skipped);
    let ending = shell.start();
    shell.feed(Event::Drain);
    shell.finish(ending.id, Outcome::TransactionEnded);
    assert_eq!(shell.database_answers(SavedResult::Ok).watermark, NextOffset(1));
    shell.kafka_answers(true);
    assert!(shell.has(&Action::Finished));
}

#[test]
fn drain_deadline_cancels_handlers_and_commits_what_is_durable() {
    let mut shell = Shell::assigned();
    shell.record(0);
    shell.record(1);
    let done = shell.start();
    shell.finish(done.id, Outcome::Done);
    let stuck = shell.start();
    shell.feed(Event::Revoke { tps: vec![TP] });
    shell.feed(Event::DrainDeadline { tps: vec![TP] });
    assert!(shell.has(&Action::Cancel { job: stuck.id }));
    assert_eq!(shell.kafka_answers(false), 1);
    assert!(released(&shell), "a commit that fails after the deadline holds nobody up");
}

#[test]
fn drain_gives_up_commits_that_keep_failing() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Done);
    shell.feed(Event::Revoke { tps: vec![TP] });
    for _ in 0..2 {
        shell.kafka_answers(false);
        assert!(!released(&shell));
        shell.sleep();
    }
    shell.kafka_answers(false);
    assert!(released(&shell));
}

#[test]
fn slow_answers_do_not_keep_a_partition_from_being_released() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Done);
    shell.feed(Event::Revoke { tps: vec![TP] });
    // Longer than `assert_every` and `confirm_every`.
    shell.after(60_000);
    shell.kafka_answers(true);
    assert!(released(&shell));
}

#[test]
fn lost_partition_commits_nothing() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Done);
    shell.feed(Event::Lost { tps: vec![TP] });
    shell.after(10_000);
    assert!(shell.commits().is_empty());
    assert_eq!(shell.core.next_wakeup(), None);
}

#[test]
fn partition_that_is_not_ours_is_released_at_once() {
    let mut shell = Shell::new(Config::default());
    shell.feed(Event::Revoke { tps: vec![TP] });
    assert!(released(&shell));
}

#[test]
fn partition_lost_while_it_drains_is_released() {
    let mut shell = Shell::assigned();
    shell.record(0);
    shell.feed(Event::Revoke { tps: vec![TP] });
    shell.feed(Event::Lost { tps: vec![TP] });
    assert!(released(&shell));
}

#[test]
fn shutdown_finishes_when_the_last_job_has_ended() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.feed(Event::Drain);
    assert!(shell.has(&Action::Pause { tp: TP, epoch: EPOCH }));
    shell.feed(Event::DrainDeadline { tps: vec![TP] });
    assert!(released(&shell) && !shell.has(&Action::Finished));
    shell.assign(tp(1), EPOCH, Some(0), 0);
    shell.finish(job.id, Outcome::Cancelled);
    assert!(shell.has(&Action::Finished));
}
