-- Every GPU, with the numbers that the page of the fleet draws. $1 survey, $2 model ('': all).
SELECT 'Every GPU',
       'host slot:count model origin state verdict map whole_memory_gbps:real plateau_gbps:real window_bytes:count ' ||
       'miss_penalty_cycles:real odd_in:count uuid',
       'miss_penalty_cycles is the penalty of the groups whose misses cost least. odd_in is the number of metrics that are ' ||
       'outliers.';

SELECT h.name, s.slot, k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END, s.state, f.verdict,
       NULLIF(SUBSTR(m.hash, 1, 15), ''), f.whole_memory_gbps, f.plateau_gbps, f.window_bytes, v.value,
       CASE WHEN s.fingerprint IS NOT NULL THEN
           (SELECT COUNT(*) FROM fleet_survey y JOIN fleet_outlier o ON o.survey = y.quartiles
            WHERE y.id = s.survey AND o.fingerprint = s.fingerprint) END, g.uuid
FROM fleet_sighting s
JOIN fleet_host h ON h.id = s.host
JOIN fleet_gpu g ON g.id = s.gpu
JOIN fleet_kind k ON k.id = s.kind
LEFT JOIN fleet_fingerprint f ON f.id = s.fingerprint
LEFT JOIN fleet_map m ON m.id = f.map
LEFT JOIN fleet_series r ON r.kind = s.kind AND r.name = 'topology.groups.miss_penalty_cycles.least'
LEFT JOIN fleet_metric v ON v.series = r.id AND v.fingerprint = s.fingerprint
WHERE s.survey = $1 AND s.counted = 1 AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY s.host, s.slot;
