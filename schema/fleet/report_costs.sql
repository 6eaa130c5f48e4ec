-- The most common maps of each kind with a fingerprint that has it, for report_costs.c. $1 survey, $2 model
-- ('': all).
WITH found AS (
    SELECT s.kind, s.map, COUNT(*) AS gpus, MIN(s.fingerprint) AS fingerprint,
           ROW_NUMBER() OVER (PARTITION BY s.kind ORDER BY COUNT(*) DESC, MIN(s.fingerprint)) AS place
    FROM fleet_sighting s JOIN fleet_map m ON m.id = s.map AND m.hash <> ''
    WHERE s.survey = $1 AND s.counted = 1 AND s.fingerprint IS NOT NULL
    GROUP BY s.kind, s.map
)
SELECT k.model, k.origin, SUBSTR(m.hash, 1, 15), f.gpus, d.document
FROM found f
JOIN fleet_kind k ON k.id = f.kind
JOIN fleet_map m ON m.id = f.map
JOIN fleet_document d ON d.fingerprint = f.fingerprint
WHERE f.place <= 5 AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY k.model COLLATE "C", k.origin COLLATE "C", f.place;
