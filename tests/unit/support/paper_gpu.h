/* paper_gpu.h: a GPU on paper, for tests of analysis and plan. It answers the four probes by
 * formula, without a model of a TLB: a number of entries fits, with a number more every load
 * misses, in between a straight line; a miss costs this; these SMs share. What a test puts in is
 * what analysis must give back, and no simulator stands between the two.
 */
#ifndef REACH_TESTS_PAPER_GPU_H
#define REACH_TESTS_PAPER_GPU_H

#include "base/rng.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"
#include "campaign/campaign.h"

enum { PAPER_MAX_LEVELS = 4, PAPER_MAX_STEPS = 1000 };

struct paper_level {
    uint64_t entry_bytes;
    uint32_t fits;      /* entries walked round and round without a miss */
    uint32_t saturated; /* fewest entries of which all miss; above fits */
    double penalty_cycles;
    uint16_t group_of_sm[REACH_MAX_SMS]; /* by position */
};

struct paper_gpu {
    uint32_t sm_count;
    uint16_t sm_ids[REACH_MAX_SMS]; /* ascending */
    double hit_cycles;
    double noise_cycles;  /* uniform, plus or minus */
    double outlier_share; /* of the loads that take up to 500 cycles more */
    struct rng rng;
    double plateau_gbps; /* within the reach of the outermost level; a quarter beyond */
    struct gpu_limits limits;
    uint64_t l2_cache_bytes;
    uint32_t level_count;
    struct paper_level levels[PAPER_MAX_LEVELS];
};

/* 12 SMs, ids 0 to 11; 16 entries of 2 MiB for each SM, 20 cycles; 600 of 32 MiB for each of the
 * groups {0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}, 300 cycles; no noise; a range of 256 GiB. */
void paper_gpu_init(struct paper_gpu *out);

/* How the SMs of a level share: SM at position i is in group i / size. */
void paper_gpu_share(struct paper_gpu *gpu, uint32_t level, uint32_t size);

/* The partition that a level's groups make, by SM id, groups numbered by their lowest id. */
void paper_gpu_partition(const struct paper_gpu *gpu, uint32_t level, struct sm_partition *out);

/* Answers one probe. The result is owned by the caller (observation_free). */
void paper_gpu_answer(struct paper_gpu *gpu, const struct probe_spec *spec,
                      struct observation *out);

/* An empty set that names this GPU and its limits. */
void paper_gpu_begin(const struct paper_gpu *gpu, struct observation_set *out);
/* Answers and adds. */
void paper_gpu_ask(struct paper_gpu *gpu, const struct probe_spec *spec,
                   struct observation_set *set);

/* Sees each step of the plan before it is carried out. */
typedef void (*paper_step_fn)(const struct observation_set *set, const struct campaign_step *step,
                              void *data);

/* Asks the plan and answers until nothing is left, or it gives up. `set` must have begun. Fails the
 * test where the plan does not end. */
enum status paper_gpu_measure(struct paper_gpu *gpu, enum depth depth, paper_step_fn on_step,
                              void *data, struct observation_set *set);

/* REACH_SEED where it is set, `otherwise` where it is not; printed either way. */
uint64_t paper_seed(const char *what, uint64_t otherwise);

#endif
