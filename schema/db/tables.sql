-- The state of reachd: measurements (runs), their observations, and the fingerprints.
--
-- Documents are JSON texts (schema/json). document_hash is the 64-bit FNV-1a of the document;
-- row_hash covers the columns that never change and document_hash, so that a listing can be
-- verified without reading documents. checksum covers the number of the row, row_hash and the
-- columns that change; reach_checksum is a function that the store adds to its connections: FNV-1a,
-- 64 bit, over the type and value of each argument. Hashes are stored as signed integers with the
-- same 64 bits. Times are seconds since 1970, UTC.

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
    row_hash      INTEGER NOT NULL,                  -- without state, ended_at, failure and failure_text
    checksum      INTEGER NOT NULL DEFAULT 0 -- (id, row_hash, state, ended_at, failure, failure_text)
) STRICT;

CREATE INDEX run_by_gpu ON run (uuid, id);

CREATE TABLE observation (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    run           INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    kind          TEXT    NOT NULL,                  -- of the probe
    started_at    INTEGER NOT NULL,
    duration_ns   INTEGER NOT NULL,
    value_count   INTEGER NOT NULL,
    document      TEXT    NOT NULL,
    document_hash INTEGER NOT NULL,
    row_hash      INTEGER NOT NULL,                  -- with the verdict if it is not clean
    verdict       TEXT    NOT NULL DEFAULT 'clean'   -- the document has the reason
                  CHECK (verdict IN ('clean', 'disturbed', 'unusable')),
    checksum      INTEGER NOT NULL DEFAULT 0         -- (id, row_hash)
) STRICT;

CREATE INDEX observation_by_run ON observation (run, id);

-- Each measurement as it was made.
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

-- Rows that were dropped because they failed their check. A GPU whose newest fingerprint is older
-- than a row here is measured again.
CREATE TABLE damage (
    id            INTEGER PRIMARY KEY,
    found_at      INTEGER NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN ('run', 'observation', 'fingerprint', 'knowledge')),
    run           INTEGER NOT NULL,                  -- the dropped run, or the run of the dropped row
    uuid          TEXT    NOT NULL,                  -- of the GPU, if it could be read
    checksum      INTEGER NOT NULL                   -- (found_at, kind, run, uuid)
) STRICT;

-- One row, which is written to find out whether there is room and permission.
CREATE TABLE upkeep (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    written_at INTEGER NOT NULL
) STRICT;

-- Every document that was served stays as long as the measurement that made it, because answers
-- cite its id. A measurement has several documents if a later release wrote the newest one again in
-- its own form. The newest row of the newest run is what is served. The two newest runs have their
-- documents here, so that a document can be served if the fingerprint is damaged. In older runs, a
-- document that equals the fingerprint of its run is NULL, and document_hash is the hash of the
-- fingerprint.
CREATE TABLE knowledge (
    number        INTEGER PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    uuid          TEXT    NOT NULL,
    id            TEXT    NOT NULL,                  -- fingerprint_id, with what is kept
    depth         TEXT    NOT NULL,                  -- the deepest of what it contains
    origin        TEXT    NOT NULL,                  -- these three are of the newest measurement
    taken_at      INTEGER NOT NULL,
    duration_ms   INTEGER NOT NULL,
    document      TEXT,
    document_hash INTEGER NOT NULL,
    row_hash      INTEGER NOT NULL,
    checksum      INTEGER NOT NULL                   -- (number, row_hash)
) STRICT;

CREATE INDEX knowledge_by_gpu ON knowledge (uuid, run);
CREATE INDEX knowledge_by_run ON knowledge (run);
