/* detail.h: what depth full adds to the levels: sets, ways, replacement, fill, and what lies beyond
 * the last level. Pure; a part of analysis.c. */
#ifndef REACH_ANALYSIS_DETAIL_H
#define REACH_ANALYSIS_DETAIL_H

#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"

/* Fills in the levels of `out`, which must have their entries already. */
void detail_derive(const struct observation_set *set, const struct structure *s,
                   struct fingerprint *out);

/* Each group and each pair of groups for itself. Fills in out->topology, which must have its groups
 * and their miss penalties already. */
void detail_derive_groups(const struct observation_set *set, const struct structure *s,
                          struct fingerprint *out);

#endif
