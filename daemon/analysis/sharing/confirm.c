/* confirm.c: see confirm.h. */
#include "analysis/sharing/confirm.h"

#include "analysis/levels/levels.h"
#include "analysis/levels/refine.h"
#include "analysis/levels/refine_plan.h"
#include "analysis/levels/sweep.h"
#include <string.h>

enum {
    AGREE_QUIET = 1,
    AGREE_DISTURBED = 2,
    LOOSE_QUIET = 256, /* the onset may be too early by one page in this number */
    MIN_SAMPLES = 256,
    VOTES_DISTURBED = 2
};

#define HIT_QUANTILE 0.25

/* Returns the fewest pages with which a confirmation must miss. The kernel's own code and data take
 * entries too, in varying sets. So the first pages beyond the onset miss only at times (H200: 2049
 * and 2050 pages of 2048 entries); somewhat further on they always miss. A disturbed measurement is
 * tested exactly, so it may fail although a quiet measurement would not. */
static uint64_t beyond_onset(const struct observation_set *set, const struct level_estimate *level)
{
    return set->disturbed > 0 ? level->hi_pages
                              : level->hi_pages + 1 + level->hi_pages / LOOSE_QUIET;
}

bool confirm_test(const struct observation_set *set, const struct level_estimate *level,
                  uint16_t sm, struct probe_spec *out)
{
    const uint64_t full = level->sweep.full_pages;
    const uint64_t beyond =
        level->entry_known ? beyond_onset(set, level) : level_pages_beyond(full);
    uint64_t samples = LEVELS_ENTRY_SAMPLES;

    if (level->merged || (level->entry_known && !level->counted))
        return false;
    if (level->entry_known)
        samples = beyond * refine_plan_laps(level, beyond);
    samples = samples < MIN_SAMPLES ? MIN_SAMPLES : samples;
    *out = (struct probe_spec){
        .kind = PROBE_CHASE,
        .stride_bytes = level->entry_known ? level->entry_bytes : level->sweep.stride_bytes,
        .point_count = 2,
        .points = {level->entry_known ? level->lo_pages : level->sweep.last_fit_pages, beyond},
        .samples = (uint32_t)(samples < PROBE_MAX_SAMPLES ? samples : PROBE_MAX_SAMPLES),
        .warm_laps = 1,
        .sm_count = 1,
        .sms = {sm}};
    if (probe_check(out, &set->limits, NULL) == STATUS_OK)
        return true;
    /* If the entry is not known, at least the points that showed the step in the sweep are
     * walked. */
    out->points[1] = full;
    return !level->entry_known && probe_check(out, &set->limits, NULL) == STATUS_OK;
}

/* Returns whether a miss stands out from the cost of hits. If every page lies on its own line (the
 * plain arena), hits differ by more than the misses of a small level add. */
static bool has_contrast(const struct observation *o, double penalty_cycles)
{
    return sweep_spread(o, 0, 0.05, 0.95) < penalty_cycles;
}

/* An answer may also leave the question open: noise can hide a miss. */
enum answer { AGREES, CONTRADICTS, OPEN };

static enum answer answer_of(const struct observation *o, const struct level_estimate *level)
{
    if (level->entry_known && !refine_fits(o, 0, level->penalty_cycles))
        return CONTRADICTS;
    if (level->entry_known && refine_fits(o, 1, level->penalty_cycles))
        return has_contrast(o, level->penalty_cycles) ? CONTRADICTS : OPEN;
    if (level->entry_known)
        return refine_misses(o, 1, level->penalty_cycles) ? AGREES : OPEN;
    /* The clean pages may not all have come back yet, if victims are random. */
    const double threshold = sweep_quantile(o, 0, HIT_QUANTILE) + level->penalty_cycles / 2;
    if (sweep_share_above(o, 1, threshold) <= level->share / 2)
        return CONTRADICTS;
    return sweep_share_above(o, 0, threshold) < level->share / 2 ? AGREES : OPEN;
}

enum confirmation confirm_level(const struct observation_set *set,
                                const struct level_estimate *level)
{
    const uint32_t wanted = observation_set_is_shared(set) ? AGREE_DISTURBED : AGREE_QUIET;
    struct probe_spec spec;
    uint32_t asked = 0;
    uint32_t agreed = 0;
    uint32_t contradicted = 0;

    if (!confirm_test(set, level, 0, &spec))
        return CONFIRMATION_DONE;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        if (!levels_same_walk(&o->spec, &spec) || o->spec.samples != spec.samples)
            continue;
        const enum answer answer = answer_of(o, level);
        asked += 1;
        agreed += answer == AGREES;
        contradicted += answer == CONTRADICTS;
    }
    if (agreed >= wanted)
        return CONFIRMATION_DONE;
    if (asked < CONFIRM_MOST_ASKED)
        return CONFIRMATION_OPEN;
    return contradicted > 0 ? CONFIRMATION_REFUTED : CONFIRMATION_DONE;
}

/* Returns CONFIRMATION_OPEN unless the walk was made often enough. */
static enum confirmation ask_again(const struct observation_set *set, const struct probe_spec *walk)
{
    uint32_t asked = 0;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));)
        asked += levels_same_walk(&o->spec, walk);
    return asked < CONFIRM_MOST_ASKED ? CONFIRMATION_OPEN : CONFIRMATION_REFUTED;
}

enum confirmation confirm_saturation(const struct observation_set *set,
                                     const struct level_estimate *level, uint16_t sm,
                                     struct probe_spec *out)
{
    if (!observation_set_is_shared(set) || !level->counted || level->sat_hi_pages == 0)
        return CONFIRMATION_DONE;
    if (level->sat_refuted || !refine_plan_saturation_is_fine(level))
        return CONFIRMATION_REFUTED;
    if (level->sat_votes >= AGREE_DISTURBED)
        return CONFIRMATION_DONE;
    if (!refine_plan_saturation(level, &set->limits, sm, out))
        return CONFIRMATION_REFUTED;
    return ask_again(set, out);
}

enum confirmation confirm_penalty(const struct observation_set *set,
                                  const struct level_estimate *level, uint16_t sm,
                                  struct probe_spec *out)
{
    if (!observation_set_is_shared(set) || !level->counted || !IS_KNOWN(levels_penalty(level)) ||
        level->penalty_votes >= AGREE_DISTURBED)
        return CONFIRMATION_DONE;
    if (!refine_plan_penalty(level, &set->limits, sm, out))
        return CONFIRMATION_REFUTED;
    return ask_again(set, out);
}

static uint32_t votes_of(const struct observation_set *set, const struct observation *row)
{
    uint32_t votes = 0;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_PAIRS));) {
        const struct probe_spec *s = &o->spec;
        votes += s->stride_bytes == row->spec.stride_bytes &&
                 s->thrash_pages == row->spec.thrash_pages && s->sm_count == row->spec.sm_count &&
                 memcmp(s->sms, row->spec.sms, s->sm_count * sizeof s->sms[0]) == 0;
    }
    return votes;
}

const struct observation *confirm_pairs(const struct observation_set *set,
                                        const struct structure *s, uint32_t k)
{
    if (!observation_set_is_shared(set))
        return NULL;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_PAIRS));)
        if (sharing_probed_level(&o->spec, o->result.sm_count, s->levels, s->level_count) ==
                (int)k &&
            votes_of(set, o) < VOTES_DISTURBED)
            return o;
    return NULL;
}
