/* sharing.c: see sharing.h. */
#include "analysis/sharing.h"

#include "base/stats.h"

#include <string.h>

/* A pivot that lost less than this share of the level's penalty was not evicted by itself. */
#define PIVOT_MIN_SHARE 0.3

/* Votes of one round that are counted: 16 repeats of as many SMs as there can be. */
enum { ROUND_MAX_VOTES = 16 * REACH_MAX_SMS };

/* One pivot's verdict over all SMs, by position. */
struct verdict_row {
    uint32_t pivot; /* position */
    uint32_t sm_count;
    bool usable;
    bool in[REACH_MAX_SMS];
    double agreement[REACH_MAX_SMS]; /* share of votes for the majority, 0.5..1 */
    double loss[REACH_MAX_SMS];      /* median of (after - control), cycles */
};

uint32_t sharing_sm_ids(const struct observation_set *set, uint16_t *out)
{
    if (set->count == 0)
        return 0;
    const struct probe_result *r = &set->items[0].result;
    memcpy(out, r->sm_ids, r->sm_count * sizeof out[0]);
    return r->sm_count;
}

int sharing_level_of(const struct probe_spec *spec, uint32_t sm_count,
                     const struct level_estimate *levels, uint32_t level_count)
{
    const uint64_t slices =
        spec->kind == PROBE_ROUND ? (uint64_t)sm_count * spec->slice_pages : spec->slice_pages;
    const uint64_t primed = slices + spec->flush_pages;
    for (uint32_t k = level_count; k-- > 0;)
        if (levels[k].entry_known && spec->stride_bytes == levels[k].entry_bytes &&
            spec->thrash_pages > levels[k].lo_pages && primed <= levels[k].lo_pages)
            return (int)k;
    return -1;
}

/* Median over the slice of (after - control): the same pages, so their distances cancel. */
static double slice_loss(const uint32_t *control, const uint32_t *after, uint32_t n)
{
    double differences[PROBE_MAX_SLICE];
    for (uint32_t j = 0; j < n; j++)
        differences[j] = (double)after[j] - (double)control[j];
    return stats_median_f64(differences, n);
}

/* Turns each SM's losses, one a repeat, into votes. losses: [repeat][position]. */
static void vote(struct verdict_row *row, const double *losses, uint32_t repeats,
                 double penalty_cycles)
{
    double own[PROBE_MAX_REPEATS];
    for (uint32_t i = 0; i < row->sm_count; i++) {
        for (uint32_t r = 0; r < repeats; r++)
            own[r] = losses[(size_t)r * row->sm_count + i];
        row->loss[i] = stats_median_f64(own, repeats);
    }
    const double threshold = row->loss[row->pivot] / 2;
    row->usable = row->loss[row->pivot] >= penalty_cycles * PIVOT_MIN_SHARE;
    for (uint32_t i = 0; i < row->sm_count; i++) {
        uint32_t for_in = 0;
        for (uint32_t r = 0; r < repeats; r++)
            for_in += losses[(size_t)r * row->sm_count + i] > threshold;
        row->in[i] = 2 * for_in > repeats;
        row->agreement[i] = (double)(row->in[i] ? for_in : repeats - for_in) / repeats;
    }
}

static uint32_t position_of(const struct probe_result *result, uint16_t sm_id)
{
    uint32_t i = 0;
    while (i < result->sm_count && result->sm_ids[i] != sm_id)
        i++;
    return i;
}

static void judge_round(const struct observation *o, double penalty_cycles, struct verdict_row *row)
{
    double losses[ROUND_MAX_VOTES];
    const uint32_t sms = o->result.sm_count;
    *row = (struct verdict_row){.pivot = position_of(&o->result, o->spec.sms[0]), .sm_count = sms};
    if (row->pivot == sms)
        return;
    const uint32_t repeats = o->spec.repeats < 16 ? o->spec.repeats : 16;
    for (uint32_t r = 0; r < repeats; r++)
        for (uint32_t i = 0; i < sms; i++)
            losses[(size_t)r * sms + i] = slice_loss(
                observation_round(o, r, 0, i), observation_round(o, r, 1, i), o->spec.slice_pages);
    vote(row, losses, repeats, penalty_cycles);
}

static void judge_pair_row(const struct observation *o, uint32_t p, double penalty_cycles,
                           struct verdict_row *row)
{
    double losses[REACH_MAX_SMS];
    const uint32_t sms = o->result.sm_count;
    *row = (struct verdict_row){.pivot = position_of(&o->result, o->spec.sms[p]), .sm_count = sms};
    if (row->pivot == sms)
        return;
    for (uint32_t i = 0; i < sms; i++)
        losses[i] = slice_loss(observation_pair(o, p, 0, i), observation_pair(o, p, 1, i),
                               o->spec.slice_pages);
    vote(row, losses, 1, penalty_cycles);
}

/* Joins one verdict to what is known. Groups are numbered as they come; renumber() orders them. */
static void take_row(const struct verdict_row *row, const uint16_t *sm_ids,
                     struct sharing_estimate *out)
{
    uint32_t members = 0;
    uint16_t group = FINGERPRINT_NO_GROUP;

    if (!row->usable) {
        out->conflict = true;
        return;
    }
    for (uint32_t i = 0; i < row->sm_count; i++) {
        members += row->in[i];
        out->agreement = row->agreement[i] < out->agreement ? row->agreement[i] : out->agreement;
        if (row->in[i] && out->found.group_of_sm[sm_ids[i]] != FINGERPRINT_NO_GROUP)
            group = out->found.group_of_sm[sm_ids[i]];
    }
    out->rounds += 1;
    out->lone_pivots += members == 1;
    out->whole_gpu = out->whole_gpu && members == row->sm_count;
    if (group == FINGERPRINT_NO_GROUP) {
        if (out->found.group_count == REACH_MAX_GROUPS)
            return;
        group = (uint16_t)out->found.group_count++;
        for (uint32_t i = 0; i < row->sm_count; i++) {
            if (!row->in[i])
                continue;
            out->found.group_of_sm[sm_ids[i]] = group;
            out->loss_cycles[i] = row->loss[i];
            out->grouped_sms += 1;
        }
        return;
    }
    /* This group has been seen: both verdicts must name the same SMs. */
    for (uint32_t i = 0; i < row->sm_count; i++)
        if (row->in[i] != (out->found.group_of_sm[sm_ids[i]] == group))
            out->conflict = true;
}

/* Numbers the groups by their lowest SM id. */
static void renumber(struct sm_partition *p)
{
    uint16_t new_of[REACH_MAX_GROUPS];
    uint32_t next = 0;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        new_of[g] = FINGERPRINT_NO_GROUP;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
        const uint16_t g = p->group_of_sm[id];
        if (g == FINGERPRINT_NO_GROUP)
            continue;
        if (new_of[g] == FINGERPRINT_NO_GROUP)
            new_of[g] = (uint16_t)next++;
        p->group_of_sm[id] = new_of[g];
    }
}

void sharing_estimate(const struct observation_set *set, const struct level_estimate *levels,
                      uint32_t level_count, uint32_t k, enum sharing_method methods,
                      struct sharing_estimate *out)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);
    struct verdict_row row;

    *out = (struct sharing_estimate){.whole_gpu = true, .agreement = 1};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        out->found.group_of_sm[id] = FINGERPRINT_NO_GROUP;
    for (size_t i = 0; i < set->count; i++) {
        const struct observation *o = &set->items[i];
        const bool is_round = o->spec.kind == PROBE_ROUND;
        if ((!is_round && o->spec.kind != PROBE_PAIRS) || o->result.sm_count != sms ||
            !(methods & (is_round ? SHARING_ROUNDS : SHARING_PAIRS)) ||
            sharing_level_of(&o->spec, sms, levels, level_count) != (int)k)
            continue;
        for (uint32_t p = 0; p < (is_round ? 1 : o->spec.sm_count); p++) {
            if (is_round)
                judge_round(o, levels[k].penalty_cycles, &row);
            else
                judge_pair_row(o, p, levels[k].penalty_cycles, &row);
            take_row(&row, sm_ids, out);
        }
    }
    out->whole_gpu = out->whole_gpu && out->rounds > 0;
    renumber(&out->found);
}
