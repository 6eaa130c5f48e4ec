-- Without it the plans are made for empty tables.
ANALYZE fleet_new_fleet, fleet_new_pair, fleet_metric, fleet_series, fleet_fingerprint, fleet_sighting;

-- Quartiles of the measured metrics for survey $1, and of their changes. 

INSERT INTO fleet_quartiles (survey, kind, measured, place, series, name, gpus, unknown, not_observable, least,
                          lower_quartile, median, upper_quartile, most)
SELECT CAST($1 AS INTEGER), s.kind, 1, s.place, s.id, s.name, q.gpus, q.rows - q.gpus - q.not_observable,
       q.not_observable, q.least, q.lower_quartile, q.median, q.upper_quartile, q.most
FROM (SELECT v.series, COUNT(*) AS rows, COUNT(v.value) AS gpus,
             COUNT(CASE WHEN v.absent = 'not_observable' THEN 1 END) AS not_observable,
             MIN(v.value) AS least, percentile_disc(0.25) WITHIN GROUP (ORDER BY v.value) AS lower_quartile,
             percentile_cont(0.5) WITHIN GROUP (ORDER BY v.value) AS median,
             percentile_disc(0.75) WITHIN GROUP (ORDER BY v.value) AS upper_quartile, MAX(v.value) AS most
      FROM fleet_metric v CROSS JOIN fleet_new_fleet f
      WHERE f.fingerprint = v.fingerprint
      GROUP BY v.series) q
JOIN fleet_series s ON s.id = q.series;

ANALYZE fleet_quartiles;

-- The ranks of outlier_rank (daemon/compare/outlier.h).
UPDATE fleet_quartiles
SET deviation = d.deviation,
    inner_least = CASE WHEN fleet_quartiles.gpus < 3 THEN fleet_quartiles.median ELSE d.inner_least END,
    inner_most = CASE WHEN fleet_quartiles.gpus < 3 THEN fleet_quartiles.median ELSE d.inner_most END
FROM (SELECT p.kind, p.place, percentile_cont(0.5) WITHIN GROUP (ORDER BY ABS(v.value - p.median)) AS deviation,
             percentile_disc(CASE WHEN p.gpus < 3 THEN 0.5 WHEN p.gpus < 20 THEN 1.5 / p.gpus
                                  ELSE (p.gpus / 10 + 0.5) / p.gpus END)
                 WITHIN GROUP (ORDER BY v.value) AS inner_least,
             percentile_disc(CASE WHEN p.gpus < 3 THEN 0.5 WHEN p.gpus < 20 THEN (p.gpus - 1.5) / p.gpus
                                  ELSE (p.gpus - p.gpus / 10 - 0.5) / p.gpus END)
                 WITHIN GROUP (ORDER BY v.value) AS inner_most
      FROM fleet_quartiles p CROSS JOIN fleet_metric v CROSS JOIN fleet_new_fleet f
      WHERE p.survey = $1 AND p.measured = 1 AND v.series = p.series AND f.fingerprint = v.fingerprint
      GROUP BY p.kind, p.place, p.gpus) d
WHERE fleet_quartiles.survey = $1 AND fleet_quartiles.measured = 1
  AND fleet_quartiles.kind = d.kind AND fleet_quartiles.place = d.place;

INSERT INTO fleet_change (survey, series, gpus, lower_quartile, median, upper_quartile)
SELECT CAST($1 AS INTEGER), series, COUNT(*), percentile_disc(0.25) WITHIN GROUP (ORDER BY change),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY change), percentile_disc(0.75) WITHIN GROUP (ORDER BY change)
FROM fleet_new_change GROUP BY series;

ANALYZE fleet_change;

UPDATE fleet_change SET deviation = d.deviation
FROM (SELECT c.series, percentile_cont(0.5) WITHIN GROUP (ORDER BY ABS(c.change - m.median)) AS deviation
      FROM fleet_new_change c JOIN fleet_change m ON m.survey = $1 AND m.series = c.series
      GROUP BY c.series) d
WHERE fleet_change.survey = $1 AND fleet_change.series = d.series;
