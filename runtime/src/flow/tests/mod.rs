//! The core's promises, one by one, and under any order of events.

mod any_order;
mod batches;
mod courses;
mod drains;
mod offsets;
mod pressure;
mod retries;
mod tracks;

use super::*;

/// A core and what it has asked for since it was last looked at.
struct Shell {
    core: Core<i64>,
    now: Millis,
    actions: Vec<Action<i64>>,
    /// How many records a job of the partitions that are assigned next may take.
    batch: usize,
    /// Whether their handler takes all records of a job at once.
    together: bool,
    /// Which of their records are run one after the other.
    order: Order,
    /// How long their handlers take.
    handlers: Millis,
}

impl Job<i64> {
    fn offsets(&self) -> Vec<i64> {
        self.records.iter().map(|record| record.offset.0).collect()
    }
}

const TP: Tp = Tp { topic: 0, partition: 0 };
const LANE: LaneId = LaneId { tp: TP, handler: 0 };
const EPOCH: Epoch = Epoch(1);

fn tp(partition: i32) -> Tp {
    Tp { topic: 0, partition }
}

impl Shell {
    fn new(config: Config) -> Self {
        Self {
            core: Core::new(config),
            now: Millis(0),
            actions: Vec::new(),
            batch: 1,
            together: false,
            order: Order::Partition,
            handlers: Millis(0),
        }
    }

    /// One partition with one handler, read from offset 0, already asserted to Kafka.
    fn assigned() -> Self {
        let mut shell = Self::new(Config::default());
        shell.assign(TP, EPOCH, Some(0), 0);
        shell.kafka_answers(true);
        shell
    }

    fn feed(&mut self, event: Event<i64>) {
        self.core.step(self.now, event, &mut self.actions);
    }

    fn assign(&mut self, tp: Tp, epoch: Epoch, start: Option<i64>, row: i64) {
        let Self { batch, together, order, .. } = *self;
        let lanes = vec![LaneStart { acknowledged: NextOffset(row), order, attempts: 2, batch, together }];
        self.feed(Event::Assigned { tp, epoch, start: start.map(NextOffset), lanes });
    }

    fn record(&mut self, offset: i64) {
        self.record_of(TP, EPOCH, offset);
    }

    fn record_of(&mut self, tp: Tp, epoch: Epoch, offset: i64) {
        self.keyed_record_of(tp, epoch, offset, None);
    }

    fn keyed_record_of(&mut self, tp: Tp, epoch: Epoch, offset: i64, key: Option<u64>) {
        let (key, handle) = (key.map(OrderKey), offset);
        self.feed(Event::Record { tp, epoch, offset: Offset(offset), key, bytes: 10, handle });
    }

    fn finish(&mut self, job: JobId, outcome: Outcome) {
        self.feed(Event::Finished { job, outcome, handlers: self.handlers });
    }

    /// Lets time pass to the next wake-up.
    fn sleep(&mut self) -> Millis {
        let before = self.now;
        self.now = self.core.next_wakeup().expect("something is due");
        self.feed(Event::Tick);
        Millis(self.now.0 - before.0)
    }

    fn after(&mut self, span: u64) {
        self.now = self.now + Millis(span);
        self.feed(Event::Tick);
    }

    fn taken<T>(&mut self, pick: impl Fn(&Action<i64>) -> Option<T>) -> Vec<T> {
        let found = self.actions.iter().filter_map(&pick).collect();
        self.actions.retain(|action| pick(action).is_none());
        found
    }

    fn started(&mut self) -> Vec<Job<i64>> {
        self.taken(|action| match action {
            Action::Start(job) => Some(job.clone()),
            _ => None,
        })
    }

    fn start(&mut self) -> Job<i64> {
        self.started().pop().expect("a job was started")
    }

    fn commits(&mut self) -> Vec<Vec<(Tp, Epoch, NextOffset)>> {
        self.taken(|action| match action {
            Action::Commit(offsets) => Some(offsets.clone()),
            _ => None,
        })
    }

    /// Answers the commit that was asked; what it was.
    fn kafka_answers(&mut self, ok: bool) -> i64 {
        let offsets = self.commits().pop().expect("a commit was asked");
        let (.., next) = offsets[0];
        self.feed(Event::Committed { offsets, ok });
        next.0
    }

    /// Answers the save that was asked; what it was.
    fn database_answers(&mut self, result: SavedResult) -> Save {
        let saves = self.taken(|action| match action {
            Action::SaveProgress(saves) => Some(saves.clone()),
            _ => None,
        });
        let saves = saves.into_iter().next().expect("a save was asked");
        let answer = |save: &Save| {
            let Save { lane, epoch, watermark, .. } = *save;
            Saved { lane, epoch, watermark, result }
        };
        self.feed(Event::ProgressSaved { saved: saves.iter().map(answer).collect() });
        saves.into_iter().next().expect("one that was asked")
    }

    fn asked_to_save(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::SaveProgress(_)))
    }

    fn has(&self, action: &Action<i64>) -> bool {
        self.actions.contains(action)
    }
}
