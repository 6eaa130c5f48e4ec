/* random_gpu.h: descriptions of simulated GPUs that do not exist. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random_gpu_class {
    bool random_victims; /* whether some levels have policies other than LRU */
    uint32_t most_levels;
};

/* Writes a description for sim_profiles_parse. It has one to most_levels levels, and 8 to 160 SMs
 * whose ids have gaps. The numbers of entries are not powers of two. Levels have equal sets,
 * unequal sets or one set, and use any hash. Each level is private, shared by all SMs, or shared by
 * 2 to 32 groups of unequal size with scattered ids. Behind a shared level all levels are shared.
 * Noise is up to five cycles, and at most one load in a hundred is an outlier. The same seed gives
 * the same text. */
void random_gpu(uint64_t seed, const struct random_gpu_class *class, char *out, size_t out_size);
