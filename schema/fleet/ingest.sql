-- Stores what waits in the temporary tables (staging.sql). $1 is the survey. One writer at a time, so that
-- "the highest id so far" holds.

INSERT INTO fleet_new_base (fingerprint) SELECT COALESCE(MAX(id), 0) FROM fleet_fingerprint;

-- ---- hosts ----

INSERT INTO fleet_host (id, name)
SELECT (SELECT COALESCE(MAX(id), 0) FROM fleet_host) + ROW_NUMBER() OVER (ORDER BY n.seq), n.name
FROM fleet_new_host n
WHERE NOT EXISTS (SELECT 1 FROM fleet_host h WHERE h.name = n.name);

UPDATE fleet_new_host SET host = h.id, previous = h.answered
FROM fleet_host h WHERE h.name = fleet_new_host.name;

UPDATE fleet_new_host
SET outcome = 'bad-response', detail = 'it reports no change (HTTP 304), but it has never answered'
WHERE outcome = 'unchanged' AND previous = 0;

-- A host with nothing new has the GPUs of its last answer.
INSERT INTO fleet_new_gpu (host, slot, uuid, serial, model, state, fingerprint)
SELECT n.seq, s.slot, g.uuid, g.serial, k.model, s.state, COALESCE(f.name, '')
FROM fleet_new_host n
JOIN fleet_sighting s ON s.survey = n.previous AND s.host = n.host
JOIN fleet_gpu g ON g.id = s.gpu
JOIN fleet_kind k ON k.id = s.kind
LEFT JOIN fleet_fingerprint f ON f.id = s.fingerprint
WHERE n.outcome = 'unchanged';

-- ---- a UUID that more than one host reports counts for none of them ----

UPDATE fleet_new_gpu SET conflict = 1
WHERE LOWER(uuid) IN (SELECT LOWER(uuid) FROM fleet_new_gpu GROUP BY LOWER(uuid) HAVING COUNT(*) > 1);

-- Each of them names another one, for its first such UUID.
UPDATE fleet_new_host
SET outcome = 'inconsistent', detail = c.detail
FROM (SELECT a.host, a.uuid || ' is reported by ' || SUBSTR(o.name, 1, 200) || ' too' ||
             CASE WHEN o.etag <> '' AND o.etag = h.etag
                  THEN ', in the very same answer: two names of one daemon?' ELSE '' END AS detail,
             ROW_NUMBER() OVER (PARTITION BY a.host ORDER BY LOWER(a.uuid)) AS nth
      FROM (SELECT host, uuid, ROW_NUMBER() OVER (PARTITION BY LOWER(uuid) ORDER BY host) AS claimant
            FROM fleet_new_gpu WHERE conflict = 1) a
      JOIN (SELECT host, uuid, ROW_NUMBER() OVER (PARTITION BY LOWER(uuid) ORDER BY host) AS claimant
            FROM fleet_new_gpu WHERE conflict = 1) b
        ON LOWER(b.uuid) = LOWER(a.uuid) AND b.claimant = CASE WHEN a.claimant = 1 THEN 2 ELSE 1 END
      JOIN fleet_new_host h ON h.seq = a.host
      JOIN fleet_new_host o ON o.seq = b.host) c
WHERE c.nth = 1 AND c.host = fleet_new_host.seq;

-- ---- what many fingerprints share ----

INSERT INTO fleet_kind (id, model, origin)
SELECT (SELECT COALESCE(MAX(id), 0) FROM fleet_kind) + ROW_NUMBER() OVER (ORDER BY n.model, n.origin),
       n.model, n.origin
FROM (SELECT model, origin FROM fleet_new_fingerprint
      UNION SELECT model, '' FROM fleet_new_gpu WHERE fingerprint = '') n
WHERE NOT EXISTS (SELECT 1 FROM fleet_kind k WHERE k.model = n.model AND k.origin = n.origin);

INSERT INTO fleet_signature (id, signature, candidate_count, candidates)
SELECT (SELECT COALESCE(MAX(id), 0) FROM fleet_signature) + ROW_NUMBER() OVER (ORDER BY n.signature),
       n.signature, n.candidate_count, n.candidates
FROM (SELECT DISTINCT signature, candidate_count, candidates FROM fleet_new_fingerprint) n
WHERE NOT EXISTS (SELECT 1 FROM fleet_signature s
                  WHERE s.signature = n.signature AND s.candidates = n.candidates
                    AND COALESCE(s.candidate_count, -1) = COALESCE(n.candidate_count, -1));

INSERT INTO fleet_map (id, hash, group_count)
SELECT (SELECT COALESCE(MAX(id), 0) FROM fleet_map) + ROW_NUMBER() OVER (ORDER BY n.map),
       n.map, n.group_count
FROM (SELECT map, MAX(group_count) AS group_count FROM fleet_new_fingerprint GROUP BY map) n
WHERE NOT EXISTS (SELECT 1 FROM fleet_map m WHERE m.hash = n.map);

INSERT INTO fleet_structure (id, hash, text)
SELECT (SELECT COALESCE(MAX(id), 0) FROM fleet_structure) + ROW_NUMBER() OVER (ORDER BY n.id),
       n.hash, n.text
FROM fleet_new_structure n
WHERE NOT EXISTS (SELECT 1 FROM fleet_structure s WHERE s.hash = n.hash AND s.text = n.text);

UPDATE fleet_new_structure SET structure = s.id
FROM fleet_structure s WHERE s.hash = fleet_new_structure.hash AND s.text = fleet_new_structure.text;

INSERT INTO fleet_structure_line (structure, place, name, value, number, absent)
SELECT n.structure, l.place, l.name, l.value, l.number, l.absent
FROM fleet_new_structure n
JOIN fleet_new_line l ON l.structure = n.id
WHERE NOT EXISTS (SELECT 1 FROM fleet_structure_line x WHERE x.structure = n.structure);

-- ---- fingerprints ----

INSERT INTO fleet_fingerprint (id, uuid, name, kind, signature, map, structure, depth, verdict, driver,
                               taken_at, plateau_gbps, whole_memory_gbps, window_bytes)
SELECT base.fingerprint + n.seq, n.uuid, n.name, k.id, s.id, m.id, t.structure, n.depth, n.verdict,
       n.driver, n.taken_at, n.plateau_gbps, n.whole_memory_gbps, n.window_bytes
FROM (SELECT MIN(seq) AS seq FROM fleet_new_fingerprint GROUP BY uuid, name) first
JOIN fleet_new_fingerprint n ON n.seq = first.seq
CROSS JOIN fleet_new_base base
JOIN fleet_kind k ON k.model = n.model AND k.origin = n.origin
JOIN fleet_signature s ON s.signature = n.signature AND s.candidates = n.candidates
     AND COALESCE(s.candidate_count, -1) = COALESCE(n.candidate_count, -1)
JOIN fleet_map m ON m.hash = n.map
JOIN fleet_new_structure t ON t.id = n.structure
WHERE NOT EXISTS (SELECT 1 FROM fleet_fingerprint f WHERE f.uuid = n.uuid AND f.name = n.name);

INSERT INTO fleet_document (fingerprint, document)
SELECT f.id, n.document
FROM fleet_new_base base
CROSS JOIN fleet_new_fingerprint n
JOIN fleet_fingerprint f ON f.id = base.fingerprint + n.seq;

INSERT INTO fleet_series (id, kind, name, place, judged, tracked)
SELECT (SELECT COALESCE(MAX(id), 0) FROM fleet_series) + ROW_NUMBER() OVER (ORDER BY n.id), k.id, n.name,
       COALESCE((SELECT MIN(s.place) FROM fleet_series s WHERE s.name = n.name),
                (SELECT COALESCE(MAX(place), 0) FROM fleet_series) + MIN(n.id) OVER (PARTITION BY n.name)),
       -- metrics_is_judged: the miss penalty of a level beyond the first is measured for one group, and
       -- chips cannot be compared by it.
       CASE WHEN n.name LIKE 'tlb.levels[%].miss_penalty_cycles'
                 AND n.name <> 'tlb.levels[1].miss_penalty_cycles' THEN 0 ELSE n.tracked END,
       n.tracked
-- metrics_is_tracked: how long it took the host has a hand in, what a chip has lost the signatures count, and
-- a median over groups of two classes moves to the other class with a lost group.
FROM (SELECT id, model, origin, name,
             CASE WHEN name IN ('duration_ms', 'probe_ms', 'topology.group_count')
                       OR name LIKE '%confidence' OR name LIKE 'topology.disabled.%'
                       OR name LIKE 'topology.%.median' THEN 0 ELSE 1 END AS tracked
      FROM fleet_new_series) n
JOIN fleet_kind k ON k.model = n.model AND k.origin = n.origin
WHERE NOT EXISTS (SELECT 1 FROM fleet_series s WHERE s.kind = k.id AND s.name = n.name);

UPDATE fleet_new_series SET series = s.id
FROM fleet_series s JOIN fleet_kind k ON k.id = s.kind
WHERE k.model = fleet_new_series.model AND k.origin = fleet_new_series.origin
  AND s.name = fleet_new_series.name;

-- Of a fingerprint that was stored already, or that came twice, the metrics are too.
DELETE FROM fleet_new_metric
WHERE fingerprint IN (SELECT n.seq FROM fleet_new_base base CROSS JOIN fleet_new_fingerprint n
                      WHERE NOT EXISTS (SELECT 1 FROM fleet_fingerprint f WHERE f.id = base.fingerprint + n.seq));

-- In the order of the table, which is several times as fast.
INSERT INTO fleet_metric (series, fingerprint, value, absent)
SELECT n.series, m.fingerprint + (SELECT fingerprint FROM fleet_new_base), m.value, m.absent
FROM fleet_new_metric m JOIN fleet_new_series n ON n.id = m.series
ORDER BY m.series, m.fingerprint;

-- ---- GPUs: no serial number is not another one ----

UPDATE fleet_gpu SET serial = n.serial
FROM (SELECT n.uuid, MIN(n.serial) AS serial FROM fleet_new_gpu n
      WHERE n.serial <> ''
        AND NOT EXISTS (SELECT 1 FROM fleet_gpu g WHERE g.uuid = n.uuid AND g.serial = n.serial)
      GROUP BY n.uuid) n
WHERE fleet_gpu.uuid = n.uuid AND fleet_gpu.serial = '';

INSERT INTO fleet_gpu (id, uuid, serial, first)
SELECT (SELECT COALESCE(MAX(id), 0) FROM fleet_gpu) + ROW_NUMBER() OVER (ORDER BY n.uuid, n.serial),
       n.uuid, n.serial, CAST($1 AS INTEGER)
FROM (SELECT DISTINCT uuid, serial, MAX(serial) OVER (PARTITION BY uuid) AS reported FROM fleet_new_gpu) n
WHERE (n.serial <> '' OR n.reported = '')
  AND NOT EXISTS (SELECT 1 FROM fleet_gpu g
                  WHERE g.uuid = n.uuid AND (n.serial = '' OR g.serial = n.serial));

UPDATE fleet_new_gpu SET gpu = COALESCE(
    (SELECT g.id FROM fleet_gpu g WHERE g.uuid = fleet_new_gpu.uuid AND g.serial = fleet_new_gpu.serial),
    (SELECT g.id FROM fleet_gpu g WHERE g.uuid = fleet_new_gpu.uuid ORDER BY g.seen DESC, g.id DESC LIMIT 1));

-- ---- the survey itself ----

INSERT INTO fleet_sighting (survey, host, slot, gpu, state, kind, fingerprint, signature, map, structure,
                            counted, was_survey, was_host, was_slot, was_fingerprint)
SELECT CAST($1 AS INTEGER), h.host, n.slot, n.gpu, n.state, COALESCE(f.kind, k.id), f.id, f.signature, f.map,
       f.structure, 1 - n.conflict,
       CASE WHEN g.seen > 0 THEN g.seen END, CASE WHEN g.seen > 0 THEN g.host END,
       CASE WHEN g.seen > 0 THEN g.slot END, CASE WHEN g.seen > 0 THEN g.fingerprint END
FROM fleet_new_gpu n
JOIN fleet_new_host h ON h.seq = n.host
JOIN fleet_gpu g ON g.id = n.gpu
LEFT JOIN fleet_fingerprint f ON f.uuid = n.uuid AND f.name = n.fingerprint
LEFT JOIN fleet_kind k ON k.model = n.model AND k.origin = '' AND n.fingerprint = '';

INSERT INTO fleet_outcome (survey, host, outcome, detail, daemon_version, attempts, received_bytes,
                           elapsed_ms, previous)
SELECT CAST($1 AS INTEGER), host, outcome, detail, daemon_version, attempts, received_bytes, elapsed_ms,
       previous
FROM fleet_new_host;

UPDATE fleet_host
SET asked = CAST($1 AS INTEGER),
    answered = CASE WHEN n.outcome IN ('answered', 'unchanged') THEN CAST($1 AS INTEGER)
                    ELSE fleet_host.answered END,
    etag = CASE WHEN n.outcome = 'answered' THEN n.etag ELSE fleet_host.etag END
FROM fleet_new_host n WHERE n.host = fleet_host.id;

UPDATE fleet_gpu
SET seen = s.survey, host = s.host, slot = s.slot,
    fingerprint = COALESCE(s.fingerprint, fleet_gpu.fingerprint)
FROM fleet_sighting s
WHERE s.survey = $1 AND s.counted = 1 AND fleet_gpu.id = s.gpu;

-- ---- which quartiles hold: those of the survey before where the same fingerprints count ----

UPDATE fleet_survey
SET quartiles = COALESCE(
    (SELECT p.quartiles FROM fleet_survey p
     WHERE p.id = CAST($1 AS INTEGER) - 1
       AND NOT EXISTS (SELECT fingerprint FROM fleet_sighting
                       WHERE survey = p.id AND counted = 1 AND fingerprint IS NOT NULL
                       EXCEPT
                       SELECT fingerprint FROM fleet_sighting
                       WHERE survey = CAST($1 AS INTEGER) AND counted = 1)
       AND NOT EXISTS (SELECT fingerprint FROM fleet_sighting
                       WHERE survey = CAST($1 AS INTEGER) AND counted = 1 AND fingerprint IS NOT NULL
                       EXCEPT
                       SELECT fingerprint FROM fleet_sighting WHERE survey = p.id AND counted = 1)),
    CAST($1 AS INTEGER))
WHERE id = $1;

INSERT INTO fleet_new_fleet (fingerprint)
SELECT DISTINCT s.fingerprint FROM fleet_sighting s JOIN fleet_survey v ON v.id = s.survey AND v.quartiles = v.id
WHERE s.survey = $1 AND s.counted = 1 AND s.fingerprint IS NOT NULL;

-- GPUs that were measured again since they were surveyed last. `many`: enough of the kind to know their
-- noise.
INSERT INTO fleet_new_pair (fingerprint, was, kind, was_kind, many)
SELECT s.fingerprint, s.was_fingerprint, s.kind, f.kind,
       CASE WHEN COUNT(*) OVER (PARTITION BY s.kind) >= 8 THEN 1 ELSE 0 END
FROM fleet_sighting s JOIN fleet_fingerprint f ON f.id = s.was_fingerprint
WHERE s.survey = $1 AND s.counted = 1 AND s.fingerprint <> s.was_fingerprint;
