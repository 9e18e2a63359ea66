use std::time::Duration;

use handstamp::internal::dead_letters::{self, Relay};
use handstamp::internal::retention::{Horizon, Sweep};
use handstamp::internal::{Registered, consumers};
use handstamp::{Disposition, FailureKind, Message, Position, migrate, migration_sql, require_current};
use sqlx::{AssertSqlSafe, PgPool, Postgres};
use uuid::Uuid;

use super::handlers::Credits;
use super::{empty_database, execute, versions};
use crate::database::{Database, administer};
use crate::messages::{Assigned, TOPIC, message_at};

/// A database and a role that may connect to it and nothing else.
struct Service {
    database: Option<Database<Postgres>>,
    role: String,
    pool: PgPool,
}

impl Service {
    async fn new() -> Self {
        let database = empty_database().await;
        let role = format!("service_{}", Uuid::now_v7().simple());
        administer(format!("CREATE ROLE {role} LOGIN")).await;
        let pool = database.pool_as(|options| options.username(&role)).await;
        Self { database: Some(database), role, pool }
    }

    fn database(&self) -> &Database<Postgres> {
        self.database.as_ref().expect("it is not dropped")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The role's rights go with the database.
        drop(self.database.take());
        let drop = format!("DROP ROLE {}", self.role);
        let dropper = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(administer(drop));
        });
        let _ = dropper.join();
    }
}

#[tokio::test]
async fn c20_the_printed_sql_is_all_that_a_service_needs() {
    let service = Service::new().await;
    let sql = migration_sql::<Postgres>(&service.role);
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&service.database().pool).await.unwrap();
    let effects = format!("CREATE TABLE effect (event text); GRANT INSERT ON effect TO {}", service.role);
    execute(service.database(), &effects).await;

    require_current(&service.pool).await.unwrap();
    migrate(&service.pool).await.unwrap();
    let credits = Registered::<Credits>::new(&());
    let assigned = Assigned::new(&service.pool, &credits).await;
    assert_eq!(assigned.run(&credits, &message_at("evt-1", 0)).await.unwrap(), Disposition::Applied);
    let keyless = Message::builder().payload("5").position(Position::new(TOPIC, 0, 1)).build();
    assert_eq!(assigned.run(&credits, &keyless).await.unwrap(), Disposition::Parked);
    let relay = Relay::take(&service.pool, &[assigned.id], 0, 10).await.unwrap();
    let letter = relay.letters[0].id;
    relay.done(&[letter]).await.unwrap();
    dead_letters::show(&service.pool, letter).await.unwrap();
    let horizon = Horizon::behind(&service.pool, Duration::from_hours(24)).await.unwrap();
    Sweep::new(&service.pool, assigned.id, horizon).next_batch().await.unwrap();
    consumers::rename(&service.pool, "Credits", "Deposits").await.unwrap();
}

#[tokio::test]
async fn c20_a_role_that_may_not_create_is_told_which_right_it_lacks() {
    let service = Service::new().await;
    let failure = migrate(&service.pool).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Configuration);
    let text = failure.to_string();
    assert!(text.contains("CREATE on database") && text.contains(&service.role), "{text}");

    execute(service.database(), "CREATE SCHEMA handstamp").await;
    let text = migrate(&service.pool).await.unwrap_err().to_string();
    assert!(text.contains("CREATE on schema handstamp"), "{text}");
}

#[tokio::test]
async fn c20_create_on_a_schema_that_is_there_is_enough_to_migrate() {
    let service = Service::new().await;
    let grant =
        format!("CREATE SCHEMA handstamp; GRANT CREATE, USAGE ON SCHEMA handstamp TO {}", service.role);
    execute(service.database(), &grant).await;
    migrate(&service.pool).await.unwrap();
    assert_eq!(versions(service.database()).await, [1, 2]);
}

#[tokio::test]
async fn c21_the_applications_migration_table_is_left_alone() {
    let database = empty_database().await;
    execute(
        &database,
        "CREATE TABLE _sqlx_migrations (version int8); INSERT INTO _sqlx_migrations VALUES (20260101)",
    )
    .await;
    for _ in 0..2 {
        migrate(&database.pool).await.unwrap();
    }
    let rows: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations").fetch_all(&database.pool).await.unwrap();
    assert_eq!(rows, [20_260_101]);
}
