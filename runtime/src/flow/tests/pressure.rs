use super::*;

fn config() -> Config {
    Config { records_high: 3, records_low: 1, ..Config::default() }
}

#[test]
fn partition_is_paused_at_its_high_mark_and_resumed_at_its_low() {
    let mut shell = Shell::new(config());
    shell.assign(TP, EPOCH, Some(0), 0);
    for offset in 0..3 {
        shell.record(offset);
    }
    assert!(shell.has(&Action::Pause { tp: TP, epoch: EPOCH }));
    // Pausing is advisory: what still arrives is kept.
    shell.record(3);
    for left in [3, 2, 1] {
        assert!(!shell.has(&Action::Resume { tp: TP, epoch: EPOCH }), "{left} and one more are held");
        let job = shell.start();
        shell.finish(job.id, Outcome::Done);
    }
    assert!(shell.has(&Action::Resume { tp: TP, epoch: EPOCH }));
    assert_eq!(shell.start().offsets(), [3]);
}

#[test]
fn stuck_partition_does_not_starve_the_others_of_memory() {
    let mut shell = Shell::new(Config { bytes_high: 30, bytes_low: 10, ..Config::default() });
    shell.assign(tp(0), EPOCH, Some(0), 0);
    shell.assign(tp(1), EPOCH, Some(0), 0);
    for offset in 0..3 {
        shell.record_of(tp(0), EPOCH, offset);
    }
    assert!(shell.has(&Action::Pause { tp: tp(0), epoch: EPOCH }));
    assert!(!shell.has(&Action::Pause { tp: tp(1), epoch: EPOCH }));
    let _stuck = shell.started();
    shell.record_of(tp(1), EPOCH, 0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Done);
    assert!(shell.has(&Action::Resume { tp: tp(1), epoch: EPOCH }), "it holds nothing");
}

#[test]
fn lanes_take_turns_for_a_permit() {
    let mut shell = Shell::new(Config { max_running: 1, ..Config::default() });
    for partition in 0..3 {
        shell.assign(tp(partition), EPOCH, Some(0), 0);
        shell.record_of(tp(partition), EPOCH, 0);
        shell.record_of(tp(partition), EPOCH, 1);
    }
    let mut order = Vec::new();
    for _ in 0..6 {
        let started = shell.started();
        assert_eq!(started.len(), 1);
        order.push(started[0].lane.tp.partition);
        shell.finish(started[0].id, Outcome::Done);
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn job_of_a_lost_partition_keeps_its_permit_until_it_ends() {
    let mut shell = Shell::new(Config { max_running: 1, ..Config::default() });
    shell.assign(tp(0), EPOCH, Some(0), 0);
    shell.assign(tp(1), EPOCH, Some(0), 0);
    shell.record_of(tp(0), EPOCH, 0);
    shell.record_of(tp(1), EPOCH, 0);
    let job = shell.start();
    shell.feed(Event::Lost { tps: vec![tp(0)] });
    assert!(shell.has(&Action::Cancel { job: job.id }));
    assert!(shell.started().is_empty());
    shell.finish(job.id, Outcome::Cancelled);
    assert_eq!(shell.start().lane.tp, tp(1));
}

#[test]
fn next_epoch_of_a_lane_waits_for_the_job_of_the_last() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.feed(Event::Lost { tps: vec![TP] });
    shell.assign(TP, Epoch(2), Some(0), 0);
    shell.record_of(TP, Epoch(2), 0);
    assert!(shell.started().is_empty());
    shell.finish(job.id, Outcome::Done);
    assert_eq!(shell.start().epoch, Epoch(2));
}

#[test]
fn core_sleeps_exactly_until_something_is_due() {
    let mut shell = Shell::assigned();
    shell.record(0);
    let job = shell.start();
    shell.finish(job.id, Outcome::Failed);
    let due = shell.core.next_wakeup().expect("a retry is due");
    shell.now = Millis(due.0 - 1);
    shell.feed(Event::Tick);
    assert!(shell.started().is_empty());
    shell.now = due;
    shell.feed(Event::Tick);
    assert_eq!(shell.start().attempt, 2);
}
