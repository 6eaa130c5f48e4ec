-- What is known of a GPU from all its measurements: the newest fingerprint, joined with what earlier
-- ones have found and it has not. The row is written in the transaction that ends the run. The two
-- newest of each GPU are kept: if one is damaged, the one before it is served. Columns and hashes are
-- those of the table fingerprint, which has every measurement as it was made.

CREATE TABLE knowledge (
    run           INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    uuid          TEXT    NOT NULL,
    id            TEXT    NOT NULL,                  -- fingerprint_id, with what is kept
    depth         TEXT    NOT NULL,                  -- these four are of the newest measurement
    origin        TEXT    NOT NULL,
    taken_at      INTEGER NOT NULL,
    duration_ms   INTEGER NOT NULL,
    document      TEXT    NOT NULL,
    document_hash INTEGER NOT NULL,
    row_hash      INTEGER NOT NULL
) STRICT;

CREATE INDEX knowledge_by_gpu ON knowledge (uuid, run);

-- The same table with one kind more; SQLite cannot change a check.
CREATE TABLE damage_with_knowledge (
    id       INTEGER PRIMARY KEY,
    found_at INTEGER NOT NULL,
    kind     TEXT    NOT NULL CHECK (kind IN ('run', 'observation', 'fingerprint', 'knowledge')),
    run      INTEGER NOT NULL,                       -- that it was, or belonged to
    uuid     TEXT    NOT NULL,                       -- of the GPU, as far as it could be read
    checksum     INTEGER NOT NULL                        -- reach_checksum(found_at, kind, run, uuid)
) STRICT;
INSERT INTO damage_with_knowledge SELECT id, found_at, kind, run, uuid, checksum FROM damage;
DROP TABLE damage;
ALTER TABLE damage_with_knowledge RENAME TO damage;
