-- Messages that have no order among each other are dealt with out of turn: what is done above `next`. A row says by
-- itself what it may be raised past, so that a database that went back in time is not believed to have what it lost.
ALTER TABLE handstamp.progress ADD COLUMN ahead int8multirange NOT NULL DEFAULT '{}';
COMMENT ON COLUMN handstamp.progress.ahead IS
    'Offsets at next or above that are dealt with, together with the gaps of the log before each.';

INSERT INTO handstamp.migrations (version, name) VALUES (2, 'ahead');
