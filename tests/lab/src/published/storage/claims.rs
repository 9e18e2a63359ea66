use std::time::Instant;

use anyhow::{Result, ensure};
use handstamp_tests::TestDatabase;
use indicatif::ProgressBar;
use sqlx::{Connection, PgConnection, PgPool};

use super::super::inbox::CLAIM;
use super::super::statistics::median;
use super::ids::Ids;
use super::tables;

/// Keys in a claim, as many as handstamp takes into a transaction without options.
const KEYS: u64 = 500;
const TIMED: u64 = 200;
/// So many rows there are for each key that is claimed before the clock starts: every page is in memory then, and
/// was written since the checkpoint.
const ROWS_PER_WARM_UP: u64 = 20;

/// What a claim costs in tables that differ in size alone.
pub struct ClaimCost {
    pub ids: Ids,
    pub rows: [u64; 2],
    /// For each key, in microseconds; the median of [`TIMED`] claims.
    pub micros: [f64; 2],
}

impl ClaimCost {
    /// Fills a table up to one size and then the other, and claims in it.
    pub async fn measure(ids: Ids, rows: [u64; 2], progress: &ProgressBar) -> Result<Self> {
        let database = TestDatabase::migrated(async |pool: &PgPool| handstamp::migrate(pool).await).await;
        let mut connection = PgConnection::connect_with(&database.options()).await?;
        let (mut filled, mut micros) = (0, [0.0; 2]);
        for (rows, micros) in rows.into_iter().zip(&mut micros) {
            tables::fill_inbox(database.pool(), ids, rows.saturating_sub(filled), progress).await?;
            // Neither hint bits nor dirty pages of the filling are the claims' to write.
            for statement in ["VACUUM (ANALYZE) handstamp.inbox", "CHECKPOINT"] {
                sqlx::query(statement).execute(&mut connection).await?;
            }
            let warm_up = rows / ROWS_PER_WARM_UP / KEYS;
            *micros = per_key(&mut connection, ids, warm_up).await?;
            filled = rows + (warm_up + TIMED) * KEYS;
        }
        Ok(Self { ids, rows, micros })
    }

    /// The larger table's to the smaller one's.
    pub fn ratio(&self) -> f64 {
        let [small, large] = self.micros;
        large / small
    }
}

async fn per_key(connection: &mut PgConnection, ids: Ids, warm_up: u64) -> Result<f64> {
    let mut took = Vec::new();
    for claim in 0..warm_up + TIMED {
        let keys = (0..KEYS).map(|_| ids.stored(ids.draw())).collect::<Result<Vec<_>>>()?;
        let mut transaction = connection.begin().await?;
        let started = Instant::now();
        let claimed = sqlx::query(CLAIM).bind(keys).execute(&mut *transaction).await?;
        let elapsed = started.elapsed();
        transaction.commit().await?;
        ensure!(claimed.rows_affected() == KEYS, "new keys were known already");
        if claim >= warm_up {
            took.push(elapsed);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "500")]
    let keys = KEYS as f64;
    Ok(median(took).as_secs_f64() * 1e6 / keys)
}
