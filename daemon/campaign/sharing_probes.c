/* sharing_probes.c: see probes.h. */
#include "campaign/probes.h"

#include <stdio.h>
#include <string.h>

enum { ROUND_REPEATS = 3, ROWS_A_STEP = 8, MATRIX_ROWS = 12 };

/* The largest number of times that a probe is made. Votes end after fifteen, so a probe that was
 * made more often gives no evidence about its level. */
enum { MOST_ASKED = 20 };

/* Makes a round for level k with this pivot. Returns false if rounds do not fit the level. */
static bool make_round(const struct observation_set *set, const struct structure *s, uint32_t k,
                       uint16_t pivot, struct probe_spec *out)
{
    if (!sharing_test(s->levels, k, PROBE_ROUND, set->limits.sm_count, out))
        return false;
    out->repeats = ROUND_REPEATS;
    out->sms[0] = pivot;
    return probe_check(out, &set->limits, NULL) == STATUS_OK;
}

/* Makes rows of pairs for level k; the caller chooses the pivots. Returns false if pairs do not fit
 * the level. */
static bool make_pairs(const struct observation_set *set, const struct structure *s, uint32_t k,
                       struct probe_spec *out)
{
    return sharing_test(s->levels, k, PROBE_PAIRS, set->limits.sm_count, out) &&
           probe_check(out, &set->limits, NULL) == STATUS_OK;
}

static bool has_row(const struct observation_set *set, const struct structure *s, uint32_t k,
                    uint16_t pivot)
{
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_PAIRS));) {
        if (sharing_probed_level(&o->spec, o->result.sm_count, s->levels, s->level_count) != (int)k)
            continue;
        for (uint32_t p = 0; p < o->spec.sm_count; p++)
            if (o->spec.sms[p] == pivot)
                return true;
    }
    return false;
}

/* Chooses the first rows: neighboring SMs and distant SMs, which show a level that two SMs or a
 * cluster share. */
static void choose_sample(const uint16_t *sm_ids, uint32_t sms, struct probe_spec *out)
{
    const uint32_t wanted[SHARING_SAMPLE] = {0,       1,           2,           sms / 4,
                                             sms / 2, sms / 2 + 1, sms * 3 / 4, sms - 1};
    out->sm_count = 0;
    for (uint32_t i = 0; i < SHARING_SAMPLE; i++) {
        const uint16_t id = sm_ids[wanted[i] < sms ? wanted[i] : sms - 1];
        bool known = false;
        for (uint32_t j = 0; j < out->sm_count; j++)
            known = known || out->sms[j] == id;
        if (!known)
            out->sms[out->sm_count++] = id;
    }
}

/* Chooses the lowest SMs that have no group yet. Returns their number. */
static uint32_t choose_ungrouped(const struct sharing_estimate *sharing, const uint16_t *sm_ids,
                                 uint32_t sms, uint32_t most, uint16_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sms && n < most; i++)
        if (sharing->found.group_of_sm[sm_ids[i]] == FINGERPRINT_NO_GROUP)
            out[n++] = sm_ids[i];
    return n;
}

/* Schedules more votes for pivots that are not settled, by the method that was used before. */
static void schedule_unsettled(const struct observation_set *set, const struct structure *s,
                               uint32_t k, struct campaign_step *step)
{
    const struct sharing_estimate *sharing = &s->sharing[k];
    struct probe_spec pairs;

    for (uint32_t i = 0; i < sharing->unsettled_count; i++)
        if (make_round(set, s, k, sharing->unsettled[i], &step->specs[step->spec_count]))
            step->spec_count += 1;
    if (step->spec_count > 0 || !make_pairs(set, s, k, &pairs))
        return;
    pairs.sm_count = sharing->unsettled_count;
    memcpy(pairs.sms, sharing->unsettled, sharing->unsettled_count * sizeof pairs.sms[0]);
    step->specs[step->spec_count++] = pairs;
}

/* Schedules the next probes of level k. Returns false if neither rounds nor pairs fit. Every second
 * SM without a group is a pivot, because neighbors often share a group, and a second round of a
 * group only confirms it. */
static bool schedule_level(const struct observation_set *set, const struct structure *s, uint32_t k,
                           struct campaign_step *step)
{
    struct probe_spec *out = &step->specs[0];
    uint16_t sm_ids[REACH_MAX_SMS];
    uint16_t next[ROWS_A_STEP];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);
    const uint32_t open = choose_ungrouped(&s->sharing[k], sm_ids, sms, ROWS_A_STEP, next);

    if (s->sharing[k].unsettled_count > 0) {
        schedule_unsettled(set, s, k, step);
        return step->spec_count > 0;
    }
    if (open == 0)
        return false;
    while (step->spec_count * 2 < open &&
           make_round(set, s, k, next[step->spec_count * 2], &step->specs[step->spec_count]))
        step->spec_count += 1;
    if (step->spec_count > 0)
        return true;
    if (!make_pairs(set, s, k, out))
        return false;
    step->spec_count = 1;
    if (s->sharing[k].rounds == 0) {
        choose_sample(sm_ids, sms, out);
        return true;
    }
    out->sm_count = open;
    for (uint32_t i = 0; i < open; i++)
        out->sms[i] = next[i];
    return true;
}

static uint32_t count_asked(const struct observation_set *set, const struct probe_spec *spec)
{
    uint32_t asked = 0;
    for (const struct observation *o = NULL; (o = observation_next(set, o, spec->kind));) {
        const struct probe_spec *s = &o->spec;
        asked += s->stride_bytes == spec->stride_bytes && s->slice_pages == spec->slice_pages &&
                 s->flush_pages == spec->flush_pages && s->thrash_pages == spec->thrash_pages &&
                 s->sms[0] == spec->sms[0];
    }
    return asked;
}

enum status sharing_probes_next(const struct observation_set *set, const struct structure *s,
                                double share, struct campaign_step *out, struct err *err)
{
    for (uint32_t k = 0; k < s->level_count; k++) {
        const struct sharing_estimate *sharing = &s->sharing[k];
        const uint32_t sms = set->limits.sm_count;
        if (!s->levels[k].entry_known || s->levels[k].merged || s->levels[k].masked ||
            s->levels[k].lo_pages == 0 || s->levels[k].hi_pages == 0)
            continue;
        if (sharing->conflict && s->levels[k].non_lru)
            continue;
        if (sharing->conflict)
            return err_set(err, STATUS_DISTURBED,
                           "level %u: the sharing rounds contradict each other", k + 1);
        if (s->shared_by[k] != SHARED_UNKNOWN || sharing->doubtful ||
            !schedule_level(set, s, k, out))
            continue;
        if (count_asked(set, &out->specs[0]) > MOST_ASKED)
            return err_set(err, STATUS_DISTURBED,
                           "level %u: %u probes of one SM did not determine its group", k + 1,
                           MOST_ASKED + 1);
        if (sharing->rounds > sms + SHARING_SAMPLE)
            return err_set(err, STATUS_DISTURBED,
                           "level %u: %u rounds did not assign every SM to a group", k + 1,
                           sharing->rounds);
        out->progress =
            share * (0.5 + 0.5 * (k + (double)sharing->grouped_sms / sms) / s->level_count);
        snprintf(out->message, sizeof out->message,
                 "level %u: SM groups, %u of %u SMs placed in %u", k + 1, sharing->grouped_sms, sms,
                 sharing->found.group_count);
        return STATUS_OK;
    }
    return STATUS_OK;
}

void sharing_probes_matrix(const struct observation_set *set, const struct structure *s,
                           double from_progress, struct campaign_step *out)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);
    struct probe_spec *spec = &out->specs[0];
    uint32_t done = 0;

    if (s->window_level < 0 || !make_pairs(set, s, (uint32_t)s->window_level, spec))
        return;
    spec->sm_count = 0;
    for (uint32_t i = 0; i < sms; i++) {
        if (has_row(set, s, (uint32_t)s->window_level, sm_ids[i]))
            done += 1;
        else if (spec->sm_count < MATRIX_ROWS)
            spec->sms[spec->sm_count++] = sm_ids[i];
    }
    if (spec->sm_count == 0)
        return;
    out->spec_count = 1;
    out->progress = from_progress + (1 - from_progress) * done / sms;
    snprintf(out->message, sizeof out->message, "pair matrix, %u of %u rows", done, sms);
}
