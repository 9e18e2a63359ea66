use super::*;

/// One partition whose records have keys, or none, and one job for each.
fn shell(order: Order, keys: &[Option<u64>]) -> Shell {
    let mut shell = Shell { order, ..Shell::new(Config { max_running: 100, ..Config::default() }) };
    shell.assign(TP, EPOCH, Some(0), 0);
    shell.kafka_answers(true);
    for (offset, key) in (0..).zip(keys) {
        shell.keyed_record_of(TP, EPOCH, offset, *key);
    }
    shell
}

fn by_key(keys: &[u64]) -> Shell {
    shell(Order::Key, &keys.iter().copied().map(Some).collect::<Vec<_>>())
}

fn offsets(jobs: &[Job<i64>]) -> Vec<i64> {
    jobs.iter().flat_map(Job::offsets).collect()
}

#[test]
fn records_of_different_keys_run_side_by_side() {
    assert_eq!(offsets(&by_key(&[1, 2, 3]).started()), [0, 1, 2]);
}

#[test]
fn records_of_one_key_run_one_after_the_other() {
    let mut shell = by_key(&[1, 1, 1]);
    for offset in 0..3 {
        let started = shell.started();
        assert_eq!(offsets(&started), [offset]);
        shell.finish(started[0].id, Outcome::Done);
    }
}

#[test]
fn a_record_that_fails_holds_up_its_key_alone() {
    let mut shell = by_key(&[1, 2, 1, 2]);
    let jobs = shell.started();
    shell.finish(jobs[0].id, Outcome::Failed);
    shell.finish(jobs[1].id, Outcome::Done);
    let other = shell.start();
    assert_eq!(other.offsets(), [3]);
    shell.sleep();
    let again = shell.start();
    assert_eq!((again.offsets(), again.attempt), (vec![0], 2));
    shell.finish(again.id, Outcome::Done);
    assert_eq!(shell.start().offsets(), [2]);
}

#[test]
fn a_record_that_is_parked_lets_those_of_its_key_pass() {
    let mut shell = by_key(&[1, 1]);
    let rejected = shell.start();
    shell.finish(rejected.id, Outcome::Rejected);
    let parked = shell.start();
    assert_eq!((parked.offsets(), parked.task), (vec![0], Task::Park));
    shell.finish(parked.id, Outcome::Done);
    assert_eq!(shell.start().offsets(), [1]);
}

#[test]
fn records_without_a_key_wait_for_nobody() {
    let mut shell = shell(Order::Key, &[Some(1), None, None, Some(1)]);
    assert_eq!(offsets(&shell.started()), [0, 1, 2]);
}

#[test]
fn without_an_order_a_record_goes_to_whichever_track_has_time() {
    let mut shell = shell(Order::None, &[Some(1); 40]);
    let jobs = shell.started();
    let tracks = i64::try_from(jobs.len()).expect("few");
    assert!(tracks > 1);
    shell.finish(jobs[3].id, Outcome::Done);
    assert_eq!(shell.start().offsets(), [tracks]);
    shell.finish(jobs[5].id, Outcome::Failed);
    assert!(shell.started().is_empty(), "one that is tried again holds up its own track");
    shell.finish(jobs[2].id, Outcome::Done);
    assert_eq!(shell.start().offsets(), [tracks + 1]);
}

#[test]
fn a_track_of_no_order_takes_its_backlog_many_at_a_time() {
    let mut shell = Shell { batch: 100, ..shell(Order::None, &[]) };
    shell.assign(TP, Epoch(2), Some(0), 0);
    for offset in 0..60 {
        shell.keyed_record_of(TP, Epoch(2), offset, None);
    }
    let jobs = shell.started();
    let first = i64::try_from(jobs.len()).expect("few");
    shell.finish(jobs[0].id, Outcome::Done);
    assert_eq!(shell.start().offsets(), (first..first + 17).collect::<Vec<_>>());
}

#[test]
fn a_batch_that_fails_is_looked_through_in_its_own_track() {
    let mut shell = Shell { batch: 100, ..shell(Order::None, &[]) };
    shell.assign(TP, Epoch(2), Some(0), 0);
    for offset in 0..60 {
        shell.keyed_record_of(TP, Epoch(2), offset, None);
    }
    let jobs = shell.started();
    shell.finish(jobs[0].id, Outcome::Done);
    let batch = shell.start();
    shell.finish(batch.id, Outcome::Failed);
    let track = batch.track;
    for offset in batch.offsets() {
        let alone = shell.start();
        assert_eq!((alone.offsets(), alone.track), (vec![offset], track));
        shell.finish(alone.id, Outcome::Done);
    }
}

#[test]
fn no_track_raises_the_row_above_what_another_has_not_finished() {
    let mut shell = by_key(&[1, 2, 1, 3]);
    let jobs = shell.started();
    let watermarks: Vec<_> = jobs.iter().map(|job| (job.offsets()[0], job.watermark.0)).collect();
    assert_eq!(watermarks, [(0, 1), (1, 0), (3, 0)]);
    shell.finish(jobs[1].id, Outcome::Done);
    shell.finish(jobs[2].id, Outcome::Done);
    shell.after(100);
    assert!(shell.commits().is_empty(), "the first record is not done");
    shell.finish(jobs[0].id, Outcome::Done);
    assert_eq!(shell.start().watermark, NextOffset(4), "everything but its own is done");
}

#[test]
fn what_was_acknowledged_to_one_track_is_demanded_by_the_next_job_of_another() {
    let mut shell = by_key(&[1, 2]);
    let jobs = shell.started();
    assert!(jobs.iter().all(|job| job.acknowledged == NextOffset(0)));
    shell.finish(jobs[0].id, Outcome::Done);
    shell.keyed_record_of(TP, EPOCH, 2, Some(3));
    let third = shell.start();
    assert_eq!((third.watermark, third.acknowledged), (NextOffset(1), NextOffset(1)));
    shell.finish(jobs[1].id, Outcome::Done);
    shell.keyed_record_of(TP, EPOCH, 3, Some(4));
    assert_eq!(shell.start().acknowledged, NextOffset(1), "nobody has seen more in the row");
}

fn spans(offsets: &Offsets) -> Vec<(i64, i64)> {
    offsets.spans().map(|(first, end)| (first.0, end.0)).collect()
}

#[test]
fn what_is_done_out_of_turn_is_given_to_the_row_and_demanded_until_it_is_passed() {
    let mut shell = by_key(&[1, 2]);
    let jobs = shell.started();
    shell.keyed_record_of(TP, EPOCH, 4, Some(3));
    let ahead = shell.start();
    assert_eq!(
        (spans(&ahead.ahead.added), spans(&ahead.ahead.relied)),
        (vec![(2, 5)], vec![]),
        "with its gap"
    );
    shell.finish(ahead.id, Outcome::Done);
    shell.finish(jobs[1].id, Outcome::Failed);
    shell.sleep();
    let again = shell.start();
    assert_eq!((again.offsets(), spans(&again.ahead.relied)), (vec![1], vec![(2, 5)]));
    shell.finish(again.id, Outcome::Done);
    shell.finish(jobs[0].id, Outcome::Done);
    let save = shell.database_answers(SavedResult::Ok);
    assert_eq!((save.watermark, spans(&save.relied)), (NextOffset(5), vec![(1, 5)]));
    shell.keyed_record_of(TP, EPOCH, 5, Some(1));
    assert_eq!(spans(&shell.start().ahead.relied), []);
}

#[test]
fn what_is_skipped_out_of_turn_is_not_demanded() {
    let mut shell = by_key(&[1, 2]);
    let jobs = shell.started();
    shell.finish(jobs[1].id, Outcome::Skipped);
    shell.keyed_record_of(TP, EPOCH, 2, Some(3));
    assert_eq!(spans(&shell.start().ahead.relied), []);
}

#[test]
fn the_row_is_brought_up_once_all_tracks_rest() {
    let mut shell = by_key(&[1, 2]);
    let jobs = shell.started();
    shell.finish(jobs[0].id, Outcome::Done);
    assert!(!shell.asked_to_save(), "the other is going to write it");
    shell.finish(jobs[1].id, Outcome::Done);
    let save = shell.database_answers(SavedResult::Ok);
    assert_eq!((save.watermark, save.acknowledged), (NextOffset(2), NextOffset(1)));
    shell.after(100);
    assert_eq!(shell.kafka_answers(true), 2);
}

#[test]
fn a_track_that_finds_nothing_left_does_not_keep_the_row_from_being_brought_up() {
    let mut shell =
        Shell { order: Order::None, ..Shell::new(Config { max_running: 1, ..Config::default() }) };
    shell.assign(tp(0), EPOCH, Some(0), 0);
    shell.assign(tp(1), EPOCH, Some(0), 0);
    for offset in 0..3 {
        shell.record_of(tp(0), EPOCH, offset);
    }
    for _ in 0..2 {
        let job = shell.start();
        shell.finish(job.id, Outcome::Done);
    }
    shell.record_of(tp(1), EPOCH, 0);
    let last = shell.start();
    shell.finish(last.id, Outcome::Skipped);
    let other = shell.start();
    assert_eq!((last.offsets(), other.lane.tp), (vec![2], tp(1)));
    assert!(!shell.asked_to_save(), "a track is still in line");
    shell.finish(other.id, Outcome::Done);
    let save = shell.database_answers(SavedResult::Ok);
    assert_eq!((save.lane.tp, save.watermark), (tp(0), NextOffset(3)));
}

#[test]
fn partitions_take_turns_however_many_tracks_they_have() {
    let mut shell =
        Shell { order: Order::None, ..Shell::new(Config { max_running: 1, ..Config::default() }) };
    for partition in 0..2 {
        shell.assign(tp(partition), EPOCH, Some(0), 0);
    }
    for offset in 0..10 {
        shell.record_of(tp(0), EPOCH, offset);
    }
    for offset in 0..2 {
        shell.record_of(tp(1), EPOCH, offset);
    }
    let mut order = Vec::new();
    for _ in 0..5 {
        let job = shell.start();
        order.push(job.lane.tp.partition);
        shell.finish(job.id, Outcome::Done);
    }
    assert_eq!(order, [0, 0, 1, 0, 1]);
}

#[test]
fn one_slow_key_stops_the_partition_only_when_its_limit_of_records_is_reached() {
    let config = Config { records_high: 4, records_low: 2, ..Config::default() };
    let mut shell = Shell { order: Order::Key, ..Shell::new(config) };
    shell.assign(TP, EPOCH, Some(0), 0);
    shell.keyed_record_of(TP, EPOCH, 0, Some(1));
    let _slow = shell.start();
    for offset in 1..100 {
        shell.keyed_record_of(TP, EPOCH, offset, Some(2));
        let job = shell.start();
        shell.finish(job.id, Outcome::Done);
    }
    assert!(!shell.has(&Action::Pause { tp: TP, epoch: EPOCH }));
    for offset in 100..103 {
        shell.keyed_record_of(TP, EPOCH, offset, Some(1));
    }
    assert!(shell.has(&Action::Pause { tp: TP, epoch: EPOCH }));
}

#[test]
fn a_row_that_went_back_calls_off_every_track() {
    let mut shell = by_key(&[1, 2, 3]);
    let jobs = shell.started();
    shell.finish(jobs[1].id, Outcome::WentBack);
    assert!(shell.has(&Action::Cancel { job: jobs[0].id }) && shell.has(&Action::Cancel { job: jobs[2].id }));
    assert!(shell.has(&Action::Reassign { tp: TP, epoch: EPOCH, reason: ReassignReason::WentBack }));
}

#[test]
fn next_epoch_of_a_key_waits_for_its_job_of_the_last_and_other_keys_do_not() {
    let mut shell = by_key(&[1]);
    let job = shell.start();
    shell.feed(Event::Lost { tps: vec![TP] });
    shell.assign(TP, Epoch(2), Some(0), 0);
    for (offset, key) in [(0, 1), (1, 2)] {
        shell.keyed_record_of(TP, Epoch(2), offset, Some(key));
    }
    assert_eq!(shell.start().offsets(), [1]);
    shell.finish(job.id, Outcome::Done);
    assert_eq!(shell.start().offsets(), [0]);
}

#[test]
fn a_drain_waits_for_every_track_and_commits_below_the_lowest_that_is_left() {
    let mut shell = by_key(&[1, 2, 3]);
    let jobs = shell.started();
    shell.feed(Event::Revoke { tps: vec![TP] });
    shell.finish(jobs[0].id, Outcome::Done);
    shell.finish(jobs[2].id, Outcome::Done);
    let released = Action::Released { tps: vec![TP] };
    assert!(!shell.has(&released), "one still runs");
    shell.finish(jobs[1].id, Outcome::Failed);
    assert_eq!(shell.kafka_answers(true), 1);
    assert!(shell.has(&released) && shell.started().is_empty());
}
