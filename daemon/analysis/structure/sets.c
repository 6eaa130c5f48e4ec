/* sets.c: see sets.h.
 *
 * The first cycles end a few pages past the onset, and a quarter past it for the replacement. If
 * all cycles up to the saturation are cheap enough, each of them is walked, and every set is seen
 * (complete). If not, the first steps give the number of sets. The miss counts at a quarter, a half
 * and three quarters of the way must then be exactly as predicted, like the counts of the last
 * three cycles (sampled). Anything else is left unknown.
 */
#include "analysis/structure/sets.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 12,        /* number of cycles past the onset */
    FEW_SAMPLES = 2048, /* least number of timed loads of a cycle */
    CHEAP_LOADS = 512 * 1024,
    NEARER_TIMES = 16, /* a nearer level keeps no page of a cycle of this multiple of its entries */
    SHIFTS = 3,
    SHIFTS_THAT_AGREE = 2, /* an entry that the kernel itself needs can spoil one shift */
    WARM_LAPS = 2,
    BEFORE = 3,
    FEW_ASKS = 8, /* largest number of requests after the expected saturation */
    MID_POINTS = 4
};

#define MOST_FALSE_RATE 0.25
/* If at most this share of the irregular misses is as quick as a hit, there is no hit among
 * them. */
#define MOST_QUICK_SHARE 0.005

/* The state of the work on one level. */
struct work {
    const struct observation_set *set;
    const struct level_estimate *level;
    struct sets_estimate *out;
    uint64_t base_bytes;
    uint64_t control_pages;
    uint32_t warm_laps;
    enum reason gave_up; /* reason why further walks cannot make the votes certain */
    uint32_t count;
    struct cycle points[STEPS_MAX_CYCLES]; /* ascending */
};

uint64_t sets_control_pages(const struct level_estimate *level)
{
    return level->lo_pages * 3 / 4;
}

/* Starts the work at the beginning of the range. Points beyond `count` need no value. */
static void begin(struct work *w, const struct observation_set *set,
                  const struct level_estimate *level, struct sets_estimate *out)
{
    w->set = set;
    w->level = level;
    w->out = out;
    w->base_bytes = 0;
    w->control_pages = sets_control_pages(level);
    w->gave_up = REASON_NONE;
    w->warm_laps = WARM_LAPS;
    w->count = 0;
}

/* Returns the first cycle to walk: a few pages before the onset, which may have been found a page
 * or two too late. */
static uint64_t first_pages(const struct work *w)
{
    const uint64_t lo = w->level->lo_pages;
    return lo > w->control_pages + BEFORE ? lo - BEFORE : w->control_pages + 1;
}

static void give_up(struct sets_estimate *out, enum reason reason)
{
    out->sets = UNKNOWN_U32(reason);
    out->ways = UNKNOWN_U32(reason);
    out->victim_entries = UNKNOWN_U32(reason);
    out->run_count = 0;
}

/* Returns the number of laps by the trace's own control, if it exists. */
static uint64_t laps_for(const struct work *w, const struct trace *t)
{
    double error = 1 - w->level->separation;
    if (t->attempts > 0)
        error = t->false_miss_rate > t->false_hit_rate ? t->false_miss_rate : t->false_hit_rate;
    return trace_laps_needed(error);
}

static uint64_t samples_for(const struct work *w, const struct trace *t, uint64_t pages)
{
    const uint64_t laps = laps_for(w, t);
    const uint64_t samples = laps * pages > FEW_SAMPLES ? laps * pages : FEW_SAMPLES;
    return samples < PROBE_MAX_SAMPLES ? samples : PROBE_MAX_SAMPLES;
}

static struct trace_ask cycle_of(const struct work *w, uint64_t pages)
{
    return (struct trace_ask){.stride_bytes = w->level->entry_bytes,
                              .base_bytes = w->base_bytes,
                              .pages = pages,
                              .control_pages = w->control_pages};
}

/* Requests this cycle (again), unless that has been done often enough. */
static void ask(struct work *w, const struct trace *t, uint64_t pages)
{
    struct sets_estimate *out = w->out;
    const uint64_t end = w->base_bytes + pages * w->level->entry_bytes;

    if (end > w->set->limits.range_bytes)
        w->gave_up = REASON_BEYOND_MEMORY;
    else if (t->attempts >= TRACE_MAX_ATTEMPTS)
        w->gave_up = REASON_DISAGREEMENT;
    if (w->gave_up != REASON_NONE || out->ask_count == SETS_MAX_ASKS)
        return;
    out->asks[out->ask_count] = cycle_of(w, pages);
    out->asks[out->ask_count].warm_laps = w->warm_laps;
    out->asks[out->ask_count++].samples = (uint32_t)samples_for(w, t, pages);
}

/* Adds this cycle to the work, or requests it. Cycles must come in ascending order. */
static void load(struct work *w, uint64_t pages)
{
    if (pages > TRACE_MAX_PAGES || w->count == STEPS_MAX_CYCLES) {
        w->gave_up = REASON_TOO_LITTLE_DATA;
        return;
    }
    REACH_ASSERT(w->count == 0 || w->points[w->count - 1].pages < pages);
    struct cycle *p = &w->points[w->count];
    p->pages = pages;
    const struct trace_ask which = cycle_of(w, pages);
    trace_read(w->set, &which, w->level->penalty_cycles, &p->trace);
    if (p->trace.false_miss_rate > MOST_FALSE_RATE || p->trace.false_hit_rate > MOST_FALSE_RATE)
        w->gave_up = REASON_NO_CONTRAST;
    w->count += p->trace.attempts > 0;
    if (p->trace.attempts == 0 || p->trace.laps < laps_for(w, &p->trace))
        ask(w, &p->trace, pages);
}

/* A page that misses in a cycle misses in every longer one. This rule settles pages whose votes are
 * not certain. Pages that stay uncertain, or contradict the rule, are requested again. */
static void settle_page(struct work *w, uint32_t page, bool *again)
{
    const uint64_t bit = (uint64_t)1 << (page % 64);
    uint32_t last_hit = 0;
    uint32_t first_miss = w->count;
    bool any_hit = false;

    for (uint32_t i = 0; i < w->count; i++) {
        const struct trace *t = &w->points[i].trace;
        if (page >= t->pages || trace_bit(t->unsure, page))
            continue;
        if (trace_bit(t->missed, page)) {
            first_miss = first_miss < i ? first_miss : i;
        } else {
            last_hit = i;
            any_hit = true;
        }
    }
    if (any_hit && last_hit > first_miss)
        again[last_hit] = again[first_miss] = true;
    for (uint32_t i = 0; i < w->count; i++) {
        struct trace *t = &w->points[i].trace;
        if (page >= t->pages || !trace_bit(t->unsure, page))
            continue;
        if (i > first_miss) {
            t->missed[page / 64] |= bit;
            t->missed_pages += 1;
        } else if (!any_hit || i > last_hit) {
            again[i] = true;
            continue;
        }
        t->unsure[page / 64] &= ~bit;
        t->unsure_pages -= 1;
    }
}

/* Returns true if every page of every cycle is settled. Otherwise there are requests, or the work
 * has been given up. */
static bool settle(struct work *w)
{
    bool again[STEPS_MAX_CYCLES] = {false};
    bool settled = w->gave_up == REASON_NONE && w->out->ask_count == 0;

    if (w->count == 0)
        return false;
    for (uint32_t page = 0; page < w->points[w->count - 1].trace.pages; page++)
        settle_page(w, page, again);
    for (uint32_t i = 0; i < w->count; i++) {
        if (!again[i])
            continue;
        settled = false;
        ask(w, &w->points[i].trace, w->points[i].pages);
    }
    return settled;
}

/* ---- replacement ---- */

/* Returns the number of pages of the cycle for the replacement: a quarter more than fit. With LRU
 * most sets overflow. With an arbitrary victim most pages of these sets miss irregularly. */
static uint64_t mix_pages(const struct level_estimate *level)
{
    return level->lo_pages + level->lo_pages / 4 + 2;
}

static double flips_of(double rate)
{
    return 2 * rate * (1 - rate);
}

/* Finds whether pages behave alike in every lap. If they do not, the cause may be the noise of the
 * control, or the noise of misses. The noise of misses does not make them as quick as hits. */
static enum replacement classify_replacement(const struct trace *t, double *margin)
{
    const double a = flips_of(t->false_miss_rate);
    const double b = flips_of(t->false_hit_rate);
    const double noise = a > b ? a : b;

    if (t->pairs < 64 || t->miss_share < 0.05)
        return REPLACEMENT_UNKNOWN;
    const double flips = (double)t->flips / (double)t->pairs;
    const double most = noise * 1.3 + 0.02;
    const double least = noise * 1.5 + 0.08;
    *margin = fmax(1 - flips / most, 1 - t->quick_share / MOST_QUICK_SHARE);
    if (flips < most || t->quick_share < MOST_QUICK_SHARE)
        return REPLACEMENT_LRU;
    *margin = 1 - least / flips;
    return flips > least ? REPLACEMENT_NOT_LRU : REPLACEMENT_UNKNOWN;
}

/* ---- a first step unlike the others: a wider set, or a victim buffer ---- */

enum shift_answer { SHIFT_PENDING, SHIFT_UNSURE, SHIFT_SETS, SHIFT_VICTIM };

/* Returns the number of pages of the first step from another start. Returns 0 if the walk does not
 * show the step, and -1 if the walk is requested. If pages are placed by a hash, a start `shift`
 * pages later leaves out this number of pages with sets of their own. It includes the same number
 * of pages that do not fit. So the step comes up to `shift` pages sooner. */
static int first_step_from(struct work *other, uint64_t first_at, uint32_t shift)
{
    struct steps steps;
    for (uint64_t pages = first_at - 1 - shift; pages <= first_at + 1; pages++)
        load(other, pages);
    if (!settle(other))
        return other->gave_up != REASON_NONE ? 0 : -1;
    steps_find(other->points, other->count, &steps);
    return steps.broken || steps.count == 0 ? 0 : (int)steps.size[0];
}

static enum shift_answer ask_shifts(const struct work *w, const struct steps *steps)
{
    struct work *other = malloc(sizeof *other);
    uint32_t same = 0;
    bool ordinary = false;
    bool pending = false;

    REACH_ASSERT(other);
    for (uint32_t shift = 1; shift <= SHIFTS; shift++) {
        begin(other, w->set, w->level, w->out);
        other->base_bytes = shift * w->level->entry_bytes;
        other->warm_laps = w->warm_laps;
        const int first = first_step_from(other, steps->first_at, shift);
        pending = pending || first < 0;
        same += first == (int)steps->size[0];
        for (uint32_t i = 1; i < steps->count; i++)
            ordinary = ordinary || first == (int)steps->size[i];
    }
    free(other);
    if (pending)
        return SHIFT_PENDING;
    if (ordinary)
        return SHIFT_SETS;
    return same >= SHIFTS_THAT_AGREE && steps_others_are_equal(steps) &&
                   steps->size[0] % steps->size[1] == 0
               ? SHIFT_VICTIM
               : SHIFT_UNSURE;
}

/* ---- conclusions ---- */

/* Adds sets, sorted by ways, most first. */
static void add_sets(struct sets_estimate *out, uint32_t ways, uint32_t sets)
{
    uint32_t at = 0;

    while (at < out->run_count && out->runs[at].ways > ways)
        at++;
    if (at < out->run_count && out->runs[at].ways == ways) {
        out->runs[at].sets += sets;
        return;
    }
    if (out->run_count == FINGERPRINT_MAX_SET_RUNS) {
        give_up(out, REASON_TOO_LITTLE_DATA);
        return;
    }
    memmove(&out->runs[at + 1], &out->runs[at], (out->run_count - at) * sizeof out->runs[0]);
    out->runs[at] = (struct set_run){.ways = ways, .sets = sets};
    out->run_count += 1;
}

/* Returns the evidence of the cycle with the fewest laps, and of the least certain page of any
 * cycle. */
static struct evidence score_points(const struct work *w)
{
    struct evidence e =
        evidence_make(EVIDENCE_TRACES, w->points[0].trace.laps, w->points[0].trace.margin);

    for (uint32_t i = 1; i < w->count; i++) {
        const struct trace *t = &w->points[i].trace;
        e = evidence_weaker(e, evidence_make(EVIDENCE_TRACES, t->laps, t->margin));
    }
    return e;
}

/* `steps` contains all steps of the level, or a part of them. `missing` further steps are like the
 * last one. */
static void derive(struct work *w, const struct steps *steps, uint32_t missing, bool victim)
{
    struct sets_estimate *out = w->out;
    const uint32_t entries = victim ? steps->size[0] / steps->size[1] - 1 : 0;
    uint32_t sets = 0;

    out->victim_entries = KNOWN_U32(entries);
    for (uint32_t i = 0; i < steps->count; i++) {
        if (victim && i == 0)
            add_sets(out, steps->size[1] - 1, entries + 1);
        else
            add_sets(out, steps->size[i] - 1, 1);
    }
    if (missing > 0)
        add_sets(out, steps->size[steps->count - 1] - 1, missing);
    for (uint32_t i = 0; i < out->run_count; i++)
        sets += out->runs[i].sets;
    if (out->run_count == 0)
        return;
    out->evidence = score_points(w);
    out->sets = KNOWN_U32(sets);
    out->ways =
        out->run_count == 1 ? KNOWN_U32(out->runs[0].ways) : UNKNOWN_U32(REASON_NOT_APPLICABLE);
}

static void report_unsettled(struct work *w)
{
    give_up(w->out, w->gave_up != REASON_NONE ? w->gave_up : REASON_TOO_LITTLE_DATA);
    if (w->gave_up != REASON_NONE)
        w->out->ask_count = 0;
}

static void derive_steps(struct work *w, const struct steps *steps, uint32_t missing)
{
    enum shift_answer answer = SHIFT_SETS;

    if (steps_first_is_special(steps))
        answer = ask_shifts(w, steps);
    if (answer == SHIFT_SETS || answer == SHIFT_VICTIM)
        derive(w, steps, missing, answer == SHIFT_VICTIM);
    else
        give_up(w->out, answer == SHIFT_PENDING ? REASON_TOO_LITTLE_DATA : REASON_DISAGREEMENT);
}

/* ---- complete: every cycle from the onset to the saturation ---- */

/* Returns the index of the first cycle in which every page misses. Returns -1 if there is none
 * yet. */
static int full_point(const struct work *w)
{
    for (uint32_t i = 1; i < w->count && w->points[i].pages == w->points[i - 1].pages + 1; i++)
        if (w->points[i].trace.missed_pages == w->points[i].pages)
            return (int)i;
    return -1;
}

static bool is_cheap(const struct work *w, uint64_t last_pages)
{
    const uint64_t first = first_pages(w);
    const uint64_t cycles = last_pages > first ? last_pages - first : 0;
    const uint64_t laps = trace_laps_needed(1 - w->level->separation);
    return last_pages <= TRACE_MAX_PAGES && cycles + 2 < STEPS_MAX_CYCLES && laps < UINT32_MAX &&
           cycles * last_pages * laps <= CHEAP_LOADS;
}

/* Returns whether no page is known to hit. Uncertain pages of the last cycle are requested
 * again. */
static bool is_full(const struct cycle *p)
{
    return p->trace.missed_pages + p->trace.unsure_pages == p->pages;
}

static void estimate_complete(struct work *w)
{
    struct steps steps;
    bool full = false;

    w->count = 0;
    for (uint64_t pages = first_pages(w); !full && w->out->ask_count < SETS_MAX_ASKS; pages++) {
        if (!is_cheap(w, pages) && w->out->ask_count == 0)
            w->gave_up = REASON_TOO_LITTLE_DATA;
        const bool late = pages > w->level->sat_hi_pages && w->out->ask_count >= FEW_ASKS;
        if (!is_cheap(w, pages) || late || w->gave_up != REASON_NONE)
            break;
        const uint32_t before = w->count;
        load(w, pages);
        full = w->count > before && is_full(&w->points[before]);
    }
    if (!settle(w) || full_point(w) < 0) {
        report_unsettled(w);
        return;
    }
    steps_find(w->points, (uint32_t)full_point(w) + 1, &steps);
    if (steps.broken)
        give_up(w->out, REASON_DISAGREEMENT);
    else
        derive_steps(w, &steps, 0);
}

/* ---- sampled: checks of the predictions of the first steps ---- */

/* Returns the number of pages that miss in a cycle of `pages`, if every page from the onset on
 * overflows one more set. */
static uint64_t predicted(const struct steps *steps, uint64_t pages)
{
    if (pages < steps->first_at)
        return 0;
    return steps->size[0] + (uint64_t)steps->size[1] * (pages - steps->first_at);
}

static bool is_as_predicted(const struct work *w, const struct steps *steps)
{
    for (uint32_t i = 0; i < w->count; i++) {
        const struct cycle *p = &w->points[i];
        if (p->trace.missed_pages != predicted(steps, p->pages))
            return false;
        if (i > 0 && p->pages > steps->first_at && p->pages == p[-1].pages + 1 &&
            steps_joined(&p[-1], p) != (int)steps->size[1])
            return false;
    }
    return true;
}

/* Returns the number of steps until every page misses. It is the number n of pages beyond the most
 * that fit, with fits + n = first + (n - 1) * step. Returns 0 if no whole number satisfies this
 * equation. */
static uint64_t predicted_steps(const struct steps *steps)
{
    const uint64_t ways = steps->size[1] - 1;
    const uint64_t rest = steps->first_at - 1 + steps->size[1];
    if (rest <= steps->size[0] || (rest - steps->size[0]) % ways != 0)
        return 0;
    return (rest - steps->size[0]) / ways;
}

/* Loads cycles at a quarter, a half and three quarters of the way, and at its end. */
static void load_samples(struct work *w, uint64_t fits, uint64_t steps)
{
    uint64_t last = w->points[w->count - 1].pages;
    for (uint64_t q = 1; q <= 3; q++)
        for (uint64_t pages = fits + steps * q / 4; pages < fits + steps * q / 4 + MID_POINTS;
             pages++)
            if (pages > last && pages < fits + steps - 2) {
                last = pages;
                load(w, pages);
            }
    for (uint64_t pages = fits + steps - 2; pages <= fits + steps; pages++)
        if (pages > last)
            load(w, pages);
}

static void estimate_sampled(struct work *w)
{
    struct steps steps;
    enum reason reason = REASON_TOO_LITTLE_DATA;

    steps_find(w->points, w->count, &steps);
    if (steps.broken)
        reason = REASON_DISAGREEMENT;
    /* From the onset on, every page must make a step. */
    if (steps.broken || steps.count < 3 || !steps_others_are_equal(&steps) ||
        steps.first_at + steps.count != w->points[w->count - 1].pages + 1 ||
        predicted_steps(&steps) < steps.count) {
        give_up(w->out, reason);
        return;
    }
    const uint64_t fits = steps.first_at - 1;
    const uint64_t all = predicted_steps(&steps);
    load_samples(w, fits, all);
    if (!settle(w))
        report_unsettled(w);
    else if (!is_as_predicted(w, &steps) || predicted(&steps, fits + all) != fits + all)
        give_up(w->out, reason);
    else
        derive_steps(w, &steps, (uint32_t)all - steps.count);
}

/* ---- one level ---- */

/* Returns the reason why a level cannot be tested, from the levels nearer to the SM. */
static enum reason obstacle(const struct structure *s, uint32_t k, const struct sets_estimate *all)
{
    const struct level_estimate *level = &s->levels[k];

    if (!level->entry_known || level->lo_pages < 2 || level->hi_pages == 0)
        return REASON_TOO_LITTLE_DATA;
    if (mix_pages(level) > TRACE_MAX_PAGES)
        return REASON_TOO_LITTLE_DATA;
    for (uint32_t j = 0; j < k; j++) {
        const struct level_estimate *near = &s->levels[j];
        if (!near->entry_known || near->lo_pages == 0 || near->entry_bytes > level->entry_bytes)
            return REASON_NO_CONTRAST;
        if (level->lo_pages >= near->lo_pages * NEARER_TIMES)
            continue;
        if (all[j].ask_count > 0)
            return REASON_NOT_MEASURED;
        if (all[j].replacement != REPLACEMENT_LRU || near->sat_hi_pages == 0 ||
            near->sat_hi_pages > sets_control_pages(level))
            return REASON_NO_CONTRAST;
    }
    return REASON_NONE;
}

/* Loads the cycles that every level needs first. Returns true if they are present and settled. */
static bool load_window(struct work *w)
{
    const uint64_t lo = w->level->lo_pages;
    const uint64_t mix = mix_pages(w->level);

    for (uint64_t pages = first_pages(w); pages <= lo + WINDOW && pages < mix; pages++)
        load(w, pages);
    load(w, mix);
    const bool settled = w->gave_up == REASON_NONE && w->out->ask_count == 0;
    if (settled) {
        const struct trace *t = &w->points[w->count - 1].trace;
        double margin = 0;
        w->out->replacement = classify_replacement(t, &margin);
        w->out->replacement_evidence = evidence_make(EVIDENCE_TRACES, t->laps, margin);
    }
    return settled;
}

/* Returns whether any set has a choice of a victim. Sets of one way have none. */
static bool any_choice(const struct work *w)
{
    struct steps steps;
    steps_find(w->points, w->count, &steps);
    for (uint32_t i = 0; i < steps.count; i++)
        if (steps.size[i] > 2)
            return !steps.broken;
    return false;
}

static void estimate_level(struct work *w)
{
    struct sets_estimate *out = w->out;

    if (!load_window(w)) {
        report_unsettled(w);
        return;
    }
    if (out->replacement != REPLACEMENT_LRU) {
        give_up(out, out->replacement == REPLACEMENT_UNKNOWN ? REASON_DISAGREEMENT
                                                             : REASON_NOT_APPLICABLE);
        return;
    }
    const uint64_t full = w->level->sat_hi_pages ? w->level->sat_hi_pages : 2 * w->level->lo_pages;
    w->count -= 1; /* the cycle for the replacement has no neighbor */
    if (!settle(w)) {
        out->replacement = REPLACEMENT_UNKNOWN;
        report_unsettled(w);
        return;
    }
    if (!any_choice(w))
        out->replacement = REPLACEMENT_UNKNOWN;
    if (full_point(w) >= 0 || is_cheap(w, full))
        estimate_complete(w);
    else
        estimate_sampled(w);
}

void sets_estimate_all(const struct observation_set *set, const struct structure *s,
                       struct sets_estimate *out)
{
    struct work *w = malloc(sizeof *w);

    REACH_ASSERT(w);
    for (uint32_t k = 0; k < s->level_count; k++) {
        const enum reason reason = obstacle(s, k, out);
        memset(&out[k], 0, sizeof out[k]);
        if (reason != REASON_NONE) {
            give_up(&out[k], reason);
            continue;
        }
        begin(w, set, &s->levels[k], &out[k]);
        w->warm_laps += k; /* each nearer level takes a lap to repeat itself in every lap */
        estimate_level(w);
    }
    free(w);
}
