-- From version 3: outliers are told by their distance from the inner range. Surveys that are stored keep the
-- outliers that they had; the next one has its own, even if no fingerprint has changed (ingest.sql).

ALTER TABLE fleet_spread ADD COLUMN inner_least DOUBLE PRECISION;

ALTER TABLE fleet_spread ADD COLUMN inner_most DOUBLE PRECISION;

UPDATE fleet_schema SET version = 4;
