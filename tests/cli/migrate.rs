use handstamp_tests::{TestDatabase, unique};
use sqlx::{AssertSqlSafe, ConnectOptions, PgPool};

use crate::tool::Tool;

/// A role that may log in and nothing else. Roles belong to the whole server, so each has its own name.
struct Role<'a> {
    name: String,
    database: &'a TestDatabase,
}

impl<'a> Role<'a> {
    async fn create(database: &'a TestDatabase) -> Self {
        let name = unique("role");
        execute(database.pool(), format!("CREATE ROLE {name} LOGIN PASSWORD 'stamp'")).await;
        Self { name, database }
    }

    fn tool(&self) -> Tool {
        let options = self.database.options().username(&self.name).password("stamp");
        Tool::on(options.to_url_lossy().as_str())
    }

    async fn drop(self) {
        let name = &self.name;
        execute(self.database.pool(), format!("DROP OWNED BY {name}; DROP ROLE {name}")).await;
    }
}

async fn execute(pool: &PgPool, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await.expect("the owner may do this");
}

#[tokio::test]
async fn the_second_migration_changes_nothing() {
    let database = TestDatabase::new().await;
    let tool = Tool::on(&database.url());
    assert!(tool.run(["migrate"]).await.done().contains("up to date now"));
    assert!(tool.run(["migrate"]).await.done().contains("nothing has changed"));
}

#[tokio::test]
async fn c20_without_the_right_to_create_the_right_and_the_role_are_named() {
    let database = TestDatabase::new().await;
    let role = Role::create(&database).await;
    let run = role.tool().run(["migrate"]).await;
    let text = run.refused();
    assert!(text.contains("CREATE on database") && text.contains(&role.name), "{text}");
    assert!(text.contains("`handstamp migrate --print`"), "{text}");
    role.drop().await;
}

#[tokio::test]
async fn c20_the_printed_sql_is_all_that_a_service_role_needs() {
    let database = TestDatabase::new().await;
    let role = Role::create(&database).await;
    let sql = Tool::bare().run(["migrate", "--print", "--role", &role.name]).await.done().to_owned();
    execute(database.pool(), sql).await;
    let tool = role.tool();
    assert!(tool.run(["migrate"]).await.done().contains("nothing has changed"));
    tool.run(["consumers", "list"]).await.done();
    tool.run(["progress", "list"]).await.done();
    tool.run(["dlq", "list"]).await.done();
    role.drop().await;
}

#[tokio::test]
async fn a_sqlite_file_is_made_where_there_is_none() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let tool = Tool::on(&format!("sqlite:{}", folder.path().join("inbox.db").display()));
    tool.run(["consumers", "list"]).await.refused();
    tool.run(["migrate"]).await.done();
    assert!(tool.run(["consumers", "list"]).await.done().contains("no consumer"));
    assert!(tool.run(["progress", "list"]).await.done().contains("no progress"));
    assert!(tool.run(["dlq", "list"]).await.done().contains("no open dead letters"));
}
