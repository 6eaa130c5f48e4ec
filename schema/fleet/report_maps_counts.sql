-- How many different group maps a kind has. $1 survey, $2 model ('': all).
SELECT 'Different group maps',
       'model origin gpus:count maps:count most_common_percent:percent',
       NULL;

SELECT k.model, k.origin, SUM(c.n), COUNT(*), CAST(100 AS DOUBLE PRECISION) * MAX(c.n) / SUM(c.n)
FROM (SELECT kind, map, COUNT(*) AS n FROM fleet_sighting
      WHERE survey = $1 AND counted = 1 AND map IS NOT NULL GROUP BY kind, map) c
JOIN fleet_kind k ON k.id = c.kind
JOIN fleet_map m ON m.id = c.map AND m.hash <> ''
WHERE CAST($2 AS TEXT) = '' OR k.model = $2
GROUP BY k.model, k.origin
ORDER BY k.model COLLATE "C", k.origin COLLATE "C";
