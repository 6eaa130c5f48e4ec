/* reach_side_lists.h: the sides of the L2 on which the granules of a buffer live, from the cycles
 * that reach_sides.cuh has measured. The header works in C and C++
 * (tests/unit/clients/cuda/test_side_lists.c). The functions are pure, and any thread may call
 * them.
 *
 * Each granule is timed by an SM of either side, and lives on the side whose SM waits less. Both
 * times have the same constant parts, so the border between near and far is not needed.
 */
#ifndef REACH_SIDE_LISTS_H
#define REACH_SIDE_LISTS_H

#include "reach_ranges.h"

enum {
    REACH_NO_CYCLES = 0xffff, /* granule not timed yet; longer times count as REACH_NO_CYCLES - 1 */
    REACH_SIDE_BITS = 32,     /* granules per word of `bits` */
    REACH_SURE_DIVISOR = 4    /* a side is clear if times differ by (far - near) / this divisor */
};

/* The counts of both lists. */
struct reach_side_lists {
    uint64_t count[2]; /* granules of either side */
    uint64_t unsure;   /* granules among them whose times differ by too little */
    uint64_t untimed;  /* granules not timed from both sides, counted as side 0 */
};

/* Sorts `granules` granules by side. `cycles` has the SM cycles that SMs of side 0 measured for
 * each granule, and then the SM cycles that SMs of side 1 measured. `contrast_cycles` is far minus
 * near of this GPU (the fingerprint's l2). Writes the granules of side 0, ascending, and then of
 * side 1 to list[granules]. Writes one bit per granule, 1 for side 1, to bits[granules /
 * REACH_SIDE_BITS + 1]. */
static inline struct reach_side_lists reach_side_lists_make(const uint16_t *cycles,
                                                            uint64_t granules,
                                                            double contrast_cycles, uint32_t *list,
                                                            uint32_t *bits)
{
    struct reach_side_lists lists = {{0, 0}, 0, 0};
    uint64_t at[2];

    memset(bits, 0, (size_t)(granules / REACH_SIDE_BITS + 1) * sizeof *bits);
    for (uint64_t g = 0; g < granules; g++) {
        const double from0 = cycles[g];
        const double from1 = cycles[granules + g];
        const bool timed = cycles[g] != REACH_NO_CYCLES && cycles[granules + g] != REACH_NO_CYCLES;
        const double apart = from0 > from1 ? from0 - from1 : from1 - from0;
        const uint32_t side = timed && from1 < from0;

        lists.count[side]++;
        lists.untimed += !timed;
        lists.unsure += timed && !(apart * REACH_SURE_DIVISOR >= contrast_cycles);
        bits[g / REACH_SIDE_BITS] |= side << g % REACH_SIDE_BITS;
    }
    at[0] = 0;
    at[1] = lists.count[0];
    for (uint64_t g = 0; g < granules; g++)
        list[at[bits[g / REACH_SIDE_BITS] >> g % REACH_SIDE_BITS & 1]++] = (uint32_t)g;
    return lists;
}

/* Returns the part of a granule that lies in a buffer, which begins `lead_bytes` behind the start
 * of granule 0. Granules are ranges of addresses, so the first and the last may be cut. */
REACH_INLINE struct reach_extent reach_side_cut(uint64_t granule, uint64_t granule_bytes,
                                                uint64_t lead_bytes, uint64_t bytes)
{
    const uint64_t begin = granule * granule_bytes;
    const uint64_t end = begin + granule_bytes - lead_bytes;
    struct reach_extent part;

    part.first_byte = begin > lead_bytes ? begin - lead_bytes : 0;
    part.length_bytes = (end < bytes ? end : bytes) - part.first_byte;
    return part;
}

#endif
