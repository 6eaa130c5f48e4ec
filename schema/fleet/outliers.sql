-- Who differs, for survey $1, by the rule of daemon/compare/outlier.h: further outside the inner range of its kind
-- than six robust deviations (1.4826 times the median distance from the median) and than 5 % of the median. Three to
-- seven GPUs borrow the widest range and deviation, relative to the median, of the kinds of their origin that have
-- eight. What is so small or large that a ratio of it would not be a number counts as nothing.

INSERT INTO fleet_outlier (survey, fingerprint, series, value)
WITH lent AS (
    SELECT k.origin, p.name, MAX((p.inner_most - p.inner_least) / ABS(p.median)) AS width,
           MAX(CASE WHEN p.deviation > 1e-100 THEN p.deviation / ABS(p.median) ELSE 0 END) AS deviation
    FROM fleet_quartiles p JOIN fleet_kind k ON k.id = p.kind
    WHERE p.survey = $1 AND p.measured = 1 AND p.gpus >= 8 AND ABS(p.median) > 1e-100
    GROUP BY k.origin, p.name
), own AS (
    SELECT p.series, p.gpus, p.median, p.inner_least, p.inner_most, p.deviation,
           CASE WHEN ABS(p.median) > 1e-100 THEN ABS(p.median) ELSE 0 END AS size, l.width, l.deviation AS lent
    FROM fleet_quartiles p
    JOIN fleet_series s ON s.id = p.series AND s.judged = 1
    JOIN fleet_kind k ON k.id = p.kind
    LEFT JOIN lent l ON l.origin = k.origin AND l.name = p.name
    WHERE p.survey = $1 AND p.measured = 1 AND (p.gpus >= 8 OR p.gpus >= 3 AND l.width IS NOT NULL)
), spread AS (
    SELECT series, size,
           CASE WHEN gpus >= 8 OR inner_least < median - width * size THEN inner_least
                ELSE median - width * size END AS low,
           CASE WHEN gpus >= 8 OR inner_most > median + width * size THEN inner_most
                ELSE median + width * size END AS high,
           CASE WHEN gpus >= 8 OR deviation > lent * size THEN deviation ELSE lent * size END AS deviation
    FROM own
), bound AS (
    SELECT series, low, high, CASE WHEN 6 * 1.4826 * deviation > 0.05 * size THEN 6 * 1.4826 * deviation
                                   ELSE 0.05 * size END AS beyond
    FROM spread
)
SELECT CAST($1 AS INTEGER), v.fingerprint, v.series, v.value
FROM bound b CROSS JOIN fleet_metric v CROSS JOIN fleet_new_fleet f
WHERE v.series = b.series AND f.fingerprint = v.fingerprint
  AND (v.value < b.low - b.beyond OR v.value > b.high + b.beyond);

INSERT INTO fleet_drift (survey, fingerprint, place, series, before_value, after_value, change)
SELECT m.survey, c.fingerprint, c.place, c.series, c.before_value, c.after_value, c.change
FROM fleet_new_change c JOIN fleet_change m ON m.survey = $1 AND m.series = c.series
WHERE c.tracked = 1 AND m.gpus >= 8
  AND ABS(c.change - m.median) > 0.05
  AND ABS(c.change - m.median) > 6 * 1.4826 * m.deviation;
