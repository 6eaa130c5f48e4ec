/* floorplan.h: derives the full die from the measured groups. The function is pure, and takes at
 * most a few milliseconds for the largest GPU. docs/floorplan.md explains it.
 *
 * The method comes from Karnagel et al., Big Data causing Big (TLB) Problems, DaMoN 2017, section
 * 4.2, figures 7 and 12. It inserts the fewest hypothetical SMs that make the sharing pattern
 * regular. Its only input is the groups of SMs that share a level, in the order of the SM ids.
 */
#pragma once

#include "fingerprint/fingerprint.h"

/* Fills in nominal_group_sms, full_sm_count and disabled from the partition and the sizes of the
 * groups. `sm_count` is the number of SMs of the GPU; if one of them is in no group, nothing is
 * concluded. A pattern that no regular die explains is "irregular"; losses that leave no trace are
 * not observable. `topology` must be valid for fingerprint_check. */
void floorplan_derive(uint32_t sm_count, struct topology *topology);
