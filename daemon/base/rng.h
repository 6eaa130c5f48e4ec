/* rng.h: draws random numbers by SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
 * Number Generators, 2014). The sequence is repeatable: the caller seeds it, and there is no global
 * state. The numbers are not for secrets. */
#pragma once

#include <stdint.h>

struct rng {
    uint64_t state; /* any value is a good seed */
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns a uniform integer in [0, bound), bound >= 1. The bias is below bound / 2^64. */
static inline uint64_t rng_below(struct rng *r, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)rng_next(r) * bound) >> 64);
}

/* Returns a uniform number in [0, 1). */
static inline double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1.0p-53;
}
