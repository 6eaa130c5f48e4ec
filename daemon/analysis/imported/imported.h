/* imported.h: makes a fingerprint from published means. The functions are pure.
 *
 * mean_curve.c reads the curves, curve_levels.c makes levels of them, and mean_sharing.c finds
 * which SMs share a level. This module combines these results to a fingerprint. A number has the
 * same meaning as in a measurement.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Returns whether `set` contains observations of means. If so, use imported_derive, because the
 * analysis of single loads cannot read them. */
bool imported_is_in(const struct observation_set *set);

/* Fills in the results of the MEANS and MEAN_PAIRS of `set` (analysis.c has begun `out`). Values
 * that these means do not show are left unknown with the reason; steps that fit no level are
 * reported in the notes. May return STATUS_NO_MEMORY. */
enum status imported_derive(const struct observation_set *set, struct fingerprint *out,
                            struct err *err);
