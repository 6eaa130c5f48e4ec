/* window_level.c: see window_level.h.
 *
 * The window level is the outermost one that a group of SMs has to itself. If each group uses its
 * own window no longer than the reach of this level, its loads hit there. If no level is shared by
 * groups, the outermost private one is used, with groups of one SM. Windows cannot help with a
 * level shared by the whole GPU, because the pages of all SMs compete in it at any place. If the
 * sharing of a farther level is not known, there is no window level. A map by the wrong level would
 * cost a job the whole benefit of windows.
 */
#include "analysis/sharing/window_level.h"

#include "analysis/levels/levels.h"
#include <string.h>

enum shared_by sharing_derive(const struct sharing_estimate *s, uint32_t sm_count)
{
    if (s->rounds == 0 || s->conflict || s->doubtful)
        return SHARED_UNKNOWN;
    if (s->whole_gpu && sm_count > 1)
        return SHARED_GPU;
    if (s->lone_pivots == s->rounds && (s->rounds >= SHARING_SAMPLE || s->rounds >= sm_count))
        return SHARED_SM;
    return s->grouped_sms == sm_count ? SHARED_GROUP : SHARED_UNKNOWN;
}

void structure_estimate(const struct observation_set *set, struct structure *out)
{
    structure_levels(set, out);
    structure_sharing(set, out);
}

void structure_levels(const struct observation_set *set, struct structure *out)
{
    memset(out->levels, 0, sizeof out->levels);
    out->level_count = levels_estimate(set, out->levels);
}

void structure_sharing(const struct observation_set *set, struct structure *out)
{
    int private_level = -1;

    memset(out->sharing, 0, sizeof out->sharing);
    memset(out->shared_by, 0, sizeof out->shared_by);
    out->window_level = -1;
    for (uint32_t k = 0; k < out->level_count; k++) {
        sharing_estimate(set, out->levels, out->level_count, k, SHARING_BOTH, &out->sharing[k]);
        if (!out->levels[k].masked && !out->levels[k].merged)
            out->shared_by[k] = sharing_derive(&out->sharing[k], set->limits.sm_count);
        if (out->shared_by[k] == SHARED_GROUP)
            out->window_level = (int)k;
        if (out->shared_by[k] == SHARED_SM)
            private_level = (int)k;
    }
    if (out->window_level < 0)
        out->window_level = private_level;
    /* A farther level whose sharing is not known might be the level of the groups. */
    for (uint32_t k = 0; k < out->level_count; k++) {
        if ((int)k > out->window_level && out->shared_by[k] == SHARED_UNKNOWN)
            out->window_level = -1;
    }
}

/* Returns whether every level evicts in another order in every lap. */
static bool all_by_chance(const struct structure *s)
{
    for (uint32_t k = 0; k < s->level_count; k++) {
        if (!s->levels[k].non_lru)
            return false;
    }
    return s->level_count > 0;
}

struct maybe_u64 structure_reach_bytes(const struct structure *s)
{
    if (s->level_count == 0)
        return NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    if (s->window_level < 0)
        return UNKNOWN_U64(all_by_chance(s) ? REASON_DISAGREEMENT : REASON_TOO_LITTLE_DATA);
    const struct level_estimate *level = &s->levels[s->window_level];
    if (!level->counted)
        return UNKNOWN_U64(level->non_lru ? REASON_DISAGREEMENT : REASON_TOO_LITTLE_DATA);
    return KNOWN_U64(level->lo_pages * level->entry_bytes);
}

struct maybe_u64 structure_recommended_bytes(const struct structure *s)
{
    const struct maybe_u64 reach = structure_reach_bytes(s);
    if (!IS_KNOWN(reach))
        return reach;
    const struct level_estimate *level = &s->levels[s->window_level];
    if (level->lo_pages < 2)
        return UNKNOWN_U64(REASON_NOT_APPLICABLE);
    return KNOWN_U64((level->lo_pages - 1) * level->entry_bytes);
}
