/* truth.h: computes the result of a perfect measurement of a simulated GPU from the model, and
 * compares it with a fingerprint. Every number of the fingerprint is right, not sure, or wrong. */
#pragma once

#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_desc.h"

struct truth_level {
    uint64_t entry_bytes;
    uint32_t fits; /* largest number of pages, at a stride of an entry, that a cyclic walk reads
                      without a miss */
    uint32_t fits_alone; /* the same number if all levels were LRU, so that nearer levels hide none
                            of the pages */
    uint32_t nearly; /* smallest number of pages of which 95 in 100 miss; 0 if it is out of range */
    uint32_t saturated; /* smallest number of pages that all miss; 0 if it is out of range, or if
                           they never all miss */
    double penalty_cycles;
    double least_cycles; /* penalty_cycles, or less if the SM clock becomes lower */
    /* Highest cost that a step of this level can show. If the level is distinct from its neighbors,
     * this cost equals penalty_cycles. Otherwise the cost includes misses of a neighbor. */
    double most_cycles;
    bool lru;
    bool steady; /* whether this level and all nearer ones are deterministic, so that a walk gives
                    the same result each time */
    enum shared_by shared_by;
    struct sm_partition sharing;
    /* Whether the level is distinct from its neighbors, at a stride of one entry and at the stride
     * of the sweeps. It begins to miss at twice the pages with which the nearer level always
     * misses, or later. It always misses at half of the pages at which the farther level begins to
     * miss. Its penalty is large enough, and the walks fit the range. */
    bool apart;
};

struct truth {
    uint32_t level_count;
    struct truth_level levels[SIM_MAX_LEVELS];
};

void truth_of(const struct sim_desc *desc, struct truth *out);

/* The result of a comparison. */
struct truth_score {
    uint32_t right;
    uint32_t not_sure; /* number of fields without a value */
    uint32_t wrong;
    char text[1024]; /* one line for each field that is not right */
};

/* Compares all levels, their sharing, and the windows that follow from them. */
void truth_compare(const struct truth *truth, const struct fingerprint *fp,
                   struct truth_score *out);
