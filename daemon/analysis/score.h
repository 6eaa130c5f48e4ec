/* score.h: the evidence of each number of a fingerprint (fingerprint/evidence.h), from what the
 * analysis has used. Pure. Only what is known gets any. docs/methods.md says method by method what
 * repeats and margin are.
 */
#ifndef REACH_ANALYSIS_SCORE_H
#define REACH_ANALYSIS_SCORE_H

#include "analysis/imported/curve_levels.h"
#include "analysis/structure/sectored.h"
#include "analysis/levels/levels.h"
#include "analysis/imported/mean_sharing.h"
#include "analysis/structure/sets.h"
#include "analysis/sharing/sharing.h"
#include "fingerprint/fingerprint.h"

/* The numbers of `out` must have been filled in. */
void score_level(const struct level_estimate *level, const struct sharing_estimate *sharing,
                 struct tlb_level *out);
void score_detail(const struct sets_estimate *sets, const struct sectored_estimate *fill,
                  struct tlb_level *out);
/* The groups and what their SMs lost, which come out of the same votes. */
void score_groups(struct evidence sharing, struct topology *out);

/* The same from published means. */
void score_curve_level(const struct curve_level *level, const struct mean_sharing *sharing,
                       struct tlb_level *out);
struct evidence score_mean_sharing(const struct mean_sharing *sharing);

#endif
