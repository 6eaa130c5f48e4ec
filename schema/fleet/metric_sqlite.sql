-- The measured metrics of fingerprints, a row each. Read a series at a time and written many at once: no
-- foreign keys, which would be looked up row by row. The table is its own index.

CREATE TABLE fleet_metric (
    series      INTEGER NOT NULL,            -- fleet_series
    fingerprint INTEGER NOT NULL,            -- fleet_fingerprint
    value       DOUBLE PRECISION,            -- null: see absent
    absent      TEXT,                        -- unknown, not_observable; null: has a value
    PRIMARY KEY (series, fingerprint)
) WITHOUT ROWID;
