//! Order within a partition, or within a key.

use std::collections::BTreeSet;

use anyhow::ensure;
use handstamp::Disposition::{Applied, Duplicate};
use handstamp::{BoxError, EventId, Inbox, idempotent};
use handstamp_tests::{Record, Running, eventually};
use sqlx::Postgres;

use crate::credit::{credit_by_key, write_effect};
use crate::gate::{Gate, gated};
use crate::scene::{SOON, Scene, count, event, event_id, events};

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

#[idempotent(consumer = "stumbling-by-key", key = header("event_id"), order = key)]
async fn stumble_by_key(event: EventId, inbox: &mut Inbox<Postgres>) -> Result<(), BoxError> {
    stumble(event, inbox).await
}

#[tokio::test]
async fn order_within_a_key_is_kept_across_retries() {
    const KEYS: usize = 5;
    const EACH: usize = 20;
    let scene = Scene::new(1).await;
    let sent = (0..KEYS * EACH).map(|number| (number % KEYS, format!("{}-{}", number % KEYS, number / KEYS)));
    let records = sent.map(|(key, id)| event(&id).key(key.to_string()));
    scene.topic.produce_all(records.collect::<Vec<Record>>()).await;
    let mut worker = Running::start(scene.worker().consume::<stumble_by_key>(scene.topic.name()));
    worker.until_done(KEYS * EACH).await;
    worker.stop().await.expect("a good end");
    let effects = scene.effects().await;
    for key in 0..KEYS {
        let applied = effects.iter().filter(|event| event.starts_with(&format!("{key}-")));
        let expected: Vec<_> = (0..EACH).map(|number| format!("{key}-{number}")).collect();
        assert!(applied.eq(&expected), "key {key}: {effects:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_slow_does_not_hold_up_others() {
    const OTHERS: usize = 30;
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    scene.topic.produce(gated("slow").key("slow")).await;
    let mut worker = Running::start(scene.worker().consume::<credit_by_key>(scene.topic.name()));
    gate.wait_for_handlers(1).await;
    // A few of them may share its track.
    scene.topic.produce_all(events(OTHERS)).await;
    worker.until_done(OTHERS / 2).await;
    assert!(!scene.effects().await.contains(&"slow".to_owned()));
    assert_eq!(scene.committed(0).await.unwrap_or(0), 0, "the offset waits for the lowest");
    gate.open().await;
    worker.until_committed(0, i64::try_from(OTHERS + 1).expect("few")).await;
    worker.stop().await.expect("a good end");
    assert_eq!(scene.effects().await.len(), OTHERS + 1);
}

#[tokio::test]
async fn a_kill_while_later_messages_are_done_loses_none_and_doubles_none() {
    const OTHERS: usize = 30;
    let scene = Scene::new(1).await;
    let mut gate = Gate::close(&scene).await;
    let mut process = scene.process(&["--by-key"]);
    scene.topic.produce(gated("slow").key("slow")).await;
    gate.wait_for_handlers(1).await;
    scene.topic.produce_all(events(OTHERS)).await;
    eventually(SOON, async || {
        let done = scene.effects().await.len();
        ensure!(done >= OTHERS / 2, "{done} are done");
        Ok(())
    })
    .await;
    process.kill().await;
    gate.open().await;
    let done_before = scene.effects().await.len();
    let mut restarted = Running::start(scene.worker().consume::<credit_by_key>(scene.topic.name()));
    let done = restarted.until_done(OTHERS + 1).await;
    restarted.stop().await.expect("a good end");
    let counts = [Applied, Duplicate].map(|disposition| count(&done, disposition));
    assert_eq!(counts, [OTHERS + 1 - done_before, done_before]);
    let effects = scene.effects().await;
    let expected: BTreeSet<_> = (0..OTHERS).map(event_id).chain(["slow".to_owned()]).collect();
    assert_eq!((effects.len(), effects.into_iter().collect()), (OTHERS + 1, expected));
}
