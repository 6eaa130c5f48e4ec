-- GPUs that differ from the others of their kind: in the structure from what more than half of those with
-- a value have, else as outliers.sql has it. $1 survey, $2 model ('': all). The joins are written in the
-- order in which SQLite is to make them.
SELECT 'GPUs that differ from the others of their model',
       'model origin uuid host slot:count metric value:any usual:any deviations:real',
       'A metric differs where it is more than 6 deviations (1.4826 x the median distance) and more ' ||
       'than 5% of the median outside the range that most of its model and origin are in (a tenth at ' ||
       'each end apart); one of the structure where more than half have another. deviations is the ' ||
       'distance from the median.';

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
    SELECT u.kind, u.structure, l.place, l.name, l.value, v.value AS usual
    FROM used u CROSS JOIN fleet_structure_line l CROSS JOIN value v
    WHERE l.structure = u.structure AND v.kind = u.kind AND v.name = l.name AND v.value <> l.value
      AND v.known >= 8 AND 2 * v.have > v.known
), differs AS (
    SELECT s.kind, 0 AS measured, s.host, s.slot, s.gpu, o.place, o.name, o.value AS text,
           CAST(NULL AS DOUBLE PRECISION) AS value, o.usual AS usual_text,
           CAST(NULL AS DOUBLE PRECISION) AS usual, CAST(NULL AS DOUBLE PRECISION) AS deviations
    FROM odd o CROSS JOIN fleet_sighting s
    WHERE s.survey = $1 AND s.counted = 1 AND s.kind = o.kind AND s.structure = o.structure
    UNION ALL
    SELECT s.kind, 1, s.host, s.slot, s.gpu, p.place, p.name, NULL, o.value, NULL, p.median,
           CASE WHEN p.deviation > 1e-100 THEN ABS(o.value - p.median) / (1.4826 * p.deviation) END
    FROM fleet_survey v CROSS JOIN fleet_outlier o CROSS JOIN fleet_series r CROSS JOIN fleet_quartiles p
    CROSS JOIN fleet_sighting s
    WHERE v.id = $1 AND o.survey = v.quartiles AND r.id = o.series
      AND p.survey = v.quartiles AND p.kind = r.kind AND p.measured = 1 AND p.place = r.place
      AND s.survey = v.id AND s.counted = 1 AND s.fingerprint = o.fingerprint
)
SELECT k.model, k.origin, g.uuid, h.name, d.slot, d.name, d.text, d.value, d.usual_text, d.usual, d.deviations
FROM differs d
JOIN fleet_kind k ON k.id = d.kind
JOIN fleet_gpu g ON g.id = d.gpu
JOIN fleet_host h ON h.id = d.host
WHERE CAST($2 AS TEXT) = '' OR k.model = $2
ORDER BY k.model COLLATE "C", k.origin COLLATE "C", d.measured, d.host, d.slot, d.place;
