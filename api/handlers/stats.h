/* stats.h: counters of the HTTP server, for /metrics. Several servers may share the counters, and
 * any thread may change them.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { STATS_CLASSES = 6 };

/* The caller initializes the struct to zero and sets started_at. */
struct stats {
    int64_t started_at;                      /* wall clock, seconds; does not change */
    _Atomic uint64_t answers[STATS_CLASSES]; /* answers by the first digit of the HTTP status */
    _Atomic uint64_t not_modified;           /* number of 304 answers */
    _Atomic uint64_t unauthorized;           /* number of 401 answers */
    _Atomic uint64_t connections_timed_out;  /* connections closed for taking too long */
    _Atomic uint64_t connections;            /* open now */
};

static inline void stats_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void stats_count(struct stats *s, unsigned http_status)
{
    if (http_status < 100 * STATS_CLASSES)
        stats_add(&s->answers[http_status / 100], 1);
    if (http_status == 304)
        stats_add(&s->not_modified, 1);
    if (http_status == 401)
        stats_add(&s->unauthorized, 1);
}
