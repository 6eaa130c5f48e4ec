/* bench_files.h: files as the public TLB benchmark writes them, for GPUs that do not exist. A test
 * knows what the made-up GPU has; what the import says must be that, or "not sure".
 *
 * A level is sets of ways. A walk round n pages loses every entry of a set that has more of them
 * than ways (least recently used, always the wrong one), so the mean latency of a walk follows by
 * counting, and no simulator stands between the two.
 */
#ifndef REACH_TESTS_BENCH_FILES_H
#define REACH_TESTS_BENCH_FILES_H

#include "base/rng.h"
#include "import/import.h"

#include <stdbool.h>
#include <stddef.h>

enum { BENCH_MAX_LEVELS = 4, BENCH_MAX_SETS = 256, BENCH_MAX_FILES = 12 };

struct bench_level {
    uint64_t entry_kib;
    uint32_t sets;
    uint32_t ways;       /* of all sets but the first */
    uint32_t first_ways; /* of the first: Mei 2016 found one larger */
    bool plain_index;    /* the set is the entry's number; else pages fill the sets in turn */
    double penalty_cycles;
    uint16_t group_of_sm[64];
};

struct bench_gpu {
    uint32_t level_count;
    struct bench_level levels[BENCH_MAX_LEVELS];
    double hit_cycles;
    uint64_t base_kib;    /* where the allocation starts, modulo an entry */
    double noise_cycles;  /* one sigma of every number */
    double outlier_share; /* of numbers that are higher by up to 40 cycles */
    uint32_t sm_count;
    double sharing_offset; /* the sharing test reads so much higher */
    struct rng rng;
};

/* Any GPU that a benchmark might meet. */
void bench_gpu_random(struct rng *rng, struct bench_gpu *out);

/* Most entries that a walk at a stride of one entry holds without a miss. */
uint32_t bench_level_entries(const struct bench_gpu *gpu, uint32_t level);
/* Mean cycles of one load of a walk round `pages` pages, without noise. */
double bench_mean(const struct bench_gpu *gpu, uint64_t stride_kib, uint64_t pages);

/* A file, owned: bench_files_free. */
struct bench_files {
    size_t count;
    char names[BENCH_MAX_FILES][64];
    struct import_file files[BENCH_MAX_FILES];
};
/* A curve file like `tlb-bench from to stride_from stride_to` writes; adds it. */
void bench_curves(struct bench_gpu *gpu, uint64_t from_mib, uint64_t to_mib, uint64_t first_kib,
                  uint64_t last_kib, struct bench_files *out);
/* A sharing file like `tlb-sharing stride pages` writes; adds it. */
void bench_sharing(struct bench_gpu *gpu, uint64_t stride_kib, uint32_t pages,
                   struct bench_files *out);
void bench_files_free(struct bench_files *take);

#endif
