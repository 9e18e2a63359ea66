//! handstamp's table, written to from outside.

/// The shortest statement that claims keys for consumer 1 as handstamp does, in the order of the keys.
pub const CLAIM: &str = "INSERT INTO handstamp.inbox (at, consumer, key)
    SELECT extract(epoch FROM now() - timestamptz '2020-01-01 00:00:00+00')::int4, 1, key
    FROM unnest($1::bytea[]) AS key ORDER BY key ON CONFLICT DO NOTHING";
