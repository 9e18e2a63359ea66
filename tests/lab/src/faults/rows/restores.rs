use std::sync::Arc;

use anyhow::{Result, ensure};
use sqlx::PgConnection;

use crate::faults::member::Member;
use crate::faults::offsets::Offsets;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F18",
    what: "PostgreSQL restored to an older state",
    asks: &[Ask::new(Fault::DatabaseRestores, 3, 15)],
    expects: Expects { duplicates: true, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// Three members under load on each of two stages, of which one is another process after each restore: it has to go by
/// what it finds, the others remember what was acknowledged to them. On the second stage only message keys have an order,
/// and rows say what was dealt with out of turn. The restore takes the whole server back, and rows run one after the
/// other, so that it takes nothing from another row.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let stages = tokio::try_join!(trial.stage(Setup::default()), trial.stage(Setup::default().keyed()))?;
    let mut casts = [Cast::new(stages.0), Cast::new(stages.1)];
    let mut random = trial.random(0);
    let postgres = &trial.arena.postgres;
    let mut has_snapshot = false;
    while trial.wants(Fault::DatabaseRestores) {
        until_applied(&casts, 100).await?;
        // Else the state is that of an earlier round, and much older.
        if !has_snapshot || random.chance(500) {
            postgres.stop().await;
            postgres.snapshot().await;
            postgres.start().await;
            has_snapshot = true;
        }
        for Cast { stage, .. } in &casts {
            let mut connection = stage.connect().await?;
            sqlx::query("CREATE TABLE newer_than_the_snapshot ()").execute(&mut connection).await?;
        }
        // What is applied from here on will not have been.
        until_applied(&casts, random.between(100, 400)).await?;
        let away = (casts[0].stage.look_away().await, casts[1].stage.look_away().await);
        trial.injected(Fault::DatabaseRestores);
        postgres.stop().await;
        let victim = random.index(POSTS.len());
        for Cast { stage, members, .. } in &mut casts {
            stage.journal.strike_all();
            members.remove(victim).kill().await?;
        }
        postgres.restore().await;
        postgres.start().await;
        let mut older = true;
        for Cast { stage, offsets, members } in &mut casts {
            members.insert(victim, stage.enlist(&Post::fixed(POSTS[victim])));
            let mut connection = stage.connect().await?;
            older &= is_older(&mut connection).await?;
            if !offsets.until_not_ahead(&mut connection).await? {
                trial.blame("Kafka's offsets stayed ahead of the database");
            }
        }
        if older {
            trial.observed(Fault::DatabaseRestores);
        }
        drop(away);
    }
    for Cast { stage, members, .. } in casts {
        trial.close(stage, members).await?;
    }
    Ok(())
}

const POSTS: [&str; 3] = ["0", "1", "2"];

/// A stage and who is on it, by post.
struct Cast {
    stage: Stage,
    offsets: Offsets,
    members: Vec<Member>,
}

impl Cast {
    fn new(stage: Stage) -> Self {
        let members = POSTS.map(|post| stage.enlist(&Post::fixed(post))).into();
        Self { offsets: stage.offsets(), stage, members }
    }
}

async fn until_applied(casts: &[Cast], more: u64) -> Result<()> {
    for Cast { stage, .. } in casts {
        ensure!(stage.journal.until_applied(more).await, "nothing is applied any more");
    }
    Ok(())
}

/// Whether what was made after the snapshot was never made.
async fn is_older(connection: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("SELECT to_regclass('newer_than_the_snapshot') IS NULL")
        .fetch_one(connection)
        .await?)
}
