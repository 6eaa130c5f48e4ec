/* chase.h: the state of the search for one private cache of an SM (private_cache.c), and the probes
 * that walk the cache. The functions are pure. */
#pragma once

#include "analysis/caches/walks.h"

#define CHASE_NOISE_SHARE 0.02 /* largest share of slow loads in a footprint that fits */

enum {
    CHASE_SHARED_BYTES = 32 << 10, /* bytes of shared memory that a probe requests */
    CHASE_SWEEP_SAMPLES = 512,
    CHASE_REPEATS = 3, /* repeats of a cycle that only needs to show whether it overflows */
    CHASE_MOST_REPEATS = 8,
    CHASE_VOTES = 24 /* votes that each line needs before a set is derived */
};

struct chase {
    struct cache_walks *w;
    enum probe_path path;
    struct cache_facts *out;
    struct hit_or_miss how;
    uint64_t fits_bytes, misses_bytes; /* the size is between the two */
    uint64_t sector_bytes, line_bytes;
    uint64_t sectors; /* number of sectors that fit */
    uint32_t lines, ways, sets, block;
};

/* Makes a spec of loads by the path of the chase, after two untimed laps. The spec has no
 * points. */
struct probe_spec chase_spec(const struct chase *c, uint64_t stride_bytes, uint32_t samples);

/* Returns the number of points of n elements, with `samples` loads each, that gives every element
 * CHASE_VOTES votes. It is at most CHASE_MOST_REPEATS. */
uint32_t chase_repeats(uint64_t n, uint32_t samples);

/* Returns the share of the loads of point `p` that take longer than `threshold`, in cycles. The
 * first lap does not count (walks_row). */
double chase_slow_share(const struct observation *o, uint32_t p, double threshold);

/* Writes c->line_bytes to c->out, because this length is certain. */
void chase_set_line(struct chase *c);
