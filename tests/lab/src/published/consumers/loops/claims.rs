use std::collections::HashSet;

use anyhow::{Result, ensure};
use handstamp::Key;
use sqlx::PgConnection;

use super::super::super::inbox::CLAIM;
use super::inlet::Credit;

/// The consumer's name in the plain table.
pub const CONSUMER: &str = "wallet-credits";

/// How a message is remembered.
#[derive(Clone, Copy, Debug)]
pub enum Claims {
    /// Not at all: what comes again is applied again.
    None,
    /// In a table as it is usually written.
    Plain,
    /// In handstamp's own, by the shortest statement that could do it.
    Inbox,
}

impl Claims {
    /// Remembers messages, and returns those that were not known.
    pub async fn claim<'a>(self, conn: &mut PgConnection, credits: &'a [Credit]) -> Result<Vec<&'a Credit>> {
        match (self, credits) {
            (Self::None, _) => Ok(credits.iter().collect()),
            (Self::Plain, [credit]) => claim_one(conn, credit).await,
            (Self::Plain, _) => claim_many(conn, credits).await,
            (Self::Inbox, _) => claim_in_inbox(conn, credits).await,
        }
    }
}

async fn claim_one<'a>(conn: &mut PgConnection, credit: &'a Credit) -> Result<Vec<&'a Credit>> {
    let claimed = sqlx::query(
        "INSERT INTO processed_messages (consumer, message_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(CONSUMER)
    .bind(&credit.event)
    .execute(conn)
    .await?;
    Ok(if claimed.rows_affected() == 1 { vec![credit] } else { Vec::new() })
}

/// Sorted, so that two that claim the same wait for each other instead of deadlocking.
pub const CLAIM_MANY: &str = "INSERT INTO processed_messages (consumer, message_id)
    SELECT $1, id FROM unnest($2::text[]) AS id ORDER BY id ON CONFLICT DO NOTHING RETURNING message_id";

async fn claim_many<'a>(conn: &mut PgConnection, credits: &'a [Credit]) -> Result<Vec<&'a Credit>> {
    let claimed: Vec<String> =
        sqlx::query_scalar(CLAIM_MANY).bind(CONSUMER).bind(Credit::events(credits)).fetch_all(conn).await?;
    Ok(among(credits, claimed.iter().map(|event| &**event)))
}

/// Those whose events were claimed, each once.
pub fn among<'a, 'b>(credits: &'a [Credit], claimed: impl Iterator<Item = &'b str>) -> Vec<&'a Credit> {
    let mut claimed: HashSet<&str> = claimed.collect();
    credits.iter().filter(|credit| claimed.remove(&*credit.event)).collect()
}

async fn claim_in_inbox<'a>(conn: &mut PgConnection, credits: &'a [Credit]) -> Result<Vec<&'a Credit>> {
    let keys = credits.iter().map(|credit| Ok(Key::text(&credit.event)?.stored()));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let claimed = sqlx::query(CLAIM).bind(keys).execute(conn).await?;
    ensure!(claimed.rows_affected() == credits.len() as u64, "something came twice from memory");
    Ok(credits.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_there_twice_is_claimed_once() {
        let credits =
            ["a", "b", "a", "c"].map(|event| Credit { event: event.to_owned(), ..Credit::default() });
        let claimed = among(&credits, ["a", "c"].into_iter());
        assert_eq!(claimed.iter().map(|credit| &*credit.event).collect::<Vec<_>>(), ["a", "c"]);
    }
}
