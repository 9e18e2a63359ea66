use std::collections::{BTreeMap, BTreeSet};

use rdkafka::consumer::{Consumer as _, RebalanceProtocol};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};
use uuid::Uuid;

use super::handover::Start;
use super::{Consumer, Topics, ffi};
use crate::flow::{Epoch, Tp};

/// The partitions that the group gave us, and those of them that librdkafka fetches: one whose start is
/// not known yet, or that has stopped, is left out of the assignment.
#[derive(Debug, Default)]
pub(super) struct Assignment {
    given: BTreeSet<Tp>,
    held: BTreeMap<Tp, Held>,
}

#[derive(Debug)]
struct Held {
    epoch: Epoch,
    topic_id: Uuid,
    /// Where to go on if the whole assignment has to be given again.
    next: i64,
    /// Whether its records are to come.
    wanted: bool,
    flow: Flow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// Its records come.
    Coming,
    /// They are fetched, and wait in librdkafka.
    Kept,
    /// They are not even fetched.
    Paused,
}

/// How many partitions may keep records in librdkafka: the limit of its memory holds for each of them.
const MOST_KEPT: usize = 8;

impl Assignment {
    /// The epoch of a record just delivered and the id of its topic, if its partition is held; keeps its
    /// position.
    pub(super) fn delivered(
        &mut self,
        consumer: &Consumer,
        topics: &Topics,
        tp: Tp,
        offset: i64,
    ) -> Option<(Epoch, Uuid)> {
        let held = self.held.get_mut(&tp)?;
        held.next = offset + 1;
        let found = (held.epoch, held.topic_id);
        if !held.wanted && held.flow == Flow::Coming {
            // A new assignment forgets pauses; pausing before the first record could lose its start.
            self.pause(consumer, topics, tp);
        }
        Some(found)
    }

    pub(super) fn epoch(&self, tp: Tp) -> Option<Epoch> {
        self.held.get(&tp).map(|held| held.epoch)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// What is held, and where each partition would go on.
    pub(super) fn positions(&self) -> impl Iterator<Item = (Tp, Epoch, i64)> {
        self.held.iter().map(|(tp, held)| (*tp, held.epoch, held.next))
    }

    /// The group gave us these. The eager protocol revokes everything before.
    pub(super) fn given(&mut self, consumer: &Consumer, tps: &[Tp]) {
        if !is_cooperative(consumer) {
            self.given.clear();
            self.held.clear();
        }
        self.given.extend(tps);
    }

    /// Everything is over: what we had been given.
    pub(super) fn give_up(&mut self) -> Vec<Tp> {
        self.held.clear();
        std::mem::take(&mut self.given).into_iter().collect()
    }

    /// Takes partitions in, at their offsets; one that is held already starts again. Those that the group
    /// has taken back since are left alone: librdkafka would fetch them all the same.
    pub(super) fn add(&mut self, consumer: &Consumer, topics: &Topics, starts: &[Start]) -> KafkaResult<()> {
        let starts = || starts.iter().filter(|start| self.given.contains(&start.tp)).copied();
        let starts: Vec<Start> = starts().collect();
        if starts.is_empty() {
            return Ok(());
        }
        let cooperative = is_cooperative(consumer);
        if cooperative {
            let again: Vec<Tp> = starts.iter().map(|start| start.tp).collect();
            self.unassign(consumer, topics, &again)?;
            let added = list(topics, starts.iter().map(|start| (start.tp, Some(start.next))))?;
            resume(consumer, &added);
            consumer.incremental_assign(&added)?;
        }
        for &Start { tp, epoch, next, topic_id } in &starts {
            let (wanted, flow) = (true, Flow::Coming);
            self.held.insert(tp, Held { epoch, topic_id, next, wanted, flow });
        }
        if cooperative {
            return Ok(());
        }
        let assigned = self.assign_all(consumer, topics);
        if assigned.is_err() {
            self.held.retain(|tp, _| starts.iter().all(|start| start.tp != *tp));
        }
        assigned
    }

    /// Stops fetching a partition that the group still counts as ours.
    pub(super) fn leave_out(&mut self, consumer: &Consumer, topics: &Topics, tp: Tp) -> KafkaResult<()> {
        if !self.held.contains_key(&tp) {
            return Ok(());
        }
        if is_cooperative(consumer) {
            self.unassign(consumer, topics, &[tp])
        } else {
            self.held.remove(&tp);
            self.assign_all(consumer, topics)
        }
    }

    /// Answers a revocation. The eager protocol takes everything back.
    pub(super) fn give_back(&mut self, consumer: &Consumer, topics: &Topics, tps: &[Tp]) -> KafkaResult<()> {
        if is_cooperative(consumer) {
            for tp in tps {
                self.given.remove(tp);
            }
            self.unassign(consumer, topics, tps)
        } else {
            self.give_up();
            consumer.unassign()
        }
    }

    /// Takes out of the assignment what is in it of these: librdkafka refuses all if it has not each one.
    fn unassign(&mut self, consumer: &Consumer, topics: &Topics, tps: &[Tp]) -> KafkaResult<()> {
        let assigned = consumer.assignment()?;
        let elements = assigned.elements();
        let ours = elements.iter().filter_map(|element| topics.find(element.topic(), element.partition()));
        let returned: Vec<_> = ours.filter(|tp| tps.contains(tp)).map(|tp| (tp, None)).collect();
        self.held.retain(|tp, _| !tps.contains(tp));
        consumer.incremental_unassign(&list(topics, returned)?)
    }

    pub(super) fn pause(&mut self, consumer: &Consumer, topics: &Topics, tp: Tp) {
        let kept = self.held.values().filter(|held| held.flow == Flow::Kept).count();
        let Some(held) = self.held.get_mut(&tp) else { return };
        held.wanted = false;
        if held.flow != Flow::Coming {
            return;
        }
        if kept < MOST_KEPT {
            held.flow = Flow::Kept;
            ffi::deliver(consumer, topics.name(tp), tp.partition, false);
        } else {
            held.flow = Flow::Paused;
            pause(consumer, topics, tp);
        }
    }

    pub(super) fn resume(&mut self, consumer: &Consumer, topics: &Topics, tp: Tp) {
        let Some(held) = self.held.get_mut(&tp) else { return };
        held.wanted = true;
        match std::mem::replace(&mut held.flow, Flow::Coming) {
            Flow::Coming => {}
            Flow::Kept => ffi::deliver(consumer, topics.name(tp), tp.partition, true),
            Flow::Paused => {
                if let Ok(list) = list(topics, [(tp, None)]) {
                    resume(consumer, &list);
                }
            }
        }
    }

    /// The eager protocol knows whole assignments only: the others go on where they are.
    fn assign_all(&mut self, consumer: &Consumer, topics: &Topics) -> KafkaResult<()> {
        let all = list(topics, self.held.iter().map(|(tp, held)| (*tp, Some(held.next))))?;
        // A pause outlives its assignment in librdkafka, and one set before the first fetch loses
        // the start offset.
        resume(consumer, &all);
        for held in self.held.values_mut() {
            held.flow = Flow::Coming;
        }
        consumer.assign(&all)
    }
}

pub(super) fn is_cooperative(consumer: &Consumer) -> bool {
    matches!(consumer.rebalance_protocol(), RebalanceProtocol::Cooperative)
}

pub(super) fn list(
    topics: &Topics,
    partitions: impl IntoIterator<Item = (Tp, Option<i64>)>,
) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (tp, next) in partitions {
        let offset = next.map_or(Offset::Invalid, Offset::Offset);
        list.add_partition_offset(topics.name(tp), tp.partition, offset)?;
    }
    Ok(list)
}

fn pause(consumer: &Consumer, topics: &Topics, tp: Tp) {
    if let Ok(list) = list(topics, [(tp, None)])
        && let Err(error) = consumer.pause(&list)
    {
        tracing::debug!(topic = &**topics.name(tp), partition = tp.partition, %error, "not paused");
    }
}

fn resume(consumer: &Consumer, partitions: &TopicPartitionList) {
    if partitions.count() > 0
        && let Err(error) = consumer.resume(partitions)
    {
        tracing::debug!(%error, "not resumed");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;
    use crate::source::kafka::Kafka;
    use crate::source::kafka::rebalance::Context;

    const TP: Tp = Tp { topic: 0, partition: 0 };

    fn topics() -> Topics {
        Topics::new(["deposits".into()])
    }

    /// A client without brokers: an assignment is its own business.
    fn client() -> Consumer {
        let (inputs, _nobody) = mpsc::channel(1);
        let context = Context::new(inputs, topics(), Duration::ZERO);
        Kafka::new("").consumer("group").create_with_context(context).expect("a client can be made")
    }

    fn add(consumer: &Consumer, held: &mut Assignment) -> usize {
        let start = Start { tp: TP, epoch: Epoch(1), next: 7, topic_id: Uuid::nil() };
        held.add(consumer, &topics(), &[start]).expect("an assignment is taken");
        consumer.assignment().expect("a client knows its assignment").count()
    }

    #[test]
    fn what_the_group_has_given_is_fetched() {
        let (consumer, mut held) = (client(), Assignment::default());
        held.given(&consumer, &[TP]);
        assert_eq!(add(&consumer, &mut held), 1);
    }

    #[test]
    fn a_few_partitions_keep_their_records_and_others_are_not_fetched() {
        let (consumer, mut held) = (client(), Assignment::default());
        let tps: Vec<_> = (0..10).map(|partition| Tp { topic: 0, partition }).collect();
        held.given(&consumer, &tps);
        let start = |&tp| Start { tp, epoch: Epoch(1), next: 7, topic_id: Uuid::nil() };
        let starts: Vec<_> = tps.iter().map(start).collect();
        held.add(&consumer, &topics(), &starts).expect("an assignment is taken");
        let count = |held: &Assignment, flow| held.held.values().filter(|held| held.flow == flow).count();
        for &tp in &tps {
            held.pause(&consumer, &topics(), tp);
            held.pause(&consumer, &topics(), tp);
        }
        assert_eq!((count(&held, Flow::Kept), count(&held, Flow::Paused)), (MOST_KEPT, 2));
        for &tp in &tps {
            held.resume(&consumer, &topics(), tp);
        }
        assert_eq!(count(&held, Flow::Coming), 10);
    }

    #[test]
    fn what_a_new_assignment_let_come_is_held_back_at_its_first_record() {
        let (consumer, mut held) = (client(), Assignment::default());
        held.given(&consumer, &[TP]);
        add(&consumer, &mut held);
        held.pause(&consumer, &topics(), TP);
        held.assign_all(&consumer, &topics()).expect("an assignment is taken");
        assert_eq!(held.held[&TP].flow, Flow::Coming);
        held.delivered(&consumer, &topics(), TP, 7);
        assert_eq!(held.held[&TP].flow, Flow::Kept);
    }

    /// The command was on its way when the client before this one came to its end, or when the group took
    /// the partition back.
    #[test]
    fn a_start_that_comes_too_late_is_not_fetched() {
        let (consumer, mut held) = (client(), Assignment::default());
        assert_eq!(add(&consumer, &mut held), 0);
        held.given(&consumer, &[TP]);
        held.give_back(&consumer, &topics(), &[TP]).expect("an assignment is given back");
        assert_eq!(add(&consumer, &mut held), 0);
    }
}
