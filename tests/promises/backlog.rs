//! A backlog in which half of the events come twice, and one can never be applied.

use handstamp::Disposition::{Applied, Duplicate, Parked};
use handstamp::Notice;
use handstamp_tests::Running;

use crate::scene::{Scene, count, event, event_id, events};

pub const POISON: &str = "poison";
const EVENTS: usize = 600;

pub async fn produce(scene: &Scene) {
    let backlog = events(EVENTS / 2).chain([event(POISON)]).chain(events(EVENTS));
    scene.topic.produce_all(backlog).await;
}

/// Waits until a worker is done with it whose handler tries twice. All but the poison is applied once, and the poison
/// alone was tried again and parked; what was applied, in its order.
pub async fn applied_but_for_the_poison(scene: &Scene, mut worker: Running) -> Vec<String> {
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
    let letters = scene.dead_letters().await;
    let told: Vec<_> = letters.iter().map(|letter| (letter.offset, letter.attempts)).collect();
    assert_eq!(told, [(Some(poison), 2)]);
    scene.effects().await
}

pub fn expected() -> Vec<String> {
    (0..EVENTS).map(event_id).collect()
}
