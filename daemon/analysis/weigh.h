/* weigh.h: the evidence of each number of a fingerprint (fingerprint/evidence.h), from what the
 * analysis has used. Pure. Only what is known gets any. docs/methods.md says method by method what
 * repeats and margin are.
 */
#ifndef REACH_ANALYSIS_WEIGH_H
#define REACH_ANALYSIS_WEIGH_H

#include "analysis/curve_levels.h"
#include "analysis/fill.h"
#include "analysis/levels.h"
#include "analysis/mean_sharing.h"
#include "analysis/sets.h"
#include "analysis/sharing.h"
#include "fingerprint/fingerprint.h"

/* The numbers of `out` must have been filled in. */
void weigh_level(const struct level_estimate *level, const struct sharing_estimate *sharing,
                 struct tlb_level *out);
void weigh_detail(const struct sets_estimate *sets, const struct fill_estimate *fill,
                  struct tlb_level *out);
/* The groups and what their SMs lost, which come out of the same votes. */
void weigh_groups(struct evidence sharing, struct topology *out);

/* The same from published means. */
void weigh_curve_level(const struct curve_level *level, const struct mean_sharing *sharing,
                       struct tlb_level *out);
struct evidence weigh_mean_sharing(const struct mean_sharing *sharing);

#endif
