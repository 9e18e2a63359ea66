//! Members that come and go in good order, under every protocol.

use std::collections::BTreeSet;

use anyhow::ensure;
use handstamp::{Disposition, Kafka, Notice};
use handstamp_tests::{Running, eventually};

use crate::ledger::{Gate, ledger};
use crate::scene::{SOON, Scene, event, ids, started, until_started};

const PARTITIONS: usize = 4;

type Configure = fn(&Scene, &'static str) -> Kafka;

fn range(scene: &Scene, _: &'static str) -> Kafka {
    scene.kafka()
}

fn cooperative(scene: &Scene, _: &'static str) -> Kafka {
    scene.kafka().property("partition.assignment.strategy", "cooperative-sticky")
}

fn with_static_ids(scene: &Scene, member: &'static str) -> Kafka {
    scene.kafka().group_instance_id(member)
}

/// The broker has the timeouts here, and refuses them from clients.
fn by_the_broker(scene: &Scene, _: &'static str) -> Kafka {
    Kafka::new(&scene.brokers).property("group.protocol", "consumer")
}

struct Group {
    scene: Scene,
    configure: Configure,
    written: usize,
    heard: Vec<Notice>,
}

impl Group {
    async fn new(configure: Configure) -> Self {
        let scene = Scene::new(i32::try_from(PARTITIONS).expect("a few")).await;
        Self { scene, configure, written: 0, heard: Vec::new() }
    }

    fn start(&self, member: &'static str) -> Running {
        let kafka = (self.configure)(&self.scene, member);
        let builder = self.scene.builder(kafka).state(Gate::slow());
        Running::start(builder.consume::<ledger>(self.scene.topic.name()))
    }

    /// Some events for every partition, so that handlers are busy.
    async fn produce(&mut self) {
        let events = ids("e", self.written..self.written + 100 * PARTITIONS);
        self.written += events.len();
        let records = events
            .iter()
            .enumerate()
            .map(|(number, id)| event(id).partition(i32::try_from(number % PARTITIONS).expect("a few")));
        self.scene.topic.produce_all(records).await;
    }

    async fn leave(&mut self, mut member: Running) {
        member.ask_to_stop();
        member.ended().await.expect("a clean stop");
        self.heard.extend_from_slice(member.heard());
    }

    async fn until_all_applied(&self) {
        eventually(SOON, async || {
            let distinct: BTreeSet<_> = self.scene.applied().await.into_iter().collect();
            ensure!(distinct.len() == self.written, "{} of {}", distinct.len(), self.written);
            Ok(())
        })
        .await;
    }
}

/// Three members join and leave while the handlers of each are busy.
async fn members_come_and_go(configure: Configure) -> Group {
    let mut group = Group::new(configure).await;
    group.produce().await;
    let mut first = group.start("first");
    until_started(&mut first, PARTITIONS).await;
    let mut second = group.start("second");
    until_started(&mut second, 2).await;
    group.produce().await;
    group.leave(first).await;
    until_started(&mut second, 2).await;
    group.produce().await;
    let mut third = group.start("third");
    until_started(&mut third, 1).await;
    group.produce().await;
    group.leave(second).await;
    group.until_all_applied().await;
    group.leave(third).await;
    group
}

/// Lost, doubled or redelivered: each would be another count.
async fn every_message_is_handled_once(configure: Configure) {
    let group = members_come_and_go(configure).await;
    let handled = group.heard.iter().filter_map(|notice| match notice {
        Notice::Done { disposition, .. } => Some(*disposition),
        _ => None,
    });
    let handled: Vec<_> = handled.collect();
    assert_eq!(handled, vec![Disposition::Applied; group.written]);
    assert_eq!(group.scene.applied().await, ids("e", 0..group.written));
}

#[tokio::test]
async fn every_message_is_handled_once_when_members_come_and_go_under_range() {
    every_message_is_handled_once(range).await;
}

#[tokio::test]
async fn every_message_is_handled_once_when_members_come_and_go_under_cooperative_sticky() {
    every_message_is_handled_once(cooperative).await;
}

#[tokio::test]
async fn every_message_is_handled_once_when_members_come_and_go_under_static_ids() {
    every_message_is_handled_once(with_static_ids).await;
}

#[tokio::test]
async fn every_message_is_handled_once_when_members_come_and_go_under_the_consumer_protocol() {
    every_message_is_handled_once(by_the_broker).await;
}

/// A cooperative member keeps what it keeps: only what moves is interrupted.
#[tokio::test]
async fn cooperative_sticky_leaves_alone_what_does_not_move() {
    let mut group = Group::new(cooperative).await;
    let mut first = group.start("first");
    until_started(&mut first, PARTITIONS).await;
    let mut second = group.start("second");
    until_started(&mut second, 2).await;
    let ended = first.heard().iter().filter(|notice| matches!(notice, Notice::Ended { .. })).count();
    let begun = first.heard().iter().filter_map(started).count();
    assert_eq!((ended, begun), (2, PARTITIONS));
    group.leave(second).await;
    group.leave(first).await;
}
