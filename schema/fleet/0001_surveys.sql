-- What surveys of a fleet keep, for SQLite and PostgreSQL alike: types and statements that both know.
--
-- Names begin with fleet_, so that they get along with other tables of a shared server. Numbers of
-- rows are INTEGER: SQLite's rowid, and 32 bits in PostgreSQL. Texts come from hosts that may lie:
-- their sizes are limited before they get here. Writers wait for each other (clients/fleet/keep.c).

CREATE TABLE fleet_survey (
    id         INTEGER PRIMARY KEY,          -- from 1
    at         TEXT    NOT NULL,             -- RFC 3339, UTC
    elapsed_ms BIGINT  NOT NULL DEFAULT 0
);

CREATE TABLE fleet_host (
    id       INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL UNIQUE,        -- as it was asked
    etag     TEXT    NOT NULL DEFAULT '',    -- of its last answer
    asked    INTEGER NOT NULL DEFAULT 0,     -- the last survey that asked it
    answered INTEGER NOT NULL DEFAULT 0      -- the last survey that has GPUs of it; 0: none
);

CREATE TABLE fleet_outcome (
    survey         INTEGER NOT NULL REFERENCES fleet_survey (id),
    host           INTEGER NOT NULL REFERENCES fleet_host (id),
    outcome        TEXT    NOT NULL,         -- fleet_outcome_name
    detail         TEXT    NOT NULL,
    daemon_version TEXT    NOT NULL,
    gpu_count      BIGINT  NOT NULL,
    attempts       BIGINT  NOT NULL,
    received_bytes BIGINT  NOT NULL,
    elapsed_ms     BIGINT  NOT NULL,
    previous       INTEGER NOT NULL,         -- fleet_host.answered before this survey
    PRIMARY KEY (survey, host)
);

-- ---- what is said of many fingerprints stands once ----

CREATE TABLE fleet_kind (
    id     INTEGER PRIMARY KEY,
    model  TEXT    NOT NULL,
    origin TEXT    NOT NULL,                 -- measured, simulated, imported; '': no fingerprint yet
    UNIQUE (model, origin)
);

CREATE TABLE fleet_signature (
    id              INTEGER PRIMARY KEY,
    signature       TEXT    NOT NULL,        -- of the disabled SMs; '': not known
    candidate_count INTEGER,                 -- null: not known, or not observable
    candidates      TEXT    NOT NULL,        -- "10,11" or "5,10 | 6,11"; '': no list
    UNIQUE (signature, candidate_count, candidates)
);

CREATE TABLE fleet_map (
    id          INTEGER PRIMARY KEY,
    hash        TEXT    NOT NULL UNIQUE,     -- fingerprint_map_hash; '': not known
    group_count INTEGER NOT NULL
);

-- Numbers that a model has by its design, "name=value" a line: keep_numbers.h.
CREATE TABLE fleet_structure (
    id   INTEGER PRIMARY KEY,
    hash TEXT    NOT NULL,
    text TEXT    NOT NULL
);
CREATE INDEX fleet_structure_by_hash ON fleet_structure (hash);

CREATE TABLE fleet_number (
    id   INTEGER PRIMARY KEY,                -- from 0
    name TEXT    NOT NULL UNIQUE
);

-- ---- GPUs and fingerprints ----

-- A GPU is a UUID and a serial number; '' is no serial number, and is filled in where one is told.
-- The rest is where it was seen last.
CREATE TABLE fleet_gpu (
    id          INTEGER PRIMARY KEY,
    uuid        TEXT    NOT NULL,
    serial      TEXT    NOT NULL,
    first       INTEGER NOT NULL,            -- survey
    seen        INTEGER NOT NULL DEFAULT 0,  -- survey; 0: only by hosts that are not believed
    host        INTEGER,
    slot        INTEGER,
    fingerprint INTEGER,                     -- the last one known
    UNIQUE (uuid, serial)
);

CREATE INDEX fleet_gpu_by_serial ON fleet_gpu (serial);

CREATE TABLE fleet_fingerprint (
    id                INTEGER PRIMARY KEY,
    uuid              TEXT    NOT NULL,
    name              TEXT    NOT NULL,      -- fingerprint_id
    kind              INTEGER NOT NULL REFERENCES fleet_kind (id),
    signature         INTEGER NOT NULL REFERENCES fleet_signature (id),
    map               INTEGER NOT NULL REFERENCES fleet_map (id),
    structure         INTEGER NOT NULL REFERENCES fleet_structure (id),
    depth             TEXT    NOT NULL,
    verdict           TEXT    NOT NULL,
    driver            TEXT    NOT NULL,
    taken_at          BIGINT  NOT NULL,      -- seconds since 1970, UTC
    plateau_gbps      DOUBLE PRECISION,
    whole_memory_gbps DOUBLE PRECISION,
    window_bytes      BIGINT,
    UNIQUE (uuid, name)
);
CREATE INDEX fleet_fingerprint_by_name ON fleet_fingerprint (name);

-- Its measured numbers in one text that is quick to read: keep_numbers.h.
CREATE TABLE fleet_numbers (
    fingerprint INTEGER PRIMARY KEY REFERENCES fleet_fingerprint (id),
    left_out    INTEGER NOT NULL,            -- numbers whose names were too many
    cells       TEXT    NOT NULL
);

-- As the daemon rendered it.
CREATE TABLE fleet_document (
    fingerprint INTEGER PRIMARY KEY REFERENCES fleet_fingerprint (id),
    document    TEXT    NOT NULL
);

-- Which GPU sat where. kind, signature, map and structure are those of the fingerprint, so that a
-- fleet is counted from this table alone.
CREATE TABLE fleet_sighting (
    survey          INTEGER NOT NULL REFERENCES fleet_survey (id),
    host            INTEGER NOT NULL REFERENCES fleet_host (id),
    slot            INTEGER NOT NULL,
    gpu             INTEGER NOT NULL REFERENCES fleet_gpu (id),
    state           TEXT    NOT NULL,        -- the daemon's word
    kind            INTEGER NOT NULL REFERENCES fleet_kind (id),
    fingerprint     INTEGER REFERENCES fleet_fingerprint (id), -- null: it has none
    signature       INTEGER,
    map             INTEGER,
    structure       INTEGER,
    -- 1: counts. 0: the host lied, or the GPU was seen in this survey already.
    counted         INTEGER NOT NULL,
    -- Where this GPU was in the survey that saw it last, and its fingerprint then; null: never.
    was_survey      INTEGER,
    was_host        INTEGER,
    was_slot        INTEGER,
    was_fingerprint INTEGER,
    PRIMARY KEY (survey, host, slot)
);
-- All that counting needs.
CREATE INDEX fleet_sighting_by_kind
    ON fleet_sighting (survey, kind, signature, map, structure, counted, fingerprint);
CREATE INDEX fleet_sighting_by_gpu ON fleet_sighting (gpu, survey);
