/* sim_hierarchy.h: the data caches of a simulated GPU, measured in the test's own process: the
 * probes that the analysis asks for, until it asks for none. REACH_SHOW=1 prints what was found. */
#ifndef REACH_TESTS_SIM_SIM_HIERARCHY_H
#define REACH_TESTS_SIM_SIM_HIERARCHY_H

#include "analysis/caches/hierarchy.h"

/* Changes the answer to a probe. */
typedef void (*sim_change_fn)(struct observation *o);

/* `text` as sim_profiles_parse takes it. The test fails if a probe does, or if there is no end. */
void sim_hierarchy(const char *text, struct hierarchy_estimate *out);
/* The same, with `change` applied to each answer; NULL: none. */
void sim_hierarchy_changed(const char *text, sim_change_fn change, struct hierarchy_estimate *out);

#endif
