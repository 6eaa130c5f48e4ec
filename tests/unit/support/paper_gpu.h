/* paper_gpu.h: a GPU on paper, for tests of the analysis and of plans of probes. The GPU answers
 * the four probes by formula, without a model of a TLB. A walk over `fits` entries has no misses, a
 * walk over `saturated` entries misses with every load, and in between the misses are linear. A
 * miss has a fixed penalty, and groups of SMs share a level. The analysis must return exactly the
 * numbers of the test. No simulator is used. */
#pragma once

#include "base/rng.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"
#include "campaign/campaign.h"

enum { PAPER_MAX_LEVELS = 4, PAPER_MAX_STEPS = 1000 };

struct paper_level {
    uint64_t entry_bytes;
    uint32_t fits;      /* largest number of entries that a cyclic walk reads without a miss */
    uint32_t saturated; /* smallest number of entries that all miss; more than `fits` */
    double penalty_cycles;
    uint16_t group_of_sm[REACH_MAX_SMS]; /* by position */
};

struct paper_gpu {
    uint32_t sm_count;
    uint16_t sm_ids[REACH_MAX_SMS]; /* ascending */
    double hit_cycles;
    double noise_cycles;  /* largest error of a load, uniform in both directions */
    double outlier_share; /* share of the loads that take up to 500 cycles more */
    struct rng rng;
    double plateau_gbps; /* throughput within the reach of the outermost level; beyond it is a
                            quarter */
    struct gpu_limits limits;
    uint64_t l2_cache_bytes;
    uint32_t level_count;
    struct paper_level levels[PAPER_MAX_LEVELS];
};

/* Makes a GPU of 12 SMs with ids 0 to 11. Level 1 has 16 entries of 2 MiB for each SM, and a
 * penalty of 20 cycles. Level 2 has 600 entries of 32 MiB for each group, and a penalty of 300
 * cycles. The groups are {0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}. There is no noise, and the
 * range is 256 GiB. */
void paper_gpu_init(struct paper_gpu *out);

/* Sets the sharing of a level: the SM at position i is in group i / size. */
void paper_gpu_share(struct paper_gpu *gpu, uint32_t level, uint32_t size);

/* Returns the partition of the SMs, by SM id, into the groups of a level. Groups are numbered by
 * their lowest id. */
void paper_gpu_partition(const struct paper_gpu *gpu, uint32_t level, struct sm_partition *out);

/* Answers one probe. The caller frees the result with observation_free. */
void paper_gpu_answer(struct paper_gpu *gpu, const struct probe_spec *spec,
                      struct observation *out);

/* Begins an empty set with this GPU and its limits. */
void paper_gpu_begin(const struct paper_gpu *gpu, struct observation_set *out);
/* Answers one probe and adds the answer to the set. */
void paper_gpu_ask(struct paper_gpu *gpu, const struct probe_spec *spec,
                   struct observation_set *set);

/* This function is called with each step of the plan before the step is carried out. */
typedef void (*paper_step_fn)(const struct observation_set *set, const struct campaign_step *step,
                              void *data);

/* Answers the requests of the plan until it requests no more or gives up. paper_begin must have
 * begun `set`. Fails the test if the plan does not end. */
enum status paper_gpu_measure(struct paper_gpu *gpu, enum depth depth, paper_step_fn on_step,
                              void *data, struct observation_set *set);

/* Returns REACH_SEED if it is set, otherwise `otherwise`. The seed is printed. */
uint64_t paper_seed(const char *what, uint64_t otherwise);
