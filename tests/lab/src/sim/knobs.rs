use handstamp::flow::{Config, Millis, Order};

use super::random::Random;

/// Everything that is drawn once per seed. Many rates are 0 in many seeds: a fault that is rare among all the
/// others finds what it never would beside them.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    pub(super) processes: usize,
    pub(super) topics: Vec<Topic>,
    pub(super) records: u64,
    pub(super) faulty_steps: u64,
    /// How far the clock may move in one step.
    pub(super) tick: u64,
    pub(super) core: Config,
    /// Which records of a partition are run one after the other.
    pub(super) order: Order,
    pub(super) attempts: u32,
    /// How many records one job may take.
    pub(super) batch: usize,
    pub(super) handlers: Handlers,
    pub(super) drain: Millis,
    pub(super) records_of: Records,
    pub(super) faults: Faults,
    pub(super) trouble: Trouble,
    /// How often, in a thousand, a step of this kind is put off.
    pub(super) slow: Slow,
}

/// How handlers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handlers {
    /// Record by record.
    Each,
    /// They take all records of a job at once.
    Together,
    /// They record what is written for all at once.
    Recording,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Topic {
    pub(super) partitions: i32,
    pub(super) handlers: u16,
}

/// Which records are produced, in a thousand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records {
    pub(super) gap: u64,
    pub(super) duplicate: u64,
    pub(super) tombstone: u64,
    pub(super) poison: u64,
    pub(super) flaky: u64,
    pub(super) rejected: u64,
    pub(super) unreadable: u64,
    pub(super) hiding: u64,
    pub(super) ending: u64,
}

/// How often a fault strikes, in a thousand steps, and the weight of each kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) rate: u64,
    pub(super) kill: u64,
    pub(super) freeze: u64,
    pub(super) evict: u64,
    pub(super) rebalance: u64,
    pub(super) crash: u64,
    pub(super) restore: u64,
    pub(super) reset: u64,
    pub(super) rewind: u64,
    pub(super) expire: u64,
    pub(super) recreate: u64,
    pub(super) forget: u64,
}

/// How often a single operation goes wrong, in a thousand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) environment: u64,
    pub(super) unknown_commit: u64,
    pub(super) offset_commit_failed: u64,
    pub(super) offset_commit_late: u64,
    pub(super) save_failed: u64,
    pub(super) early_record: u64,
    pub(super) deaf_to_cancel: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) database: u64,
    pub(super) poll: u64,
    /// That a topic is not the one that it was.
    pub(super) notice: u64,
    pub(super) core: u64,
    pub(super) offsets: u64,
    pub(super) assignment: u64,
    pub(super) producer: u64,
}

impl Knobs {
    pub(super) fn draw(random: &mut Random) -> Self {
        let topics = (0..random.between(1, 2))
            .map(|_| Topic { partitions: random.pick(&[1, 2, 3]), handlers: random.pick(&[1, 1, 1, 2]) })
            .collect();
        let records_high = random.pick(&[2, 5, 20]);
        let knobs = Self {
            processes: random.pick(&[1, 2, 3, 4]),
            topics,
            records: random.between(10, 150),
            faulty_steps: random.between(300, 5_000),
            tick: random.pick(&[1, 5, 20, 100]),
            core: Config {
                max_running: random.pick(&[1, 2, 4, 8]),
                records_high,
                records_low: records_high / 2,
                bytes_high: random.pick(&[40, 200, 2_000]),
                bytes_low: 30,
                batch_bytes: random.pick(&[30, 1_000]),
                seed: random.next(),
                ..Config::default()
            },
            order: Order::Partition,
            attempts: random.pick(&[1, 2, 3, 5]),
            batch: random.pick(&[1, 1, 2, 5, 500]),
            handlers: Handlers::Each,
            drain: Millis(random.pick(&[20, 500, 10_000])),
            records_of: Records {
                gap: random.between(0, 300),
                duplicate: rare(random, 200),
                tombstone: rare(random, 200),
                poison: rare(random, 60),
                flaky: if random.chance(150) { random.between(300, 900) } else { rare(random, 200) },
                rejected: rare(random, 60),
                unreadable: rare(random, 30),
                hiding: rare(random, 60),
                ending: if random.chance(500) { 0 } else { rare(random, 30) },
            },
            faults: Faults::draw(random),
            trouble: Trouble {
                environment: rare(random, 60),
                unknown_commit: rare(random, 200),
                offset_commit_failed: rare(random, 300),
                offset_commit_late: rare(random, 200),
                save_failed: rare(random, 200),
                early_record: rare(random, 300),
                deaf_to_cancel: rare(random, 1000),
            },
            slow: Slow {
                database: speed(random),
                poll: speed(random),
                notice: speed(random),
                core: speed(random),
                offsets: speed(random),
                assignment: speed(random),
                producer: speed(random),
            },
        };
        // Not drawn: with one number more, every kept seed would be another world.
        let drawn = knobs.core.seed;
        let handlers = match drawn % 8 {
            0 | 4 => Handlers::Together,
            1 => Handlers::Recording,
            _ => Handlers::Each,
        };
        let order = match (drawn >> 20) % 4 {
            0 => Order::Key,
            1 => Order::None,
            // The kept seeds that are older than the others are here.
            _ => Order::Partition,
        };
        Self { order, handlers, ..knobs }
    }
}

impl Faults {
    fn draw(random: &mut Random) -> Self {
        let mut faults = Self {
            rate: random.pick(&[5, 15, 40, 100]),
            kill: rare(random, 10),
            freeze: rare(random, 10),
            evict: rare(random, 10),
            rebalance: rare(random, 20),
            crash: rare(random, 10),
            restore: if random.chance(500) { 0 } else { rare(random, 6) },
            reset: rare(random, 4),
            rewind: rare(random, 10),
            expire: rare(random, 4),
            recreate: if random.chance(500) { 0 } else { rare(random, 4) },
            forget: rare(random, 40),
        };
        for _ in 0..random.pick(&[0, 1, 2, 3]) {
            faults.emphasise(random);
        }
        faults
    }

    /// Makes one kind frequent: two of them that meet find what neither does among all the others.
    fn emphasise(&mut self, random: &mut Random) {
        let kinds = [
            &mut self.freeze,
            &mut self.evict,
            &mut self.rebalance,
            &mut self.restore,
            &mut self.reset,
            &mut self.rewind,
            &mut self.recreate,
        ];
        let chosen = random.index(kinds.len());
        if let Some(kind) = kinds.into_iter().nth(chosen) {
            *kind = 60;
        }
    }
}

/// 0 in a third of all seeds.
fn rare(random: &mut Random, most: u64) -> u64 {
    if random.chance(333) { 0 } else { random.between(1, most) }
}

fn speed(random: &mut Random) -> u64 {
    random.pick(&[0, 0, 200, 600, 900])
}
