-- Who differs, for survey $1: further from the median than six robust deviations (1.4826 times the median
-- distance) and than a share of it. The share keeps steps of the measuring out: a penalty of ten cycles is
-- known to half a cycle, and where most chips have the same step there is no deviation at all. Fewer than
-- eight are not compared.

INSERT INTO fleet_outlier (survey, fingerprint, series, value)
SELECT p.survey, v.fingerprint, v.series, v.value
FROM fleet_spread p CROSS JOIN fleet_series s CROSS JOIN fleet_metric v CROSS JOIN fleet_new_fleet f
WHERE p.survey = $1 AND p.measured = 1 AND p.gpus >= 8 AND s.id = p.series AND s.judged = 1
  AND v.series = p.series AND f.fingerprint = v.fingerprint
  AND ABS(v.value - p.median) > 0.05 * ABS(p.median)
  AND ABS(v.value - p.median) > 6 * 1.4826 * p.deviation;

INSERT INTO fleet_drift (survey, fingerprint, place, series, before_value, after_value, change)
SELECT m.survey, c.fingerprint, c.place, c.series, c.before_value, c.after_value, c.change
FROM fleet_new_change c JOIN fleet_change m ON m.survey = $1 AND m.series = c.series
WHERE c.tracked = 1 AND m.gpus >= 8
  AND ABS(c.change - m.median) > 0.05
  AND ABS(c.change - m.median) > 6 * 1.4826 * m.deviation;
