/* random_gpu.h: descriptions of simulated GPUs that do not exist. */
#ifndef REACH_TESTS_SIM_RANDOM_GPU_H
#define REACH_TESTS_SIM_RANDOM_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random_gpu_class {
    bool random_victims; /* policies other than LRU, in some levels */
    uint32_t most_levels;
};

/* Writes a description for sim_profiles_parse: one to most_levels levels; entries that are not
 * powers of two; sets that are equal, unequal, or one; all hashes; 8 to 160 SMs, their ids with
 * gaps. Each level is private, shared by all, or shared by 2 to 32 groups of unequal size with
 * scattered ids. A shared level stays shared further out. Noise is up to five cycles; outliers are
 * up to one load in a hundred. The same seed gives the same text. */
void random_gpu(uint64_t seed, const struct random_gpu_class *class, char *out, size_t out_size);

#endif
