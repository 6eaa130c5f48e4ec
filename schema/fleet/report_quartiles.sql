-- Quartiles of every metric. $1 survey, $2 model ('': all).
SELECT 'Quartiles of every metric',
       'model origin metric gpus:count min:real lower_quartile:real median:real upper_quartile:real max:real ' ||
       'deviation:real unknown:count not_observable:count',
       'Quartiles are values that were measured (nearest rank), the median is the mean of the two ' ||
       'middle ones, deviation is the median distance from it.';

SELECT k.model, k.origin, p.name, p.gpus, p.least, p.lower_quartile, p.median, p.upper_quartile, p.most,
       p.deviation, p.unknown, p.not_observable
FROM fleet_survey v
JOIN fleet_quartiles p ON p.survey = v.quartiles
JOIN fleet_kind k ON k.id = p.kind
WHERE v.id = $1 AND (CAST($2 AS TEXT) = '' OR k.model = $2)
ORDER BY k.model COLLATE "C", k.origin COLLATE "C", p.measured, p.place;
