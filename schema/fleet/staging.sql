-- Where the answers of one survey wait, in temporary tables of its connection: nothing is stored
-- until all hosts have answered or failed. staging.c fills them.

CREATE TEMP TABLE fleet_new_host (
    seq            INTEGER PRIMARY KEY,      -- the order of the survey, from 1
    name           TEXT    NOT NULL,
    outcome        TEXT    NOT NULL,
    detail         TEXT    NOT NULL,
    etag           TEXT    NOT NULL,
    daemon_version TEXT    NOT NULL,
    attempts       BIGINT  NOT NULL,
    received_bytes BIGINT  NOT NULL,
    elapsed_ms     BIGINT  NOT NULL,
    host           INTEGER,                  -- the rest is filled in by ingest.sql
    previous       INTEGER
);

CREATE TEMP TABLE fleet_new_gpu (
    host        INTEGER NOT NULL,            -- seq
    slot        INTEGER NOT NULL,
    uuid        TEXT    NOT NULL,
    serial      TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,            -- its name; '': none
    conflict    INTEGER NOT NULL DEFAULT 0,
    gpu         INTEGER
);

CREATE TEMP TABLE fleet_new_fingerprint (
    seq               INTEGER PRIMARY KEY,
    uuid              TEXT    NOT NULL,
    name              TEXT    NOT NULL,
    model             TEXT    NOT NULL,
    origin            TEXT    NOT NULL,
    signature         TEXT    NOT NULL,
    candidate_count   INTEGER,
    candidates        TEXT    NOT NULL,
    map               TEXT    NOT NULL,
    group_count       INTEGER NOT NULL,
    structure         INTEGER NOT NULL,
    depth             TEXT    NOT NULL,
    verdict           TEXT    NOT NULL,
    driver            TEXT    NOT NULL,
    taken_at          BIGINT  NOT NULL,
    plateau_gbps      DOUBLE PRECISION,
    whole_memory_gbps DOUBLE PRECISION,
    window_bytes      BIGINT,
    document          TEXT    NOT NULL
);

CREATE TEMP TABLE fleet_new_structure (
    id        INTEGER PRIMARY KEY,
    hash      TEXT    NOT NULL,
    text      TEXT    NOT NULL,
    structure INTEGER
);

CREATE TEMP TABLE fleet_new_line (
    structure INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    value     TEXT,
    number    DOUBLE PRECISION,
    absent    TEXT
);

CREATE TEMP TABLE fleet_new_series (
    id     INTEGER PRIMARY KEY,
    model  TEXT    NOT NULL,
    origin TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    series INTEGER
);

CREATE TEMP TABLE fleet_new_metric (
    series      INTEGER NOT NULL,            -- fleet_new_series
    fingerprint INTEGER NOT NULL,            -- fleet_new_fingerprint
    value       DOUBLE PRECISION,
    absent      TEXT
);

-- The highest id before this survey.
CREATE TEMP TABLE fleet_new_base (
    fingerprint INTEGER NOT NULL
);

-- The fingerprints that count in this survey, and those that follow another one of the same GPU.
CREATE TEMP TABLE fleet_new_fleet (
    fingerprint INTEGER PRIMARY KEY
);
CREATE TEMP TABLE fleet_new_pair (
    fingerprint INTEGER PRIMARY KEY,
    was         INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    was_kind    INTEGER NOT NULL,
    many        INTEGER NOT NULL
);

-- By how much each metric of theirs has changed, in parts of the value before. The joins are written in
-- the order in which SQLite is to make them: by series, so that groups need no sorting.
CREATE TEMP VIEW fleet_new_change AS
SELECT s.id AS series, s.place, s.tracked, p.fingerprint, a.value AS before_value, b.value AS after_value,
       CASE WHEN b.value = a.value THEN 0.0
            WHEN a.value = 0 AND b.value > 0 THEN 1.0
            WHEN a.value = 0 THEN -1.0
            ELSE (b.value - a.value) / ABS(a.value) END AS change
FROM fleet_series s
CROSS JOIN fleet_series was
CROSS JOIN fleet_new_pair p
CROSS JOIN fleet_metric a
CROSS JOIN fleet_metric b
WHERE was.name = s.name
  AND p.kind = s.kind AND p.was_kind = was.kind AND p.many = 1
  AND a.series = was.id AND a.fingerprint = p.was
  AND b.series = s.id AND b.fingerprint = p.fingerprint
  AND a.value IS NOT NULL AND b.value IS NOT NULL;
