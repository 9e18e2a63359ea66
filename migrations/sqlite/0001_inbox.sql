-- The inbox: which message keys each consumer has applied, and how far it has got.
-- SQLite has no schemas: every name begins with handstamp_.

-- checksum: SHA-256 of the file; null where it was not run by handstamp itself.
CREATE TABLE handstamp_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   BLOB,
    applied_at INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;

CREATE TABLE handstamp_consumers (
    id             INTEGER PRIMARY KEY,
    name           TEXT    NOT NULL UNIQUE,
    key_definition TEXT    NOT NULL,
    handler        TEXT    NOT NULL,
    "group"        TEXT,
    topics         TEXT    NOT NULL DEFAULT '[]', -- a JSON array
    registered_at  INTEGER NOT NULL DEFAULT (unixepoch()),
    updated_at     INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;

-- at: seconds since 2020-01-01 00:00 UTC. The first byte of key is its kind, as on PostgreSQL.
CREATE TABLE handstamp_inbox (
    at          INTEGER NOT NULL,
    consumer    INTEGER NOT NULL,
    key         BLOB    NOT NULL,
    fingerprint INTEGER,
    PRIMARY KEY (consumer, key)
) STRICT;

CREATE TABLE handstamp_progress (
    consumer    INTEGER NOT NULL REFERENCES handstamp_consumers (id),
    topic       TEXT    NOT NULL,
    partition   INTEGER NOT NULL,
    cluster     TEXT    NOT NULL,
    topic_id    BLOB    NOT NULL,
    incarnation INTEGER NOT NULL DEFAULT 1,
    next        INTEGER NOT NULL,
    passed      INTEGER NOT NULL DEFAULT 0,
    floor       INTEGER NOT NULL DEFAULT 0,
    updated_at  INTEGER NOT NULL DEFAULT (unixepoch()),
    PRIMARY KEY (consumer, topic, partition)
) STRICT;

CREATE TABLE handstamp_dead_letters (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer       INTEGER NOT NULL REFERENCES handstamp_consumers (id),
    reason         TEXT    NOT NULL,
    error          TEXT    NOT NULL,
    attempts       INTEGER NOT NULL,
    cluster        TEXT,
    topic          TEXT,
    topic_id       BLOB,
    partition      INTEGER,
    "offset"       INTEGER,
    source         TEXT,
    payload_digest BLOB,
    event_key      BLOB,
    message_key    BLOB,
    payload        BLOB,
    headers        BLOB    NOT NULL,
    timestamp_ms   INTEGER,
    parked_at      INTEGER NOT NULL DEFAULT (unixepoch()),
    closed_at      INTEGER,
    outcome        TEXT,
    relayed_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX handstamp_dead_letters_position ON handstamp_dead_letters
    (consumer, cluster, topic_id, topic, partition, "offset") WHERE "offset" IS NOT NULL;
CREATE UNIQUE INDEX handstamp_dead_letters_source ON handstamp_dead_letters
    (consumer, source, payload_digest) WHERE "offset" IS NULL;
CREATE INDEX handstamp_dead_letters_unrelayed ON handstamp_dead_letters (id)
    WHERE relayed_at IS NULL AND closed_at IS NULL;

CREATE VIEW handstamp_processed_messages AS
SELECT c.name AS consumer,
       CASE substr(hex(i.key), 1, 2)
           WHEN '01' THEN lower(hex(substr(i.key, 2, 4)) || '-' || hex(substr(i.key, 6, 2)) || '-' ||
                hex(substr(i.key, 8, 2)) || '-' || hex(substr(i.key, 10, 2)) || '-' || hex(substr(i.key, 12)))
           WHEN '02' THEN CAST(substr(i.key, 2) AS TEXT)
           ELSE lower(hex(i.key))
       END AS message_id,
       datetime(i.at + 1577836800, 'unixepoch') AS processed_at
FROM handstamp_inbox i JOIN handstamp_consumers c ON c.id = i.consumer;

INSERT INTO handstamp_migrations (version, name) VALUES (1, 'inbox');
