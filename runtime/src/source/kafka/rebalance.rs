use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::TopicPartitionList;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use tokio::sync::mpsc::Sender;

use super::Topics;
use super::assignment::{Assignment, is_cooperative};
use super::handover::{Input, Released, Trouble};
use crate::flow::Tp;
use crate::laboratory::point;

/// What librdkafka calls from inside `poll`, on the poll thread.
pub(super) struct Context {
    inputs: Sender<Input>,
    topics: Topics,
    assignment: Mutex<Assignment>,
    /// How long a revocation may wait for running work to be finished and committed.
    drain_limit: Duration,
}

impl Context {
    pub(super) fn new(inputs: Sender<Input>, topics: Topics, drain_limit: Duration) -> Self {
        Self { inputs, topics, assignment: Mutex::default(), drain_limit }
    }

    /// Runs `f` on the assignment. Never call it around `poll`: callbacks lock it, too.
    pub(super) fn assignment<T>(&self, f: impl FnOnce(&mut Assignment) -> T) -> T {
        f(&mut self.assignment.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, input: Input) {
        // A receiver that is gone has stopped caring: the poll thread notices at its next record.
        let _gone = self.inputs.blocking_send(input);
    }

    /// The group gave us partitions. Nothing is fetched yet: where each starts has to be looked up,
    /// and the callback must not wait for a database.
    fn assigned(&self, consumer: &BaseConsumer<Self>, tps: Vec<Tp>) {
        let none = TopicPartitionList::new();
        let answered = if is_cooperative(consumer) {
            consumer.incremental_assign(&none)
        } else {
            consumer.assign(&none)
        };
        point!(InAssignment);
        self.assignment(|assignment| assignment.given(consumer, &tps));
        self.report("assign", answered);
        self.tell(Input::Owned(tps));
    }

    /// The group takes partitions back: finish and commit what is running, with a limit.
    fn revoked(&self, consumer: &BaseConsumer<Self>, tps: &[Tp]) {
        point!(InRevocation);
        if consumer.assignment_lost() {
            self.tell(Input::Lost(tps.to_vec()));
        } else if !self.assignment(|assignment| assignment.is_empty()) {
            let (released, wait) = mpsc::sync_channel(1);
            self.tell(Input::Revoking { tps: tps.to_vec(), released: Released(released) });
            if wait.recv_timeout(self.drain_limit).is_err() {
                self.tell(Input::Lost(tps.to_vec()));
            }
        } else {
            self.tell(Input::Lost(tps.to_vec()));
        }
        point!(AfterDrain);
        let answered = self.assignment(|assignment| assignment.give_back(consumer, &self.topics, tps));
        self.report("unassign", answered);
    }

    fn report(&self, what: &'static str, answered: Result<(), KafkaError>) {
        if let Err(error) = answered {
            self.tell(Input::Trouble(Trouble::Rebalance { what, error: error.to_string() }));
        }
    }

    fn known(&self, list: &TopicPartitionList) -> Vec<Tp> {
        list.elements().iter().filter_map(|e| self.topics.find(e.topic(), e.partition())).collect()
    }
}

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(target: "handstamp::librdkafka", facility, "{message}");
    }

    /// Every error comes again as an item of `poll`, which is where it is judged.
    fn error(&self, _: KafkaError, _: &str) {}
}

impl ConsumerContext for Context {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        event: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let tps = self.known(partitions);
        match event {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.assigned(consumer, tps),
            _ => self.revoked(consumer, &tps),
        }
    }
}
