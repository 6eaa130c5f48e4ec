-- The head of every report. $1 survey (0: the latest), $2 model ('': all).
SELECT v.id, v.at, (SELECT COUNT(*) FROM fleet_outcome o WHERE o.survey = v.id), COUNT(k.id),
       COUNT(CASE k.origin WHEN 'simulated' THEN 1 END),
       COUNT(CASE WHEN k.origin NOT IN ('simulated', '') THEN 1 END)
FROM fleet_survey v
LEFT JOIN fleet_sighting s ON s.survey = v.id AND s.counted = 1
LEFT JOIN fleet_kind k ON k.id = s.kind AND (CAST($2 AS TEXT) = '' OR k.model = $2)
WHERE v.id = CASE CAST($1 AS BIGINT) WHEN 0 THEN (SELECT MAX(id) FROM fleet_survey) ELSE CAST($1 AS BIGINT) END
GROUP BY v.id, v.at;
