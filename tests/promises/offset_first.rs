//! The order that handstamp cannot be configured to, written by hand: offset first, database second.

use std::time::Duration;

use handstamp_tests::kafka_brokers;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::message::{Headers as _, Message as _};

use crate::credit::write_effect;
use crate::scene::{SOON, Scene, event};

/// Reads the next event of the group and commits its offset at once.
fn take_next(scene: &Scene) -> String {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka_brokers())
        .set("group.id", &scene.group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .create()
        .expect("a consumer can be made");
    consumer.subscribe(&[scene.topic.name()]).expect("a topic can be subscribed to");
    let deadline = std::time::Instant::now() + SOON;
    while std::time::Instant::now() < deadline {
        let Some(Ok(record)) = consumer.poll(Duration::from_millis(100)) else { continue };
        consumer.commit_message(&record, CommitMode::Sync).expect("the offset can be committed");
        let id = record.headers().expect("headers").get(0).value.expect("an id").to_vec();
        return String::from_utf8(id).expect("text");
    }
    panic!("nothing was delivered");
}

#[tokio::test]
async fn offset_first_loses_what_a_crash_interrupts() {
    let scene = Scene::new(1).await;
    scene.topic.produce_all([event("evt-0"), event("evt-1")]).await;
    let interrupted = take_next(&scene);
    // Here the process dies, before it has written anything.
    let next = take_next(&scene);
    write_effect(&mut scene.connect().await, &next, 1).await.expect("the server answers");
    assert_eq!(interrupted, "evt-0");
    assert_eq!(scene.effects().await, ["evt-1"], "evt-0 is lost for good");
}
