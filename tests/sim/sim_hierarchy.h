/* sim_hierarchy.h: measures the data caches of a simulated GPU in the process of the test. It makes
 * the probes that the analysis requests, until the analysis requests no more. REACH_SHOW=1 prints
 * the result. */
#pragma once

#include "analysis/caches/hierarchy.h"

/* Changes the answer to a probe. */
typedef void (*sim_change_fn)(struct observation *o);

/* Measures the GPU that `text` describes, in the syntax of sim_profiles_parse. The test fails if a
 * probe fails, or if the measurement does not end. */
void sim_hierarchy(const char *text, struct hierarchy_estimate *out);
/* Measures like sim_hierarchy, but applies `change` to each answer; NULL means no change. */
void sim_hierarchy_changed(const char *text, sim_change_fn change, struct hierarchy_estimate *out);
