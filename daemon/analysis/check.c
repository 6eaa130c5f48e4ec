/* check.c: see check.h.
 *
 * The thresholds are wide on purpose. A chip that was exchanged, or whose floor plan is another,
 * differs by whole groups and whole levels; what differs by a page or a few cycles is the noise of
 * two measurements, and is not worth a new one.
 */
#include "analysis/check.h"

#include "analysis/sweep.h"
#include "base/stats.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    LEVEL_SAMPLES = 256,
    POINT_WITHIN = 0,
    POINT_EDGE,
    POINT_BEYOND,
    LEVEL_POINTS,
    ROUND_REPEATS = 3,
    MOST_SLICE = 6,
    MOST_PAIR_SLICE = 8,
    FEWEST_SLICE = 3
};

/* Share of loads that miss: at most this is a hit, at least that a miss. */
#define HIT_SHARE  0.1
#define MISS_SHARE 0.5
/* A penalty may differ by the larger of these. */
#define PENALTY_CYCLES 6.0
#define PENALTY_SHARE  0.3
/* Penalties are of the SM clock: with another one they are not compared. */
#define SAME_CLOCK 0.1
/* Of the pivot's own loss: how near to the half of it is too near to tell. */
#define UNCLEAR_SHARE 0.2
/* Of the level's penalty: the least that the pivot must lose. */
#define PIVOT_SHARE 0.3

const char *check_result_name(enum check_result r)
{
    static const char *const names[] = {
        [CHECK_HOLDS] = "still true", [CHECK_UNSURE] = "cannot say", [CHECK_CHANGED] = "changed"};
    return (unsigned)r < sizeof names / sizeof names[0] ? names[r] : "unknown";
}

static void find(struct check *out, enum check_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The worst stays, and of two alike the first. */
static void find(struct check *out, enum check_result result, const char *format, ...)
{
    va_list args;
    if (result <= out->result)
        return;
    out->result = result;
    va_start(args, format);
    vsnprintf(out->sentence, sizeof out->sentence, format, args);
    va_end(args);
}

void check_identity(const struct gpu_identity *then, const struct gpu_identity *now,
                    struct check *out)
{
    *out = (struct check){.result = CHECK_HOLDS};
    if (strcmp(then->uuid, now->uuid) != 0)
        find(out, CHECK_CHANGED, "the fingerprint is of %s, this is %s", then->uuid, now->uuid);
    if (then->serial[0] && now->serial[0] && strcmp(then->serial, now->serial) != 0)
        find(out, CHECK_CHANGED, "the serial number was %s and is %s", then->serial, now->serial);
    if (strcmp(then->driver_version, now->driver_version) != 0)
        find(out, CHECK_CHANGED, "measured with driver %s, and now it is %s", then->driver_version,
             now->driver_version);
    if (then->mig != now->mig)
        find(out, CHECK_CHANGED, "MIG was %s and is %s", then->mig ? "on" : "off",
             now->mig ? "on" : "off");
    if (then->sm_count != now->sm_count)
        find(out, CHECK_CHANGED, "it had %u SMs and has %u", then->sm_count, now->sm_count);
    if (then->memory_bytes != now->memory_bytes)
        find(out, CHECK_CHANGED, "its memory had %llu bytes and has %llu",
             (unsigned long long)then->memory_bytes, (unsigned long long)now->memory_bytes);
}

/* Pages of `stride` that overflow every set of this level. */
static uint64_t full_pages(const struct tlb_level *l, uint64_t stride)
{
    uint64_t bytes = IS_KNOWN(l->reach_bytes) ? l->reach_bytes.v : 0;
    if (IS_KNOWN(l->onset_bytes))
        bytes = l->onset_bytes.v;
    if (IS_KNOWN(l->saturation_bytes))
        bytes = l->saturation_bytes.v;
    return (bytes + stride - 1) / stride;
}

static bool is_told(const struct tlb_level *l)
{
    return IS_KNOWN(l->entries) && IS_KNOWN(l->entry_bytes) && IS_KNOWN(l->miss_penalty_cycles) &&
           l->entries.v > 1;
}

bool check_level_test(const struct fingerprint *fp, uint32_t k, const struct gpu_limits *limits,
                      uint16_t sm, struct probe_spec *out)
{
    const struct tlb_level *l = &fp->levels[k];
    if (!is_told(l))
        return false;
    const uint64_t full = full_pages(l, l->entry_bytes.v);
    *out = (struct probe_spec){
        .kind = PROBE_CHASE,
        .stride_bytes = l->entry_bytes.v,
        .point_count = LEVEL_POINTS,
        .points = {l->entries.v - (l->entries.v + 7) / 8, l->entries.v, full + full / 4 + 1},
        .samples = LEVEL_SAMPLES,
        .warm_laps = 2,
        .sm_count = 1,
        .sms = {sm}};
    return out->points[POINT_WITHIN] > 0 && probe_check(out, limits, NULL) == STATUS_OK;
}

/* Index of the level whose sharing makes the groups, or -1. */
static int shared_level(const struct fingerprint *fp)
{
    const struct topology *t = &fp->topology;
    if (!IS_KNOWN(t->level) || t->level.v < 1 || t->level.v > fp->level_count)
        return -1;
    const uint32_t k = t->level.v - 1;
    return fp->levels[k].shared_by == SHARED_GROUP && is_told(&fp->levels[k]) ? (int)k : -1;
}

/* Pages that push a slice out of the levels nearer to the SM. */
static uint64_t flush_pages(const struct fingerprint *fp, uint32_t k)
{
    uint64_t most = 0;
    for (uint32_t j = 0; j < k; j++) {
        uint64_t pages = full_pages(&fp->levels[j], fp->levels[k].entry_bytes.v);
        const struct tlb_level *l = &fp->levels[j];
        /* A level that counts pages, not bytes, holds as many of a longer stride. */
        if (is_told(l) && l->entry_bytes.v < fp->levels[k].entry_bytes.v)
            pages = full_pages(l, l->entry_bytes.v);
        pages += pages / 4;
        most = pages > most ? pages : most;
    }
    return most;
}

bool check_sharing_test(const struct fingerprint *fp, const struct gpu_limits *limits,
                        uint16_t pivot, struct probe_spec *out)
{
    const int k = shared_level(fp);
    if (k < 0 || pivot >= REACH_MAX_SMS ||
        fp->topology.partition.group_of_sm[pivot] == FINGERPRINT_NO_GROUP)
        return false;
    const struct tlb_level *l = &fp->levels[k];
    const uint64_t flush = flush_pages(fp, (uint32_t)k);
    const uint64_t full = full_pages(l, l->entry_bytes.v);
    const uint64_t room = (uint64_t)l->entries.v * 3 / 4;
    const uint64_t sms = fp->gpu.sm_count ? fp->gpu.sm_count : 1;
    uint64_t slice = room > flush ? (room - flush) / sms : 0;

    *out = (struct probe_spec){.kind = PROBE_ROUND,
                               .stride_bytes = l->entry_bytes.v,
                               .flush_pages = (uint32_t)flush,
                               .thrash_pages = (uint32_t)(full + full / 4 + 1),
                               .warm_laps = 1,
                               .repeats = ROUND_REPEATS,
                               .sm_count = 1,
                               .sms = {pivot}};
    if (slice < FEWEST_SLICE) {
        out->kind = PROBE_PAIRS;
        out->repeats = 0;
        slice = room > flush ? room - flush : 0;
        slice = slice < MOST_PAIR_SLICE ? slice : MOST_PAIR_SLICE;
    }
    out->slice_pages =
        (uint32_t)(slice < MOST_SLICE || out->kind == PROBE_PAIRS ? slice : MOST_SLICE);
    return slice > 0 && probe_check(out, limits, NULL) == STATUS_OK;
}

static bool same_question(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->kind == b->kind && a->stride_bytes == b->stride_bytes &&
           a->point_count == b->point_count && a->slice_pages == b->slice_pages &&
           a->thrash_pages == b->thrash_pages && a->samples == b->samples &&
           memcmp(a->points, b->points, a->point_count * sizeof a->points[0]) == 0;
}

static bool same_clock(const struct fingerprint *fp, const struct observation *o)
{
    const struct maybe_u32 then = fp->conditions.sm_clock_khz;
    const struct maybe_u32 now = o->result.conditions.sm_clock_khz;
    if (!IS_KNOWN(then) || !IS_KNOWN(now))
        return true;
    return fabs((double)then.v - (double)now.v) <= SAME_CLOCK * (double)then.v;
}

static void judge_level(const struct fingerprint *fp, uint32_t k, const struct observation *o,
                        struct check *out)
{
    const double stored = fp->levels[k].miss_penalty_cycles.v;
    const double hit = stats_median_of_u32(observation_chase(o, POINT_WITHIN), o->spec.samples);
    const double miss = stats_median_of_u32(observation_chase(o, POINT_BEYOND), o->spec.samples);
    const double edge = sweep_share_above(o, POINT_EDGE, hit + stored / 2);
    const double beyond = sweep_share_above(o, POINT_BEYOND, hit + stored / 2);
    const double tolerance = fmax(PENALTY_CYCLES, PENALTY_SHARE * stored);
    const unsigned long long pages = (unsigned long long)o->spec.points[POINT_EDGE];

    out->looked_at += 1;
    if (beyond < HIT_SHARE)
        find(out, CHECK_CHANGED, "level %u: no step any more between %llu and %llu pages", k + 1,
             (unsigned long long)o->spec.points[POINT_WITHIN],
             (unsigned long long)o->spec.points[POINT_BEYOND]);
    else if (beyond < MISS_SHARE)
        find(out, CHECK_UNSURE, "level %u: %.0f%% of the loads beyond its entries miss", k + 1,
             100 * beyond);
    if (edge > MISS_SHARE)
        find(out, CHECK_CHANGED, "level %u: %llu pages fitted and do not fit any more", k + 1,
             pages);
    else if (edge > HIT_SHARE)
        find(out, CHECK_UNSURE, "level %u: %.0f%% of the loads of %llu pages miss", k + 1,
             100 * edge, pages);
    if (beyond >= MISS_SHARE && same_clock(fp, o) && fabs(miss - hit - stored) > tolerance)
        find(out, CHECK_CHANGED, "level %u: a miss cost %.0f cycles and costs %.0f", k + 1, stored,
             miss - hit);
}

/* Median over repeats and slice of what this SM lost. */
static double loss_of(const struct observation *o, uint32_t sm)
{
    const bool round = o->spec.kind == PROBE_ROUND;
    const uint32_t repeats = round ? o->spec.repeats : 1;
    double votes[PROBE_MAX_REPEATS];
    for (uint32_t r = 0; r < repeats; r++) {
        const uint32_t *control =
            round ? observation_round(o, r, 0, sm) : observation_pair(o, 0, 0, sm);
        const uint32_t *after =
            round ? observation_round(o, r, 1, sm) : observation_pair(o, 0, 1, sm);
        double differences[PROBE_MAX_SLICE];
        for (uint32_t j = 0; j < o->spec.slice_pages; j++)
            differences[j] = (double)after[j] - (double)control[j];
        votes[r] = stats_median_f64(differences, o->spec.slice_pages);
    }
    return stats_median_f64(votes, repeats);
}

/* An SM that has changed its group is missing in one and new in another, so a change shows twice.
 * One that shows once can be noise. */
static void judge_sharing(const struct fingerprint *fp, const struct observation *o,
                          struct check *out)
{
    const uint16_t *group_of = fp->topology.partition.group_of_sm;
    const uint16_t pivot = o->spec.sms[0];
    const double penalty = fp->levels[shared_level(fp)].miss_penalty_cycles.v;
    double own = 0;
    uint32_t unclear = 0;

    out->looked_at += 1;
    for (uint32_t i = 0; i < o->result.sm_count; i++)
        if (o->result.sm_ids[i] == pivot)
            own = loss_of(o, i);
    if (own < PIVOT_SHARE * penalty || own <= 0) {
        find(out, CHECK_UNSURE, "SM %u did not evict its own pages", pivot);
        return;
    }
    for (uint32_t i = 0; i < o->result.sm_count; i++) {
        const uint16_t id = o->result.sm_ids[i];
        const double loss = loss_of(o, i);
        const bool expected = group_of[id] == group_of[pivot];
        if (group_of[id] == FINGERPRINT_NO_GROUP)
            continue;
        if (fabs(loss - own / 2) < UNCLEAR_SHARE * own)
            unclear += 1;
        else if ((loss > own / 2) != expected)
            find(out, out->moved_sms++ > 0 ? CHECK_CHANGED : CHECK_UNSURE,
                 "SMs %u and %u %s a TLB and now they %s", pivot, id,
                 expected ? "shared" : "did not share", expected ? "do not" : "do");
    }
    if (unclear * 4 > o->result.sm_count)
        find(out, CHECK_UNSURE, "SM %u: %u of %u SMs cannot be told apart", pivot, unclear,
             o->result.sm_count);
}

void check_observations(const struct fingerprint *fp, const struct observation_set *set,
                        struct check *out)
{
    *out = (struct check){.result = CHECK_HOLDS};
    for (size_t i = 0; i < set->count; i++) {
        const struct observation *o = &set->items[i];
        struct probe_spec spec;
        for (uint32_t k = 0; o->spec.kind == PROBE_CHASE && k < fp->level_count; k++)
            if (check_level_test(fp, k, NULL, 0, &spec) && same_question(&spec, &o->spec))
                judge_level(fp, k, o, out);
        if ((o->spec.kind == PROBE_ROUND || o->spec.kind == PROBE_PAIRS) &&
            check_sharing_test(fp, NULL, o->spec.sms[0], &spec) && same_question(&spec, &o->spec))
            judge_sharing(fp, o, out);
    }
}
