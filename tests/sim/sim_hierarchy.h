/* sim_hierarchy.h: the data caches of a simulated GPU, measured in the process of the test, with
 * the probes that the analysis requests, until it requests none. REACH_SHOW=1 prints the result. */
#ifndef REACH_TESTS_SIM_SIM_HIERARCHY_H
#define REACH_TESTS_SIM_SIM_HIERARCHY_H

#include "analysis/caches/hierarchy.h"

/* Changes the answer to a probe. */
typedef void (*sim_change_fn)(struct observation *o);

/* `text` is a description for sim_profiles_parse. The test fails if a probe fails, or if the
 * measurement does not end. */
void sim_hierarchy(const char *text, struct hierarchy_estimate *out);
/* The same, with `change` applied to each answer; NULL if there is no change. */
void sim_hierarchy_changed(const char *text, sim_change_fn change, struct hierarchy_estimate *out);

#endif
