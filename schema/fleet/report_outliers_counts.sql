-- How many GPUs of each kind differ from the others. $1 survey, $2 model ('': all).
SELECT 'How many GPUs differ from the others of their model',
       'model origin gpus:count differ_in_structure:count differ_in_metrics:count',
       'Fewer than 8 GPUs of a model and origin are not told from each other, but 3 are by metrics of ' ||
       'another model of that origin that has 8.';

WITH used AS (
    SELECT kind, structure, COUNT(*) AS gpus FROM fleet_sighting
    WHERE survey = $1 AND counted = 1 AND structure IS NOT NULL
    GROUP BY kind, structure
), value AS (
    SELECT u.kind, l.name, l.value, SUM(u.gpus) AS have,
           SUM(SUM(u.gpus)) OVER (PARTITION BY u.kind, l.name) AS known
    FROM used u JOIN fleet_structure_line l ON l.structure = u.structure AND l.value IS NOT NULL
    GROUP BY u.kind, l.name, l.value
), odd AS (
    SELECT DISTINCT u.kind, u.structure
    FROM used u CROSS JOIN fleet_structure_line l CROSS JOIN value v
    WHERE l.structure = u.structure AND v.kind = u.kind AND v.name = l.name AND v.value <> l.value
      AND v.known >= 8 AND 2 * v.have > v.known
), measured AS (
    SELECT s.kind, COUNT(DISTINCT s.fingerprint) AS gpus
    FROM fleet_survey v CROSS JOIN fleet_outlier o CROSS JOIN fleet_sighting s
    WHERE v.id = $1 AND o.survey = v.quartiles
      AND s.survey = v.id AND s.counted = 1 AND s.fingerprint = o.fingerprint
    GROUP BY s.kind
)
SELECT k.model, k.origin, u.gpus, CASE WHEN u.gpus >= 8 THEN u.differ END,
       CASE WHEN u.gpus >= 8 OR u.gpus >= 3 AND u.most >= 8 THEN COALESCE(m.gpus, 0) END
FROM (SELECT u.kind, SUM(u.gpus) AS gpus, MAX(SUM(u.gpus)) OVER (PARTITION BY k.origin) AS most,
             SUM(CASE WHEN o.structure IS NULL THEN 0 ELSE u.gpus END) AS differ
      FROM used u JOIN fleet_kind k ON k.id = u.kind
      LEFT JOIN odd o ON o.kind = u.kind AND o.structure = u.structure
      GROUP BY u.kind, k.origin) u
JOIN fleet_kind k ON k.id = u.kind
LEFT JOIN measured m ON m.kind = u.kind
WHERE CAST($2 AS TEXT) = '' OR k.model = $2
ORDER BY k.model COLLATE "C", k.origin COLLATE "C";
