use std::time::Duration;

use sqlx::PgPool;

/// Some messages take very long, each the first time it is handled, by whichever process.
#[derive(Clone, Debug)]
pub struct Stall {
    /// One message in so many.
    pub every: u64,
    /// How long.
    pub lasts: Duration,
    /// Where it is remembered who stalled: outside the message's own transaction.
    pub remembered_in: PgPool,
    /// Told at the start of each.
    pub on_stall: fn(Duration),
}

impl Stall {
    /// Whether the message of this number is one of them. Half a period late, so that messages follow the last.
    #[must_use]
    pub fn picks(&self, number: u64) -> bool {
        number % self.every == self.every / 2
    }

    pub(crate) async fn stall_once(&self, event: &str) -> sqlx::Result<()> {
        let first = sqlx::query("INSERT INTO stalls (event) VALUES ($1) ON CONFLICT DO NOTHING")
            .bind(event)
            .execute(&self.remembered_in)
            .await?;
        if first.rows_affected() == 1 {
            (self.on_stall)(self.lasts);
            tokio::time::sleep(self.lasts).await;
        }
        Ok(())
    }
}
