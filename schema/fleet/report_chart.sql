-- The chart of signatures as SVG, a line of it per row: a panel per kind, a bar per signature. For each kind
-- its 24 most common ones, and one bar for all others; the first 12 kinds. Bars have names and counts, so that
-- nothing depends on a color. A row is a template and what it names: texts {1}, {2}, {3}, and numbers with one
-- decimal {4} to {8}. $1 survey, $2 model ('': all).
WITH RECURSIVE found AS (
    SELECT c.kind, SUM(c.n) AS gpus, MAX(g.candidate_count) AS candidate_count,
           CASE WHEN g.signature IS NULL THEN '(no fingerprint)' WHEN g.signature = '' THEN '(not known)'
                ELSE g.signature END AS signature
    FROM (SELECT kind, signature, COUNT(*) AS n FROM fleet_sighting
          WHERE survey = $1 AND counted = 1 GROUP BY kind, signature) c
    LEFT JOIN fleet_signature g ON g.id = c.signature
    GROUP BY c.kind, g.signature
), ranked AS (
    SELECT k.model, CASE k.origin WHEN '' THEN 'unknown' WHEN 'simulated' THEN 'SIMULATED' ELSE k.origin END AS origin,
           f.gpus, f.signature, f.candidate_count,
           DENSE_RANK() OVER (ORDER BY k.model COLLATE "C", k.origin COLLATE "C") AS panel,
           ROW_NUMBER() OVER (PARTITION BY f.kind ORDER BY f.gpus DESC, f.signature COLLATE "C") AS place
    FROM found f JOIN fleet_kind k ON k.id = f.kind
    WHERE CAST($2 AS TEXT) = '' OR k.model = $2
), bar AS (
    SELECT panel, MIN(model) AS model, MIN(origin) AS origin, CASE WHEN place > 24 THEN 25 ELSE place END AS place,
           CASE WHEN MAX(place) > 24 THEN '(' || CAST(COUNT(*) AS TEXT) || ' others)'
                WHEN LENGTH(MIN(signature)) > 39 THEN SUBSTR(MIN(signature), 1, 36) || '...'
                ELSE MIN(signature) END AS label,
           CASE WHEN MAX(place) <= 24 AND MAX(candidate_count) <> 1 THEN ' *' ELSE '' END AS ambiguous,
           CAST(SUM(gpus) AS DOUBLE PRECISION) AS gpus, CAST(SUM(gpus) AS BIGINT) AS shown
    FROM ranked
    WHERE panel <= 12
    GROUP BY panel, CASE WHEN place > 24 THEN 25 ELSE place END
), panel AS ( -- 34 above the bars, 22 for each, 52 for the axis below
    SELECT panel, MIN(model) AS model, MIN(origin) AS origin, SUM(gpus) AS gpus, MAX(gpus) AS most,
           CAST(SUM(shown) AS BIGINT) AS shown, 22 * COUNT(*) AS height,
           10 + 86 * panel + SUM(22 * COUNT(*)) OVER (ORDER BY panel) - 22 * COUNT(*) AS top
    FROM bar GROUP BY panel
), scale (unit) AS (
    SELECT CAST(1 AS BIGINT) UNION ALL SELECT 10 * unit FROM scale WHERE unit < 1000000000
), step AS ( -- a round one, so that there are at most five
    SELECT p.panel, MIN(s.unit * f.column1) AS step
    FROM panel p CROSS JOIN scale s CROSS JOIN (VALUES (1), (2), (5)) f
    WHERE 5 * s.unit * f.column1 >= p.most
    GROUP BY p.panel
), head AS (
    SELECT v.id, v.at, (SELECT COUNT(*) FROM fleet_outcome o WHERE o.survey = v.id) AS hosts,
           (SELECT CAST(COALESCE(SUM(gpus), 0) AS BIGINT) FROM ranked) AS gpus,
           CASE WHEN NOT EXISTS (SELECT 1 FROM ranked WHERE origin = 'SIMULATED') THEN ''
                WHEN EXISTS (SELECT 1 FROM ranked WHERE origin NOT IN ('SIMULATED', 'unknown'))
                THEN '; simulated ones in panels of their own' ELSE '; all of them SIMULATED' END AS simulated,
           92 + (SELECT COALESCE(SUM(86 + height), 0) FROM panel) AS height,
           CASE WHEN EXISTS (SELECT 1 FROM ranked WHERE panel > 12)
                THEN '; more models than fit here: --model shows one' ELSE '' END AS more
    FROM fleet_survey v WHERE v.id = $1
), line AS (
    SELECT 0 AS panel, 0 AS part, n.column1 AS place, n.column2 AS template,
           CASE n.column1 WHEN 2 THEN CAST(v.height AS TEXT) WHEN 6 THEN v.at ELSE CAST(v.id AS TEXT) END AS a,
           CASE n.column1 WHEN 6 THEN CAST(v.id AS TEXT) ELSE '' END AS b,
           CAST(v.gpus AS TEXT) || ' GPUs of ' || CAST(v.hosts AS TEXT) || ' hosts' || v.simulated AS c,
           CAST(0 AS DOUBLE PRECISION) AS d, CAST(0 AS DOUBLE PRECISION) AS e,
           CAST(0 AS DOUBLE PRECISION) AS f, CAST(0 AS DOUBLE PRECISION) AS g,
           CAST(0 AS DOUBLE PRECISION) AS h
    FROM head v CROSS JOIN (VALUES
        (1, '<?xml version="1.0" encoding="UTF-8"?>'),
        (2, '<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{1}" viewBox="0 0 860 {1}" ' ||
            'font-family="sans-serif" font-size="12" role="img">'),
        (3, '<title>Signatures of disabled SMs, survey {1}</title>'),
        (4, '<rect width="100%" height="100%" fill="#fff"/>'),
        (5, '<text x="20" y="28" font-size="18" font-weight="bold">Signatures of the disabled SMs</text>'),
        (6, '<text x="20" y="48" fill="#555">survey {2} of {1}, {3}</text>')) n
    UNION ALL
    SELECT panel, 0, 0, '<text x="20" y="{5}" font-size="15" font-weight="bold">{1}, {2}: {3} GPUs</text>',
           model, origin, CAST(shown AS TEXT), 0, top - 16, 0, 0, 0
    FROM panel
    UNION ALL
    SELECT p.panel, 1, n.column1,
           '<line x1="{4}" y1="{5}" x2="{4}" y2="{6}" stroke="{2}"/>' ||
           '<text x="{4}" y="{7}" text-anchor="middle" fill="#555">{1}</text>',
           CAST(n.column1 * s.step AS TEXT), CASE n.column1 WHEN 0 THEN '#333' ELSE '#e4e4e4' END, '',
           250 + CAST(490 AS DOUBLE PRECISION) * (n.column1 * s.step) / p.most, p.top, p.top + p.height + 4,
           p.top + p.height + 18, 0
    FROM panel p JOIN step s ON s.panel = p.panel
    CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5)) n
    WHERE n.column1 * s.step <= p.most
    UNION ALL
    SELECT p.panel, 2, n.column1, n.column3, '', '', '', 0, p.top + p.height + n.column2, 0, 0, 0
    FROM panel p CROSS JOIN (VALUES
        (1, 36, '<text x="495" y="{5}" text-anchor="middle" fill="#555">GPUs</text>'),
        (2, 18, '<text x="242" y="{5}" text-anchor="end" fill="#555">signature of the disabled SMs</text>')) n
    UNION ALL
    SELECT p.panel, 3, b.place,
           '<text x="242" y="{5}" text-anchor="end">{1}</text>' ||
           '<rect x="250" y="{6}" width="{4}" height="16" fill="' ||
           CASE WHEN b.place = 25 THEN '#999' WHEN p.origin = 'SIMULATED' THEN '#b07a2a' ELSE '#2f6ea5' END ||
           '"><title>{1}: {2}</title></rect><text x="{7}" y="{5}">{2} ({8}%){3}</text>',
           b.label, CAST(b.shown AS TEXT), b.ambiguous, CAST(490 AS DOUBLE PRECISION) * b.gpus / p.most,
           p.top + 22 * b.place - 7, p.top + 22 * b.place - 19,
           250 + CAST(490 AS DOUBLE PRECISION) * b.gpus / p.most + 6,
           CAST(100 AS DOUBLE PRECISION) * b.gpus / p.gpus
    FROM panel p JOIN bar b ON b.panel = p.panel
    UNION ALL
    SELECT 13, 0, 0, '<text x="20" y="{5}" fill="#555">* several sets of SMs would leave this pattern{1}</text>',
           more, '', '', 0, height - 16, 0, 0, 0
    FROM head
    UNION ALL
    SELECT 13, 1, 0, '</svg>', '', '', '', 0, 0, 0, 0, 0
)
SELECT template, a, b, c, d, e, f, g, h FROM line ORDER BY panel, part, place;
