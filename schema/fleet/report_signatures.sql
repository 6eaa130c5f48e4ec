-- Patterns of disabled SMs, with a row for people at the end of each kind. $1 survey, $2 model ('': all).
SELECT 'Signatures of the disabled SMs',
       'model origin signature gpus:count percent:percent candidates candidate_count:count :people',
       'A signature is the same on every chip with the same pattern; where several sets of SMs would ' ||
       'leave it, all of them are candidates.';

WITH found AS (
    SELECT c.kind, g.signature, SUM(c.n) AS gpus, MIN(g.candidates) AS candidates,
           MAX(g.candidate_count) AS candidate_count
    FROM (SELECT kind, signature, COUNT(*) AS n FROM fleet_sighting
          WHERE survey = $1 AND counted = 1 GROUP BY kind, signature) c
    LEFT JOIN fleet_signature g ON g.id = c.signature
    GROUP BY c.kind, g.signature
), total AS (
    SELECT kind, SUM(gpus) AS gpus FROM found GROUP BY kind
)
SELECT k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END, r.signature, r.gpus,
       CAST(100 AS DOUBLE PRECISION) * r.gpus / t.gpus, r.candidates, r.candidate_count, r.people
FROM (SELECT kind, 0 AS people, gpus,
             CASE WHEN signature IS NULL THEN '(no fingerprint)' WHEN signature = '' THEN '(not known)'
                  ELSE signature END AS signature,
             CASE WHEN candidate_count <> 1 AND candidates <> '' THEN candidates END AS candidates,
             candidate_count
      FROM found
      UNION ALL SELECT kind, 1, gpus, 'total', NULL, NULL FROM total) r
JOIN total t ON t.kind = r.kind
JOIN fleet_kind k ON k.id = r.kind
WHERE CAST($2 AS TEXT) = '' OR k.model = $2
ORDER BY k.model COLLATE "C", k.origin COLLATE "C", r.people, r.gpus DESC, r.signature COLLATE "C";
