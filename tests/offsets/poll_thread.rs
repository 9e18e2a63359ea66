//! A mistake on the thread that polls. Nothing of ours should panic there, but the program's own subscriber
//! runs there whenever librdkafka has something to say.

use handstamp::Notice;
use handstamp_tests::{PrivateKafka, Running, TestDatabase, TestTopic};

use crate::log;
use crate::scene::{SOON, Scene, ids};

#[tokio::test]
async fn a_panic_while_polling_ends_the_client_and_a_new_one_goes_on() {
    let kafka = PrivateKafka::launch().await;
    let topic = TestTopic::on(kafka.brokers(), 1).await;
    let scene =
        Scene { brokers: kafka.brokers().to_owned(), ..Scene::with(topic, TestDatabase::new().await).await };
    let mut running = Running::start(scene.worker());
    scene.produce(0, ids("e", 0..3)).await;
    running.until_done(3).await;

    log::panic_at(kafka.brokers());
    kafka.kill().await;
    let rebuilt = running.next(SOON, |notice| matches!(notice, Notice::Rebuilt { .. })).await;
    assert!(matches!(&rebuilt, Notice::Rebuilt { error, .. } if error.contains("panicked")), "{rebuilt:?}");
    kafka.start().await;
    scene.produce(0, ids("f", 0..3)).await;
    scene.until_at(0, 6).await;
    running.stop().await.expect("a clean stop");
    assert_eq!(scene.applied().await, [ids("e", 0..3), ids("f", 0..3)].concat());
}
