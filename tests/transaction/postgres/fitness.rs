use handstamp::FailureKind;
use handstamp::internal::server::examine;
use sqlx::PgPool;
use uuid::Uuid;

use super::empty_database;
use crate::database::{administer, server};

#[tokio::test]
async fn the_server_of_these_tests_is_fit() {
    let database = empty_database().await;
    for _ in 0..3 {
        examine(&database.pool).await.unwrap();
    }
}

#[tokio::test]
async fn a_database_that_cannot_hold_any_text_is_refused() {
    let name = format!("transaction_{}", Uuid::now_v7().simple());
    administer(format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")).await;
    let pool = PgPool::connect_with(server().database(&name)).await.unwrap();
    let failure = examine(&pool).await.unwrap_err();
    pool.close().await;
    administer(format!("DROP DATABASE {name} WITH (FORCE)")).await;
    assert_eq!(failure.kind(), FailureKind::Configuration);
    assert!(failure.to_string().contains("LATIN1"), "{failure}");
}
