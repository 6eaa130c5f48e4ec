/* line_reuse.c: see line_reuse.h. The lines are divided into heats by their number of reads, as
 * pages are in layout.c. Each heat has half of the lines that are not in the heats before it,
 * because a cache may hold less than a millionth of all lines. */
#include "planner/line_reuse.h"

#include "planner/heats.h"

#include <math.h>
#include <stdint.h>

enum { STEPS = 60 };

static const double COOLER = 0.5;

/* The share of the cache at which the search for the time that fills it ends. */
static const double FULL = 1 - 1e-6;

double line_reuse_misses(const struct line_reuse *r)
{
    struct heat heats[HEATS_MAX];
    const uint32_t count = heats_divide(r->concentration, COOLER, 2 / r->lines, HEATS_MAX, heats);
    double missed = 1;
    double held = 0; /* bytes in the cache after `time` reads */
    double time = 0;
    double first = 0; /* lines read in the first `time` reads, if the cache begins empty */

    /* Newton's method, as in layout.c: the misses become fewer, so no step goes beyond the end. */
    for (int i = 0; i < STEPS && held < r->cache_bytes * FULL; i++) {
        time += (r->cache_bytes - held) / (missed * r->kept_bytes + r->other_bytes);
        held = time * r->other_bytes;
        missed = 0;
        for (uint32_t k = 0; k < count; k++) {
            const double lines = heats[k].items * r->lines;
            const double gone = exp(-time * heats[k].accesses / lines);
            held += lines * (1 - gone) * r->kept_bytes;
            missed += heats[k].accesses * gone;
        }
        if (missed * r->kept_bytes + r->other_bytes <= 0)
            break; /* the cache holds all lines */
    }
    if (!(r->reads > 0))
        return missed;
    time = fmin(time, r->reads);
    for (uint32_t k = 0; k < count; k++)
        first += heats[k].items * r->lines *
                 (1 - exp(-time * heats[k].accesses / (heats[k].items * r->lines)));
    return (first + (r->reads - time) * missed) / r->reads;
}
