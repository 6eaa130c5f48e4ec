-- What changed places against the survey before: the last one that has GPUs of that host, or that has seen
-- that GPU. The GPUs of a host that is not reached are not called gone. $1 survey, $2 model ('': all).
--
-- A plus sign before a column keeps an index out that is the wrong one where few GPUs are looked for.
SELECT 'Inventory: what changed places',
       'what uuid serial model origin host slot:count before',
       'A GPU is its UUID and its serial number. A host that was not reached says nothing: none of ' ||
       'its GPUs is called gone.';

-- Another GPU than last time in this slot, and where it came from, if it was seen elsewhere.
SELECT 'new GPU in an old slot', g.uuid, NULLIF(g.serial, ''), k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END, h.name, s.slot,
       'there was ' || og.uuid || CASE WHEN og.serial = '' THEN '' ELSE ', serial ' || og.serial END ||
       CASE WHEN wh.name IS NULL THEN ''
            ELSE '; this one was in slot ' || CAST(s.was_slot AS TEXT) || ' of ' || wh.name END
FROM fleet_sighting s
JOIN fleet_outcome o ON o.survey = s.survey AND o.host = s.host
JOIN fleet_sighting p ON p.survey = o.previous AND p.host = s.host AND p.slot = s.slot
JOIN fleet_gpu g ON g.id = s.gpu
JOIN fleet_gpu og ON og.id = p.gpu
JOIN fleet_host h ON h.id = s.host
LEFT JOIN fleet_host wh ON wh.id = s.was_host
JOIN fleet_kind k ON k.id = s.kind
WHERE s.survey = $1 AND s.counted = 1 AND p.gpu <> s.gpu
  AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY h.name COLLATE "C", s.slot;

-- A GPU in another place than last time.
SELECT CASE WHEN s.was_host = s.host THEN 'moved to another slot' ELSE 'moved to another host' END, g.uuid,
       NULLIF(g.serial, ''), k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END, h.name, s.slot,
       'was in slot ' || CAST(s.was_slot AS TEXT) || ' of ' || wh.name || ' in survey ' ||
       CAST(s.was_survey AS TEXT)
FROM fleet_sighting s
JOIN fleet_gpu g ON g.id = s.gpu
JOIN fleet_host h ON h.id = s.host
JOIN fleet_host wh ON wh.id = s.was_host
JOIN fleet_kind k ON k.id = s.kind
WHERE s.survey = $1 AND s.counted = 1 AND (s.was_host <> s.host OR s.was_slot <> s.slot)
  AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY h.name COLLATE "C", s.slot;

-- In a slot that was empty, of a host that has answered before.
SELECT 'new GPU in an empty slot', g.uuid, NULLIF(g.serial, ''), k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END, h.name, s.slot, ''
FROM fleet_sighting s
JOIN fleet_outcome o ON o.survey = s.survey AND o.host = s.host
LEFT JOIN fleet_sighting p ON p.survey = o.previous AND p.host = s.host AND p.slot = s.slot
JOIN fleet_gpu g ON g.id = s.gpu
JOIN fleet_host h ON h.id = s.host
JOIN fleet_kind k ON k.id = s.kind
WHERE s.survey = $1 AND s.counted = 1 AND s.was_survey IS NULL AND o.previous > 0 AND p.gpu IS NULL
  AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY h.name COLLATE "C", s.slot;

-- Of a host that answered, and seen nowhere.
SELECT 'gone', g.uuid, NULLIF(g.serial, ''), k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END,
       h.name, s.slot, 'was there in survey ' || CAST(s.survey AS TEXT)
FROM fleet_outcome o
JOIN fleet_sighting s ON s.survey = o.previous AND s.host = o.host AND +s.counted = 1
JOIN fleet_gpu g ON g.id = s.gpu
JOIN fleet_host h ON h.id = s.host
JOIN fleet_kind k ON k.id = s.kind
WHERE o.survey = $1 AND o.outcome IN ('answered', 'unchanged')
  AND NOT EXISTS (SELECT 1
    FROM fleet_sighting n
    WHERE n.gpu = s.gpu AND n.survey = $1)
  AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY h.name COLLATE "C", s.slot;

-- Every place of a UUID that was seen more than once.
SELECT 'UUID seen twice', g.uuid, NULLIF(g.serial, ''), k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE
       k.origin END, h.name, s.slot, CASE WHEN s.counted = 1 THEN 'counted here' ELSE 'not counted' END
FROM (SELECT q.uuid
    FROM (SELECT i.uuid
        FROM fleet_sighting t
        JOIN fleet_gpu i ON i.id = t.gpu
        WHERE t.survey = $1 AND t.counted = 0 UNION SELECT uuid
        FROM fleet_gpu
        GROUP BY uuid HAVING COUNT(*) > 1) p
    JOIN fleet_gpu q ON q.uuid = p.uuid
    JOIN fleet_sighting u ON u.gpu = q.id AND +u.survey = CAST($1 AS INTEGER)
    GROUP BY q.uuid HAVING COUNT(*) > 1) d
JOIN fleet_gpu g ON g.uuid = d.uuid
JOIN fleet_sighting s ON s.gpu = g.id AND +s.survey = CAST($1 AS INTEGER)
JOIN fleet_host h ON h.id = s.host
JOIN fleet_kind k ON k.id = s.kind
WHERE (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY g.uuid COLLATE "C", h.name COLLATE "C", s.slot;

-- A UUID that had another serial number in an earlier survey.
SELECT 'UUID with another serial', g.uuid, NULLIF(g.serial, ''), k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE k.origin END, h.name, s.slot, 'was ' || b.serial
FROM (SELECT uuid
    FROM fleet_gpu
    GROUP BY uuid HAVING COUNT(*) > 1) d
JOIN fleet_gpu g ON g.uuid = d.uuid
JOIN fleet_gpu b ON b.uuid = g.uuid AND b.id <> g.id AND b.first < g.first
JOIN fleet_sighting s ON s.gpu = g.id AND +s.survey = CAST($1 AS INTEGER) AND g.first = s.survey
JOIN fleet_host h ON h.id = s.host
JOIN fleet_kind k ON k.id = s.kind
WHERE (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY h.name COLLATE "C", s.slot;

-- The GPUs of one board have one serial number, and one host.
SELECT 'serial in two hosts', g.uuid, NULLIF(g.serial, ''), k.model, CASE k.origin WHEN '' THEN 'unknown' ELSE
       k.origin END, h.name, s.slot, ''
FROM (SELECT i.serial
    FROM (SELECT serial
        FROM fleet_gpu
        WHERE serial <> ''
        GROUP BY serial HAVING COUNT(*) > 1) c
    JOIN fleet_gpu i ON i.serial = c.serial
    JOIN fleet_sighting t ON t.gpu = i.id AND +t.survey = CAST($1 AS INTEGER)
    GROUP BY i.serial HAVING MIN(t.host) <> MAX(t.host)) d
JOIN fleet_gpu g ON g.serial = d.serial
JOIN fleet_sighting s ON s.gpu = g.id AND +s.survey = CAST($1 AS INTEGER)
JOIN fleet_host h ON h.id = s.host
JOIN fleet_kind k ON k.id = s.kind
WHERE (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY g.serial COLLATE "C", h.name COLLATE "C", s.slot;
