use std::collections::{BTreeMap, VecDeque};

use handstamp::flow::{
    Action, Core, Course, Epoch, Event, Intent, Job, JobId, JobRecord, LaneId, Member, Millis, NextOffset,
    Outcome, Place, Save, Task, Tp,
};

use super::database::TransactionId;
use super::kafka::{Commit, Kind, Record};
use super::knobs::{Handlers, Knobs};
use super::state::Tracked;

/// A worker process: a core, and a shell that does what it is told at any speed.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) core: Core<Record>,
    pub(super) alive: bool,
    pub(super) frozen_until: Millis,
    /// Whether the group's coordinator counts it in.
    pub(super) member: bool,
    pub(super) assignments: BTreeMap<Tp, Assignment>,
    /// From the poll thread to the core, in order.
    pub(super) events: VecDeque<Event<Record>>,
    pub(super) jobs: BTreeMap<JobId, Run>,
    /// With how long their handlers took.
    pub(super) outcomes: Vec<(JobId, Outcome, Millis)>,
    pub(super) commit: Option<Vec<(Tp, Epoch, NextOffset)>>,
    pub(super) save: Option<Vec<Save>>,
    pub(super) finished: bool,
    epochs: u64,
    /// The rows it was assigned with.
    pub(super) rows: BTreeMap<(LaneId, Epoch), Tracked>,
}

/// What the poll thread knows of a partition.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) epoch: Epoch,
    pub(super) stage: Stage,
    pub(super) position: i64,
    /// The position the core was told when nothing was left to read.
    pub(super) told: Option<i64>,
    pub(super) paused: bool,
    /// While it is given back the poll thread waits for [`Action::Released`].
    pub(super) leaving: Option<Leaving>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) deadline: Millis,
    pub(super) cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Wanted,
    /// Kafka's offset has been read, the rows have not.
    Asked(Option<NextOffset>),
    Fetching,
}

/// A job on its way through its transaction.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) job: Job<Record>,
    pub(super) course: Course,
    pub(super) begun: Millis,
    pub(super) transaction: Option<TransactionId>,
    /// What the handler still has to do, once it is called.
    pub(super) work_left: Option<u64>,
    pub(super) cancelled: bool,
}

impl Run {
    fn new(job: Job<Record>, handlers: Handlers, begun: Millis) -> Self {
        let members = job.records.iter().map(|record| {
            let JobRecord { offset, handle } = *record;
            let twin = |other: &JobRecord<Record>| other.handle.id == handle.id;
            Member {
                intent: intent(handle.kind, job.task),
                place: Some(Place { offset, acknowledged: job.acknowledged }),
                key: job.records.iter().position(twin).filter(|_| is_keyed(handle.kind)),
            }
        });
        let members = members.collect();
        let course = match handlers {
            Handlers::Each => Course::new(members),
            Handlers::Together => Course::together(members),
            Handlers::Recording => Course::new(members).recorded(),
        };
        Self { job, course, begun, transaction: None, work_left: None, cancelled: false }
    }
}

/// What reading a record comes to.
fn intent(kind: Kind, task: Task) -> Intent {
    match (kind, task) {
        (Kind::Tombstone, _) => Intent::Skip,
        (Kind::KeptTombstone | Kind::Keyless | Kind::Garbled, _) | (_, Task::Park) => Intent::Park,
        (_, Task::Apply) => Intent::Apply,
    }
}

/// Whether a key can be read from a record.
pub(super) fn is_keyed(kind: Kind) -> bool {
    !matches!(kind, Kind::Tombstone | Kind::KeptTombstone | Kind::Keyless)
}

impl Process {
    pub(super) fn new(knobs: &Knobs) -> Self {
        Self {
            core: Core::new(knobs.core.clone()),
            alive: true,
            frozen_until: Millis(0),
            member: true,
            assignments: BTreeMap::new(),
            events: VecDeque::new(),
            jobs: BTreeMap::new(),
            outcomes: Vec::new(),
            commit: None,
            save: None,
            finished: false,
            epochs: 0,
            rows: BTreeMap::new(),
        }
    }

    pub(super) fn runs(&self, now: Millis) -> bool {
        self.alive && self.frozen_until <= now
    }

    /// Whether the poll thread stands in a rebalance callback.
    pub(super) fn waits(&self) -> bool {
        self.assignments.values().any(|assignment| assignment.leaving.is_some())
    }

    pub(super) fn commit_of(&self, tp: Tp, epoch: Epoch, next: NextOffset) -> Commit {
        let tracked = self.tracked(LaneId { tp, handler: 0 }, epoch);
        Commit { tp, next, topic: tracked.map(|tracked| tracked.topic) }
    }

    /// The row that a lane of an epoch writes.
    pub(super) fn tracked(&self, lane: LaneId, epoch: Epoch) -> Option<Tracked> {
        self.rows.get(&(lane, epoch)).copied()
    }

    /// Whether a job of the same track runs.
    pub(super) fn runs_beside(&self, job: &Job<Record>) -> bool {
        self.jobs.values().any(|run| (run.job.lane, run.job.track) == (job.lane, job.track))
    }

    /// Begins to find out where a partition starts.
    pub(super) fn assign(&mut self, tp: Tp) {
        self.epochs += 1;
        let assignment = Assignment {
            epoch: Epoch(self.epochs),
            stage: Stage::Wanted,
            position: 0,
            told: None,
            paused: false,
            leaving: None,
        };
        self.assignments.insert(tp, assignment);
    }

    /// Does at once what needs nobody else; the partitions that were given back.
    pub(super) fn perform(
        &mut self,
        actions: Vec<Action<Record>>,
        handlers: Handlers,
        now: Millis,
    ) -> Vec<Tp> {
        let mut released = Vec::new();
        for action in actions {
            match action {
                Action::Start(job) => {
                    self.jobs.insert(job.id, Run::new(job, handlers, now));
                }
                Action::Cancel { job } => {
                    if let Some(run) = self.jobs.get_mut(&job) {
                        run.cancelled = true;
                    }
                }
                Action::SaveProgress(saves) => self.save = Some(saves),
                Action::Commit(offsets) => self.commit = Some(offsets),
                Action::Pause { tp, epoch } => self.pause(tp, epoch, true),
                Action::Resume { tp, epoch } => self.pause(tp, epoch, false),
                Action::Reassign { tp, epoch, .. } => {
                    let current = self.assignments.get(&tp).filter(|assignment| assignment.epoch == epoch);
                    if current.is_some_and(|assignment| assignment.leaving.is_none()) {
                        self.assign(tp);
                    }
                }
                Action::Released { tps } => released.extend(tps),
                Action::Stop { .. } => {}
                Action::Finished => self.finished = true,
            }
        }
        for tp in &released {
            self.assignments.remove(tp);
        }
        released
    }

    fn pause(&mut self, tp: Tp, epoch: Epoch, paused: bool) {
        if let Some(assignment) = self.assignments.get_mut(&tp).filter(|assignment| assignment.epoch == epoch)
        {
            assignment.paused = paused;
        }
    }
}
