/* verify_probes.h: the probes of a check that a stored fingerprint still describes its chip, within
 * a budget of time. The functions are pure. The tests themselves are defined in analysis/check.h.
 */
#ifndef REACH_CAMPAIGN_VERIFY_PROBES_H
#define REACH_CAMPAIGN_VERIFY_PROBES_H

#include "campaign/campaign_step.h"
#include "fingerprint/fingerprint.h"

/* Estimated time of the probes alone; opening the GPU is not counted. */
enum { CHECK_BUDGET_US = 35000 };

/* A warm-up, a probe for each level of the fingerprint, and rounds for its groups within the
 * budget, at least one. There are no probes if the fingerprint has no results that can be
 * checked. */
void verify_probes(const struct fingerprint *fp, const struct gpu_limits *limits,
                   struct campaign_step *out);

/* A fingerprint without groups names no SM, and ids need not begin with 0. So its levels are
 * checked on an SM that the warm-up, the first probe of the step, has reported. */
void verify_probes_place(const struct fingerprint *fp, const struct probe_result *warm_up,
                         struct campaign_step *step);

#endif
