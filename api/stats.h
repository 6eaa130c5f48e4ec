/* stats.h: what the server counts about itself, for /metrics. Used by the serving thread alone. */
#ifndef REACH_API_STATS_H
#define REACH_API_STATS_H

#include <stdint.h>

enum { STATS_CLASSES = 6 };

struct stats {
    int64_t started_at;              /* wall clock, seconds */
    uint64_t answers[STATS_CLASSES]; /* by the first digit of the HTTP status */
    uint64_t not_modified;           /* of those the 304s */
    uint64_t unauthorized;           /* and the 401s */
    uint64_t connections_cut;        /* for taking too long */
};

static inline void stats_count(struct stats *s, unsigned http_status)
{
    if (http_status < 100 * STATS_CLASSES)
        s->answers[http_status / 100]++;
    s->not_modified += http_status == 304;
    s->unauthorized += http_status == 401;
}

#endif
