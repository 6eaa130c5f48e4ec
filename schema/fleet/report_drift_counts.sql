-- GPUs that were measured again, by kind, and in what they changed. $1 survey, $2 model ('': all).
SELECT 'GPUs that were measured again',
       'model origin again:count changed:count structure:count groups:count metrics:count other_driver:count',
       NULL;

WITH pair AS (
    SELECT s.kind, s.fingerprint, a.structure AS was_structure, b.structure, b.driver <> a.driver AS driver,
           w.hash <> '' AND n.hash <> '' AND w.hash <> n.hash AS map,
           COUNT(*) OVER (PARTITION BY s.kind) AS pairs
    FROM fleet_sighting s
    JOIN fleet_fingerprint a ON a.id = s.was_fingerprint
    JOIN fleet_fingerprint b ON b.id = s.fingerprint
    JOIN fleet_map w ON w.id = a.map
    JOIN fleet_map n ON n.id = b.map
    WHERE s.survey = $1 AND s.counted = 1 AND s.fingerprint <> s.was_fingerprint
), other AS (
    SELECT DISTINCT t.was_structure, t.structure
    FROM (SELECT DISTINCT was_structure, structure FROM pair WHERE was_structure <> structure) t
    JOIN fleet_structure_line n ON n.structure = t.structure
    JOIN fleet_structure_line w ON w.structure = t.was_structure AND w.name = n.name AND w.value <> n.value
), found AS (
    SELECT p.kind, p.pairs, CASE WHEN p.driver THEN 1 ELSE 0 END AS driver,
           CASE WHEN o.structure IS NULL THEN 0 ELSE 1 END AS structure,
           CASE WHEN p.pairs >= 8 THEN CASE WHEN p.map THEN 1 ELSE 0 END
                WHEN d.class = 'other-hardware' THEN 1 ELSE 0 END AS map,
           CASE WHEN d.fingerprint IS NULL THEN 0 ELSE 1 END AS metric,
           CASE WHEN d.class <> 'same' THEN 1 ELSE 0 END AS compared
    FROM pair p
    LEFT JOIN other o ON o.was_structure = p.was_structure AND o.structure = p.structure
    LEFT JOIN (SELECT fingerprint, MAX(class) AS class FROM fleet_drift WHERE survey = $1
               GROUP BY fingerprint) d ON d.fingerprint = p.fingerprint
), kind AS (
    SELECT DISTINCT kind FROM fleet_sighting
    WHERE survey = $1 AND counted = 1 AND fingerprint IS NOT NULL
)
SELECT k.model, k.origin, COUNT(f.kind),
       COALESCE(SUM(CASE WHEN f.pairs < 8 THEN f.compared
                         WHEN f.structure + f.map + f.metric > 0 THEN 1 ELSE 0 END), 0),
       SUM(CASE WHEN f.pairs >= 8 THEN f.structure END), COALESCE(SUM(f.map), 0),
       SUM(CASE WHEN f.pairs >= 8 THEN f.metric END), COALESCE(SUM(f.driver), 0)
FROM kind n
JOIN fleet_kind k ON k.id = n.kind
LEFT JOIN found f ON f.kind = n.kind
WHERE CAST($2 AS TEXT) = '' OR k.model = $2
GROUP BY k.model, k.origin
ORDER BY k.model COLLATE "C", k.origin COLLATE "C";
