/* verify_probes.h: chooses probes that check, within a budget of time, that a stored fingerprint
 * still describes its chip. The functions are pure. analysis/check.h defines the tests.
 */
#pragma once

#include "campaign/campaign_step.h"
#include "fingerprint/fingerprint.h"

/* The estimated time of the probes, without the time to open the GPU. */
enum { CHECK_BUDGET_US = 35000 };

/* Writes a step: a warm-up, a probe for each level of the fingerprint, and rounds for its groups.
 * The number of rounds is at least one and otherwise limited by the budget. The step has no probes
 * if the fingerprint has no results that can be checked. */
void verify_probes(const struct fingerprint *fp, const struct gpu_limits *limits,
                   struct campaign_step *out);

/* Writes the step of a quick check: the same probes, and the probe of analysis/drift.h. The step
 * has a warm-up in any case, because clock and link are read after it. Returns the estimated time
 * of all probes on the device in microseconds. */
double verify_probes_quick(const struct fingerprint *fp, const struct gpu_limits *limits,
                           struct campaign_step *out);

/* Sets the SM of the probes if the fingerprint has no groups and so contains no SM ids. The SM is
 * the first one that `warm_up`, the result of the first probe of the step, has reported. */
void verify_probes_place(const struct fingerprint *fp, const struct probe_result *warm_up,
                         struct campaign_step *step);
