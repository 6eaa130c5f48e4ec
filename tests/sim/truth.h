/* truth.h: what a perfect measurement of a simulated GPU would say, worked out from the model
 * itself, and how a fingerprint compares with it: every number right, not sure, or wrong. */
#ifndef REACH_TESTS_SIM_TRUTH_H
#define REACH_TESTS_SIM_TRUTH_H

#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_desc.h"

struct truth_level {
    uint64_t entry_bytes;
    uint32_t fits;       /* most pages, an entry apart, that are walked round and round unmissed */
    uint32_t fits_alone; /* the same were all levels LRU: nearer ones then hide none of its pages */
    uint32_t nearly;     /* fewest of which 95 in 100 miss; 0: beyond the range */
    uint32_t saturated;  /* fewest that all miss; 0: beyond the range, or never */
    double penalty_cycles;
    /* Most that a step of this level can cost: where it does not stand apart from a neighbor, some
     * of the neighbor's misses come and go with it. As penalty_cycles where it does. */
    double most_cycles;
    bool lru;
    bool steady; /* this level and all nearer ones are: what is walked here is the same each time */
    enum shared_by shared_by;
    struct sm_partition sharing;
    /* Can be told apart from its neighbors, at a stride of one entry and at the stride of the
     * sweeps: begins to miss at twice the pages with which the nearer level always misses, and
     * misses always before half of what the farther one needs to begin; costs enough; fits the
     * range. */
    bool apart;
};

struct truth {
    uint32_t level_count;
    struct truth_level levels[SIM_MAX_LEVELS];
};

void truth_of(const struct sim_desc *desc, struct truth *out);

/* What a comparison found. */
struct truth_score {
    uint32_t right;
    uint32_t not_sure; /* fields without a value, and levels that are not there but stand apart */
    uint32_t wrong;
    char text[1024]; /* a line for each that is not right */
};

/* Compares all levels, their sharing, and the windows that follow from them. */
void truth_compare(const struct truth *truth, const struct fingerprint *fp,
                   struct truth_score *out);

#endif
