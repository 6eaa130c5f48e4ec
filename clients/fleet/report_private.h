/* report_private.h: what the reports share. */
#ifndef REACH_CLIENTS_FLEET_REPORT_PRIVATE_H
#define REACH_CLIENTS_FLEET_REPORT_PRIVATE_H

#include "clients/fleet/keep_private.h"
#include "clients/fleet/report_out.h"

enum {
    REPORT_BRIEF_ROWS = 10, /* of each table of the summary */
    REPORT_MIN_FLEET = 8    /* GPUs, below which none is told from the others */
};
/* Robust deviations from the median, and the share of it, that an outlier is beyond. The share
 * keeps steps of the measuring out of it: a penalty of ten cycles is known to half a cycle, and
 * where most chips have the same step there is no deviation at all. */
#define REPORT_DEVIATIONS 6.0
#define REPORT_SHARE      0.05
/* The share that a number of a whole fleet has moved by: a median of many has no such steps. */
#define REPORT_FLEET_SHARE 0.01
/* Of the median absolute deviation, that makes it a standard deviation where the noise is normal.
 */
#define REPORT_MAD_SCALE 1.4826

struct report {
    struct fleet_db *db;
    struct report_out *to;
    char survey[FLEET_NUMBER_BYTES]; /* its number, as a parameter */
    const char *model;               /* "": all */
    bool brief;                      /* for the summary: the first rows, and how many more */
};

/* A kind is a model of one origin. */
struct report_kind {
    char id[FLEET_NUMBER_BYTES]; /* its row, as a parameter */
    char model[128];
    char origin[16];
    int64_t gpus; /* of it, that count */
};
enum { REPORT_MAX_KINDS = 1024 };
struct report_kinds {
    struct report_kind *kinds; /* owned; by model and origin */
    uint32_t count;
    bool more; /* than REPORT_MAX_KINDS: those are left out */
};
/* Those with fingerprints in this survey. Free `out->kinds`. */
enum status report_kinds(struct report *r, struct report_kinds *out, struct err *err);

/* For a callback: may this row be printed? In a brief report the first ones; the others are
 * counted. */
struct report_rows {
    struct report *r;
    uint64_t printed;
    uint64_t more;
};
bool report_rows_next(struct report_rows *rows);
/* Says in a note how many were left out, and ends the table. */
void report_rows_end(struct report_rows *rows, const char *which);

/* $1 survey, $2 model: model, origin, signature, GPUs with it, GPUs of that kind, candidates and
 * their number. A GPU without a fingerprint has null for a signature, and no origin. */
#define REPORT_SIGNATURES_SQL                                                                      \
    "SELECT k.model, k.origin, d.signature, d.n, SUM(d.n) OVER (PARTITION BY d.kind), "            \
    "d.candidates, d.candidate_count FROM (SELECT c.kind, g.signature, SUM(c.n) AS n, "            \
    "MIN(g.candidates) AS candidates, MAX(g.candidate_count) AS candidate_count "                  \
    "FROM (SELECT kind, signature, COUNT(*) AS n FROM fleet_sighting WHERE survey = $1 "           \
    "AND counted = 1 GROUP BY kind, signature) c "                                                 \
    "LEFT JOIN fleet_signature g ON g.id = c.signature GROUP BY c.kind, g.signature) d "           \
    "JOIN fleet_kind k ON k.id = d.kind WHERE CAST($2 AS TEXT) = '' OR k.model = $2 "              \
    "ORDER BY k.model COLLATE \"C\", k.origin COLLATE \"C\", d.n DESC, d.signature COLLATE \"C\""

/* A word for what is not there. */
const char *report_origin(const char *origin); /* "unknown" for "" */

enum status report_signatures(struct report *r, struct err *err);
enum status report_maps(struct report *r, struct err *err);
enum status report_spread(struct report *r, struct err *err);
enum status report_outliers(struct report *r, struct err *err);
enum status report_drift(struct report *r, struct err *err);
enum status report_hosts(struct report *r, struct err *err);
enum status report_boards(struct report *r, struct err *err);
/* The signatures as SVG, to `out`. */
enum status report_chart(struct report *r, const struct report_head *head, FILE *out,
                         struct err *err);

#endif
