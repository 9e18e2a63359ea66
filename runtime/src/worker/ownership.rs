use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use crate::flow::{Epoch, Tp};
use crate::source::kafka::Released;

/// What the group says is ours, and what we make of each partition.
#[derive(Debug, Default)]
pub(super) struct Owned {
    partitions: BTreeMap<Tp, Partition>,
    revoking: Vec<Revoking>,
    last: u64,
}

#[derive(Debug)]
struct Partition {
    ticket: Ticket,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Its start is being looked up; it may have been refused before.
    Opening(Option<String>),
    /// It is read.
    Open(Epoch),
    /// It is not read, for this reason.
    Refused(String),
}

/// Says whether an opening is still wanted when it has ended.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    number: u64,
    wanted: Arc<AtomicBool>,
}

impl Ticket {
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
struct Revoking {
    waiting: BTreeSet<Tp>,
    released: Option<Released>,
    deadline: Instant,
    cancelled: bool,
}

impl Owned {
    /// These are ours and have to be opened (again): the ticket to do it under.
    pub(super) fn opening(&mut self, tps: &[Tp]) -> Ticket {
        self.last += 1;
        let ticket = Ticket { number: self.last, wanted: Arc::new(AtomicBool::new(true)) };
        for tp in tps {
            let refused = match self.partitions.get(tp).map(|partition| &partition.stage) {
                Some(Stage::Refused(reason) | Stage::Opening(Some(reason))) => Some(reason.clone()),
                _ => None,
            };
            self.remove(*tp);
            let stage = Stage::Opening(refused);
            self.partitions.insert(*tp, Partition { ticket: ticket.clone(), stage });
        }
        ticket
    }

    /// Whether the partition is still to be opened under this ticket.
    pub(super) fn is_opening(&self, tp: Tp, ticket: &Ticket) -> bool {
        self.partitions
            .get(&tp)
            .is_some_and(|p| p.ticket.number == ticket.number && matches!(p.stage, Stage::Opening(_)))
    }

    pub(super) fn contains(&self, tp: Tp) -> bool {
        self.partitions.contains_key(&tp)
    }

    pub(super) fn opened(&mut self, tp: Tp, epoch: Epoch) {
        if let Some(partition) = self.partitions.get_mut(&tp) {
            partition.stage = Stage::Open(epoch);
        }
    }

    /// Notes why a partition is not read; whether that is news.
    pub(super) fn refused(&mut self, tp: Tp, reason: &str) -> bool {
        let Some(partition) = self.partitions.get_mut(&tp) else { return false };
        let known = match &partition.stage {
            Stage::Refused(before) | Stage::Opening(Some(before)) => before == reason,
            Stage::Opening(None) | Stage::Open(_) => false,
        };
        partition.stage = Stage::Refused(reason.to_owned());
        !known
    }

    pub(super) fn epoch(&self, tp: Tp) -> Option<Epoch> {
        match self.partitions.get(&tp)?.stage {
            Stage::Open(epoch) => Some(epoch),
            Stage::Opening(_) | Stage::Refused(_) => None,
        }
    }

    pub(super) fn open(&self) -> impl Iterator<Item = (Tp, Epoch)> {
        self.partitions.iter().filter_map(|(tp, partition)| match partition.stage {
            Stage::Open(epoch) => Some((*tp, epoch)),
            Stage::Opening(_) | Stage::Refused(_) => None,
        })
    }

    /// Partitions that an operator may have mended meanwhile.
    pub(super) fn all_refused(&self) -> Vec<Tp> {
        let refused = |partition: &Partition| matches!(partition.stage, Stage::Refused(_));
        self.partitions.iter().filter(|(_, partition)| refused(partition)).map(|(tp, _)| *tp).collect()
    }

    /// The partition is not ours any more; whether it was open.
    pub(super) fn remove(&mut self, tp: Tp) -> bool {
        let Some(partition) = self.partitions.remove(&tp) else { return false };
        // Other partitions may be opening under the same ticket.
        let shared = self.partitions.values().any(|p| p.ticket.number == partition.ticket.number);
        if !shared {
            partition.ticket.wanted.store(false, Ordering::Release);
        }
        matches!(partition.stage, Stage::Open(_))
    }

    /// The group wants partitions back, and a callback waits: `waiting` have work to finish.
    pub(super) fn revoking(&mut self, waiting: BTreeSet<Tp>, released: Released, deadline: Instant) {
        self.revoking.push(Revoking { waiting, released: Some(released), deadline, cancelled: false });
        self.answer();
    }

    /// Partitions that have nothing left to do.
    pub(super) fn released(&mut self, tps: &[Tp]) {
        for revoking in &mut self.revoking {
            for tp in tps {
                revoking.waiting.remove(tp);
            }
        }
        self.answer();
    }

    fn answer(&mut self) {
        self.revoking.retain_mut(|revoking| {
            if !revoking.waiting.is_empty() {
                return true;
            }
            if let Some(released) = revoking.released.take() {
                released.tell();
            }
            false
        });
    }

    /// When a good end will have taken too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.revoking.iter().filter(|r| !r.cancelled).map(|r| r.deadline).min()
    }

    /// Partitions whose good end has taken too long, once each.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<Tp> {
        let mut tps = Vec::new();
        for revoking in &mut self.revoking {
            if !revoking.cancelled && revoking.deadline <= now {
                revoking.cancelled = true;
                tps.extend(revoking.waiting.iter().copied());
            }
        }
        tps
    }
}
