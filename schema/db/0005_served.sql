-- Every document that was served stays as long as the measurement that made it: answers cite its id.
-- One measurement has several if a later release wrote the newest one again in its own format. The
-- newest row of the newest run is what is known of a GPU. The documents of the two newest runs are
-- here, so that a damaged fingerprint can be served still. Of older runs, one that equals the
-- fingerprint of its run is NULL, and document_hash is that of the fingerprint.

CREATE TABLE served (
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
    checksum      INTEGER NOT NULL                   -- reach_checksum(number, row_hash)
) STRICT;

INSERT INTO served
SELECT run, run, uuid, id, depth, origin, taken_at, duration_ms, document, document_hash, row_hash,
    reach_checksum(run, row_hash)
FROM knowledge;

DROP TABLE knowledge;
ALTER TABLE served RENAME TO knowledge;
CREATE INDEX knowledge_by_gpu ON knowledge (uuid, run);
CREATE INDEX knowledge_by_run ON knowledge (run);
