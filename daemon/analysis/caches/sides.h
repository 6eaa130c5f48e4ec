/* sides.h: whether the L2 has two sides, and the side of each SM. From SIDES observations. The
 * functions are pure.
 *
 * The L2 of large chips is in two parts, and a line lives in one of them, by a hash of its physical
 * address. An SM waits longer for a line of the other side. These lines are found in two steps:
 *
 *   fine   two SMs time lines side by side. If their cycles fall into two modes, the places where
 *          one line is near and the next one far are multiples of the granule.
 *   map    every SM times the same granules. All must see the same two sets of them, near and far
 *          exchanged on the other side.
 *
 * Results on which the two steps differ are unknown. Whether a line is near is relative to an SM,
 * and where a side lies in physical memory differs between allocations: so SMs have sides, and
 * addresses have none.
 */
#ifndef REACH_ANALYSIS_CACHES_SIDES_H
#define REACH_ANALYSIS_CACHES_SIDES_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* The reasons of absent numbers: one mode at every distance of lines (not observable, no-contrast);
 * modes that are not far enough apart, or SMs that do not distinguish the sets (no-contrast); two
 * modes that all SMs see alike, which are not sides (irregular); steps that contradict each other
 * (disagreement). */
struct sides_estimate {
    bool asks; /* a probe is missing; the result is then not final */
    struct probe_spec ask;
    struct fingerprint_l2 found;
};
void sides_estimate(const struct observation_set *set, struct sides_estimate *out);

/* Fills in out->l2; its values are "not measured" if a probe is missing. */
void sides_derive(const struct observation_set *set, struct fingerprint *out);

#endif
