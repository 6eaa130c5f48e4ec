/* sim_recent.h: the translations that missed last in one instance of a level, in order of use. They
 * stay beside the sets and answer like them. H100 and H200 keep 16 in each group, which is also the
 * number of misses in flight of a group (docs/lab.md).
 *
 * They form a ring, with the newest first. Most touches hit none of these translations and move at
 * most the begin of the ring. The ring is private to sim_tlb.c.
 */
#pragma once

#include "gpu/sim/sim_desc.h"

#include <stdbool.h>
#include <stdint.h>

enum { RECENT_QUAD = 4 };
_Static_assert(SIM_MAX_RECENT % RECENT_QUAD == 0, "whole vectors");

typedef uint32_t recent_quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t recent_halves __attribute__((vector_size(16)));

/* The ring is empty if all members are zero. An empty slot is 0, which is not a valid tag. */
struct sim_recent {
    uint32_t newest;
    uint32_t tag[SIM_MAX_RECENT];
};

/* Returns whether the ring has `tag`. `count` translations are kept; the slots behind them stay
 * empty. */
static inline bool recent_has(const struct sim_recent *r, uint32_t count, uint32_t tag)
{
    recent_quad equal = {0};
    for (uint32_t i = 0; i < count; i += RECENT_QUAD)
        equal |= (recent_quad)(*(const recent_quad *)(r->tag + i) == tag);
    const recent_halves halves = (recent_halves)equal;
    return (halves[0] | halves[1]) != 0;
}

/* If `missed` is set, replaces the oldest translation by `tag`, which must not be in the ring. No
 * branch depends on `missed`. */
static inline void recent_add(struct sim_recent *r, uint32_t count, uint32_t tag, bool missed)
{
    const uint32_t before = (r->newest == 0 ? count : r->newest) - 1;
    const uint32_t at = missed ? before : r->newest;
    r->tag[at] = missed ? tag : r->tag[at];
    r->newest = at;
}

/* Makes `tag`, which must be in the ring, the newest. */
static inline void recent_renew(struct sim_recent *r, uint32_t count, uint32_t tag)
{
    uint32_t moved = tag;
    for (uint32_t at = r->newest;; at = at + 1 == count ? 0 : at + 1) {
        const uint32_t was = r->tag[at];
        r->tag[at] = moved;
        moved = was;
        if (was == tag)
            break;
    }
}
