/* campaign.c: the order of a measurement, coarse to fine.
 *
 *   warm-up   idle chips clock down; also tells which SM ids there are
 *   sweeps    two at one large stride: up to 256 pages behind one line, and beyond (levels.h)
 *   entries   bytes an entry translates, for each step the sweeps showed
 *   refine    onset and saturation to the page
 *   sharing   rounds or pairs for each level, until every SM is in a group (sharing_probes.c)
 *   confirm   onsets once more (analysis/sharing/confirm.h)
 *   sets      depth full: sets, ways, replacement, fill (analysis/structure)
 *   reads     depth full: throughput with and without windows (read_probes.c)
 *   rates     depth full: random accesses of other kinds (read_probes.c)
 *   groups    depth full: random reads of each group alone, and of pairs
 *   matrix    depth matrix: every SM against every SM at the window level
 *
 * Each call scans what is there and schedules what is missing first. No state is kept, so the same
 * observations always lead to the same probes.
 */
#include "campaign/campaign.h"

#include "analysis/sharing/confirm.h"
#include "analysis/structure/sectored.h"
#include "analysis/structure/sets.h"
#include "analysis/throughput/group_reads.h"
#include "base/units.h"
#include "campaign/read_probes.h"
#include "campaign/sharing_probes.h"

#include <stdio.h>
#include <string.h>

enum {
    WARM_UP_US = 5000,
    WARM_UP_REPEATS = 2,
    LINE_SWEEP_PAGES = 256, /* the cuda source backs up to 1024 pages by one line (cuda_arena.h) */
    BULK_SWEEP_FIRST = 64,
    SWEEP_PAGES = 8192,
    POINTS_AN_OCTAVE = 4
};

/* Of the groups' reads: each group alone and each pair once. */
#define GROUPS_FIRST_PART 0.9

/* Done before each phase, of a quick measurement; the deeper ones take about as long again. */
static const struct {
    double quick_share, full_share, matrix_share; /* at the end of: structure, reads, pairs */
} shares[DEPTH_COUNT] = {
    [DEPTH_QUICK] = {1.0, 1.0, 1.0},
    [DEPTH_FULL] = {0.5, 1.0, 1.0},
    [DEPTH_MATRIX] = {0.25, 0.5, 1.0},
};

/* Points from `first` to `last` pages, POINTS_AN_OCTAVE for each doubling, `last` included. */
static void add_points(struct probe_spec *spec, uint64_t first, uint64_t last)
{
    static const double ratio = 1.189207115002721; /* 2^(1/4) */
    double x = (double)first;
    uint64_t before = 0;
    while ((uint64_t)x < last && spec->point_count + 1 < PROBE_MAX_POINTS) {
        if ((uint64_t)x > before)
            spec->points[spec->point_count++] = before = (uint64_t)x;
        x *= ratio;
    }
    spec->points[spec->point_count++] = last;
}

static void schedule_sweep(const struct observation_set *set, uint16_t sm, uint64_t first,
                           uint64_t last, struct probe_spec *out)
{
    *out = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = levels_sweep_stride(&set->limits),
                               .samples = LEVELS_SWEEP_SAMPLES,
                               .warm_laps = 1,
                               .sm_count = 1,
                               .sms = {sm}};
    add_points(out, first, last);
}

/* The sweeps that are missing. */
static void schedule_sweeps(const struct observation_set *set, uint16_t sm,
                            struct campaign_step *out)
{
    uint64_t most = set->limits.range_bytes / levels_sweep_stride(&set->limits);
    struct probe_spec spec;

    most = most < SWEEP_PAGES ? most : SWEEP_PAGES;
    schedule_sweep(set, sm, 1, most < LINE_SWEEP_PAGES ? most : LINE_SWEEP_PAGES, &spec);
    if (spec.point_count >= LEVELS_SWEEP_POINTS && !levels_find_chase(set, &spec))
        out->specs[out->spec_count++] = spec;
    if (most <= LINE_SWEEP_PAGES)
        return;
    schedule_sweep(set, sm, BULK_SWEEP_FIRST, most, &spec);
    if (!levels_find_chase(set, &spec))
        out->specs[out->spec_count++] = spec;
}

/* Two levels that look alike may ask for the same: once is enough. */
static void keep_new(struct campaign_step *out)
{
    const struct probe_spec *spec = &out->specs[out->spec_count];
    for (uint32_t i = 0; i < out->spec_count; i++) {
        const struct probe_spec *s = &out->specs[i];
        if (levels_same_walk(s, spec) && s->samples == spec->samples)
            return;
    }
    out->spec_count += 1;
}

/* One entry test for each level whose search is not over. */
static void schedule_entries(const struct observation_set *set, const struct structure *s,
                             uint16_t sm, struct campaign_step *out)
{
    for (uint32_t k = 0; k < s->level_count; k++) {
        const struct level_estimate *level = &s->levels[k];
        if (level->test_wanted &&
            levels_entry_test(&level->wanted, &set->limits, sm, &out->specs[out->spec_count]))
            keep_new(out);
    }
}

/* One refinement for each level that can be told finer. A test that is there already would be
 * asked indefinitely: then the level is as fine as it gets. */
static void schedule_refinements(const struct observation_set *set, const struct structure *s,
                                 uint16_t sm, struct campaign_step *out)
{
    for (uint32_t k = 0; k < s->level_count; k++) {
        struct probe_spec *spec = &out->specs[out->spec_count];
        if (s->levels[k].entry_known && levels_refine_test(&s->levels[k], &set->limits, sm, spec) &&
            !levels_find_chase(set, spec))
            keep_new(out);
    }
}

static enum status schedule_structure(const struct observation_set *set, const struct structure *s,
                                      uint16_t sm, double share, struct campaign_step *out,
                                      struct err *err)
{
    schedule_sweeps(set, sm, out);
    if (out->spec_count > 0) {
        campaign_describe(out, 0.05 * share, "footprint sweep at %llu MiB",
                          (unsigned long long)(levels_sweep_stride(&set->limits) / MIB));
        return STATUS_OK;
    }
    schedule_entries(set, s, sm, out);
    if (out->spec_count > 0) {
        campaign_describe(out, 0.15 * share, "bytes an entry translates, %u levels",
                          s->level_count);
        return STATUS_OK;
    }
    schedule_refinements(set, s, sm, out);
    if (out->spec_count > 0) {
        campaign_describe(out, 0.3 * share, "onset and saturation of %u levels", s->level_count);
        return STATUS_OK;
    }
    return sharing_probes_next(set, s, share, out, err);
}

/* The confirmations that are missing. */
static enum status schedule_confirmations(const struct observation_set *set,
                                          const struct structure *s, uint16_t sm, double progress,
                                          struct campaign_step *out, struct err *err)
{
    for (uint32_t k = 0; k < s->level_count && out->spec_count + 2 <= CAMPAIGN_MAX_SPECS; k++) {
        const struct observation *row = confirm_pairs(set, s, k);
        const enum confirmation state = confirm_level(set, &s->levels[k]);

        if (state == CONFIRMATION_REFUTED)
            return err_set(err, STATUS_DISTURBED,
                           "level %u: where it overflowed once it does not overflow again", k + 1);
        if (state == CONFIRMATION_OPEN)
            out->spec_count += confirm_test(set, &s->levels[k], sm, &out->specs[out->spec_count]);
        if (row)
            out->specs[out->spec_count++] = row->spec;
    }
    if (out->spec_count > 0)
        campaign_describe(out, progress, "what was found, once more");
    return STATUS_OK;
}

/* Packs traces into probes, several cycles each. A probe that the GPU could not run is left out. */
static void add_traces(const struct observation_set *set, struct trace_ask *asks, uint32_t count,
                       uint16_t sm, struct campaign_step *out)
{
    trace_sort(asks, count);
    for (uint32_t at = 0; at < count && out->spec_count < CAMPAIGN_MAX_SPECS;) {
        struct probe_spec *spec = &out->specs[out->spec_count];
        at += trace_spec(asks + at, count - at, sm, spec);
        out->spec_count += probe_check(spec, &set->limits, NULL) == STATUS_OK;
    }
}

static void schedule_traces(const struct observation_set *set, const struct structure *s,
                            uint16_t sm, double progress, struct campaign_step *out)
{
    struct sets_estimate sets[LEVELS_MAX];
    struct sectored_estimate fill;

    sets_estimate_all(set, s, sets);
    for (uint32_t k = 0; k < s->level_count; k++) {
        add_traces(set, sets[k].asks, sets[k].ask_count, sm, out);
        sectored_estimate(set, s, k, &fill);
        add_traces(set, fill.asks, fill.ask_count, sm, out);
    }
    if (out->spec_count > 0)
        campaign_describe(out, progress, "sets, ways and replacement of %u levels", s->level_count);
}

/* The progress goes from `from` to `to`. */
static void schedule_groups(const struct observation_set *set, const struct structure *s,
                            double from, double to, struct campaign_step *out)
{
    struct group_asks asks;

    group_reads_missing(set, s, &asks);
    for (uint32_t i = 0; i < asks.count && out->spec_count < CAMPAIGN_MAX_SPECS; i++)
        if (probe_check(&asks.specs[i], &set->limits, NULL) == STATUS_OK)
            out->specs[out->spec_count++] = asks.specs[i];
    if (out->spec_count == 0)
        return;
    /* How many pairs are slow is known for certain only once all of them are there. */
    double done = GROUPS_FIRST_PART * (asks.total - asks.missing) / asks.total;
    if (asks.missing == 0)
        done += (1 - GROUPS_FIRST_PART) * (asks.closer - asks.closer_missing) / asks.closer;
    campaign_describe(out, from + (to - from) * done,
                      "random reads of each group and of pairs of groups, %u of %u",
                      asks.total - asks.missing, asks.total);
}

/* What depth full adds. */
static void schedule_full(const struct observation_set *set, const struct structure *s, uint16_t sm,
                          double from, double to, struct campaign_step *out)
{
    schedule_traces(set, s, sm, from, out);
    if (out->spec_count > 0)
        return;
    read_probes_next(set, s, out);
    if (out->spec_count > 0) {
        campaign_describe(out, from, "random reads, with and without windows");
        return;
    }
    read_probes_rates(set, s, out);
    if (out->spec_count > 0)
        campaign_describe(out, from, "random reads of other lengths, atomics and writes");
    else
        schedule_groups(set, s, from, to, out);
}

enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_step *out, struct err *err)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const double found = shares[depth].quick_share;
    struct structure s;
    enum status status;

    memset(out, 0, sizeof *out);
    if (sharing_sm_ids(set, sm_ids) == 0) {
        campaign_warm_up(WARM_UP_US, WARM_UP_REPEATS, out);
        campaign_describe(out, 0, "warming up");
        return STATUS_OK;
    }
    structure_estimate(set, &s);
    status = schedule_structure(set, &s, sm_ids[0], found, out, err);
    if (status != STATUS_OK || out->spec_count > 0)
        return status;
    status = schedule_confirmations(set, &s, sm_ids[0], found, out, err);
    if (status != STATUS_OK || out->spec_count > 0)
        return status;
    if (depth >= DEPTH_FULL)
        schedule_full(set, &s, sm_ids[0], found, shares[depth].full_share, out);
    if (depth == DEPTH_MATRIX && out->spec_count == 0)
        sharing_probes_matrix(set, &s, shares[depth].full_share, out);
    if (out->spec_count > 0)
        return STATUS_OK;
    campaign_describe(out, 1, "done");
    return STATUS_OK;
}
