use handstamp::{FailureKind, migrate, require_current};

use super::{empty_database, execute, new_database, versions};
use crate::messages::kind;

#[tokio::test]
async fn a_database_without_the_tables_is_refused_with_the_command_that_makes_them() {
    let database = empty_database().await;
    let failure = require_current(&database.pool).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Configuration);
    assert!(failure.to_string().contains("version 0 and this program needs 2: run `handstamp migrate`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn c21_concurrent_migrations_all_succeed() {
    let database = empty_database().await;
    let migrations = (0..8).map(|_| {
        let pool = database.pool.clone();
        tokio::spawn(async move { migrate(&pool).await })
    });
    for migration in migrations.collect::<Vec<_>>() {
        migration.await.unwrap().unwrap();
    }
    assert_eq!(versions(&database).await, [1, 2]);
    require_current(&database.pool).await.unwrap();
}

#[tokio::test]
async fn c21_a_newer_schema_is_accepted() {
    let database = new_database().await;
    execute(&database, "INSERT INTO {migrations} (version, name) VALUES (3, 'later')").await;
    require_current(&database.pool).await.unwrap();
    migrate(&database.pool).await.unwrap();
}

#[tokio::test]
async fn a_migration_that_was_changed_afterwards_is_refused() {
    let database = new_database().await;
    execute(&database, "UPDATE {migrations} SET checksum = substr(checksum, 2)").await;
    assert_eq!(kind(migrate(&database.pool).await), FailureKind::Configuration);
}

#[tokio::test]
async fn tables_made_by_other_means_are_taken_as_they_are() {
    let database = new_database().await;
    execute(&database, "UPDATE {migrations} SET checksum = NULL").await;
    migrate(&database.pool).await.unwrap();
    assert_eq!(versions(&database).await, [1, 2]);
}
