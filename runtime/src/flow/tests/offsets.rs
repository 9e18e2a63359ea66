use super::*;

#[test]
fn job_carries_the_lowest_other_unfinished_offset() {
    let mut shell = Shell::assigned();
    for offset in [3, 7, 12] {
        shell.record(offset);
    }
    let first = shell.start();
    shell.finish(first.id, Outcome::Done);
    let second = shell.start();
    assert_eq!((second.offsets(), second.watermark), (vec![7], NextOffset(12)));
    shell.finish(second.id, Outcome::Done);
    let last = shell.start();
    assert_eq!((last.watermark, last.acknowledged), (NextOffset(13), NextOffset(12)));
}

#[test]
fn lane_runs_one_record_at_a_time_in_order() {
    let mut shell = Shell::assigned();
    for offset in 0..3 {
        shell.record(offset);
    }
    let mut order = Vec::new();
    for _ in 0..3 {
        let started = shell.started();
        assert_eq!(started.len(), 1);
        order.extend(started[0].offsets());
        shell.finish(started[0].id, Outcome::Done);
    }
    assert_eq!(order, [0, 1, 2]);
}

#[test]
fn record_is_done_when_all_its_handlers_are() {
    let mut shell = Shell::new(Config::default());
    let (acknowledged, order) = (NextOffset(0), Order::Partition);
    let lane = LaneStart { acknowledged, order, attempts: 2, batch: 1, together: false };
    shell.feed(Event::Assigned { tp: TP, epoch: EPOCH, start: Some(NextOffset(0)), lanes: vec![lane; 2] });
    shell.kafka_answers(true);
    shell.record(0);
    let jobs = shell.started();
    shell.finish(jobs[0].id, Outcome::Done);
    shell.after(100);
    assert!(shell.commits().is_empty());
    shell.finish(jobs[1].id, Outcome::Done);
    assert_eq!(shell.kafka_answers(true), 1);
}

#[test]
fn skipped_record_is_in_the_row_before_its_offset_is_committed() {
    let mut shell = Shell::assigned();
    shell.record(4);
    let job = shell.start();
    shell.finish(job.id, Outcome::Skipped);
    shell.after(100);
    assert!(shell.commits().iter().flatten().all(|&(.., next)| next == NextOffset(0)));
    let save = shell.database_answers(SavedResult::Ok);
    assert_eq!((save.watermark, save.acknowledged), (NextOffset(5), NextOffset(0)));
    shell.after(100);
    assert_eq!(shell.kafka_answers(true), 5);
}

#[test]
fn idle_position_goes_past_transaction_markers() {
    let mut shell = Shell::assigned();
    shell.feed(Event::Position { tp: TP, epoch: EPOCH, position: NextOffset(9) });
    shell.database_answers(SavedResult::Ok);
    shell.after(100);
    assert_eq!(shell.kafka_answers(true), 9);
}

#[test]
fn start_below_the_row_commits_what_was_read_and_never_lowers_the_row() {
    let mut shell = Shell::new(Config::default());
    shell.assign(TP, EPOCH, Some(3), 10);
    assert_eq!(shell.kafka_answers(true), 3);
    shell.record(3);
    let job = shell.start();
    assert_eq!(job.acknowledged, NextOffset(10));
    shell.finish(job.id, Outcome::Done);
    shell.after(100);
    assert_eq!(shell.kafka_answers(true), 4);
    shell.record(4);
    assert_eq!(shell.start().acknowledged, NextOffset(10));
}

#[test]
fn commits_are_coalesced_and_one_at_a_time() {
    let mut shell = Shell::assigned();
    for offset in 0..5 {
        shell.record(offset);
        let job = shell.start();
        shell.finish(job.id, Outcome::Done);
    }
    assert!(shell.commits().is_empty(), "100 ms have not passed");
    shell.after(100);
    let asked = shell.commits();
    assert_eq!(asked, [vec![(TP, EPOCH, NextOffset(5))]]);
    shell.record(5);
    let job = shell.start();
    shell.finish(job.id, Outcome::Done);
    shell.after(1_000);
    assert!(shell.commits().is_empty(), "the last one is not answered");
}

#[test]
fn failed_commit_is_superseded_by_the_newest() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Done);
    shell.after(100);
    assert_eq!(shell.kafka_answers(false), 1);
    shell.record(1);
    let job = shell.start();
    shell.finish(job.id, Outcome::Done);
    shell.after(100);
    assert_eq!(shell.kafka_answers(true), 2);
}

#[test]
fn offsets_are_asserted_again_while_nothing_moves() {
    let mut shell = Shell::assigned();
    assert_eq!(shell.sleep(), Config::default().assert_every);
    assert_eq!(shell.kafka_answers(true), 0);
}

#[test]
fn resting_row_is_read_again() {
    let mut shell = Shell::assigned();
    // The first round finds it confirmed by the assignment.
    for _ in 0..2 {
        assert!(!shell.asked_to_save());
        shell.after(Config::default().confirm_every.0);
        shell.kafka_answers(true);
    }
    let save = shell.database_answers(SavedResult::WentBack);
    assert_eq!(save.watermark, save.acknowledged);
    assert!(shell.has(&Action::Reassign { tp: TP, epoch: EPOCH, reason: ReassignReason::WentBack }));
}

#[test]
fn row_that_went_back_closes_the_epoch() {
    let mut shell = Shell::assigned();
    shell.record(0);
    shell.record(1);
    let job = shell.start();
    shell.finish(job.id, Outcome::WentBack);
    assert!(shell.has(&Action::Reassign { tp: TP, epoch: EPOCH, reason: ReassignReason::WentBack }));
    assert!(shell.core.snapshot().partitions.is_empty());
    assert!(shell.started().is_empty());
}

#[test]
fn late_events_of_an_earlier_epoch_move_nothing() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.assign(TP, Epoch(2), Some(0), 0);
    shell.record(7);
    shell.feed(Event::Position { tp: TP, epoch: EPOCH, position: NextOffset(9) });
    shell.finish(job.id, Outcome::Done);
    assert!(shell.started().is_empty());
    let snapshot = shell.core.snapshot();
    assert_eq!(snapshot.partitions[0].lanes[0].next, Some(NextOffset(0)));
}
