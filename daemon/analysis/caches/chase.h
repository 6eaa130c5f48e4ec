/* chase.h: what the steps to find one private cache of an SM share (private_cache.c): what is known
 * of it so far, and the probes that walk it. Pure.
 */
#ifndef REACH_ANALYSIS_CACHES_CHASE_H
#define REACH_ANALYSIS_CACHES_CHASE_H

#include "analysis/caches/walks.h"

#define CHASE_NOISE_SHARE 0.02 /* of the loads of a footprint that fits */

enum {
    CHASE_SHARED_BYTES = 32 << 10, /* of shared memory that a probe asks for */
    CHASE_SWEEP_SAMPLES = 512,
    CHASE_REPEATS = 3, /* of a cycle that only needs to show whether it overflows */
    CHASE_MOST_REPEATS = 8,
    CHASE_VOTES = 24 /* of every line, to know a set by */
};

struct chase {
    struct cache_walks *w;
    enum probe_path path;
    struct cache_facts *out;
    struct hit_or_miss how;
    uint64_t fits_bytes, misses_bytes; /* the size is between */
    uint64_t sector_bytes, line_bytes;
    uint64_t sectors; /* that fit */
    uint32_t lines, ways, sets, block;
};

/* Loads by the chase's own path, warmed by two laps; without points. */
struct probe_spec chase_spec(const struct chase *c, uint64_t stride_bytes, uint32_t samples);

/* The points of n elements and this number of samples that give every element CHASE_VOTES;
 * CHASE_MOST_REPEATS at most. */
uint32_t chase_repeats(uint64_t n, uint32_t samples);

/* The share of n loads that take longer than `threshold`, in cycles. */
double chase_share_above(const uint32_t *row, uint32_t n, double threshold);
/* The same of point `p`, without its first lap (walks_row). */
double chase_slow_share(const struct observation *o, uint32_t p, double threshold);

/* c->line_bytes is certain. */
void chase_set_line(struct chase *c);

#endif
