-- A checksum for what none covered yet: the number of a row, and the columns of a run that change
-- after the insert. reach_checksum is a function that the store adds to its connections: FNV-1a, 64 bit,
-- over the type and value of each argument. row_hash goes in, and not the columns behind it: a row
-- that has rotted before this migration is not made good by it.

ALTER TABLE run ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE run SET checksum = reach_checksum(id, row_hash, state, ended_at, failure, failure_text);

ALTER TABLE observation ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE observation SET checksum = reach_checksum(id, row_hash);

-- What was dropped because it failed its check. A GPU whose newest fingerprint is older than a row
-- here is measured again.
CREATE TABLE damage (
    id       INTEGER PRIMARY KEY,
    found_at INTEGER NOT NULL,
    kind     TEXT    NOT NULL CHECK (kind IN ('run', 'observation', 'fingerprint')),
    run      INTEGER NOT NULL,                       -- that it was, or belonged to
    uuid     TEXT    NOT NULL,                       -- of the GPU, as far as it could be read
    checksum     INTEGER NOT NULL                        -- reach_checksum(found_at, kind, run, uuid)
) STRICT;

-- One row, written to find out whether there is room and permission again.
CREATE TABLE upkeep (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    written_at INTEGER NOT NULL
) STRICT;
