-- How many GPUs have each group map. $1 survey, $2 model ('': all).
SELECT 'Group maps: which SMs share a TLB',
       'model origin map groups:count gpus:count percent:percent',
       'A map''s name is a hash of which SM ids go together, whatever the groups are called.';

SELECT k.model, k.origin, CASE m.hash WHEN '' THEN '(not known)' ELSE m.hash END, m.group_count, c.n,
       CAST(100 AS DOUBLE PRECISION) * c.n / SUM(c.n) OVER (PARTITION BY c.kind)
FROM (SELECT kind, map, COUNT(*) AS n FROM fleet_sighting
      WHERE survey = $1 AND counted = 1 AND map IS NOT NULL GROUP BY kind, map) c
JOIN fleet_kind k ON k.id = c.kind
JOIN fleet_map m ON m.id = c.map
WHERE CAST($2 AS TEXT) = '' OR k.model = $2
ORDER BY k.model COLLATE "C", k.origin COLLATE "C", c.n DESC, m.hash COLLATE "C";
