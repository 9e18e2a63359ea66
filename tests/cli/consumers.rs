use serde_json::json;

use crate::tool::{CONSUMER, Run, Tool, migrated, register};

fn row(run: &Run, words: &[&str]) -> bool {
    run.done().lines().any(|line| words.iter().all(|word| line.contains(word)))
}

#[tokio::test]
async fn consumers_are_listed_with_what_they_are_known_by() {
    let database = migrated().await;
    register(database.pool(), r#"header("event_id")"#, "wallet", "deposits").await.expect("it is new");
    let tool = Tool::on(&database.url());
    let listed = tool.run(["consumers", "list"]).await;
    assert!(row(&listed, &[CONSUMER, r#"header("event_id")"#, "tests::credit", "wallet", "deposits"]));
    let document = json!([{
        "name": CONSUMER,
        "key_definition": r#"header("event_id")"#,
        "handler": "tests::credit",
        "group": "wallet",
        "topics": ["deposits"],
    }]);
    assert_eq!(tool.json(["consumers", "list", "--json"]).await, document);
}

#[tokio::test]
async fn the_command_in_the_refusal_of_a_changed_key_accepts_it() {
    let database = migrated().await;
    register(database.pool(), "position", "wallet", "deposits").await.expect("it is new");
    let changed = r#"(header("it's"), json("/id"))"#;
    let refusal = register(database.pool(), changed, "wallet", "deposits").await.unwrap_err().to_string();
    let tool = Tool::on(&database.url());
    tool.paste(&refusal, "handstamp consumers accept-key", "").await.done();
    register(database.pool(), changed, "wallet", "deposits").await.expect("the key is accepted");
}

#[tokio::test]
async fn the_command_in_the_refusal_of_another_owner_releases_the_name() {
    let database = migrated().await;
    register(database.pool(), "position", "wallet", "deposits").await.expect("it is new");
    sqlx::query("UPDATE handstamp.consumers SET handler = 'other::handler'")
        .execute(database.pool())
        .await
        .expect("the owner may do this");
    let refusal =
        register(database.pool(), "position", "elsewhere", "refunds").await.unwrap_err().to_string();
    let tool = Tool::on(&database.url());
    tool.paste(&refusal, "handstamp consumers release", "").await.done();
    register(database.pool(), "position", "elsewhere", "refunds").await.expect("the name is free");
}

#[tokio::test]
async fn a_renamed_consumer_keeps_what_it_is_known_by() {
    let database = migrated().await;
    register(database.pool(), "position", "wallet", "deposits").await.expect("it is new");
    let tool = Tool::on(&database.url());
    tool.run(["consumers", "rename", CONSUMER, "new-name"]).await.done();
    let listed = tool.json(["consumers", "list", "--json"]).await;
    assert_eq!((&listed[0]["name"], &listed[0]["group"]), (&json!("new-name"), &json!("wallet")));
}

#[tokio::test]
async fn a_name_that_is_taken_is_not_given_away() {
    let database = migrated().await;
    register(database.pool(), "position", "wallet", "deposits").await.expect("it is new");
    let run = Tool::on(&database.url()).run(["consumers", "rename", CONSUMER, CONSUMER]).await;
    assert!(run.refused().contains("choose another name"), "{run:?}");
}
