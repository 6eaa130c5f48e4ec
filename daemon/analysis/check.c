/* check.c: see check.h.
 *
 * The check compares only results that the fingerprint determines, with the probes of the
 * measurement. A level without known saturation is skipped, and so is a group behind a nearer level
 * of unknown size. The thresholds are wide on purpose. An exchanged chip, or one with another floor
 * plan, differs by whole groups and whole levels. A difference of a page or a few cycles is noise
 * and does not justify a new measurement.
 *
 * Noise makes some hits look like misses and some misses like hits, with the shares q and r. The
 * share of loads that truly miss is then (seen - q) / (1 - q - r), within the error of a count.
 */
#include "analysis/check.h"

#include "analysis/levels/levels.h"
#include "analysis/sharing/sharing.h"
#include "analysis/levels/sweep.h"
#include "types/name_of.h"
#include "base/stats.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    LEAST_SAMPLES = 256,
    MOST_SAMPLES = 4096,
    POINT_WITHIN = 0,
    POINT_EDGE,
    POINT_JUST, /* beyond the edge: some sets overflow, and a farther level rarely does */
    POINT_BEYOND,
    LEVEL_POINTS,
    /* The penalty of a smaller level is the median of a few loads; one outlier moves it. */
    SURE_ENTRIES = 16
};

/* A smaller share of slow loads at a point does not determine the cost of a miss. */
#define FEWEST_SLOW 0.1
/* Shares of loads that miss. A point hits up to HIT_SHARE and misses from MISS_SHARE on. */
#define HIT_SHARE  0.1
#define MISS_SHARE 0.5
/* A deviation within this number of standard errors of a count is not reported. */
#define ERRORS 3
/* Hits and misses cannot be distinguished if a larger share of them overlaps. */
#define MOST_OVERLAP 0.6
/* A level with a smaller penalty, in cycles, cannot be detected (sweep.c). */
#define LEAST_STEP 4.0
/* A penalty may differ by the larger of these two limits. */
#define PENALTY_CYCLES 6.0
#define PENALTY_SHARE  0.3
/* Penalties are cycles of the SM clock; they are not compared if the clocks differ by more than
 * this share. */
#define SAME_CLOCK 0.1
/* Shares of single loads on the right side of the threshold, and the number of votes that each
 * share needs. */
#define QUIET      0.99
#define LESS_QUIET 0.95
enum { VOTES_QUIET = 3, VOTES_LESS_QUIET = 7, VOTES_NOISY = 15 };

NAME_FUNCTION(check_result_name, enum check_result, [CHECK_HOLDS] = "still true",
              [CHECK_UNSURE] = "cannot say", [CHECK_CHANGED] = "changed")

/* Keeps the worst finding, and the first of two equally bad findings. */
__attribute__((format(printf, 3, 4))) static void find(struct check *out, enum check_result result,
                                                       const char *format, ...)
{
    va_list args;
    if (result <= out->result)
        return;
    out->result = result;
    va_start(args, format);
    vsnprintf(out->message, sizeof out->message, format, args);
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
    if (then->mlopart != now->mlopart)
        find(out, CHECK_CHANGED, "MLOPart was %s and is %s", then->mlopart ? "on" : "off",
             now->mlopart ? "on" : "off");
    if (then->sm_count != now->sm_count)
        find(out, CHECK_CHANGED, "the number of SMs was %u and is %u", then->sm_count,
             now->sm_count);
    if (then->memory_bytes != now->memory_bytes)
        find(out, CHECK_CHANGED, "the memory had %llu bytes and has %llu",
             (unsigned long long)then->memory_bytes, (unsigned long long)now->memory_bytes);
}

static bool is_complete(const struct tlb_level *l)
{
    return IS_KNOWN(l->entries) && IS_KNOWN(l->entry_bytes) && IS_KNOWN(l->saturation_bytes) &&
           IS_KNOWN(l->miss_penalty_cycles) && l->entries.v > 1 && l->entry_bytes.v > 0;
}

/* Returns the number of pages, one entry apart, that overflow every set of this level. */
static uint64_t full_pages(const struct tlb_level *l)
{
    return (l->saturation_bytes.v + l->entry_bytes.v - 1) / l->entry_bytes.v;
}

/* Returns the number of pages that overflow some sets of this level. It is a quarter of the way
 * from the entries to the pages that overflow all sets. */
static uint64_t just_beyond(const struct tlb_level *l)
{
    const uint64_t full = full_pages(l);
    const uint64_t further = full > l->entries.v ? (full - l->entries.v) / 4 : 0;
    return l->entries.v + (further > 0 ? further : 1);
}

bool check_level_test(const struct fingerprint *fp, uint32_t k, const struct gpu_limits *limits,
                      uint16_t sm, struct probe_spec *out)
{
    const struct tlb_level *l = &fp->levels[k];
    if (!is_complete(l))
        return false;
    /* Each page is loaded once and some pages twice, so that no set that overflows is missed. */
    uint32_t samples = l->entries.v + l->entries.v / 8;
    samples = samples < LEAST_SAMPLES ? LEAST_SAMPLES : samples;
    *out = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = l->entry_bytes.v,
                               .point_count = LEVEL_POINTS,
                               .points = {level_reference_pages(l->entries.v), l->entries.v,
                                          just_beyond(l), level_pages_beyond(full_pages(l))},
                               .samples = samples < MOST_SAMPLES ? samples : MOST_SAMPLES,
                               .warm_laps = 1,
                               .sm_count = 1,
                               .sms = {sm}};
    return probe_check(out, limits, NULL) == STATUS_OK;
}

/* Returns the index of the level whose sharing makes the groups, or -1. */
static int shared_level(const struct fingerprint *fp)
{
    const struct topology *t = &fp->topology;
    if (!IS_KNOWN(t->level) || t->level.v < 1 || t->level.v > fp->level_count)
        return -1;
    const uint32_t k = t->level.v - 1;
    return fp->levels[k].shared_by == SHARED_GROUP && is_complete(&fp->levels[k]) ? (int)k : -1;
}

/* Writes the complete levels of the fingerprint as estimates of the analysis. Returns false if a
 * level nearer than `k` is missing. */
static bool estimates_of(const struct fingerprint *fp, uint32_t k, struct level_estimate *out)
{
    bool all_nearer = true;
    memset(out, 0, LEVELS_MAX * sizeof *out);
    for (uint32_t j = 0; j < fp->level_count; j++) {
        const struct tlb_level *l = &fp->levels[j];
        all_nearer = all_nearer && (j >= k || is_complete(l));
        if (!is_complete(l))
            continue;
        out[j].entry_known = true;
        out[j].entry_bytes = l->entry_bytes.v;
        out[j].lo_pages = l->entries.v;
        out[j].sat_hi_pages = full_pages(l);
        out[j].penalty_cycles = l->entries.v < SURE_ENTRIES ? 0 : l->miss_penalty_cycles.v;
    }
    return all_nearer;
}

/* Returns the number of votes that a pivot needs. On a quiet chip one row of pairs is enough,
 * because it has longer slices and is expensive. */
static uint32_t votes_for(const struct tlb_level *l, enum probe_kind kind)
{
    const double right = IS_KNOWN(l->confidence) ? l->confidence.v : 0;
    if (right >= QUIET)
        return kind == PROBE_PAIRS ? 1 : VOTES_QUIET;
    return right >= LESS_QUIET ? VOTES_LESS_QUIET : VOTES_NOISY;
}

/* Uses a round if its slices and the flushing pages fit the level, otherwise the pivot's row of
 * pairs. */
bool check_sharing_test(const struct fingerprint *fp, const struct gpu_limits *limits,
                        uint16_t pivot, struct probe_spec *out)
{
    const int k = shared_level(fp);
    const uint64_t sms = fp->gpu.sm_count ? fp->gpu.sm_count : 1;
    struct level_estimate levels[LEVELS_MAX];

    if (k < 0 || pivot >= REACH_MAX_SMS ||
        fp->topology.partition.group_of_sm[pivot] == FINGERPRINT_NO_GROUP ||
        !estimates_of(fp, (uint32_t)k, levels))
        return false;
    if (sharing_test(levels, (uint32_t)k, PROBE_ROUND, sms, out))
        out->repeats = votes_for(&fp->levels[k], PROBE_ROUND);
    else if (sharing_test(levels, (uint32_t)k, PROBE_PAIRS, sms, out))
        out->sm_count = votes_for(&fp->levels[k], PROBE_PAIRS);
    else
        return false;
    for (uint32_t i = 0; i < out->sm_count; i++)
        out->sms[i] = pivot;
    return probe_check(out, limits, NULL) == STATUS_OK;
}

static bool same_clock(const struct fingerprint *fp, const struct observation *o)
{
    const struct maybe_u32 then = fp->conditions.sm_clock_khz;
    const struct maybe_u32 now = o->result.conditions.sm_clock_khz;
    if (!IS_KNOWN(then) || !IS_KNOWN(now))
        return true;
    return fabs((double)then.v - (double)now.v) <= SAME_CLOCK * (double)then.v;
}

/* Returns whether the farther levels hold `bytes`. If they do not, misses cost more. */
static bool farther_levels_hold(const struct fingerprint *fp, uint32_t k, uint64_t bytes)
{
    for (uint32_t j = k + 1; j < fp->level_count; j++) {
        const struct tlb_level *l = &fp->levels[j];
        if (!IS_KNOWN(l->reach_bytes) || !IS_KNOWN(l->entry_bytes) ||
            l->entry_bytes.v < fp->levels[k].entry_bytes.v || l->reach_bytes.v < bytes)
            return false;
    }
    return true;
}

/* Returns the median of the loads of a point that took longer than the threshold. Returns 0 if no
 * load did. */
static double median_above(const struct observation *o, uint32_t point, double threshold)
{
    const uint32_t *values = observation_chase(o, point);
    uint32_t slow[MOST_SAMPLES];
    size_t n = 0;
    for (uint32_t i = 0; i < o->spec.samples && i < MOST_SAMPLES; i++)
        if (values[i] > threshold)
            slow[n++] = values[i];
    return n > 0 ? stats_median_u32(slow, n) : 0;
}

/* Compares the cost of a miss at the point where few pages miss. If all pages miss, a farther level
 * that was not found may miss too. */
static void classify_penalty(const struct fingerprint *fp, uint32_t k, const struct observation *o,
                             double threshold, struct check *out)
{
    const bool enough = sweep_share_above(o, POINT_JUST, threshold) >= FEWEST_SLOW;
    const double stored = fp->levels[k].miss_penalty_cycles.v;
    const double tolerance = fmax(PENALTY_CYCLES, PENALTY_SHARE * stored);
    const uint32_t point = enough ? POINT_JUST : POINT_BEYOND;
    const uint64_t bytes = o->spec.points[point] * o->spec.stride_bytes;
    const double miss = enough ? median_above(o, point, threshold) : sweep_median(o, point);
    const double step = miss - sweep_median(o, POINT_WITHIN);
    if (fp->levels[k].entries.v < SURE_ENTRIES || !same_clock(fp, o) ||
        (step > stored && !farther_levels_hold(fp, k, bytes)))
        return;
    if (fabs(step - stored) > tolerance)
        find(out, CHECK_CHANGED, "level %u: a miss cost %.0f cycles and costs %.0f", k + 1, stored,
             step);
}

static void classify_level(const struct fingerprint *fp, uint32_t k, const struct observation *o,
                           struct check *out)
{
    const double n = o->spec.samples;
    const double hit = sweep_median(o, POINT_WITHIN);
    const double miss = sweep_median(o, POINT_BEYOND);
    const double step = miss - hit;
    /* A step may include a farther level's step, and a stored penalty may include an outlier, so
     * the smaller of the two counts. */
    const double threshold = hit + fmin(step, fp->levels[k].miss_penalty_cycles.v) / 2;
    const double slow_hits = sweep_share_above(o, POINT_WITHIN, threshold);
    const double slow = sweep_share_above(o, POINT_BEYOND, threshold);
    const double apart = slow - slow_hits;
    const double edge = (sweep_share_above(o, POINT_EDGE, threshold) - slow_hits) / apart;
    const double error = sqrt(0.5 / n) / apart;
    const unsigned long long pages = (unsigned long long)o->spec.points[POINT_EDGE];

    out->looked_at += 1;
    if (step < LEAST_STEP) {
        find(out, CHECK_CHANGED, "level %u: there is no longer a step between %llu and %llu pages",
             k + 1, (unsigned long long)o->spec.points[POINT_WITHIN],
             (unsigned long long)o->spec.points[POINT_BEYOND]);
        return;
    }
    if (apart < 1 - MOST_OVERLAP) {
        find(out, CHECK_UNSURE, "level %u: hits and misses cannot be distinguished", k + 1);
        return;
    }
    if (edge - ERRORS * error > MISS_SHARE)
        find(out, CHECK_CHANGED, "level %u: %llu pages fitted and no longer fit", k + 1, pages);
    else if (edge - ERRORS * error > HIT_SHARE)
        find(out, CHECK_UNSURE, "level %u: %.0f%% of the loads of %llu pages miss", k + 1,
             100 * edge, pages);
    classify_penalty(fp, k, o, threshold, out);
}

/* Compares one pivot's verdict, if it has one, with its group. An SM that has changed its group is
 * missing in one group and new in another, so a change is visible twice. A change that is visible
 * once can be noise. */
static void classify_pivot(const struct fingerprint *fp, const struct sharing_estimate *now,
                           const struct observation *o, struct check *out)
{
    const uint16_t *then = fp->topology.partition.group_of_sm;
    const uint16_t *found = now->found.group_of_sm;
    const uint16_t pivot = o->spec.sms[0];

    out->looked_at += 1;
    if (now->conflict || found[pivot] == FINGERPRINT_NO_GROUP) {
        find(out, CHECK_UNSURE, "SM %u: the SMs that share its TLB cannot be determined", pivot);
        return;
    }
    for (uint32_t i = 0; i < o->result.sm_count; i++) {
        const uint16_t id = o->result.sm_ids[i];
        const bool expected = then[id] == then[pivot];
        if (then[id] == FINGERPRINT_NO_GROUP || (found[id] == found[pivot]) == expected)
            continue;
        find(out, out->moved_sms++ > 0 ? CHECK_CHANGED : CHECK_UNSURE,
             "SMs %u and %u %s a TLB and now they %s", pivot, id,
             expected ? "shared" : "did not share", expected ? "do not" : "do");
    }
}

/* Compares all rounds together, by the method and the odds of the measurement. */
static void classify_sharing(const struct fingerprint *fp, const struct observation_set *set,
                             struct check *out)
{
    const int k = shared_level(fp);
    struct level_estimate levels[LEVELS_MAX];
    struct sharing_estimate now;

    if (k < 0)
        return;
    (void)estimates_of(fp, 0, levels);
    sharing_estimate(set, levels, fp->level_count, (uint32_t)k, SHARING_BOTH, &now);
    for (size_t i = 0; i < set->count; i++) {
        const struct observation *o = &set->items[i];
        if ((o->spec.kind == PROBE_ROUND || o->spec.kind == PROBE_PAIRS) &&
            sharing_probed_level(&o->spec, o->result.sm_count, levels, fp->level_count) == k)
            classify_pivot(fp, &now, o, out);
    }
}

void check_observations(const struct fingerprint *fp, const struct observation_set *set,
                        struct check *out)
{
    *out = (struct check){.result = CHECK_HOLDS};
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        struct probe_spec spec;
        for (uint32_t k = 0; k < fp->level_count; k++)
            if (check_level_test(fp, k, NULL, 0, &spec) && levels_same_walk(&spec, &o->spec) &&
                spec.samples == o->spec.samples)
                classify_level(fp, k, o, out);
    }
    classify_sharing(fp, set, out);
}
