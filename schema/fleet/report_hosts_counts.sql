-- Hosts by outcome. $1 survey.
SELECT 'Hosts by outcome',
       'outcome hosts:count gpus:count received_bytes:count slowest_ms:count',
       NULL;

SELECT o.outcome, COUNT(*), COALESCE(SUM(g.n), 0), SUM(o.received_bytes), MAX(o.elapsed_ms)
FROM fleet_outcome o
LEFT JOIN (SELECT host, COUNT(*) AS n FROM fleet_sighting WHERE survey = $1 GROUP BY host) g
  ON g.host = o.host
WHERE o.survey = $1
GROUP BY o.outcome
ORDER BY 2 DESC, o.outcome COLLATE "C";
