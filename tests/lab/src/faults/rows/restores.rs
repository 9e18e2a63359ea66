use std::sync::Arc;

use anyhow::{Result, ensure};
use sqlx::PgConnection;

use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup};
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F18",
    what: "PostgreSQL restored to an older state",
    asks: &[Ask::new(Fault::DatabaseRestores, 3, 15)],
    expects: Expects { duplicates: true, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// Three members under load, of which one is another process after each restore: it has to go by what it
/// finds, the others remember what was acknowledged to them. The restore takes the whole server back, and rows run
/// one after the other, so that it takes nothing from another row.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default()).await?;
    let posts = ["0", "1", "2"].map(Post::fixed);
    let mut members: Vec<_> = posts.iter().map(|post| stage.enlist(post)).collect();
    let offsets = stage.offsets();
    let mut random = trial.random(0);
    let postgres = &trial.arena.postgres;
    let mut has_snapshot = false;
    while trial.wants(Fault::DatabaseRestores) {
        ensure!(stage.journal.until_applied(100).await, "nothing is applied any more");
        // Else the state is that of an earlier round, and much older.
        if !has_snapshot || random.chance(500) {
            postgres.stop().await;
            postgres.snapshot().await;
            postgres.start().await;
            has_snapshot = true;
        }
        let mut connection = stage.connect().await?;
        sqlx::query("CREATE TABLE newer_than_the_snapshot ()").execute(&mut connection).await?;
        // What is applied from here on will not have been.
        let undone = random.between(100, 400);
        ensure!(stage.journal.until_applied(undone).await, "nothing is applied any more");
        let away = stage.look_away().await;
        trial.injected(Fault::DatabaseRestores);
        postgres.stop().await;
        stage.journal.strike_all();
        let victim = random.index(members.len());
        members.remove(victim).kill().await?;
        postgres.restore().await;
        postgres.start().await;
        members.insert(victim, stage.enlist(&posts[victim]));
        let mut connection = stage.connect().await?;
        if is_older(&mut connection).await? {
            trial.observed(Fault::DatabaseRestores);
        }
        if !offsets.until_not_ahead(&mut connection).await? {
            trial.blame("Kafka's offsets stayed ahead of the database");
        }
        drop(away);
    }
    trial.close(stage, members).await
}

/// Whether what was made after the snapshot was never made.
async fn is_older(connection: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("SELECT to_regclass('newer_than_the_snapshot') IS NULL")
        .fetch_one(connection)
        .await?)
}
