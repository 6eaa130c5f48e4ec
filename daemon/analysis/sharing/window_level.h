/* window_level.h: finds the TLB level that limits the window of a group. The functions are pure.
 * The analysis, which reports this level, and the campaign, which measures throughput with it,
 * share the functions. */
#pragma once

#include "analysis/levels/level_estimate.h"
#include "analysis/sharing/sharing.h"

/* The levels and their sharing that the observations determine. */
struct structure {
    uint32_t level_count;
    struct level_estimate levels[LEVELS_MAX];
    struct sharing_estimate sharing[LEVELS_MAX]; /* results of both methods */
    enum shared_by shared_by[LEVELS_MAX];
    int window_level; /* index of the window level; -1 if there is none */
};

void structure_estimate(const struct observation_set *set, struct structure *out);
/* Fill in the two halves of `*out`: the levels, from CHASE probes, and their sharing, from ROUND
 * and PAIRS probes and the levels. */
void structure_levels(const struct observation_set *set, struct structure *out);
void structure_sharing(const struct observation_set *set, struct structure *out);

/* Returns the conclusion from a sharing estimate on a GPU with `sm_count` SMs. A level is private
 * to an SM if all SMs, or SHARING_SAMPLE pivots, evicted only themselves. */
enum shared_by sharing_derive(const struct sharing_estimate *s, uint32_t sm_count);
enum { SHARING_SAMPLE = 8 };

/* Returns the reach of one group in the window level. It is known once this level is refined. */
struct maybe_u64 structure_reach_bytes(const struct structure *s);
/* Returns the longest window that fits with any alignment of its base: the reach less one entry. */
struct maybe_u64 structure_recommended_bytes(const struct structure *s);
