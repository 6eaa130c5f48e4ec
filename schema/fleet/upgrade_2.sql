-- From version 2: by the miss penalty of a level beyond the first a GPU may drift, but not be an outlier.

ALTER TABLE fleet_series ADD COLUMN tracked INTEGER NOT NULL DEFAULT 0;

UPDATE fleet_series SET tracked = judged;

UPDATE fleet_series SET judged = 0
WHERE name LIKE 'tlb.levels[%].miss_penalty_cycles' AND name <> 'tlb.levels[1].miss_penalty_cycles';

DELETE FROM fleet_outlier WHERE series IN (SELECT id FROM fleet_series WHERE judged = 0);

UPDATE fleet_schema SET version = 3;
