-- The end of survey $1, which took $2 ms. Gives the GPUs that count, the UUIDs in conflict and the
-- fingerprints that were not stored before.
UPDATE fleet_survey SET elapsed_ms = $2 WHERE id = $1;

SELECT (SELECT COUNT(*) FROM fleet_new_gpu WHERE conflict = 0),
       (SELECT COUNT(DISTINCT LOWER(uuid)) FROM fleet_new_gpu WHERE conflict = 1),
       (SELECT COUNT(*) FROM fleet_fingerprint f JOIN fleet_new_base b ON f.id > b.fingerprint);
