//! What the publisher puts into a record, and what that is good for.

use handstamp::Disposition::{Applied, Duplicate};
use handstamp::{Publisher, Record};
use handstamp_tests::{Running, unique};
use uuid::{Uuid, Version};

use crate::credit::credit;
use crate::scene::{Scene, count};

#[tokio::test]
async fn a_published_event_carries_a_new_id_and_the_key_of_its_entity() {
    let scene = Scene::new(1).await;
    let publisher = Publisher::new(&scene.kafka()).expect("a producer can be made");
    let record = Record::to(scene.topic.name()).key("account-7").header("type", "deposit");
    let id = publisher.publish(record.json(&serde_json::json!({})).expect("JSON")).await.expect("a broker");
    let version = id.parse::<Uuid>().expect("a UUID").get_version();
    assert_eq!(version, Some(Version::SortRand));
    let sent = handstamp_tests::Record::new("{}").key("account-7").partition(0);
    let sent = sent.header("event_id", id).header("type", "deposit");
    assert_eq!(scene.topic.read_all().await, [sent]);
}

#[tokio::test]
async fn an_event_published_again_under_its_id_is_applied_once() {
    let scene = Scene::new(3).await;
    let publisher = Publisher::new(&scene.kafka()).expect("a producer can be made");
    let record = Record::to(scene.topic.name()).payload("{}");
    let id = publisher.publish(record.clone().key("account-7")).await.expect("a broker");
    for key in ["account-7", "account-8", "account-9"] {
        let again = record.clone().key(key).event_id(&id);
        assert_eq!(publisher.publish(again).await.expect("a broker"), id);
    }
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let done = worker.until_done(4).await;
    worker.stop().await.expect("a good end");
    assert_eq!((count(&done, Applied), count(&done, Duplicate)), (1, 3));
    assert_eq!(scene.effects().await, [id]);
}

#[tokio::test]
async fn an_event_that_is_not_acknowledged_names_its_id_and_what_to_do() {
    let missing = unique("missing");
    let kafka = handstamp::Kafka::new(handstamp_tests::kafka_brokers())
        .property("topic.metadata.propagation.max.ms", "500")
        .property("message.timeout.ms", "5000");
    let publisher = Publisher::new(&kafka).expect("a producer can be made");
    let error = publisher.publish(Record::to(&missing).event_id("evt-1").payload("{}")).await;
    let error = error.expect_err("there is no such topic").to_string();
    for part in ["evt-1", &missing, "create it first", "under the same id"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}
