/* imported.h: a fingerprint from means that others have published. Pure.
 *
 * mean_curve.c reads the curves, curve_levels.c makes levels of them, and mean_sharing.c finds
 * which SMs share a level. This module makes a fingerprint of them. Its numbers mean the same as in
 * a measurement.
 */
#ifndef REACH_ANALYSIS_IMPORTED_IMPORTED_H
#define REACH_ANALYSIS_IMPORTED_IMPORTED_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Is there any observation of means in `set`? Then imported_derive understands it, and the analysis
 * of single loads does not. */
bool imported_is_in(const struct observation_set *set);

/* Fills in what the MEANS and MEAN_PAIRS of `set` show (analysis.c has begun `out`). What they do
 * not show is left unknown with the reason; what fits no level is reported in the notes.
 * STATUS_NO_MEMORY. */
enum status imported_derive(const struct observation_set *set, struct fingerprint *out,
                            struct err *err);

#endif
