-- The inbox: which message keys each consumer has applied, and how far it has got.
-- Every name is schema-qualified, so that search_path and poolers do not matter.

-- CREATE SCHEMA IF NOT EXISTS would need the right to create even where the schema is there.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'handstamp') THEN
        CREATE SCHEMA handstamp;
    END IF;
END $$;

CREATE TABLE handstamp.migrations (
    version    int4        PRIMARY KEY,
    name       text        NOT NULL,
    checksum   bytea,
    applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN handstamp.migrations.checksum IS
    'SHA-256 of the file; null where it was not run by handstamp itself.';

CREATE TABLE handstamp.consumers (
    id             int2        PRIMARY KEY,
    name           text        NOT NULL UNIQUE,
    key_definition text        NOT NULL,
    handler        text        NOT NULL,
    "group"        text,
    topics         text[]      NOT NULL DEFAULT '{}',
    registered_at  timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN handstamp.consumers.key_definition IS
    'Where keys come from. Another definition would make every message new again, so it is refused at start.';

-- The column order is deliberate: fixed-width columns first keep a UUID row at 92.8 bytes.
CREATE TABLE handstamp.inbox (
    at          int4  NOT NULL,
    consumer    int2  NOT NULL,
    key         bytea NOT NULL,
    fingerprint int8,
    PRIMARY KEY (consumer, key)
);
COMMENT ON COLUMN handstamp.inbox.at IS 'Seconds since 2020-01-01 00:00 UTC, by the clock of the database.';
COMMENT ON COLUMN handstamp.inbox.key IS 'First byte: kind (1 UUID, 2 text, 3 bytes, 4 composite, 5 SHA-256 of a key longer than 64 bytes, 6 content hash of version 1).';

-- One row per consumer and partition. next: every offset below it is dealt with. passed: the highest
-- next ever reached, never lowered. incarnation: raised by a reset, so that older transactions match nothing.
-- floor: where a reset said to go on; an offset of Kafka's that is lower does not count.
CREATE TABLE handstamp.progress (
    consumer    int2        NOT NULL REFERENCES handstamp.consumers (id),
    topic       text        NOT NULL,
    partition   int4        NOT NULL,
    cluster     text        NOT NULL,
    topic_id    uuid        NOT NULL,
    incarnation int4        NOT NULL DEFAULT 1,
    next        int8        NOT NULL,
    passed      int8        NOT NULL DEFAULT 0,
    floor       int8        NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, topic, partition)
) WITH (fillfactor = 50);
COMMENT ON COLUMN handstamp.progress.topic_id IS 'All zeros where the broker has no topic ids.';

-- Messages that were given up, each written in the transaction that moved the progress past it.
CREATE TABLE handstamp.dead_letters (
    id             int8        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer       int2        NOT NULL REFERENCES handstamp.consumers (id),
    reason         text        NOT NULL,
    error          text        NOT NULL,
    attempts       int4        NOT NULL,
    cluster        text,
    topic          text,
    topic_id       uuid,
    partition      int4,
    "offset"       int8,
    source         text,
    payload_digest bytea,
    event_key      bytea,
    message_key    bytea,
    payload        bytea,
    headers        bytea       NOT NULL,
    timestamp_ms   int8,
    parked_at      timestamptz NOT NULL DEFAULT now(),
    closed_at      timestamptz,
    outcome        text,
    relayed_at     timestamptz
);
COMMENT ON COLUMN handstamp.dead_letters.headers IS
    'Repeated: name length (4 bytes, big endian), name, value length (4 bytes; 0xffffffff for null), value.';
CREATE UNIQUE INDEX dead_letters_position ON handstamp.dead_letters
    (consumer, cluster, topic_id, topic, partition, "offset") WHERE "offset" IS NOT NULL;
CREATE UNIQUE INDEX dead_letters_source ON handstamp.dead_letters
    (consumer, source, payload_digest) WHERE "offset" IS NULL;
CREATE INDEX dead_letters_unrelayed ON handstamp.dead_letters (id) WHERE relayed_at IS NULL AND closed_at IS NULL;

CREATE VIEW handstamp.processed_messages AS
SELECT c.name AS consumer,
       CASE get_byte(i.key, 0)
           WHEN 1 THEN encode(substr(i.key, 2), 'hex')::uuid::text
           WHEN 2 THEN convert_from(substr(i.key, 2), 'UTF8')
           ELSE encode(i.key, 'hex')
       END AS message_id,
       timestamptz '2020-01-01 00:00:00+00' + i.at * interval '1 second' AS processed_at
FROM handstamp.inbox i JOIN handstamp.consumers c ON c.id = i.consumer;

INSERT INTO handstamp.migrations (version, name) VALUES (1, 'inbox');
