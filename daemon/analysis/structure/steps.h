/* steps.h: what happens to the set of misses as a cycle grows page by page. Pure; a part of sets.c,
 * whose header says what the steps mean. */
#ifndef REACH_ANALYSIS_STRUCTURE_STEPS_H
#define REACH_ANALYSIS_STRUCTURE_STEPS_H

#include "analysis/structure/traces.h"

enum { STEPS_MAX_CYCLES = 320 /* of one level */ };

/* One cycle, and which of its pages miss. */
struct cycle {
    uint64_t pages;
    struct trace trace;
};

struct steps {
    bool broken; /* something that no level can do that evicts the oldest */
    uint32_t count;
    uint32_t size[STEPS_MAX_CYCLES]; /* pages that joined the misses: ways + 1 */
    uint64_t first_at;               /* pages of the cycle at the first */
};

/* How many pages join the misses between two cycles that differ by one page; -1 where that cannot
 * be: pages join without the new one, or one leaves. */
int steps_joined(const struct cycle *before, const struct cycle *after);

/* The steps of `count` cycles that follow each other page by page; the first must not miss. */
void steps_find(const struct cycle *cycles, uint32_t count, struct steps *out);

/* Is the first step unlike all others? */
bool steps_first_is_special(const struct steps *steps);
/* Do all steps but the first join as many pages? */
bool steps_others_are_equal(const struct steps *steps);

#endif
