-- The bars of the chart of signatures: for each kind its 24 most common ones, and one for all others; the
-- first 12 kinds. $1 survey, $2 model ('': all).
WITH found AS (
    SELECT c.kind, SUM(c.n) AS gpus, MAX(g.candidate_count) AS candidate_count,
           CASE WHEN g.signature IS NULL THEN '(no fingerprint)' WHEN g.signature = '' THEN '(not known)'
                ELSE g.signature END AS signature
    FROM (SELECT kind, signature, COUNT(*) AS n FROM fleet_sighting
          WHERE survey = $1 AND counted = 1 GROUP BY kind, signature) c
    LEFT JOIN fleet_signature g ON g.id = c.signature
    GROUP BY c.kind, g.signature
), ranked AS (
    SELECT k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END AS origin, f.gpus, f.signature,
           f.candidate_count,
           DENSE_RANK() OVER (ORDER BY k.model COLLATE "C", k.origin COLLATE "C") AS panel,
           ROW_NUMBER() OVER (PARTITION BY f.kind ORDER BY f.gpus DESC, f.signature COLLATE "C") AS place
    FROM found f JOIN fleet_kind k ON k.id = f.kind
    WHERE CAST($2 AS TEXT) = '' OR k.model = $2
), bar AS (
    SELECT panel, MIN(model) AS model, MIN(origin) AS origin, CASE WHEN place > 24 THEN 25 ELSE place END AS place,
           MIN(signature) AS signature, COUNT(*) AS signatures, SUM(gpus) AS gpus,
           MAX(candidate_count) AS candidate_count
    FROM ranked
    GROUP BY panel, CASE WHEN place > 24 THEN 25 ELSE place END
)
SELECT panel, model, origin,
       CASE WHEN place = 25 THEN '(' || CAST(signatures AS TEXT) || ' others)'
            WHEN LENGTH(signature) > 39 THEN SUBSTR(signature, 1, 36) || '...' ELSE signature END,
       gpus, CASE WHEN place = 25 THEN 1 ELSE 0 END, CASE WHEN place < 25 AND candidate_count <> 1 THEN 1 ELSE 0 END,
       SUM(gpus) OVER (PARTITION BY panel), MAX(gpus) OVER (PARTITION BY panel),
       COUNT(*) OVER (PARTITION BY panel), COUNT(*) OVER (), (SELECT MAX(panel) FROM bar)
FROM bar
WHERE panel <= 12
ORDER BY panel, place;
