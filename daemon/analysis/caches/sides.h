/* sides.h: finds from SIDES observations whether the L2 has two sides, and the side of each SM. The
 * functions are pure.
 *
 * The L2 of large chips is in two parts, and a line is kept in one of them, by a hash of its
 * physical address. An SM waits longer for a line of the other side. These lines are found in two
 * steps:
 *
 *   fine   two SMs time neighboring lines. If their cycles fall into two modes, the places at
 *          which one line is near and the next one far are multiples of the granule.
 *   map    every SM times the same granules. All SMs must find the same two sets of granules; near
 *          and far are exchanged on the other side.
 *
 * Results on which the two steps differ are unknown. A line is near or far relative to an SM, and
 * the places of a side in physical memory differ between allocations. So SMs have sides, and
 * addresses have none.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Numbers are not observable (no-contrast) if there is one mode at every distance of lines. They
 * are unknown if the modes are not far enough apart, or if SMs do not distinguish the sets
 * (no-contrast). They are also unknown if the steps contradict each other (disagreement), or if two
 * modes are the same for all SMs and so are not sides (irregular). */
struct sides_estimate {
    bool asks; /* a probe is missing; the result is then not final */
    struct probe_spec ask;
    struct fingerprint_l2 found;
};
void sides_estimate(const struct observation_set *set, struct sides_estimate *out);

/* Fills in out->l2; its values are "not measured" if a probe is missing. */
void sides_derive(const struct observation_set *set, struct fingerprint *out);
