-- Quartiles of the numbers in the structure, for survey $1. A fleet has few structures, so its GPUs are
-- counted by structure; a quartile is the value up to which a quarter of the GPUs lie.

INSERT INTO fleet_quartiles (survey, kind, measured, place, name, gpus, unknown, not_observable, least,
                          lower_quartile, median, upper_quartile, most)
WITH used AS (
    SELECT kind, structure, COUNT(*) AS gpus FROM fleet_sighting
    WHERE survey = $1 AND counted = 1 AND structure IS NOT NULL
    GROUP BY kind, structure
), line AS (
    SELECT u.kind, u.structure, l.place, l.name, l.number, l.absent, u.gpus
    FROM used u JOIN fleet_structure_line l ON l.structure = u.structure
    WHERE l.number IS NOT NULL OR l.absent IS NOT NULL
), name AS (
    SELECT kind, name, MIN(structure * 1000 + place) AS place,
           SUM(CASE WHEN absent IS NULL THEN gpus ELSE 0 END) AS gpus,
           SUM(CASE WHEN absent = 'unknown' THEN gpus ELSE 0 END) AS unknown,
           SUM(CASE WHEN absent = 'not_observable' THEN gpus ELSE 0 END) AS not_observable
    FROM line GROUP BY kind, name
), value AS (
    SELECT kind, name, number,
           SUM(SUM(gpus)) OVER (PARTITION BY kind, name ORDER BY number) AS upto,
           SUM(SUM(gpus)) OVER (PARTITION BY kind, name) AS total
    FROM line WHERE number IS NOT NULL GROUP BY kind, name, number
), quartile AS (
    SELECT kind, name, MIN(number) AS least,
           MIN(CASE WHEN 4 * upto >= total THEN number END) AS lower_quartile,
           MIN(CASE WHEN 2 * upto >= total THEN number END) AS middle,
           MIN(CASE WHEN 2 * upto > total THEN number END) AS next_middle,
           MIN(CASE WHEN 4 * upto >= 3 * total THEN number END) AS upper_quartile,
           MAX(number) AS most
    FROM value GROUP BY kind, name
)
SELECT CAST($1 AS INTEGER), n.kind, 0, ROW_NUMBER() OVER (PARTITION BY n.kind ORDER BY n.place), n.name, n.gpus,
       n.unknown, n.not_observable, q.least, q.lower_quartile,
       q.middle + (q.next_middle - q.middle) / 2, q.upper_quartile, q.most
FROM name n LEFT JOIN quartile q ON q.kind = n.kind AND q.name = n.name;

UPDATE fleet_quartiles SET deviation = d.deviation
FROM (SELECT kind, name, MIN(CASE WHEN 2 * upto >= total THEN distance END) +
                         (MIN(CASE WHEN 2 * upto > total THEN distance END) -
                          MIN(CASE WHEN 2 * upto >= total THEN distance END)) / 2 AS deviation
      FROM (SELECT p.kind, p.name, ABS(l.number - p.median) AS distance,
                   SUM(SUM(u.gpus)) OVER (PARTITION BY p.kind, p.name ORDER BY ABS(l.number - p.median)) AS upto,
                   SUM(SUM(u.gpus)) OVER (PARTITION BY p.kind, p.name) AS total
            FROM (SELECT kind, structure, COUNT(*) AS gpus FROM fleet_sighting
                  WHERE survey = $1 AND counted = 1 AND structure IS NOT NULL
                  GROUP BY kind, structure) u
            JOIN fleet_structure_line l ON l.structure = u.structure AND l.number IS NOT NULL
            JOIN fleet_quartiles p ON p.survey = $1 AND p.kind = u.kind AND p.measured = 0 AND p.name = l.name
            GROUP BY p.kind, p.name, ABS(l.number - p.median)) w
      GROUP BY kind, name) d
WHERE fleet_quartiles.survey = $1 AND fleet_quartiles.measured = 0
  AND fleet_quartiles.kind = d.kind AND fleet_quartiles.name = d.name;
