-- Hosts that did not answer as they should. $1 survey.
SELECT 'Hosts that did not answer as they should',
       'host outcome detail attempts:count elapsed_ms:count last_answered:count',
       'last_answered is the survey in which the host answered last.';

SELECT h.name, o.outcome, o.detail, o.attempts, o.elapsed_ms,
       CASE WHEN o.previous = 0 THEN NULL ELSE o.previous END
FROM fleet_outcome o
JOIN fleet_host h ON h.id = o.host
WHERE o.survey = $1 AND o.outcome NOT IN ('answered', 'unchanged')
ORDER BY o.outcome COLLATE "C", h.name COLLATE "C";
