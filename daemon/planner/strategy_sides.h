/* strategy_sides.h: computes the gain of a job if each SM reads only lines of its own side of the
 * L2, as a part of strategy_plan.c. The functions are pure, allocate nothing, and may be called on
 * any thread.
 *
 * The gain is the measured speed of random reads of a set of this length from the near side,
 * relative to reads from both sides. For a set beyond the longest measured set, both speeds are
 * extrapolated from the two longest sets. Without these measurements the strategy is not possible.
 * docs/planner.md ("Sides") has the details.
 */
#pragma once

#include "planner/strategy_cost.h"

/* The reason why the strategy is not possible. */
enum sides_obstacle {
    SIDES_POSSIBLE = 0,
    SIDES_NOT_KNOWN,    /* the sides are unknown; `missing` has the reason */
    SIDES_NOT_MEASURED, /* near reads of this size were not measured; `missing` has the reason */
    SIDES_NOT_READS,    /* atomics and writes were not measured by side */
    SIDES_MULTI_ALLOCATION, /* the job touches several allocations */
    SIDES_NO_BINDING,       /* work cannot be bound to SMs */
    SIDES_SINGLE_PASS,      /* every side scans the input, but the job can read it only once */
    SIDES_BEYOND_REACH,     /* translation is the limit and is the same on both sides */
    SIDES_FITS_L2           /* the set stays in the L2 if any SM reads it */
};

struct sides_cost {
    bool possible;
    enum sides_obstacle obstacle;
    struct maybe_f64 missing; /* reason why the gain is unknown */
    double gain;              /* throughput of near reads relative to reads from both sides */
    bool extrapolated;        /* the set is beyond the longest measured set */
    struct cost cost;
};

void sides_cost_read(const struct costing *c, bool in_reach, struct sides_cost *out);

/* Writes one sentence: what the strategy requires, or the reason why it is not possible. `gbps` is
 * the predicted speed. */
void sides_text(const struct costing *c, const struct sides_cost *sides, struct maybe_f64 gbps,
                char *out, size_t room);
