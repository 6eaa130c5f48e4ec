/* campaign.c: schedules the probes of a measurement, from coarse to fine, in these phases:
 *
 *   warm-up   raises the clocks of an idle chip, and lists the SM ids
 *   control   checks whether other processes take entries away (analysis/levels/control.h)
 *   sweeps    walks up to 256 pages that share one line, and more pages, at one large stride
 *   entries   finds the bytes that an entry translates, for each step of the sweeps
 *   refine    finds onset and saturation to the page
 *   sharing   makes rounds or pairs for each level until every SM is in a group (sharing_probes.c)
 *   confirm   measures onsets a second time (analysis/sharing/confirm.h) and, beside other
 *             processes, makes the sweeps again
 *   sets      depth full: sets, ways, replacement, fill (analysis/structure)
 *   sides     depth full: the sides of the L2 (analysis/caches/sides.h)
 *   caches    depth full: the data caches and memory's latency (analysis/caches/hierarchy.h)
 *   on chip   depth full: shared memory (analysis/onchip/banks.h) and clusters (clusters.h)
 *   sets read depth full: throughput of working sets (analysis/caches/working_sets.h)
 *   in flight depth full: sufficient loads in flight and SMs (analysis/throughput/parallel.h)
 *   reads     depth full: throughput with and without windows (read_probes.c)
 *   rates     depth full: random accesses of other kinds (read_probes.c)
 *   runs      depth full: random reads over physical runs (analysis/throughput/contiguity.h)
 *   groups    depth full: random reads of each group alone, and of pairs of groups
 *   memory    depth full and memory: kinds of memory other than device memory (memory_probes.c)
 *   matrix    depth matrix: pairs of all SMs at the window level
 *
 * The steps of the phase caches depend on one another, and each takes a millisecond. So the GPU
 * gets fillers beside these steps. Fillers are probes of the phases sets read, in flight and
 * groups, which depend only on phases before caches.
 *
 * Each call schedules the first missing probes. Observations are scanned again only if the memo of
 * the last call is out of date. With or without a memo, the same observations lead to the same
 * probes.
 */
#include "campaign/campaign.h"

#include "analysis/caches/hierarchy.h"
#include "analysis/caches/sides.h"
#include "analysis/caches/working_sets.h"
#include "analysis/levels/control.h"
#include "analysis/levels/levels.h"
#include "analysis/levels/refine_plan.h"
#include "analysis/onchip/banks.h"
#include "analysis/onchip/clusters.h"
#include "analysis/sharing/confirm.h"
#include "analysis/structure/sectored.h"
#include "analysis/structure/sets.h"
#include "analysis/throughput/contiguity.h"
#include "analysis/throughput/group_reads.h"
#include "analysis/throughput/parallel.h"
#include "base/units.h"
#include "campaign/probes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    WARM_UP_US = 5000,
    WARM_UP_REPEATS = 2,
    LINE_SWEEP_PAGES = 256, /* pages of the first sweep; the CUDA source can map 1024 pages to one
                               line (cuda_arena.h) */
    BULK_SWEEP_FIRST = 64,
    SWEEP_PAGES = 8192,
    POINTS_AN_OCTAVE = 4,
    MOST_SWEEPS = 4, /* limit of the sweeps of one range for each one that must be confirmed */
    FILLERS = 6      /* largest number of fillers of one step */
};

/* The share of the phase groups that is done after each group was read alone and each pair was read
 * once. */
#define GROUPS_FIRST_PART 0.9

/* The progress of each depth at the end of the phases of depth quick and of depth full. The phases
 * of a deeper depth take about the same time as all previous phases. */
static const struct {
    double quick, full;
} done_at[DEPTH_COUNT] = {[DEPTH_QUICK] = {1.0, 1.0},
                          [DEPTH_FULL] = {0.5, 1.0},
                          [DEPTH_MEMORY] = {0.1, 0.2},
                          [DEPTH_MATRIX] = {0.25, 0.5}};

__attribute__((format(printf, 3, 4))) static void describe(struct campaign_step *out,
                                                           double progress, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
    out->progress = progress;
}

struct phase {
    const struct observation_set *set;
    const struct structure *s;
    enum depth depth;
    uint16_t sm;  /* the SM that probes of one SM use */
    double quick; /* progress at the end of the phases of depth quick, and of depth full */
    double full;
    struct err *err;
};

/* Adds points from `first` to `last` pages: POINTS_AN_OCTAVE points for each doubling, and
 * `last`. */
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

/* Schedules the sweep from `first` to `last` pages if fewer than `wanted` are confirmed. Returns
 * the number of times that it was made. */
static uint32_t add_sweep(const struct phase *p, uint32_t wanted, uint64_t first, uint64_t last,
                          struct campaign_step *out)
{
    uint32_t asked = 0;
    struct probe_spec *spec = &out->specs[out->spec_count];
    *spec = (struct probe_spec){.kind = PROBE_CHASE,
                                .stride_bytes = levels_sweep_stride(&p->set->limits),
                                .samples = LEVELS_SWEEP_SAMPLES,
                                .warm_laps = 1,
                                .sm_count = 1,
                                .sms = {p->sm}};
    add_points(spec, first, last);
    out->spec_count += spec->point_count >= LEVELS_SWEEP_POINTS &&
                       levels_count_sweeps(p->set, spec, &asked) < wanted;
    return asked;
}

/* Schedules a control if there are fewer than `wanted` and other processes may take entries
 * away. */
static enum status schedule_control(const struct phase *p, uint32_t wanted,
                                    struct campaign_step *out)
{
    if (observation_set_is_shared(p->set) && control_count(p->set) < wanted)
        out->spec_count += control_test(&p->set->limits, p->sm, &out->specs[out->spec_count]);
    return STATUS_OK;
}

static enum status schedule_first_control(const struct phase *p, struct campaign_step *out)
{
    out->progress = 0;
    return schedule_control(p, 1, out);
}

static enum status schedule_last_control(const struct phase *p, struct campaign_step *out)
{
    return schedule_control(p, 2, out);
}

/* Schedules both sweeps if fewer than `wanted` of them are confirmed. */
static enum status schedule_sweeps(const struct phase *p, uint32_t wanted,
                                   struct campaign_step *out)
{
    const uint64_t stride = levels_sweep_stride(&p->set->limits);
    uint64_t most = p->set->limits.range_bytes / stride;

    most = most < SWEEP_PAGES ? most : SWEEP_PAGES;
    uint32_t asked =
        add_sweep(p, wanted, 1, most < LINE_SWEEP_PAGES ? most : LINE_SWEEP_PAGES, out);
    if (most > LINE_SWEEP_PAGES) {
        const uint32_t more = add_sweep(p, wanted, BULK_SWEEP_FIRST, most, out);
        asked = more > asked ? more : asked;
    }
    if (out->spec_count > 0 && asked >= wanted * MOST_SWEEPS)
        return err_set(p->err, STATUS_DISTURBED,
                       "%u pairs of sweeps disagree about their common footprints, or rise without "
                       "a step",
                       asked);
    return STATUS_OK;
}

static enum status schedule_first_sweeps(const struct phase *p, struct campaign_step *out)
{
    describe(out, 0.05 * p->quick, "footprint sweep at %llu MiB",
             (unsigned long long)(levels_sweep_stride(&p->set->limits) / MIB));
    return schedule_sweeps(p, 1, out);
}

/* Each conclusion about a level is confirmed by a second probe, and only a second sweep can confirm
 * that no level is missing. */
static enum status schedule_last_sweeps(const struct phase *p, struct campaign_step *out)
{
    return observation_set_is_shared(p->set) ? schedule_sweeps(p, 2, out) : STATUS_OK;
}

/* Returns whether the step has this probe already. Two similar levels, or two paths, may need the
 * same probe. */
static bool is_in_step(const struct campaign_step *step, const struct probe_spec *spec)
{
    for (uint32_t i = 0; i < step->spec_count; i++)
        if (probe_same(&step->specs[i], spec))
            return true;
    return false;
}

/* Schedules one entry test for each level whose search is not over. */
static enum status schedule_entries(const struct phase *p, struct campaign_step *out)
{
    for (uint32_t k = 0; k < p->s->level_count; k++) {
        const struct level_estimate *level = &p->s->levels[k];
        struct probe_spec *spec = &out->specs[out->spec_count];
        if (level->test_wanted && levels_entry_test(&level->wanted, &p->set->limits, p->sm, spec))
            out->spec_count += !is_in_step(out, spec);
    }
    describe(out, 0.15 * p->quick, "bytes an entry translates, %u levels", p->s->level_count);
    return STATUS_OK;
}

/* Schedules one refinement for each level that can be refined further. If the test was made
 * already, the level cannot be refined, and the test is not repeated. */
static enum status schedule_refinements(const struct phase *p, struct campaign_step *out)
{
    for (uint32_t k = 0; k < p->s->level_count; k++) {
        const struct level_estimate *level = &p->s->levels[k];
        struct probe_spec *spec = &out->specs[out->spec_count];
        if (level->entry_known && refine_plan_next(level, &p->set->limits, p->sm, spec) &&
            !levels_find_chase(p->set, spec))
            out->spec_count += !is_in_step(out, spec);
    }
    describe(out, 0.3 * p->quick, "onset and saturation of %u levels", p->s->level_count);
    return STATUS_OK;
}

static enum status schedule_sharing(const struct phase *p, struct campaign_step *out)
{
    return sharing_probes_next(p->set, p->s, p->quick, out, p->err);
}

static enum status schedule_confirmations(const struct phase *p, struct campaign_step *out)
{
    const struct structure *s = p->s;

    if (!control_is_explained(p->set, s->levels, s->level_count))
        return err_set(p->err, STATUS_DISTURBED,
                       "the control is slow at a footprint that overflows no known level");
    for (uint32_t k = 0; k < s->level_count && out->spec_count + 3 <= CAMPAIGN_MAX_SPECS; k++) {
        const struct observation *row = confirm_pairs(p->set, s, k);
        const enum confirmation state = confirm_level(p->set, &s->levels[k]);

        if (state == CONFIRMATION_REFUTED)
            return err_set(p->err, STATUS_DISTURBED, "level %u: the overflow was not confirmed",
                           k + 1);
        if (state == CONFIRMATION_OPEN)
            out->spec_count +=
                confirm_test(p->set, &s->levels[k], p->sm, &out->specs[out->spec_count]);
        if (confirm_saturation(p->set, &s->levels[k], p->sm, &out->specs[out->spec_count]) ==
                CONFIRMATION_OPEN ||
            confirm_penalty(p->set, &s->levels[k], p->sm, &out->specs[out->spec_count]) ==
                CONFIRMATION_OPEN)
            out->spec_count += 1;
        if (row)
            out->specs[out->spec_count++] = row->spec;
    }
    return STATUS_OK;
}

/* Packs traces into probes of several cycles each. Leaves out a probe that the GPU cannot run or
 * that the step has already, for another level with the same entry size. */
static void add_traces(const struct observation_set *set, struct trace_ask *asks, uint32_t count,
                       uint16_t sm, struct campaign_step *out)
{
    trace_sort(asks, count);
    for (uint32_t at = 0; at < count && out->spec_count < CAMPAIGN_MAX_SPECS;) {
        struct probe_spec *spec = &out->specs[out->spec_count];
        at += trace_spec(asks + at, count - at, sm, spec);
        out->spec_count +=
            probe_check(spec, &set->limits, NULL) == STATUS_OK && !is_in_step(out, spec);
    }
}

/* Returns whether a phase with probes of kind `kind` is over. A phase ends when none of its probes
 * is missing, and observations are only added. So an observation of kind `later` after all
 * observations of kind `kind` shows the end. A search for missing probes would read all loads
 * again, hundreds of times in a measurement. */
static bool is_over(const struct observation_set *set, enum probe_kind kind, enum probe_kind later)
{
    bool any = false;
    bool over = false;

    for (size_t i = 0; i < set->count; i++) {
        any = any || set->items[i].spec.kind == kind;
        over =
            any && (set->items[i].spec.kind == later || (over && set->items[i].spec.kind != kind));
    }
    return over;
}

static enum status schedule_traces(const struct phase *p, struct campaign_step *out)
{
    struct sets_estimate sets[LEVELS_MAX];
    struct sectored_estimate fill;

    if (is_over(p->set, PROBE_CHASE, PROBE_SIDES))
        return STATUS_OK;
    sets_estimate_all(p->set, p->s, sets);
    for (uint32_t k = 0; k < p->s->level_count; k++) {
        add_traces(p->set, sets[k].asks, sets[k].ask_count, p->sm, out);
        sectored_estimate(p->set, p->s, k, &fill);
        add_traces(p->set, fill.asks, fill.ask_count, p->sm, out);
    }
    describe(out, p->quick, "sets, ways and replacement of %u levels", p->s->level_count);
    return STATUS_OK;
}

static enum status schedule_sides(const struct phase *p, struct campaign_step *out)
{
    struct sides_estimate estimate;

    sides_estimate(p->set, &estimate);
    if (estimate.asks)
        out->specs[out->spec_count++] = estimate.ask;
    return STATUS_OK;
}

static enum status schedule_working_sets(const struct phase *p, struct campaign_step *out)
{
    out->spec_count += working_sets_missing(p->set, out->specs + out->spec_count,
                                            CAMPAIGN_MAX_SPECS - out->spec_count);
    return STATUS_OK;
}

/* Returns whether two structs have equal bytes. If only padding differs, the result is false, and
 * some work is done twice. */
static bool same_bytes(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static enum status schedule_caches(const struct phase *p, struct campaign_step *out)
{
    struct hierarchy_estimate estimate;

    if (is_over(p->set, PROBE_CACHE, PROBE_SHARED)) /* the next phase without fillers */
        return STATUS_OK;
    hierarchy_estimate(p->set, &estimate);
    for (uint32_t i = 0; i < estimate.walks.ask_count; i++)
        if (!is_in_step(out, &estimate.walks.asks[i]))
            out->specs[out->spec_count++] = estimate.walks.asks[i];
    return STATUS_OK;
}

static enum status schedule_onchip(const struct phase *p, struct campaign_step *out)
{
    out->spec_count = banks_missing(p->set, out->specs, CAMPAIGN_MAX_SPECS);
    out->spec_count += clusters_missing(p->set, out->specs + out->spec_count,
                                        CAMPAIGN_MAX_SPECS - out->spec_count);
    return STATUS_OK;
}

static enum status schedule_concurrency(const struct phase *p, struct campaign_step *out)
{
    if (out->spec_count < CAMPAIGN_MAX_SPECS)
        out->spec_count += parallel_missing(p->set, p->s, &out->specs[out->spec_count]);
    return STATUS_OK;
}

static enum status schedule_reads(const struct phase *p, struct campaign_step *out)
{
    read_probes_next(p->set, p->s, out);
    return STATUS_OK;
}

static enum status schedule_rates(const struct phase *p, struct campaign_step *out)
{
    read_probes_rates(p->set, p->s, out);
    return STATUS_OK;
}

static enum status schedule_runs(const struct phase *p, struct campaign_step *out)
{
    struct contiguity_estimate estimate;

    contiguity_estimate(p->set, structure_reach_bytes(p->s), &estimate);
    if (estimate.asks)
        out->specs[out->spec_count++] = estimate.ask;
    return STATUS_OK;
}

static enum status schedule_groups(const struct phase *p, struct campaign_step *out)
{
    struct group_asks asks;

    group_reads_missing(p->set, p->s, &asks);
    for (uint32_t i = 0; i < asks.count && out->spec_count < CAMPAIGN_MAX_SPECS; i++)
        if (probe_check(&asks.specs[i], &p->set->limits, NULL) == STATUS_OK)
            out->specs[out->spec_count++] = asks.specs[i];
    if (asks.count == 0)
        return STATUS_OK;
    /* The number of slow pairs is certain only when all pairs have been read. */
    double done = GROUPS_FIRST_PART * (asks.total - asks.missing) / asks.total;
    if (asks.missing == 0)
        done += (1 - GROUPS_FIRST_PART) * (asks.closer - asks.closer_missing) / asks.closer;
    describe(out, p->quick + (p->full - p->quick) * done,
             "random reads of each group and of pairs of groups, %u of %u",
             asks.total - asks.missing, asks.total);
    return STATUS_OK;
}

static enum status schedule_memory(const struct phase *p, struct campaign_step *out)
{
    if (memory_probes_next(p->set, p->s, p->depth, out))
        describe(out, p->full, "random reads of %s memory", memory_kind_name(out->specs[0].memory));
    return STATUS_OK;
}

static enum status schedule_matrix(const struct phase *p, struct campaign_step *out)
{
    sharing_probes_matrix(p->set, p->s, p->full, out);
    return STATUS_OK;
}

/* The phases in order, with the lowest depth of each. `message` describes a step of the phase. If
 * it is "", the phase describes its steps itself. */
static const struct {
    enum status (*schedule)(const struct phase *p, struct campaign_step *out);
    enum depth depth;
    const char *message;
    bool is_chain; /* the steps of the phase depend on one another, so fillers run beside them */
    bool fills;    /* the probes of the phase serve as fillers */
} phases[] = {
    {schedule_first_control, DEPTH_QUICK,
     .message = "whether other processes take translations away"},
    {schedule_first_sweeps, DEPTH_QUICK, .message = ""},
    {schedule_entries, DEPTH_QUICK, .message = ""},
    {schedule_refinements, DEPTH_QUICK, .message = ""},
    {schedule_sharing, DEPTH_QUICK, .message = ""},
    {schedule_confirmations, DEPTH_QUICK, .message = "what was found, once more"},
    {schedule_last_sweeps, DEPTH_QUICK, .message = "beside other processes, the sweeps once more"},
    {schedule_last_control, DEPTH_QUICK,
     .message = "whether other processes take translations away"},
    {schedule_traces, DEPTH_FULL, .message = ""},
    {schedule_sides, DEPTH_FULL, .message = "the sides of the L2", .is_chain = true},
    {schedule_caches, DEPTH_FULL, .message = "data caches and the latency of memory",
     .is_chain = true},
    {schedule_onchip, DEPTH_FULL, .message = "shared memory and clusters"},
    {schedule_concurrency, DEPTH_FULL, .message = "random reads by loads in flight and by SMs",
     .fills = true},
    {schedule_working_sets, DEPTH_FULL, .message = "random reads of sets that caches may keep",
     .fills = true},
    {schedule_reads, DEPTH_FULL, .message = "random reads, with and without windows"},
    {schedule_rates, DEPTH_FULL, .message = "random reads of other lengths, atomics and writes"},
    {schedule_runs, DEPTH_FULL, .message = "random reads over physically scattered memory"},
    {schedule_groups, DEPTH_FULL, .message = "", .fills = true},
    {schedule_memory, DEPTH_FULL, .message = ""},
    {schedule_matrix, DEPTH_MATRIX, .message = ""},
};
enum { PHASES = sizeof phases / sizeof phases[0] };

/* Adds fillers to a step of phase `now`. Beside other processes there are no fillers, because an
 * interrupted step would have to wait for the fillers. */
static enum status add_fillers(const struct phase *p, uint32_t now, struct campaign_step *out)
{
    const uint32_t wanted = out->spec_count;
    const double progress = out->progress;
    char message[sizeof out->message];
    enum status status = STATUS_OK;

    if (!phases[now].is_chain || observation_set_is_shared(p->set))
        return STATUS_OK;
    memcpy(message, out->message, sizeof message);
    for (uint32_t i = now + 1;
         i < PHASES && status == STATUS_OK && out->spec_count < wanted + FILLERS; i++)
        if (phases[i].fills && p->depth >= phases[i].depth)
            status = phases[i].schedule(p, out);
    out->filler_count = out->spec_count - wanted;
    out->spec_count = wanted;
    out->progress = progress;
    memcpy(out->message, message, sizeof message);
    return status;
}

/* Returns the number of observations in device memory whose kind has its bit in `kinds`. */
static size_t count_kinds(const struct observation_set *set, unsigned kinds)
{
    size_t n = 0;

    for (size_t i = 0; i < set->count; i++)
        n += set->items[i].spec.memory == MEMORY_DEVICE &&
             (kinds >> set->items[i].spec.kind & 1) != 0;
    return n;
}

/* Brings the memo up to date with the observations. If new walks only confirm levels, like walks
 * that trace the sets of a level, the sharing is not computed again. */
static void memo_renew(const struct observation_set *set, struct campaign_memo *memo)
{
    const size_t walks = count_kinds(set, 1U << PROBE_CHASE);
    const size_t rounds = count_kinds(set, 1U << PROBE_ROUND | 1U << PROBE_PAIRS);
    const bool shared = observation_set_is_shared(set);
    const bool same_walks = memo->known && memo->walk_count == walks;
    const bool same_rounds = memo->known && memo->round_count == rounds;
    struct structure *const s = &memo->structure;
    struct level_estimate before[LEVELS_MAX];
    const uint32_t count = s->level_count;

    if (same_walks && same_rounds && memo->shared == shared &&
        memo->excluded_count == set->excluded.count)
        return;
    memcpy(before, s->levels, sizeof before);
    if (!same_walks)
        structure_levels(set, s);
    if (!same_rounds || count != s->level_count || !same_bytes(before, s->levels, sizeof before))
        structure_sharing(set, s);
    memo->known = true;
    memo->walk_count = walks;
    memo->round_count = rounds;
    memo->excluded_count = set->excluded.count;
    memo->shared = shared;
    memo->over = 0;
}

enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_memo *memo, struct campaign_step *out, struct err *err)
{
    struct campaign_memo fresh = {.known = false};
    uint16_t sm_ids[REACH_MAX_SMS];

    memo = memo ? memo : &fresh;
    memset(out, 0, sizeof *out);
    if (sharing_sm_ids(set, sm_ids) == 0) {
        out->specs[out->spec_count++] = campaign_warm_up(WARM_UP_US, WARM_UP_REPEATS);
        describe(out, 0, "warming up");
        return STATUS_OK;
    }
    memo_renew(set, memo);
    const struct phase p = {
        set, &memo->structure, depth, sm_ids[0], done_at[depth].quick, done_at[depth].full, err};
    for (; memo->over < PHASES; memo->over++) {
        if (depth < phases[memo->over].depth)
            continue;
        describe(out, p.quick, "%s", phases[memo->over].message);
        const enum status status = phases[memo->over].schedule(&p, out);
        if (status != STATUS_OK)
            return status;
        if (out->spec_count > 0)
            return add_fillers(&p, memo->over, out);
    }
    describe(out, 1, "done");
    return STATUS_OK;
}
