/* strategy_sides.h: what a job gains if each SM reads only what lives on its own side of the L2.
 * Pure; no allocation; any thread. Part of the planner.
 *
 * The gain is that of random reads of as long a set, near ones against any, as this GPU was
 * measured; beyond the longest measured set, on the lines through the two longest. Nothing else is
 * assumed: without such a measurement there is no such strategy. docs/planner.md ("Sides").
 */
#ifndef REACH_PLANNER_STRATEGY_SIDES_H
#define REACH_PLANNER_STRATEGY_SIDES_H

#include "planner/strategy_cost.h"

/* Why it is not possible. */
enum sides_obstacle {
    SIDES_POSSIBLE = 0,
    SIDES_NOT_KNOWN,    /* the sides, with `missing` */
    SIDES_NOT_MEASURED, /* near reads of this size, with `missing` */
    SIDES_NOT_READS,    /* atomics and writes were not measured by side */
    SIDES_SEVERAL,      /* several allocations */
    SIDES_NO_BINDING,   /* work cannot be bound to SMs */
    SIDES_NOT_TWICE,    /* every side scans the input, which the job says cannot be read again */
    SIDES_BEYOND_REACH, /* translation is the limit, which sides do not change */
    SIDES_STAYS_ANYWAY  /* so short a set stays in the L2 whoever reads it */
};

struct sides_cost {
    bool possible;
    enum sides_obstacle obstacle;
    struct maybe_f64 missing; /* unknown, with the reason */
    double gain;              /* near throughput over any, as measured */
    bool extrapolated;        /* beyond the longest measured set */
    struct cost cost;
};

void sides_cost_read(const struct costing *c, bool in_reach, struct sides_cost *out);

/* One sentence: what it takes, or why it is not possible. `gbps`: predicted. */
void sides_text(const struct costing *c, const struct sides_cost *sides, struct maybe_f64 gbps,
                char *out, size_t room);

#endif
