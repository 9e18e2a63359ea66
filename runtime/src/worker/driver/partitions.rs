use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::Driver;
use crate::flow::{Epoch, Event, NextOffset, Tp};
use crate::inbox::Store;
use crate::source::kafka::{Command, Start};
use crate::worker::answer::{Answer, Found, Opened};
use crate::worker::notice::Notice;
use crate::worker::opening;

/// From "the group gave us this" to being read, and why not.
impl<DB: Store> Driver<DB> {
    /// Looks up where partitions start.
    pub(super) fn open(&mut self, tps: &[Tp]) {
        self.open_after(Duration::ZERO, tps);
    }

    pub(super) fn open_after(&mut self, pause: Duration, tps: &[Tp]) {
        let ticket = self.owned.opening(tps);
        let (opening, answer, tps) = (Arc::clone(&self.opening), self.answer.clone(), tps.to_vec());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            opening.run(tps, ticket, answer).await;
        });
    }

    pub(super) fn opened(&mut self, opened: Opened) {
        let mut starts = Vec::new();
        if let Some(error) = &opened.error {
            self.log.opening_failed(error);
        }
        for (tp, found) in opened.found {
            if !self.owned.is_opening(tp, &opened.ticket) {
                continue;
            }
            match found {
                Found::Start { at, lanes, notes } => {
                    self.epochs += 1;
                    let epoch = Epoch(self.epochs);
                    self.owned.opened(tp, epoch);
                    self.pulse.opened(tp, epoch, at, Instant::now());
                    let position = self.position(tp, at);
                    self.log.started(&position, &notes);
                    self.observers.tell(&Notice::Started { group: Arc::clone(&self.group), position });
                    let topic_id = lanes.first().map_or(Uuid::nil(), |lane| lane.row.partition.topic_id);
                    starts.push(Start { tp, epoch, next: at, topic_id });
                    self.rows.retain(|(held, _), _| *held != tp);
                    let rows = lanes.iter().map(|lane| lane.row.clone()).collect();
                    self.rows.insert((tp, epoch), rows);
                    let lanes = lanes.iter().map(|lane| lane.start).collect();
                    self.step(Event::Assigned { tp, epoch, start: Some(NextOffset(at)), lanes });
                }
                Found::Refused(reason) => self.refuse(tp, &reason),
            }
        }
        if !starts.is_empty() {
            self.broker.command(Command::Assign(starts));
        }
    }

    /// Leaves a partition unread until an operator has decided.
    pub(super) fn refuse(&mut self, tp: Tp, reason: &str) {
        let topic = Arc::clone(self.topics.name(tp));
        self.pulse.closed(tp);
        if self.owned.refused(tp, reason) {
            self.log.refused(&topic, tp.partition, reason);
            self.observers.tell(&Notice::Refused {
                group: Arc::clone(&self.group),
                topic,
                partition: tp.partition,
                reason: reason.to_owned(),
            });
        }
        self.broker.command(Command::LeaveOut(tp));
    }

    /// The regular look: whether topics are still the same, and whether refused partitions were mended.
    pub(super) fn look(&mut self) {
        if self.stopping {
            return;
        }
        self.connections.release_idle();
        let refused = self.owned.all_refused();
        if !refused.is_empty() {
            self.open(&refused);
        }
        let silent = self.pulse.silent(Instant::now());
        if !silent.is_empty() {
            let (opening, answer) = (Arc::clone(&self.opening), self.answer.clone());
            tokio::spawn(async move { opening.stalled(silent, answer).await });
        }
        let (broker, answer) = (self.broker.clone(), self.answer.clone());
        tokio::spawn(async move {
            match broker.topic_ids().await {
                Ok(ids) => {
                    let ids = ids.into_iter().map(Result::ok).collect();
                    let _gone = answer.send(Answer::TopicIds(ids));
                }
                // It says nothing about the topics: the next look asks again.
                Err(error) if error.is_silence() => broker.introduce(),
                Err(_) => {}
            }
        });
    }

    pub(super) fn compare_topic_ids(&mut self, ids: &[Option<Uuid>]) {
        let open: Vec<_> = self.owned.open().collect();
        for (tp, epoch) in open {
            let Some(Some(actual)) = ids.get(usize::from(tp.topic)) else { continue };
            let Some(row) = self.rows.get(&(tp, epoch)).and_then(|rows| rows.first()) else { continue };
            let stored = &row.partition;
            if !stored.topic_id.is_nil() && !actual.is_nil() && stored.topic_id != *actual {
                let name = self.handlers[usize::from(tp.topic)].first().map_or("", |(c, _)| c.name());
                let reason = opening::recreated(name, stored, *actual);
                self.step(Event::Lost { tps: vec![tp] });
                self.refuse(tp, &reason);
            }
        }
    }

    /// Something is wrong with the position of these: looking up their starts says what is to be done.
    pub(super) fn open_again(&mut self, tps: Vec<(Tp, Epoch)>) {
        let current = tps.into_iter().filter(|(tp, epoch)| self.owned.epoch(*tp) == Some(*epoch));
        let tps: Vec<Tp> = current.map(|(tp, _)| tp).collect();
        if !tps.is_empty() {
            self.step(Event::Lost { tps: tps.clone() });
            self.open(&tps);
        }
    }
}
