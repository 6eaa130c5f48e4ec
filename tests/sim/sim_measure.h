/* sim_measure.h: one measurement of a simulated GPU in the process of the test: campaign, source
 * and analysis, without worker and store. It is a short form of the pipeline of the daemon. */
#pragma once

#include "base/rng.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"
#include "observe/observe.h"
#include "campaign/campaign.h"

/* Opens the simulated GPU that `text` describes, in the syntax of sim_profiles_parse. The caller
 * closes `*out` with gpu_close. `err` may be NULL. */
enum status sim_open(const char *text, struct gpu **out, struct err *err);

/* Checks one probe, makes it, judges the answer like the daemon does, and adds the answer to `set`.
 */
enum status sim_probe(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec,
                      struct err *err);

enum { SIM_MEASURE_MAX_STEPS = 1000 };

/* This function is called before each step of the campaign is carried out. */
typedef void (*sim_step_fn)(const struct observation_set *set, const struct campaign_step *step,
                            void *data);

struct sim_measure {
    struct observation_set set; /* owned: sim_measure_free */
    struct fingerprint fp;
    uint32_t steps;
    uint32_t probes;
    struct err err;
};

/* Measures the GPU that `text` describes, in the syntax of sim_profiles_parse; `on_step` may be
 * NULL. Returns STATUS_INTERNAL if the campaign does not end. The caller frees `*out` after any
 * status. */
enum status sim_measure(const char *text, enum depth depth, sim_step_fn on_step, void *data,
                        struct sim_measure *out);
/* Measures like sim_measure, beside neighbors that come and go. `texts` describe one chip: the
 * first text without a neighbor, the others beside different neighbors. Before each probe the
 * neighbor changes with a probability of one in eight. A probe that is not clean is repeated up
 * to three times, like in the daemon (disturbance.h). Returns STATUS_DISTURBED if it is never
 * clean. */
enum { SIM_MEASURE_MAX_STATES = 4 };
enum status sim_measure_beside(const char *const *texts, uint32_t count, struct rng *rng,
                               enum depth depth, struct sim_measure *out);
void sim_measure_free(struct sim_measure *take);
