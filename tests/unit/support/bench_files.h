/* bench_files.h: files in the format of the public TLB benchmark, for GPUs that do not exist. A
 * test has the numbers of the invented GPU. The results of the import must equal these numbers, or
 * be "not sure".
 *
 * A level has sets of ways. The least recently used entry is replaced, so a cyclic walk loses every
 * entry of a set that has more entries than ways. So the mean latency of a walk is computed by
 * counting, without a simulator.
 */
#pragma once

#include "base/rng.h"
#include "import/import.h"

#include <stdbool.h>
#include <stddef.h>

enum { BENCH_MAX_LEVELS = 4, BENCH_MAX_SETS = 256, BENCH_MAX_FILES = 12 };

struct bench_level {
    uint64_t entry_kib;
    uint32_t sets;
    uint32_t ways; /* number of ways of all sets except the first */
    uint32_t
        first_ways; /* number of ways of the first set, because Mei 2016 found a larger first set */
    bool plain_index; /* the number of the set is the number of the entry modulo the sets; otherwise
                         pages fill the sets in turn */
    double penalty_cycles;
    uint16_t group_of_sm[64];
};

struct bench_gpu {
    uint32_t level_count;
    struct bench_level levels[BENCH_MAX_LEVELS];
    double hit_cycles;
    uint64_t base_kib;    /* start address of the allocation, modulo the size of an entry */
    double noise_cycles;  /* standard deviation of every number */
    double outlier_share; /* share of numbers that are up to 40 cycles higher */
    uint32_t sm_count;
    double sharing_offset; /* amount by which the sharing test reads higher */
    struct rng rng;
};

/* Draws a random GPU that a benchmark might measure. */
void bench_gpu_random(struct rng *rng, struct bench_gpu *out);

/* Returns the largest number of entries that a walk at a stride of one entry reads without a
 * miss. */
uint32_t bench_level_entries(const struct bench_gpu *gpu, uint32_t level);
/* Returns the mean cycles per load of a cyclic walk over `pages` pages, without noise. */
double bench_mean(const struct bench_gpu *gpu, uint64_t stride_kib, uint64_t pages);

/* Files that are owned; the caller frees them with bench_files_free. */
struct bench_files {
    size_t count;
    char names[BENCH_MAX_FILES][64];
    struct import_file files[BENCH_MAX_FILES];
};
/* Adds a curve file like the output of `tlb-bench from to stride_from stride_to`. */
void bench_curves(struct bench_gpu *gpu, uint64_t from_mib, uint64_t to_mib, uint64_t first_kib,
                  uint64_t last_kib, struct bench_files *out);
/* Adds a sharing file like the output of `tlb-sharing stride pages`. */
void bench_sharing(struct bench_gpu *gpu, uint64_t stride_kib, uint32_t pages,
                   struct bench_files *out);
void bench_files_free(struct bench_files *take);
