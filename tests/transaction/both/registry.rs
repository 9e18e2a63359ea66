use handstamp::internal::consumers::{self, ConsumerId, Registration};
use handstamp::{Disposition, FailureKind, apply};

use super::handlers::Credits;
use super::{effects, new_database};
use crate::messages::{kind, message};

const CREDITS: Registration<'_> = Registration {
    name: "Credits",
    key_definition: "header(\"event_id\")",
    handler: "wallet::credit",
    group: Some("credits"),
    topics: &["deposits"],
};

#[tokio::test]
async fn consumers_are_numbered_from_one_without_gaps() {
    let database = new_database().await;
    for _ in 0..2 {
        assert_eq!(consumers::register(&database.pool, &CREDITS).await.unwrap(), ConsumerId(1));
    }
    let audit = Registration { name: "Audit", handler: "wallet::audit", ..CREDITS };
    assert_eq!(consumers::register(&database.pool, &audit).await.unwrap(), ConsumerId(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_registrations_get_numbers_of_their_own() {
    let database = new_database().await;
    let racers = (0..16).map(|racer| {
        let pool = database.pool.clone();
        let name = format!("consumer-{}", racer % 8);
        tokio::spawn(async move {
            let registration = Registration { name: &name, handler: &name, ..CREDITS };
            consumers::register(&pool, &registration).await.unwrap()
        })
    });
    let mut numbers = std::collections::BTreeSet::new();
    for racer in racers.collect::<Vec<_>>() {
        numbers.insert(racer.await.unwrap());
    }
    assert_eq!(numbers, (1..=8).map(ConsumerId).collect());
}

#[tokio::test]
async fn a_deploy_updates_what_is_remembered() {
    let database = new_database().await;
    consumers::register(&database.pool, &CREDITS).await.unwrap();
    let deploy =
        Registration { handler: "wallet::deposits::credit", topics: &["deposits", "refunds"], ..CREDITS };
    consumers::register(&database.pool, &deploy).await.unwrap();
    let known = consumers::list(&database.pool).await.unwrap().remove(0);
    assert_eq!((known.handler.as_str(), known.topics.len()), ("wallet::deposits::credit", 2));
}

#[tokio::test]
async fn a_changed_key_is_refused_until_it_is_accepted() {
    let database = new_database().await;
    consumers::register(&database.pool, &CREDITS).await.unwrap();
    let changed = Registration { key_definition: "message_key", ..CREDITS };
    assert_eq!(kind(consumers::register(&database.pool, &changed).await), FailureKind::Configuration);
    consumers::accept_key(&database.pool, "Credits", "message_key").await.unwrap();
    assert_eq!(consumers::register(&database.pool, &changed).await.unwrap(), ConsumerId(1));
}

#[tokio::test]
async fn a_new_name_is_refused_until_the_inbox_is_renamed() {
    let database = new_database().await;
    consumers::register(&database.pool, &CREDITS).await.unwrap();
    let renamed = Registration { name: "Deposits", ..CREDITS };
    assert_eq!(kind(consumers::register(&database.pool, &renamed).await), FailureKind::Configuration);
    consumers::rename(&database.pool, "Credits", "Deposits").await.unwrap();
    assert_eq!(consumers::register(&database.pool, &renamed).await.unwrap(), ConsumerId(1));
}

#[tokio::test]
async fn c23_another_owner_is_refused_until_the_name_is_released() {
    let database = new_database().await;
    consumers::register(&database.pool, &CREDITS).await.unwrap();
    let other = Registration { handler: "email::receipt", topics: &["receipts"], ..CREDITS };
    let refusal = consumers::register(&database.pool, &other).await.unwrap_err().to_string();
    assert!(refusal.contains("wallet::credit") && refusal.contains("email::receipt"), "{refusal}");
    consumers::release(&database.pool, "Credits").await.unwrap();
    consumers::register(&database.pool, &other).await.unwrap();
}

#[tokio::test]
async fn a_name_is_not_given_twice() {
    let database = new_database().await;
    consumers::register(&database.pool, &CREDITS).await.unwrap();
    let audit = Registration { name: "Audit", handler: "wallet::audit", ..CREDITS };
    consumers::register(&database.pool, &audit).await.unwrap();
    let taken = consumers::rename(&database.pool, "Credits", "Audit").await;
    assert_eq!(kind(taken), FailureKind::Configuration);
}

#[tokio::test]
async fn an_unknown_consumer_is_named_with_those_that_exist() {
    let database = new_database().await;
    consumers::register(&database.pool, &CREDITS).await.unwrap();
    let text = consumers::accept_key(&database.pool, "Credit", "position").await.unwrap_err().to_string();
    assert!(text.contains("`Credit`") && text.contains("Credits"), "{text}");
}

#[tokio::test]
async fn applying_by_hand_registers_the_consumer() {
    let database = new_database().await;
    assert_eq!(apply::<Credits>(&database.pool, &message("evt-1")).await.unwrap(), Disposition::Applied);
    let known = consumers::list(&database.pool).await.unwrap().remove(0);
    assert_eq!((known.name.as_str(), known.topics.len()), ("Credits", 0));
}

#[tokio::test]
async fn applying_by_hand_with_a_changed_key_is_refused() {
    let database = new_database().await;
    apply::<Credits>(&database.pool, &message("evt-1")).await.unwrap();
    consumers::accept_key(&database.pool, "Credits", "position").await.unwrap();
    let refused = apply::<Credits>(&database.pool, &message("evt-1")).await;
    assert_eq!(kind(refused), FailureKind::Configuration);
    assert_eq!(effects(&database).await.len(), 1);
}
