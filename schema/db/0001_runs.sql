-- What reachd remembers: measurements (runs), what they observed, what was concluded.
--
-- Documents are JSON texts (schema/json). document_hash is the 64-bit FNV-1a of the document;
-- row_hash covers the other columns and document_hash, so that a listing can be verified without
-- reading documents. Hashes are stored as signed integers with the same 64 bits.
-- Columns that change after the insert (state, ended_at, failure) are outside row_hash.
-- Times are seconds since 1970, UTC.

CREATE TABLE run (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid          TEXT    NOT NULL,                  -- of the GPU
    depth         TEXT    NOT NULL,                  -- quick, full, matrix
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    state         TEXT    NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'failed')),
    failure       TEXT,                              -- slug of the status
    failure_text  TEXT,
    document      TEXT    NOT NULL,                  -- {"gpu": {..}, "limits": {..}}
    document_hash INTEGER NOT NULL,
    row_hash      INTEGER NOT NULL
) STRICT;

CREATE INDEX run_by_gpu ON run (uuid, id);

CREATE TABLE observation (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    run           INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    kind          TEXT    NOT NULL,                  -- chase, round, pairs, read, means, mean-pairs
    started_at    INTEGER NOT NULL,
    duration_ns   INTEGER NOT NULL,
    value_count   INTEGER NOT NULL,
    document      TEXT    NOT NULL,
    document_hash INTEGER NOT NULL,
    row_hash      INTEGER NOT NULL
) STRICT;

CREATE INDEX observation_by_run ON observation (run, id);

CREATE TABLE fingerprint (
    run           INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    uuid          TEXT    NOT NULL,
    id            TEXT    NOT NULL,                  -- fingerprint_id
    depth         TEXT    NOT NULL,
    origin        TEXT    NOT NULL,                  -- measured, simulated, imported
    taken_at      INTEGER NOT NULL,
    duration_ms   INTEGER NOT NULL,
    document      TEXT    NOT NULL,
    document_hash INTEGER NOT NULL,
    row_hash      INTEGER NOT NULL
) STRICT;

CREATE INDEX fingerprint_by_gpu ON fingerprint (uuid, run);
CREATE INDEX fingerprint_by_id ON fingerprint (uuid, id);
