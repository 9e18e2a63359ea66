use handstamp_tests::TestDatabase;

use crate::tool::{CONSUMER, Tool, migrated, register};

#[tokio::test]
async fn an_unreachable_database_is_named_and_says_what_to_check() {
    let run = Tool::on("postgres://nobody:secret@127.0.0.1:1/none").run(["dlq", "list"]).await;
    let text = run.refused();
    assert!(text.contains("PostgreSQL at 127.0.0.1:1") && text.contains("check --database"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn missing_tables_are_refused_with_the_command_that_makes_them() {
    let database = TestDatabase::new().await;
    let tool = Tool::on(&database.url());
    let run = tool.run(["progress", "list"]).await;
    tool.paste(run.refused(), "handstamp migrate", "").await.done();
    tool.run(["progress", "list"]).await.done();
}

#[tokio::test]
async fn an_unknown_consumer_is_refused_with_the_known_ones() {
    let database = migrated().await;
    register(database.pool(), "position", "group", "topic").await.expect("it can be registered");
    let tool = Tool::on(&database.url()).and_kafka();
    for run in [
        tool.run(["dlq", "list", "nobody"]).await,
        tool.run(["progress", "list", "nobody"]).await,
        tool.run(["progress", "adopt", "nobody", "--topic", "topic"]).await,
        tool.run(["consumers", "release", "nobody"]).await,
    ] {
        let text = run.refused();
        assert!(text.contains("no consumer `nobody`") && text.contains(CONSUMER), "{text}");
    }
}

#[tokio::test]
async fn what_is_not_understood_is_told_from_what_cannot_be_done() {
    for (tool, arguments) in [
        (Tool::bare(), ["dlq", "list"]),
        (Tool::on("mysql://somewhere/else"), ["dlq", "list"]),
        (Tool::bare(), ["dlq", "burn"]),
    ] {
        let run = tool.run(arguments).await;
        assert_eq!(run.code, 2, "{run:?}");
    }
}
