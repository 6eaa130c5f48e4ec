-- The tables of a fleet, for SQLite and PostgreSQL alike: types and statements that both know.
--
-- Names begin with fleet_, so that they get along with other tables of a shared server. Ids are
-- INTEGER: SQLite's rowid, and 32 bits in PostgreSQL. fleet_metric stands in a file for each engine.
-- docs/fleet.md has example queries.

CREATE TABLE fleet_survey (
    id         INTEGER PRIMARY KEY,          -- from 1
    at         TEXT    NOT NULL,             -- RFC 3339, UTC
    elapsed_ms BIGINT  NOT NULL DEFAULT 0,
    -- The survey whose fleet_quartiles and fleet_outlier hold for this one too: an earlier one where
    -- the same fingerprints count.
    quartiles  INTEGER
);

CREATE TABLE fleet_host (
    id       INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL UNIQUE,        -- as it was requested
    etag     TEXT    NOT NULL DEFAULT '',    -- of its last answer
    asked    INTEGER NOT NULL DEFAULT 0,     -- the last survey that requested it
    answered INTEGER NOT NULL DEFAULT 0      -- the last survey with its GPUs; 0: none
);

CREATE TABLE fleet_outcome (
    survey         INTEGER NOT NULL REFERENCES fleet_survey (id),
    host           INTEGER NOT NULL REFERENCES fleet_host (id),
    outcome        TEXT    NOT NULL,         -- fleet_outcome_name
    detail         TEXT    NOT NULL,
    daemon_version TEXT    NOT NULL,
    attempts       BIGINT  NOT NULL,
    received_bytes BIGINT  NOT NULL,
    elapsed_ms     BIGINT  NOT NULL,
    previous       INTEGER NOT NULL,         -- fleet_host.answered before this survey
    PRIMARY KEY (survey, host)
);

-- ---- what many fingerprints share is stored once ----

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

-- What a model has by its design: levels, entries, page sizes. `text` has all lines, and distinguishes two
-- structures of one hash.
CREATE TABLE fleet_structure (
    id   INTEGER PRIMARY KEY,
    hash TEXT    NOT NULL,
    text TEXT    NOT NULL
);
CREATE INDEX fleet_structure_by_hash ON fleet_structure (hash);

CREATE TABLE fleet_structure_line (
    structure INTEGER NOT NULL REFERENCES fleet_structure (id),
    place     INTEGER NOT NULL,
    name      TEXT    NOT NULL,              -- "tlb.levels[2].entries"
    value     TEXT,                          -- null: see absent
    number    DOUBLE PRECISION,              -- the value, if it is a number
    absent    TEXT,                          -- unknown, not_observable; null: has a value
    PRIMARY KEY (structure, place)
);

-- A measured metric of one kind of GPU.
CREATE TABLE fleet_series (
    id     INTEGER PRIMARY KEY,
    kind   INTEGER NOT NULL REFERENCES fleet_kind (id),
    name   TEXT    NOT NULL,                 -- "throughput.plateau_gbps"
    place  INTEGER NOT NULL,                 -- of the name, the same for all kinds: reports' order
    judged INTEGER NOT NULL,                 -- 1: a GPU may be an outlier by it
    tracked INTEGER NOT NULL,                -- 1: a GPU may drift by it; judged ones are tracked
    UNIQUE (kind, name)
);
CREATE INDEX fleet_series_by_name ON fleet_series (name);

-- ---- GPUs and fingerprints ----

-- A GPU is a UUID and a serial number; '' is no serial number, and is filled in once it is reported.
-- The rest is where it was seen last.
CREATE TABLE fleet_gpu (
    id          INTEGER PRIMARY KEY,
    uuid        TEXT    NOT NULL,
    serial      TEXT    NOT NULL,
    first       INTEGER NOT NULL,            -- survey
    seen        INTEGER NOT NULL DEFAULT 0,  -- survey; 0: only where its UUID was in conflict
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

-- Its JSON, keys sorted; what follows the id, in braces, is the text that the id is the hash of.
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
    state           TEXT    NOT NULL,        -- as the daemon reports it
    kind            INTEGER NOT NULL REFERENCES fleet_kind (id),
    fingerprint     INTEGER REFERENCES fleet_fingerprint (id), -- null: it has none
    signature       INTEGER,
    map             INTEGER,
    structure       INTEGER,
    counted         INTEGER NOT NULL,        -- 1: counts. 0: more than one host reports this UUID
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
CREATE INDEX fleet_sighting_by_fingerprint ON fleet_sighting (fingerprint, survey);

-- ---- what a survey adds up to, computed once at its end (quartiles.sql, drift.sql) ----

-- Quartiles of every metric. They are measured values (nearest rank); the median is the mean of the
-- two middle ones, deviation the median distance from it.
CREATE TABLE fleet_quartiles (
    survey         INTEGER NOT NULL REFERENCES fleet_survey (id),
    kind           INTEGER NOT NULL REFERENCES fleet_kind (id),
    measured       INTEGER NOT NULL,         -- 0: a line of the structure
    place          INTEGER NOT NULL,
    series         INTEGER,                  -- of a measured one
    name           TEXT    NOT NULL,
    gpus           BIGINT  NOT NULL,         -- that have a value
    unknown        BIGINT  NOT NULL,
    not_observable BIGINT  NOT NULL,
    least          DOUBLE PRECISION,
    lower_quartile DOUBLE PRECISION,
    median         DOUBLE PRECISION,
    upper_quartile DOUBLE PRECISION,
    most           DOUBLE PRECISION,
    deviation      DOUBLE PRECISION,
    -- Of measured ones, the range that outliers.sql begins at; NULL in surveys of versions before 4.
    inner_least    DOUBLE PRECISION,
    inner_most     DOUBLE PRECISION,
    PRIMARY KEY (survey, kind, measured, place)
);

-- Measured values that are far from those of most of their kind.
CREATE TABLE fleet_outlier (
    survey      INTEGER NOT NULL REFERENCES fleet_survey (id),
    fingerprint INTEGER NOT NULL REFERENCES fleet_fingerprint (id),
    series      INTEGER NOT NULL REFERENCES fleet_series (id),
    value       DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (survey, fingerprint, series)
);

-- How a metric has changed, in parts of the value before, where eight GPUs of a kind or more were
-- measured again since they were surveyed last.
CREATE TABLE fleet_change (
    survey         INTEGER NOT NULL REFERENCES fleet_survey (id),
    series         INTEGER NOT NULL REFERENCES fleet_series (id),
    gpus           BIGINT  NOT NULL,
    lower_quartile DOUBLE PRECISION NOT NULL,
    median         DOUBLE PRECISION NOT NULL,
    upper_quartile DOUBLE PRECISION NOT NULL,
    deviation      DOUBLE PRECISION,
    PRIMARY KEY (survey, series)
);

-- Metrics of one GPU that changed otherwise than those of its kind; and where fewer than eight were
-- measured again, the result of comparing both fingerprints.
CREATE TABLE fleet_drift (
    survey       INTEGER NOT NULL REFERENCES fleet_survey (id),
    fingerprint  INTEGER NOT NULL REFERENCES fleet_fingerprint (id),
    place        INTEGER NOT NULL,
    series       INTEGER REFERENCES fleet_series (id), -- null: see what
    what         TEXT,                       -- a sentence
    class        TEXT,                       -- with it: same, changed, other-hardware
    before_value DOUBLE PRECISION,
    after_value  DOUBLE PRECISION,
    change       DOUBLE PRECISION,           -- in parts of the value before
    PRIMARY KEY (survey, fingerprint, place)
);

-- ---- for people ----

-- Every measured metric of every fingerprint.
CREATE VIEW fleet_metrics AS
SELECT f.uuid AS gpu, k.model, k.origin, f.taken_at, f.name AS fingerprint, s.name, m.value, m.absent
FROM fleet_metric m
JOIN fleet_series s ON s.id = m.series
JOIN fleet_kind k ON k.id = s.kind
JOIN fleet_fingerprint f ON f.id = m.fingerprint;

-- Every GPU of every survey, with what there is one value of.
CREATE VIEW fleet_gpus AS
SELECT v.id AS survey, v.at, h.name AS host, s.slot, g.uuid AS gpu, g.serial, k.model, k.origin, s.state,
       f.taken_at, f.name AS fingerprint, c.signature, m.hash AS map, f.depth, f.verdict, f.driver,
       f.plateau_gbps, f.whole_memory_gbps, f.window_bytes, s.counted
FROM fleet_sighting s
JOIN fleet_survey v ON v.id = s.survey
JOIN fleet_host h ON h.id = s.host
JOIN fleet_gpu g ON g.id = s.gpu
JOIN fleet_kind k ON k.id = s.kind
LEFT JOIN fleet_fingerprint f ON f.id = s.fingerprint
LEFT JOIN fleet_signature c ON c.id = f.signature
LEFT JOIN fleet_map m ON m.id = f.map;
