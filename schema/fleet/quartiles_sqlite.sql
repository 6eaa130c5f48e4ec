-- Quartiles of the measured metrics for survey $1, and of their changes. db_sqlite.c defines lower_quartile,
-- median, upper_quartile, mad, the median distance from the median, and the ends of the inner range; with window functions this takes twenty
-- times as long. The joins are written in the order in which they are to be made: by series, so that groups need
-- no sorting.

INSERT INTO fleet_quartiles (survey, kind, measured, place, series, name, gpus, unknown, not_observable, least,
                          lower_quartile, median, upper_quartile, most, deviation, inner_least, inner_most)
SELECT CAST($1 AS INTEGER), s.kind, 1, s.place, s.id, s.name, q.gpus, q.rows - q.gpus - q.not_observable,
       q.not_observable, q.least, q.lower_quartile, q.median, q.upper_quartile, q.most, q.deviation,
       q.inner_least, q.inner_most
FROM (SELECT v.series, COUNT(*) AS rows, COUNT(v.value) AS gpus,
             COUNT(CASE WHEN v.absent = 'not_observable' THEN 1 END) AS not_observable,
             MIN(v.value) AS least, lower_quartile(v.value) AS lower_quartile,
             median(v.value) AS median,
             upper_quartile(v.value) AS upper_quartile, MAX(v.value) AS most, mad(v.value) AS deviation,
             inner_least(v.value) AS inner_least, inner_most(v.value) AS inner_most
      FROM fleet_metric v CROSS JOIN fleet_new_fleet f
      WHERE f.fingerprint = v.fingerprint
      GROUP BY v.series) q
JOIN fleet_series s ON s.id = q.series;

INSERT INTO fleet_change (survey, series, gpus, lower_quartile, median, upper_quartile, deviation)
SELECT CAST($1 AS INTEGER), series, COUNT(*), lower_quartile(change),
       median(change), upper_quartile(change), mad(change)
FROM fleet_new_change GROUP BY series;
