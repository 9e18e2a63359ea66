//! Order within a partition.

use handstamp::{BoxError, EventId, Inbox, idempotent};
use handstamp_tests::Running;
use sqlx::Postgres;

use crate::credit::write_effect;
use crate::scene::{Scene, event};

/// Fails the first time for every fifth event.
#[idempotent(consumer = "stumbling", key = header("event_id"))]
async fn stumble(EventId(event): EventId, inbox: &mut Inbox<Postgres>) -> Result<(), BoxError> {
    let attempt = inbox.attempt();
    write_effect(inbox, &event, attempt).await?;
    if attempt == 1 && event.ends_with('5') {
        return Err("not yet".into());
    }
    Ok(())
}

#[tokio::test]
async fn order_within_a_partition_is_kept_across_retries() {
    let scene = Scene::new(3).await;
    let sent = |partition: i32| (0..30).map(move |number| format!("{partition}-{number}"));
    for partition in 0..3 {
        scene.topic.produce_all(sent(partition).map(|id| event(&id).partition(partition))).await;
    }
    let mut worker = Running::start(scene.worker().consume::<stumble>(scene.topic.name()));
    worker.until_done(90).await;
    worker.stop().await.expect("a good end");
    let effects = scene.effects().await;
    for partition in 0..3 {
        let applied = effects.iter().filter(|event| event.starts_with(&format!("{partition}-")));
        assert!(applied.eq(&sent(partition).collect::<Vec<_>>()), "partition {partition}: {effects:?}");
    }
}
