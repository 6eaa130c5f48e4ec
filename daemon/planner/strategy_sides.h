/* strategy_sides.h: the gain of a job if each SM reads only lines of its own side of the L2. The
 * functions are pure, allocate nothing, and may be called on any thread. Part of the planner.
 *
 * The gain is measured by random reads of a set of the same length, from the near side and from
 * both sides. Beyond the longest measured set, both are extrapolated from the two longest. Without
 * these measurements the strategy is not possible. docs/planner.md ("Sides").
 */
#ifndef REACH_PLANNER_STRATEGY_SIDES_H
#define REACH_PLANNER_STRATEGY_SIDES_H

#include "planner/strategy_cost.h"

/* The reason why the strategy is not possible. */
enum sides_obstacle {
    SIDES_POSSIBLE = 0,
    SIDES_NOT_KNOWN,        /* no sides are known; `missing` has the reason */
    SIDES_NOT_MEASURED,     /* no near reads of this size; `missing` has the reason */
    SIDES_NOT_READS,        /* atomics and writes were not measured by side */
    SIDES_MULTI_ALLOCATION, /* the job touches several allocations */
    SIDES_NO_BINDING,       /* work cannot be bound to SMs */
    SIDES_SINGLE_PASS,      /* every side scans the input, but the job can read it only once */
    SIDES_BEYOND_REACH,     /* translation is the limit, which sides do not change */
    SIDES_FITS_L2           /* the set fits the L2 for every SM */
};

struct sides_cost {
    bool possible;
    enum sides_obstacle obstacle;
    struct maybe_f64 missing; /* unknown, with the reason, if not measured */
    double gain;              /* measured near throughput relative to any */
    bool extrapolated;        /* the set is beyond the longest measured set */
    struct cost cost;
};

void sides_cost_read(const struct costing *c, bool in_reach, struct sides_cost *out);

/* One sentence: the requirements, or the reason why it is not possible. `gbps` is predicted. */
void sides_text(const struct costing *c, const struct sides_cost *sides, struct maybe_f64 gbps,
                char *out, size_t room);

#endif
