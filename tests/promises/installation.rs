//! How the inbox gets into a database, and what a service needs to use it.

use handstamp::Disposition::Applied;
use handstamp::Worker;
use handstamp_tests::{Record, Running, TestDatabase, unique};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool, Postgres};

use crate::credit::credit;
use crate::scene::{Scene, event};

async fn execute(pool: &PgPool, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await.expect("the statements run");
}

#[tokio::test]
async fn c20_a_role_that_may_not_create_anything_consumes_with_the_printed_grants() {
    let scene = Scene::new(1).await;
    let (pool, role) = (scene.database.pool(), unique("app"));
    sqlx::raw_sql("DROP SCHEMA handstamp CASCADE").execute(pool).await.expect("the inbox goes");
    execute(pool, format!("CREATE ROLE {role} LOGIN; GRANT INSERT, SELECT ON effects TO {role}; GRANT USAGE ON effects_id_seq TO {role}")).await;
    execute(pool, handstamp::migration_sql::<Postgres>(&role)).await;
    let app = PgPoolOptions::new().connect_lazy_with(scene.database.options().username(&role));
    scene.topic.produce_all([event("evt-1"), Record::new("no key")]).await;
    let worker = Worker::builder(app.clone()).kafka(scene.kafka()).group(&*scene.group);
    let mut worker = Running::start(worker.consume::<credit>(scene.topic.name()));
    worker.until_done(2).await;
    worker.stop().await.expect("a good end");
    let again = handstamp::migrate(&app).await;
    app.close().await;
    let (effects, letters) = (scene.effects().await, scene.dead_letters().await.len());
    execute(pool, format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    again.expect("without anything to do it needs no right");
    assert_eq!((effects, letters), (vec!["evt-1".to_owned()], 1));
}

#[tokio::test]
async fn c20_migrating_as_a_role_that_may_not_names_the_right_and_the_role() {
    let database = TestDatabase::new().await;
    let role = unique("app");
    execute(database.pool(), format!("CREATE ROLE {role} LOGIN")).await;
    let app = PgPoolOptions::new().connect_lazy_with(database.options().username(&role));
    let refused = handstamp::migrate(&app).await;
    app.close().await;
    execute(database.pool(), format!("DROP ROLE {role}")).await;
    let refused = refused.expect_err("it may not create").to_string();
    assert!(refused.contains("CREATE") && refused.contains(&role), "{refused}");
    assert!(refused.contains("handstamp migrate --print"), "{refused}");
}

/// The migrations of an application that uses the same database.
fn application() -> Migrator {
    let one = Migration::new(
        20_260_101,
        "accounts".into(),
        MigrationType::Simple,
        sqlx::SqlStr::from_static("CREATE TABLE accounts (id int8)"),
        false,
    );
    Migrator { migrations: vec![one].into(), ..Migrator::DEFAULT }
}

#[tokio::test]
async fn c21_the_migrations_of_an_application_and_ours_do_not_know_each_other() {
    for ours_first in [false, true] {
        let database = TestDatabase::new().await;
        for _start in 0..2 {
            if ours_first {
                handstamp::migrate(database.pool()).await.expect("ours run");
            }
            application().run(database.pool()).await.expect("the application's run");
            handstamp::migrate(database.pool()).await.expect("ours run");
        }
        let theirs: Vec<i64> = sqlx::query_scalar("SELECT version FROM _sqlx_migrations")
            .fetch_all(database.pool())
            .await
            .expect("the server answers");
        assert_eq!(theirs, [20_260_101], "ours first: {ours_first}");
    }
}

#[tokio::test]
async fn c21_two_processes_that_migrate_at_once_both_succeed() {
    let database = TestDatabase::new().await;
    let migrate = || handstamp::migrate(database.pool());
    let (one, two, three) = tokio::join!(migrate(), migrate(), migrate());
    for migrated in [one, two, three] {
        migrated.expect("one waits for the other");
    }
}

#[tokio::test]
async fn readers_find_applied_messages_in_a_view() {
    let scene = Scene::new(1).await;
    scene.topic.produce(event("evt-1")).await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    assert_eq!(worker.until_done(1).await[0].1, Applied);
    worker.stop().await.expect("a good end");
    let found: (String, String, bool) = sqlx::query_as(
        "SELECT consumer, message_id, abs(extract(epoch FROM now() - processed_at)) < 60
         FROM handstamp.processed_messages",
    )
    .fetch_one(scene.database.pool())
    .await
    .expect("the view is there");
    assert_eq!(found, ("credits".to_owned(), "evt-1".to_owned(), true));
}
