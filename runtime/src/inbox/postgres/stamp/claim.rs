use std::collections::HashSet;

use sqlx::PgConnection;

use super::super::progress::multirange;
use crate::flow::{ClaimedRow, Found, NextOffset, Offsets};
use crate::inbox::claim::{Claim, Claimant};
use crate::inbox::consumers::ConsumerId;

/// Claims; with the id of the transaction, as text.
pub(super) async fn claim(
    connection: &mut PgConnection,
    claimant: &Claimant<'_>,
) -> sqlx::Result<(String, Claim)> {
    if claimant.relied.is_none_or(Offsets::is_empty)
        && let Some(claimed) = claim_in_turn(connection, claimant).await?
    {
        return Ok(claimed);
    }
    claim_whatever_comes(connection, claimant).await
}

/// Claims messages that come in the order of their partition and for the first time, as nearly all do; `None`,
/// and nothing was written, if these do not or anything else is out of the ordinary.
async fn claim_in_turn(
    connection: &mut PgConnection,
    claimant: &Claimant<'_>,
) -> sqlx::Result<Option<(String, Claim)>> {
    let Claimant { partition, messages, .. } = claimant;
    let keys: Vec<_> = messages.iter().filter_map(|message| message.key).collect();
    let row: Option<InTurn> = sqlx::query_as(CLAIM_IN_TURN)
        .bind(claimant.consumer)
        .bind(claimant.definition)
        .bind(&keys)
        .bind(partition.map(|partition| &*partition.topic))
        .bind(partition.map(|partition| partition.partition))
        .bind(partition.map(|partition| &*partition.cluster))
        .bind(partition.map(|partition| partition.topic_id))
        .bind(partition.map(|partition| partition.incarnation))
        .bind(messages.iter().filter_map(|message| message.offset).min())
        .fetch_optional(connection)
        .await?;
    let Some((xid, consumer, some, next, passed)) = row else { return Ok(None) };
    let some: Option<HashSet<_>> = some.map(|keys| keys.into_iter().collect());
    let stamped = |key: &[u8]| some.as_ref().is_none_or(|some| some.contains(key));
    let found = messages.iter().map(|message| Found {
        stamped: message.key.is_some_and(stamped),
        parked: false,
        ahead: false,
    });
    let row = claimed_row(next, passed, false);
    Ok(Some((xid, Claim { consumer: Some(ConsumerId(consumer)), found: found.collect(), row })))
}

async fn claim_whatever_comes(
    connection: &mut PgConnection,
    claimant: &Claimant<'_>,
) -> sqlx::Result<(String, Claim)> {
    let partition = claimant.partition;
    let keys: Vec<_> = claimant.messages.iter().map(|message| message.key).collect();
    let offsets: Vec<_> = claimant.messages.iter().map(|message| message.offset).collect();
    let row: ClaimRow = sqlx::query_as(CLAIM)
        .bind(claimant.consumer)
        .bind(claimant.definition)
        .bind(&keys)
        .bind(&offsets)
        .bind(partition.map(|partition| &*partition.topic))
        .bind(partition.map(|partition| partition.partition))
        .bind(partition.map(|partition| &*partition.cluster))
        .bind(partition.map(|partition| partition.topic_id))
        .bind(partition.map(|partition| partition.incarnation))
        .bind(offsets.iter().flatten().min())
        .bind(claimant.relied.map(multirange))
        .fetch_one(connection)
        .await?;
    let (xid, consumer, stamped, parked, ahead, next, passed, proved) = row;
    let stamped: HashSet<_> = stamped.into_iter().collect();
    let (parked, ahead): (HashSet<_>, HashSet<_>) =
        (parked.into_iter().collect(), ahead.into_iter().collect());
    let found = claimant.messages.iter().map(|message| Found {
        stamped: message.key.is_some_and(|key| stamped.contains(key)),
        parked: message.offset.is_some_and(|offset| parked.contains(&offset)),
        ahead: message.offset.is_some_and(|offset| ahead.contains(&offset)),
    });
    let row = claimed_row(next, passed, proved == Some(false));
    Ok((xid, Claim { consumer: consumer.map(ConsumerId), found: found.collect(), row }))
}

fn claimed_row(next: Option<i64>, passed: Option<i64>, forgot: bool) -> Option<ClaimedRow> {
    Some(ClaimedRow { next: NextOffset(next?), passed: NextOffset(passed?), forgot })
}

/// The claim's transaction, the consumer, the new keys unless all are, `next` and `passed`.
type InTurn = (String, i16, Option<Vec<Vec<u8>>>, Option<i64>, Option<i64>);

/// What [`CLAIM`] does, where none of the messages has been dealt with: above `passed`, and nothing is ahead of it.
/// Otherwise no row, and nothing is inserted. Most of what a small statement costs are the nodes of its plan, of
/// which the other has three times as many.
const CLAIM_IN_TURN: &str = "
WITH tracked AS (
    SELECT id, next, passed,
           date_part('epoch', now() - timestamptz '2020-01-01 00:00:00+00')::int4 AS at
    FROM handstamp.consumers
    LEFT JOIN handstamp.progress ON consumer = id AND topic = $4 AND partition = $5 AND cluster = $6
         AND topic_id = $7 AND incarnation = $8
    WHERE name = $1 AND key_definition = $2 AND ($4 IS NULL OR passed <= $9 AND isempty(ahead))
), stamped AS (
    INSERT INTO handstamp.inbox (at, consumer, key)
    SELECT at, id, key FROM tracked, unnest($3::bytea[]) AS key ORDER BY key
    ON CONFLICT DO NOTHING
    RETURNING key
)
SELECT pg_current_xact_id()::text, id,
       CASE WHEN (SELECT count(*) FROM stamped) < cardinality($3) THEN ARRAY (SELECT key FROM stamped) END, next, passed
FROM tracked";

/// The claim's transaction, the consumer, the new keys, the parked offsets, those ahead, `next`, `passed`, and whether
/// the row has what is relied on.
type ClaimRow =
    (String, Option<i16>, Vec<Vec<u8>>, Vec<i64>, Vec<i64>, Option<i64>, Option<i64>, Option<bool>);

/// One row whatever happens. Keys are inserted in their order, so that two transactions that claim the same
/// ones wait for each other and do not deadlock. The dead letters are asked only about what was dealt with,
/// below `passed` or ahead of it: the comparison is a one-time filter.
const CLAIM: &str = r#"
WITH consumer AS (
    SELECT id FROM handstamp.consumers WHERE name = $1 AND key_definition = $2
), tracked AS (
    SELECT next, passed, ahead, ahead + int8multirange(int8range(NULL, next)) @> $11::text::int8multirange AS proved
    FROM handstamp.progress
    WHERE consumer = (SELECT id FROM consumer) AND topic = $5 AND partition = $6 AND cluster = $7
      AND topic_id = $8 AND incarnation = $9
), parked AS (
    SELECT "offset" FROM handstamp.dead_letters
    WHERE $10 < (SELECT GREATEST(passed, upper(ahead)) FROM tracked) AND consumer = (SELECT id FROM consumer) AND topic = $5
      AND partition = $6 AND cluster = $7 AND topic_id = $8 AND "offset" = ANY ($4)
      AND ("offset" < (SELECT passed FROM tracked) OR (SELECT ahead FROM tracked) @> "offset")
), ahead AS (
    SELECT asked FROM unnest($4::int8[]) AS asked WHERE (SELECT ahead FROM tracked) @> asked
), stamped AS (
    INSERT INTO handstamp.inbox (at, consumer, key)
    SELECT extract(epoch FROM now() - timestamptz '2020-01-01 00:00:00+00')::int4, consumer.id, asked.key
    FROM consumer, unnest($3::bytea[], $4::int8[]) AS asked (key, "offset")
    WHERE asked.key IS NOT NULL AND NOT EXISTS (SELECT FROM parked WHERE parked."offset" = asked."offset")
    ORDER BY asked.key
    ON CONFLICT DO NOTHING
    RETURNING key
)
SELECT pg_current_xact_id()::text, (SELECT id FROM consumer), ARRAY (SELECT key FROM stamped),
       ARRAY (SELECT "offset" FROM parked), ARRAY (SELECT asked FROM ahead), (SELECT next FROM tracked),
       (SELECT passed FROM tracked), (SELECT proved FROM tracked)"#;
