/* sim_measure.h: one measurement of a simulated GPU in the test's own process: plan, source and
 * analysis, without worker and store. What the daemon's pipeline does, in twenty lines. */
#ifndef REACH_TESTS_SIM_SIM_MEASURE_H
#define REACH_TESTS_SIM_SIM_MEASURE_H

#include "base/rng.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"
#include "observe/observe.h"
#include "campaign/campaign.h"

/* Opens the simulated GPU that `text` describes, as sim_profiles_parse takes it; `*out` is for
 * gpu_close. `err` may be NULL. */
enum status sim_open(const char *text, struct gpu **out, struct err *err);

/* Makes one probe, checked before and judged after as the daemon does it, and adds it to `set`. */
enum status sim_probe(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec,
                      struct err *err);

enum { SIM_MEASURE_MAX_STEPS = 1000 };

/* Sees each step of the plan before it is carried out. */
typedef void (*sim_step_fn)(const struct observation_set *set, const struct campaign_step *step,
                            void *data);

struct sim_measure {
    struct observation_set set; /* owned: sim_measure_free */
    struct fingerprint fp;
    uint32_t steps;
    uint32_t probes;
    struct err err;
};

/* `text` as sim_profiles_parse takes it; `on_step` may be NULL. STATUS_INTERNAL where the plan does
 * not end. `*out` is to be freed whatever the status. */
enum status sim_measure(const char *text, enum depth depth, sim_step_fn on_step, void *data,
                        struct sim_measure *out);
/* The same beside neighbors that come and go: `texts` describe one chip, alone (the first) and
 * beside different neighbors; before each probe the neighbor changes with a chance of one in eight.
 * A probe that is not clean is asked again up to three times, as the daemon does it
 * (disturbance.h); STATUS_DISTURBED if it is never clean. */
enum { SIM_MEASURE_MAX_STATES = 4 };
enum status sim_measure_beside(const char *const *texts, uint32_t count, struct rng *rng,
                               enum depth depth, struct sim_measure *out);
void sim_measure_free(struct sim_measure *take);

#endif
