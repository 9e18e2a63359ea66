//! A handler that takes all messages of a transaction at once.

use handstamp::Disposition::{Applied, Duplicate, Parked};
use handstamp::{BoxError, EventId, Notice, idempotent};
use handstamp_tests::Running;
use sqlx::PgConnection;

use crate::scene::{Scene, count, event, event_id, events};

const POISON: &str = "poison";

#[idempotent(consumer = "bulk-credits", key = header("event_id"), attempts = 2)]
async fn credit_all(events: Vec<EventId>, conn: &mut PgConnection) -> Result<(), BoxError> {
    let events: Vec<String> = events.into_iter().map(|EventId(event)| event).collect();
    // Together: what fails with a neighbour must not stay.
    sqlx::query("INSERT INTO effects (event, attempt) SELECT event, $2 FROM unnest($1::text[]) AS event")
        .bind(&events)
        .bind(i64::try_from(events.len())?)
        .execute(conn)
        .await?;
    if events.iter().any(|event| event == POISON) { Err("not a deposit".into()) } else { Ok(()) }
}

#[tokio::test]
async fn a_backlog_is_applied_once_in_few_calls_and_only_the_poison_is_parked() {
    const EVENTS: usize = 600;
    let scene = Scene::new(1).await;
    let backlog = events(EVENTS / 2).chain([event(POISON)]).chain(events(EVENTS));
    scene.topic.produce_all(backlog).await;
    let mut worker = Running::start(scene.worker().consume::<credit_all>(scene.topic.name()));
    let done = worker.until_done(EVENTS + EVENTS / 2 + 1).await;
    let tried = worker.heard().iter().filter_map(|notice| match notice {
        Notice::Failed { position, attempt, .. } => Some((position.offset, *attempt)),
        _ => None,
    });
    // Batches that fail with a neighbour are no attempts of anybody.
    let poison = i64::try_from(EVENTS / 2).expect("few");
    assert_eq!(tried.collect::<Vec<_>>(), [(poison, 1), (poison, 2)]);
    worker.stop().await.expect("a good end");
    let counts = [Applied, Duplicate, Parked].map(|disposition| count(&done, disposition));
    assert_eq!(counts, [EVENTS, EVENTS / 2, 1]);
    let mut effects = scene.effects().await;
    effects.sort();
    let mut expected: Vec<_> = (0..EVENTS).map(event_id).collect();
    expected.sort();
    assert_eq!(effects, expected);
    assert!(scene.attempts().await.into_iter().max() > Some(50), "it was called for few at a time");
    let letters = scene.dead_letters().await;
    let told: Vec<_> = letters.iter().map(|letter| (letter.offset, letter.attempts)).collect();
    assert_eq!(told, [(Some(poison), 2)]);
}
