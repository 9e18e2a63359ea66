//! A handler that only records what it writes.

use handstamp::Disposition::{Applied, Duplicate, Parked};
use handstamp::{BoxError, Effects, EventId, Notice, idempotent};
use handstamp_tests::Running;

use crate::scene::{Scene, count, event, event_id, events};

const POISON: &str = "poison";

#[idempotent(consumer = "recorded-credits", key = header("event_id"), attempts = 2)]
fn credit(EventId(event): EventId, fx: &mut Effects) -> Result<(), BoxError> {
    // The poison's is refused by the server, long after the handler has returned.
    let attempt = (event != POISON).then_some(1_i64);
    fx.execute("INSERT INTO effects (event, attempt) VALUES ($1, $2)", (event, attempt));
    Ok(())
}

#[tokio::test]
async fn a_backlog_is_applied_once_in_order_and_only_what_the_server_refuses_is_parked() {
    const EVENTS: usize = 600;
    let scene = Scene::new(1).await;
    let backlog = events(EVENTS / 2).chain([event(POISON)]).chain(events(EVENTS));
    scene.topic.produce_all(backlog).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    let done = worker.until_done(EVENTS + EVENTS / 2 + 1).await;
    let tried = worker.heard().iter().filter_map(|notice| match notice {
        Notice::Failed { position, attempt, .. } => Some((position.offset, *attempt)),
        _ => None,
    });
    let poison = i64::try_from(EVENTS / 2).expect("few");
    assert_eq!(tried.collect::<Vec<_>>(), [(poison, 1), (poison, 2)]);
    worker.stop().await.expect("a good end");
    let counts = [Applied, Duplicate, Parked].map(|disposition| count(&done, disposition));
    assert_eq!(counts, [EVENTS, EVENTS / 2, 1]);
    assert_eq!(scene.effects().await, (0..EVENTS).map(event_id).collect::<Vec<_>>());
    let letters = scene.dead_letters().await;
    let told: Vec<_> = letters.iter().map(|letter| (letter.offset, letter.attempts)).collect();
    assert_eq!(told, [(Some(poison), 2)]);
}
