/* sharing.c: see sharing.h. */
#include "analysis/sharing.h"

#include "base/stats.h"

#include <math.h>
#include <string.h>

/* A pivot that lost less than this share of the level's penalty was not evicted by itself. */
#define PIVOT_MIN_SHARE 0.3

/* Votes of one round that are counted: 16 repeats of as many SMs as there can be. */
enum { ROUND_MAX_VOTES = 16 * REACH_MAX_SMS };

enum {
    MAX_VOTES = 16,     /* of one pivot: what is beyond is not counted */
    SETTLED_VOTES = 15, /* a verdict of so many is taken as it is */
};

/* A verdict is settled before that when no SM is nearer to the threshold than this share of it. */
#define SETTLED_MARGIN 0.25

/* What every SM lost, vote by vote, when this pivot thrashed. */
struct ballot {
    uint32_t pivot; /* position */
    uint32_t sm_count;
    uint32_t votes;
    double losses[MAX_VOTES][REACH_MAX_SMS]; /* by position, cycles */
};

/* The verdict over all SMs, by position. */
struct verdict_row {
    bool usable;
    bool settled;
    bool in[REACH_MAX_SMS];
    double agreement;           /* share of votes for the majority, of the worst SM */
    double loss[REACH_MAX_SMS]; /* median of the votes */
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

/* The median of an SM's votes against half of the pivot's own loss. */
static void judge(const struct ballot *b, double penalty_cycles, struct verdict_row *row)
{
    double own[MAX_VOTES];
    double nearest = 1;
    *row = (struct verdict_row){.agreement = 1};
    for (uint32_t i = 0; i < b->sm_count; i++) {
        for (uint32_t v = 0; v < b->votes; v++)
            own[v] = b->losses[v][i];
        row->loss[i] = stats_median_f64(own, b->votes);
    }
    const double threshold = row->loss[b->pivot] / 2;
    row->usable = row->loss[b->pivot] >= penalty_cycles * PIVOT_MIN_SHARE && threshold > 0;
    for (uint32_t i = 0; i < b->sm_count && row->usable; i++) {
        const double margin = fabs(row->loss[i] - threshold) / threshold;
        uint32_t agree = 0;
        row->in[i] = row->loss[i] > threshold;
        for (uint32_t v = 0; v < b->votes; v++)
            agree += (b->losses[v][i] > threshold) == row->in[i];
        nearest = margin < nearest ? margin : nearest;
        if ((double)agree / b->votes < row->agreement)
            row->agreement = (double)agree / b->votes;
    }
    row->settled = b->votes >= SETTLED_VOTES || (row->usable && nearest >= SETTLED_MARGIN);
}

static uint32_t position_of(const struct probe_result *result, uint16_t sm_id)
{
    uint32_t i = 0;
    while (i < result->sm_count && result->sm_ids[i] != sm_id)
        i++;
    return i;
}

static void cast_round(const struct observation *o, struct ballot *b)
{
    for (uint32_t r = 0; r < o->spec.repeats && b->votes < MAX_VOTES; r++, b->votes++)
        for (uint32_t i = 0; i < b->sm_count; i++)
            b->losses[b->votes][i] = slice_loss(observation_round(o, r, 0, i),
                                                observation_round(o, r, 1, i), o->spec.slice_pages);
}

static void cast_pair_row(const struct observation *o, uint32_t p, struct ballot *b)
{
    if (b->votes == MAX_VOTES)
        return;
    for (uint32_t i = 0; i < b->sm_count; i++)
        b->losses[b->votes][i] = slice_loss(observation_pair(o, p, 0, i),
                                            observation_pair(o, p, 1, i), o->spec.slice_pages);
    b->votes += 1;
}

/* Is this observation one of ours: of this method, about this level, over the same SMs? */
static bool is_about(const struct observation *o, enum probe_kind kind,
                     const struct level_estimate *levels, uint32_t level_count, uint32_t k,
                     uint32_t sms)
{
    return o->spec.kind == kind && o->result.sm_count == sms &&
           sharing_level_of(&o->spec, sms, levels, level_count) == (int)k;
}

/* Joins one verdict to what is known. Groups are numbered as they come; renumber() orders them. */
static void take_verdict(const struct verdict_row *row, const uint16_t *sm_ids, uint32_t sms,
                         struct sharing_estimate *out)
{
    uint32_t members = 0;
    uint16_t group = FINGERPRINT_NO_GROUP;

    for (uint32_t i = 0; i < sms; i++) {
        members += row->in[i];
        if (row->in[i] && out->found.group_of_sm[sm_ids[i]] != FINGERPRINT_NO_GROUP)
            group = out->found.group_of_sm[sm_ids[i]];
    }
    out->agreement = row->agreement < out->agreement ? row->agreement : out->agreement;
    out->rounds += 1;
    out->lone_pivots += members == 1;
    out->whole_gpu = out->whole_gpu && members == sms;
    if (group != FINGERPRINT_NO_GROUP) {
        /* This group has been seen: both verdicts must name the same SMs. */
        for (uint32_t i = 0; i < sms; i++)
            if (row->in[i] != (out->found.group_of_sm[sm_ids[i]] == group))
                out->conflict = true;
        return;
    }
    if (out->found.group_count == REACH_MAX_GROUPS)
        return;
    group = (uint16_t)out->found.group_count++;
    for (uint32_t i = 0; i < sms; i++) {
        if (!row->in[i])
            continue;
        out->found.group_of_sm[sm_ids[i]] = group;
        out->loss_cycles[i] = row->loss[i];
        out->grouped_sms += 1;
    }
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

/* All votes of the pivot at `p` of observation `first`, from there on. */
static void collect(const struct observation_set *set, size_t first, uint32_t p,
                    const struct level_estimate *levels, uint32_t level_count, uint32_t k,
                    struct ballot *b)
{
    const struct observation *o = &set->items[first];
    const enum probe_kind kind = o->spec.kind;
    const uint16_t pivot = o->spec.sms[p];

    b->votes = 0;
    b->sm_count = o->result.sm_count;
    b->pivot = position_of(&o->result, pivot);
    for (size_t i = first; i < set->count; i++) {
        o = &set->items[i];
        if (!is_about(o, kind, levels, level_count, k, b->sm_count))
            continue;
        for (uint32_t q = 0; q < o->spec.sm_count; q++) {
            if (o->spec.sms[q] != pivot)
                continue;
            if (kind == PROBE_ROUND)
                cast_round(o, b);
            else
                cast_pair_row(o, q, b);
        }
    }
}

/* Judges every pivot of one method once, with all its votes. */
static void estimate_method(const struct observation_set *set, enum probe_kind kind,
                            const struct level_estimate *levels, uint32_t level_count, uint32_t k,
                            const uint16_t *sm_ids, uint32_t sms, struct sharing_estimate *out)
{
    bool judged[REACH_MAX_SMS] = {false};
    struct verdict_row row;
    struct ballot ballot;

    for (size_t i = 0; i < set->count; i++) {
        const struct observation *o = &set->items[i];
        if (!is_about(o, kind, levels, level_count, k, sms))
            continue;
        for (uint32_t p = 0; p < o->spec.sm_count; p++) {
            if (judged[o->spec.sms[p]])
                continue;
            judged[o->spec.sms[p]] = true;
            collect(set, i, p, levels, level_count, k, &ballot);
            if (ballot.pivot == sms)
                continue;
            judge(&ballot, levels[k].penalty_cycles, &row);
            if (!row.settled && out->unsettled_count < SHARING_MAX_UNSETTLED)
                out->unsettled[out->unsettled_count++] = o->spec.sms[p];
            else if (row.settled && row.usable)
                take_verdict(&row, sm_ids, sms, out);
            else if (row.settled)
                out->conflict = true;
        }
    }
}

void sharing_estimate(const struct observation_set *set, const struct level_estimate *levels,
                      uint32_t level_count, uint32_t k, enum sharing_method methods,
                      struct sharing_estimate *out)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);

    *out = (struct sharing_estimate){.whole_gpu = true, .agreement = 1};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        out->found.group_of_sm[id] = FINGERPRINT_NO_GROUP;
    if (methods & SHARING_ROUNDS)
        estimate_method(set, PROBE_ROUND, levels, level_count, k, sm_ids, sms, out);
    if (methods & SHARING_PAIRS)
        estimate_method(set, PROBE_PAIRS, levels, level_count, k, sm_ids, sms, out);
    out->whole_gpu = out->whole_gpu && out->rounds > 0;
    renumber(&out->found);
}
