/* floorplan.h: from the measured groups, the full die. Pure; bounded work, a few milliseconds for
 * the largest GPU. docs/floorplan.md explains it.
 *
 * The method is Karnagel et al., Big Data causing Big (TLB) Problems, DaMoN 2017, section 4.2,
 * figures 7 and 12: insert the fewest hypothetical SMs that make the sharing pattern regular. Its
 * only input is which SMs share a level, in the order of the SM ids.
 */
#ifndef REACH_ANALYSIS_SHARING_FLOORPLAN_H
#define REACH_ANALYSIS_SHARING_FLOORPLAN_H

#include "fingerprint/fingerprint.h"

/* Fills nominal_group_sms, full_sm_count and disabled from the partition and the sizes of the
 * groups. `sm_count` is how many SMs the GPU has: with one of them in no group nothing is
 * concluded. What no regular die explains is "irregular"; what leaves no trace is not observable.
 * `topology` must hold what fingerprint_check allows. */
void floorplan_derive(uint32_t sm_count, struct topology *topology);

#endif
