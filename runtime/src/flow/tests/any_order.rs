use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Happens {
    Assigned(i32),
    Record(i32, i64),
    Finished(prop::sample::Index, Outcome),
    Saved(SavedResult),
    Committed(bool),
    Idle(i32),
    Time(u64),
    Revoked(i32),
    Deadline(i32),
    Lost(i32),
}

fn happens() -> impl Strategy<Value = Happens> {
    let outcome = prop::sample::select(vec![
        Outcome::Done,
        Outcome::Done,
        Outcome::Done,
        Outcome::Skipped,
        Outcome::Environment,
        Outcome::Unknown,
        Outcome::Failed,
        Outcome::Rejected,
        Outcome::Cancelled,
        Outcome::WentBack,
    ]);
    let saved = prop::sample::select(vec![SavedResult::Ok, SavedResult::Ok, SavedResult::Failed]);
    prop_oneof![
        2 => (0..3).prop_map(Happens::Assigned),
        8 => (0..3, 0_i64..3).prop_map(|(partition, gap)| Happens::Record(partition, gap)),
        8 => (any::<prop::sample::Index>(), outcome).prop_map(|(job, outcome)| Happens::Finished(job, outcome)),
        3 => saved.prop_map(Happens::Saved),
        3 => any::<bool>().prop_map(Happens::Committed),
        2 => (0..3).prop_map(Happens::Idle),
        4 => (0_u64..2_000).prop_map(Happens::Time),
        1 => (0..3).prop_map(Happens::Revoked),
        1 => (0..3).prop_map(Happens::Deadline),
        1 => (0..3).prop_map(Happens::Lost),
    ]
}

/// What is true of a partition, kept apart from the core: every record fetched, and whether it is done.
#[derive(Debug, Default)]
struct Model {
    epoch: u64,
    next: i64,
    done: BTreeMap<i64, bool>,
    leaving: bool,
}

struct World {
    shell: Shell,
    models: BTreeMap<Tp, Model>,
    running: BTreeMap<JobId, Job<i64>>,
    saves: Vec<Save>,
    commit: Vec<(Tp, Epoch, NextOffset)>,
    epochs: u64,
    finished: bool,
}

impl World {
    fn new(batch: usize, order: Order) -> Self {
        let config = Config { max_running: 2, records_high: 4, records_low: 2, ..Config::default() };
        Self {
            shell: Shell { batch, order, ..Shell::new(config) },
            models: BTreeMap::new(),
            running: BTreeMap::new(),
            saves: Vec::new(),
            commit: Vec::new(),
            epochs: 0,
            finished: false,
        }
    }

    fn go(&mut self, happens: Happens) {
        match happens {
            Happens::Assigned(partition) => {
                if !self.models.contains_key(&tp(partition)) {
                    self.epochs += 1;
                    self.models.insert(tp(partition), Model { epoch: self.epochs, ..Model::default() });
                    self.shell.assign(tp(partition), Epoch(self.epochs), Some(0), 0);
                }
            }
            Happens::Record(partition, gap) => {
                let Some(model) = self.models.get_mut(&tp(partition)) else { return };
                let offset = model.next + gap;
                model.next = offset + 1;
                if !model.leaving {
                    model.done.insert(offset, false);
                }
                let epoch = Epoch(model.epoch);
                self.shell.keyed_record_of(tp(partition), epoch, offset, key(offset));
            }
            Happens::Finished(index, outcome) => {
                if !self.running.is_empty() {
                    let id = *self.running.keys().nth(index.index(self.running.len())).unwrap();
                    self.finish(id, outcome);
                }
            }
            Happens::Saved(result) => {
                let answer =
                    |&Save { lane, epoch, watermark, .. }: &Save| Saved { lane, epoch, watermark, result };
                let saved: Vec<_> = self.saves.iter().map(answer).collect();
                self.saves.clear();
                if !saved.is_empty() {
                    self.shell.feed(Event::ProgressSaved { saved });
                }
            }
            Happens::Committed(ok) => {
                let offsets = std::mem::take(&mut self.commit);
                if !offsets.is_empty() {
                    self.shell.feed(Event::Committed { offsets, ok });
                }
            }
            Happens::Idle(partition) => {
                if let Some(Model { epoch, next, .. }) = self.models.get(&tp(partition)) {
                    let (epoch, position) = (Epoch(*epoch), NextOffset(*next));
                    self.shell.feed(Event::Position { tp: tp(partition), epoch, position });
                }
            }
            Happens::Time(span) => self.shell.after(span),
            Happens::Revoked(partition) => {
                if let Some(model) = self.models.get_mut(&tp(partition)) {
                    model.leaving = true;
                    self.shell.feed(Event::Revoke { tps: vec![tp(partition)] });
                }
            }
            Happens::Deadline(partition) => {
                self.shell.feed(Event::DrainDeadline { tps: vec![tp(partition)] });
            }
            Happens::Lost(partition) => {
                self.models.remove(&tp(partition));
                self.shell.feed(Event::Lost { tps: vec![tp(partition)] });
            }
        }
        self.settle();
    }

    fn finish(&mut self, id: JobId, outcome: Outcome) {
        let job = self.running.remove(&id).unwrap();
        if let Outcome::Done | Outcome::Skipped = outcome
            && let Some(model) =
                self.models.get_mut(&job.lane.tp).filter(|model| Epoch(model.epoch) == job.epoch)
        {
            model.done.extend(job.offsets().into_iter().map(|offset| (offset, true)));
        }
        self.shell.finish(id, outcome);
    }

    /// Does what the core asks for, and holds it to its promises.
    fn settle(&mut self) {
        for action in std::mem::take(&mut self.shell.actions) {
            match action {
                Action::Start(job) => {
                    assert!(self.running.len() < 2, "more jobs than permits");
                    let track = |job: &Job<i64>| (job.lane, job.track);
                    assert!(self.running.values().all(|other| track(other) != track(&job)), "two of a track");
                    let offsets = job.offsets();
                    assert!(!offsets.is_empty() && offsets.is_sorted(), "{job:?}");
                    assert!(job.task == Task::Apply || offsets.len() == 1, "{job:?} parks several");
                    let unfinished = self.unfinished(job.lane.tp, &offsets);
                    assert!(job.watermark <= unfinished, "{job:?} claims to be past {unfinished}");
                    assert!(!self.overtakes(job.lane.tp, &offsets), "{job:?} is before its turn");
                    self.running.insert(job.id, job);
                }
                Action::SaveProgress(saves) => {
                    assert!(self.saves.is_empty(), "two saves at a time");
                    for save in &saves {
                        assert!(save.watermark <= self.unfinished(save.lane.tp, &[]).max(save.acknowledged));
                    }
                    self.saves = saves;
                }
                Action::Commit(offsets) => {
                    assert!(self.commit.is_empty(), "two commits at a time");
                    for &(tp, _, next) in &offsets {
                        assert!(
                            next <= self.unfinished(tp, &[]),
                            "{next} of {tp:?} is past an unfinished record"
                        );
                    }
                    self.commit = offsets;
                }
                Action::Released { tps } => self.models.retain(|tp, _| !tps.contains(tp)),
                Action::Reassign { tp, .. } => {
                    self.models.remove(&tp);
                }
                Action::Finished => self.finished = true,
                Action::Pause { .. } | Action::Resume { .. } | Action::Cancel { .. } => {}
                Action::Stop { reason } => panic!("{reason:?}"),
            }
        }
    }

    fn unfinished(&self, tp: Tp, except: &[i64]) -> NextOffset {
        let model = &self.models[&tp];
        let open = |(offset, done): (&i64, &bool)| (!done && !except.contains(offset)).then_some(*offset);
        NextOffset(model.done.iter().find_map(open).unwrap_or(model.next))
    }

    /// Whether something that has to come before these records is neither done nor among them.
    fn overtakes(&self, tp: Tp, offsets: &[i64]) -> bool {
        let order = self.shell.order;
        let comes_before = |earlier: i64, offset: i64| match order {
            Order::Partition => true,
            Order::Key => key(earlier).is_some() && key(earlier) == key(offset),
            Order::None => false,
        };
        let open = self.models[&tp].done.iter().filter(|(offset, done)| !**done && !offsets.contains(offset));
        open.map(|(offset, _)| *offset)
            .any(|earlier| offsets.iter().any(|&offset| earlier < offset && comes_before(earlier, offset)))
    }

    /// Ends everything in good order.
    fn end(&mut self) {
        self.shell.feed(Event::Drain);
        self.settle();
        for _ in 0..20 {
            for id in self.running.keys().copied().collect::<Vec<_>>() {
                self.finish(id, Outcome::Done);
                self.settle();
            }
            self.go(Happens::Saved(SavedResult::Ok));
            self.go(Happens::Committed(true));
            self.go(Happens::Time(20_000));
        }
    }
}

/// Two keys share a track, and some records have none.
fn key(offset: i64) -> Option<u64> {
    [Some(1), Some(17), None, Some(2)][usize::try_from(offset % 4).expect("not negative")]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_order_of_events_passes_an_unfinished_record_or_keeps_a_partition(
        events in prop::collection::vec(happens(), 1..150),
        batch in prop::sample::select(vec![1_usize, 3, 100]),
        order in prop::sample::select(vec![Order::Partition, Order::Key, Order::None]),
    ) {
        let mut world = World::new(batch, order);
        for event in events {
            world.go(event);
        }
        world.end();
        prop_assert!(world.finished, "{:?}", world.shell.core.snapshot());
        prop_assert!(world.models.is_empty());
    }
}
