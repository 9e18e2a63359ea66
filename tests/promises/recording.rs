//! A handler that only records what it writes.

use handstamp::{BoxError, Effects, EventId, idempotent};
use handstamp_tests::Running;

use crate::backlog::{self, POISON, applied_but_for_the_poison};
use crate::scene::Scene;

#[idempotent(consumer = "recorded-credits", key = header("event_id"), attempts = 2)]
fn credit(EventId(event): EventId, fx: &mut Effects) -> Result<(), BoxError> {
    // The poison's is refused by the server, long after the handler has returned.
    let attempt = (event != POISON).then_some(1_i64);
    fx.execute("INSERT INTO effects (event, attempt) VALUES ($1, $2)", (event, attempt));
    Ok(())
}

#[tokio::test]
async fn a_backlog_is_applied_once_in_order_and_only_what_the_server_refuses_is_parked() {
    let scene = Scene::new(1).await;
    backlog::produce(&scene).await;
    let worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    assert_eq!(applied_but_for_the_poison(&scene, worker).await, backlog::expected());
}
