-- What changed since the same GPU was surveyed last: of each kind first what most of it has in common, then
-- its GPUs. $1 survey, $2 model ('': all).
SELECT 'What changed since the survey before',
       'model origin uuid host slot:count since:count what before:any after:any change_percent:percent ' ||
       'fleet_percent:percent',
       'A change counts where it stands out of the fleet''s own by more than 6 deviations and by more ' ||
       'than 5%; with fewer than 8 GPUs measured again, as "reachctl diff" has it.';

WITH pair AS (
    SELECT s.kind, s.gpu, s.host, s.slot, s.was_survey, s.fingerprint, s.was_fingerprint,
           COUNT(*) OVER (PARTITION BY s.kind) AS pairs
    FROM fleet_sighting s
    WHERE s.survey = $1 AND s.counted = 1 AND s.fingerprint <> s.was_fingerprint
), changed AS (
    -- Three quarters of them the same way, and half of them by more than 1%.
    SELECT s.kind, CAST(NULL AS INTEGER) AS gpu, CAST(NULL AS INTEGER) AS host, CAST(NULL AS INTEGER) AS slot,
           CAST(NULL AS INTEGER) AS since, 0 AS part, s.place, s.name AS what,
           CAST(NULL AS TEXT) AS before_text, CAST(NULL AS DOUBLE PRECISION) AS before_value,
           CAST(NULL AS TEXT) AS after_text, CAST(NULL AS DOUBLE PRECISION) AS after_value,
           CAST(NULL AS DOUBLE PRECISION) AS change, c.median AS fleet
    FROM fleet_change c
    JOIN fleet_series s ON s.id = c.series AND s.tracked = 1
    WHERE c.survey = $1 AND c.gpus >= 8 AND ABS(c.median) > 0.01
      AND ((c.lower_quartile > 0 AND c.upper_quartile > 0) OR (c.lower_quartile < 0 AND c.upper_quartile < 0))
    UNION ALL
    SELECT p.kind, p.gpu, p.host, p.slot, p.was_survey, 1, n.place, n.name, w.value, NULL, n.value, NULL, NULL,
           NULL
    FROM pair p
    JOIN fleet_fingerprint a ON a.id = p.was_fingerprint
    JOIN fleet_fingerprint b ON b.id = p.fingerprint AND b.structure <> a.structure
    JOIN fleet_structure_line n ON n.structure = b.structure
    JOIN fleet_structure_line w ON w.structure = a.structure AND w.name = n.name AND w.value <> n.value
    WHERE p.pairs >= 8
    UNION ALL
    SELECT p.kind, p.gpu, p.host, p.slot, p.was_survey, 2, 0, 'other hardware: which SMs share a TLB', w.hash,
           NULL, n.hash, NULL, NULL, NULL
    FROM pair p
    JOIN fleet_fingerprint a ON a.id = p.was_fingerprint
    JOIN fleet_fingerprint b ON b.id = p.fingerprint AND b.map <> a.map
    JOIN fleet_map w ON w.id = a.map AND w.hash <> ''
    JOIN fleet_map n ON n.id = b.map AND n.hash <> ''
    WHERE p.pairs >= 8
    UNION ALL
    SELECT p.kind, p.gpu, p.host, p.slot, p.was_survey, 3, d.place, COALESCE(s.name, d.what), NULL,
           d.before_value, NULL, d.after_value, d.change, c.median
    FROM pair p
    JOIN fleet_drift d ON d.survey = $1 AND d.fingerprint = p.fingerprint
    LEFT JOIN fleet_series s ON s.id = d.series
    LEFT JOIN fleet_change c ON c.survey = $1 AND c.series = d.series
    WHERE s.name IS NOT NULL OR d.what IS NOT NULL
)
SELECT k.model, k.origin, COALESCE(g.uuid, '(most of them)'), h.name, c.slot, c.since, c.what, c.before_text,
       c.before_value, c.after_text, c.after_value, 100 * c.change, 100 * c.fleet
FROM changed c
JOIN fleet_kind k ON k.id = c.kind
LEFT JOIN fleet_gpu g ON g.id = c.gpu
LEFT JOIN fleet_host h ON h.id = c.host
WHERE CAST($2 AS TEXT) = '' OR k.model = $2
ORDER BY k.model COLLATE "C", k.origin COLLATE "C", CASE c.part WHEN 0 THEN 0 ELSE 1 END, c.host, c.slot, c.part,
         c.place;
