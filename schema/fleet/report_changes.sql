-- What changed since the survey before: the outcomes of hosts that both surveys asked, new hosts, and GPUs that
-- went out of service or are back. $1 survey, $2 model ('': all).
SELECT 'Hosts and GPUs that failed or came since the survey before',
       'what host slot:count uuid before after',
       'A GPU is out of service if its state is lost, failed or stale. drift has the numbers that changed, inventory ' ||
       'the GPUs that came, moved or are gone.';

SELECT CASE WHEN w.outcome IS NULL THEN 'new host'
            WHEN n.outcome IN ('answered', 'unchanged') THEN 'host is back'
            WHEN w.outcome IN ('answered', 'unchanged') THEN 'host failed'
            ELSE 'host fails in another way' END,
       h.name, CAST(NULL AS INTEGER), CAST(NULL AS TEXT), w.outcome, n.outcome
FROM fleet_outcome n
JOIN fleet_host h ON h.id = n.host
LEFT JOIN fleet_outcome w ON w.host = n.host
      AND w.survey = (SELECT MAX(v.id) FROM fleet_survey v WHERE v.id < $1)
WHERE n.survey = $1
  AND CASE WHEN w.outcome IS NULL
           THEN n.previous = 0 AND n.outcome = 'answered' AND EXISTS (SELECT 1 FROM fleet_survey v WHERE v.id < $1)
           ELSE CASE w.outcome WHEN 'unchanged' THEN 'answered' ELSE w.outcome END <>
                CASE n.outcome WHEN 'unchanged' THEN 'answered' ELSE n.outcome END END
ORDER BY CASE WHEN n.outcome IN ('answered', 'unchanged') THEN 1 ELSE 0 END, 1, h.name COLLATE "C";

-- States that pass by themselves, like measuring, count as in service.
SELECT CASE WHEN c.is_out = 1 THEN 'GPU is out of service' ELSE 'GPU is in service again' END, h.name, c.slot, g.uuid,
       c.was_state, c.state
FROM (SELECT s.host, s.slot, s.gpu, s.kind, w.state AS was_state, s.state,
             CASE WHEN w.state IN ('lost', 'failed', 'stale') THEN 1 ELSE 0 END AS was_out,
             CASE WHEN s.state IN ('lost', 'failed', 'stale') THEN 1 ELSE 0 END AS is_out
      FROM fleet_sighting s
      JOIN fleet_sighting w ON w.survey = s.was_survey AND w.host = s.was_host AND w.slot = s.was_slot
      WHERE s.survey = $1 AND s.counted = 1) c
JOIN fleet_host h ON h.id = c.host
JOIN fleet_gpu g ON g.id = c.gpu
JOIN fleet_kind k ON k.id = c.kind
WHERE (c.was_out <> c.is_out OR (c.is_out = 1 AND c.was_state <> c.state))
  AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY c.is_out DESC, h.name COLLATE "C", c.slot;
