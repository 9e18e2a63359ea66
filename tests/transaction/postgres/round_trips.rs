use std::future::pending;

use handstamp::Disposition::{Applied, Duplicate};
use handstamp::internal::{Connections, Consumer, Job, Registered, Task};

use super::handlers::Credits;
use super::new_database;
use crate::database::server;
use crate::link::Link;
use crate::messages::{Assigned, message_at, run_alone};

#[tokio::test]
async fn a_message_costs_a_round_trip_each_for_begin_claim_handler_guard_and_commit() {
    let database = new_database().await;
    let link = Link::to(&server()).await;
    let pool = database.pool_as(|options| link.route(options)).await;
    let consumer = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&pool, &consumer).await;
    let connections = Connections::keeping(&pool);
    let mut costs = Vec::new();
    // The first prepares the statements on its connection, the second asks for its settings.
    for (event, offset, expected) in [
        ("evt-1", 0, Applied),
        ("evt-2", 1, Applied),
        ("evt-3", 2, Applied),
        ("evt-3", 3, Duplicate),
        // The first that comes again prepares another claim.
        ("evt-1", 0, Duplicate),
        ("evt-2", 1, Duplicate),
    ] {
        let job = Job { attempt: 1, tracking: Some(assigned.tracking(4.min(offset + 1))), task: Task::Apply };
        let before = link.round_trips();
        let message = message_at(event, offset);
        let done = run_alone(&consumer, &connections, &message, &job, pending()).await;
        assert_eq!(done.expect("the server answers"), expected);
        costs.push(link.round_trips() - before);
    }
    assert_eq!(costs[2..4], [5, 4], "one statement of the handler, and none for a duplicate");
    assert_eq!(costs[5], 5, "one more for what was dealt with before");
}

#[tokio::test]
async fn a_batch_costs_one_each_for_begin_claim_guard_and_commit_whatever_its_size() {
    const SIZE: i64 = 10;
    let database = new_database().await;
    let link = Link::to(&server()).await;
    let pool = database.pool_as(|options| link.route(options)).await;
    let consumer = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&pool, &consumer).await;
    let connections = Connections::keeping(&pool);
    let mut costs = Vec::new();
    for first in [0, SIZE, 2 * SIZE] {
        let messages: Vec<_> =
            (first..first + SIZE).map(|offset| message_at(&format!("evt-{offset}"), offset)).collect();
        let messages: Vec<_> = messages.iter().collect();
        let job = Job { attempt: 1, tracking: Some(assigned.tracking(first + SIZE)), task: Task::Apply };
        let before = link.round_trips();
        consumer.run(&connections, &messages, &job, Box::pin(pending())).await.expect("all are applied");
        costs.push(link.round_trips() - before);
    }
    assert_eq!(costs[2], 4 + 10, "one statement of the handler for each message");
}
