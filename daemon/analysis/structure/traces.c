/* traces.c: see traces.h.
 *
 * A page has votes of misses and of hits. With a false miss rate p and a false hit rate q, each
 * miss adds log((1 - q) / p) to a sum, and each hit subtracts log((1 - p) / q). A page is certain
 * if the sum is CERTAIN or more in either direction. Three votes of three, or five of six, are
 * enough without noise.
 */
#include "analysis/structure/traces.h"

#include "analysis/levels/sweep.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTS_A_SPEC = 16,
    BASE_LAPS = 3,
    MEDIAN_LOADS = 2048 /* loads of a control that are enough for its median */
};

#define CERTAIN 7.0
/* Lower rates cannot be measured with a control of a thousand loads. */
#define LEAST_RATE 0.002
#define QUIET_RATE 0.001
/* A load that is slower than a hit by more than MISS_AT_MOST penalties and MISS_SLACK cycles is not
 * a miss. */
#define MISS_AT_MOST 2.0
#define MISS_SLACK   30.0
/* Slices of L2 lie at different distances. If a common threshold misjudges this share of the
 * control's loads, every page gets its own threshold. */
#define SCATTER_RATE 0.03

/* How one observation distinguishes a hit from a miss. */
struct gauge {
    double penalty;
    double base; /* cycles of a hit */
    double false_miss, false_hit;
    uint32_t own_bases; /* pages [0, own_bases) have a base of their own; 0 if no page has */
    double base_of[TRACE_MAX_PAGES];
};

struct votes {
    uint16_t hits[TRACE_MAX_PAGES];
    uint16_t misses[TRACE_MAX_PAGES];
    uint16_t quick[TRACE_MAX_PAGES]; /* votes of loads that are no slower than the base */
};

enum vote { VOTE_NONE, VOTE_HIT, VOTE_MISS };

bool trace_is(const struct probe_spec *spec)
{
    if (spec->kind != PROBE_CHASE || spec->point_count < 2)
        return false;
    for (uint32_t p = 1; p < spec->point_count; p++)
        if (spec->points[p] >= spec->points[p - 1])
            return false;
    return true;
}

static enum vote vote_of(uint32_t cycles, double base, double penalty)
{
    const double more = (double)cycles - base;
    if (more > penalty * MISS_AT_MOST + MISS_SLACK)
        return VOTE_NONE;
    return more > penalty / 2 ? VOTE_MISS : VOTE_HIT;
}

static double middle(const uint32_t *row, uint32_t samples)
{
    return stats_median_u32(row, samples < MEDIAN_LOADS ? samples : MEDIAN_LOADS);
}

static const uint32_t *control_of(const struct observation *o, uint32_t *out_pages)
{
    const uint32_t last = o->spec.point_count - 1;
    *out_pages = (uint32_t)o->spec.points[last];
    return observation_chase(o, last);
}

/* Rates of the control's loads beyond the threshold: above it and, because the noise is symmetric,
 * below. */
static void rate_control(const struct observation *o, struct gauge *g)
{
    uint32_t pages;
    const uint32_t *row = control_of(o, &pages);
    uint32_t above = 0;
    uint32_t below = 0;

    for (uint32_t k = 0; k < o->spec.samples; k++) {
        const uint32_t page = k % pages;
        const double base = page < g->own_bases ? g->base_of[page] : g->base;
        above += vote_of(row[k], base, g->penalty) == VOTE_MISS;
        below += (double)row[k] < base - g->penalty / 2;
    }
    g->false_miss = (double)above / o->spec.samples;
    g->false_hit = (double)below / o->spec.samples;
}

/* Computes each page's median over the control's laps. */
static void read_own_bases(const struct observation *o, struct gauge *g)
{
    enum { MOST_LAPS = 64 };
    uint32_t pages;
    const uint32_t *row = control_of(o, &pages);

    if (pages > TRACE_MAX_PAGES || o->spec.samples < (uint64_t)pages * BASE_LAPS)
        return;
    const uint64_t most = (uint64_t)pages * MOST_LAPS;
    const uint64_t samples = o->spec.samples < most ? o->spec.samples : most;
    for (uint32_t page = 0; page < pages; page++)
        g->base_of[page] = sweep_page_median(row, samples, pages, page);
    g->own_bases = pages;
}

static void calibrate(const struct observation *o, double penalty_cycles, struct gauge *g)
{
    uint32_t pages;
    const uint32_t *row = control_of(o, &pages);

    g->penalty = penalty_cycles;
    g->own_bases = 0;
    g->base = middle(row, o->spec.samples);
    rate_control(o, g);
    if (g->false_miss + g->false_hit <= SCATTER_RATE)
        return;
    const double before = g->false_miss + g->false_hit;
    read_own_bases(o, g);
    rate_control(o, g);
    if (g->own_bases > 0 && g->false_miss + g->false_hit <= before / 2)
        return;
    g->own_bases = 0;
    rate_control(o, g);
}

double trace_threshold(const struct observation *o, double penalty_cycles)
{
    uint32_t pages;
    const uint32_t *row = control_of(o, &pages);
    return middle(row, o->spec.samples) + penalty_cycles / 2;
}

/* Casts the votes of all whole laps of one point. If bases differ from page to page, pages that the
 * control does not cover have no vote. */
static void cast(const struct observation *o, uint32_t point, const struct gauge *g,
                 struct votes *votes, struct trace *out)
{
    const uint32_t *row = observation_chase(o, point);
    const uint32_t laps = o->spec.samples / out->pages;

    for (uint32_t page = 0; page < out->pages; page++) {
        enum vote before = VOTE_NONE;
        if (g->own_bases > 0 && page >= g->own_bases)
            continue;
        const double base = g->own_bases > 0 ? g->base_of[page] : g->base;
        for (uint32_t lap = 0; lap < laps; lap++) {
            const uint32_t cycles = row[(size_t)lap * out->pages + page];
            const enum vote v = vote_of(cycles, base, g->penalty);
            votes->quick[page] += (double)cycles <= base && votes->quick[page] < UINT16_MAX;
            votes->hits[page] += v == VOTE_HIT && votes->hits[page] < UINT16_MAX;
            votes->misses[page] += v == VOTE_MISS && votes->misses[page] < UINT16_MAX;
            out->pairs += before != VOTE_NONE && v != VOTE_NONE;
            out->flips += before != VOTE_NONE && v != VOTE_NONE && v != before;
            before = v;
        }
    }
    out->laps += laps;
    out->attempts += 1;
    if (g->false_miss > out->false_miss_rate)
        out->false_miss_rate = g->false_miss;
    if (g->false_hit > out->false_hit_rate)
        out->false_hit_rate = g->false_hit;
}

/* See trace.quick_share. */
static double count_quick(const struct votes *votes, uint32_t pages)
{
    uint64_t quick = 0;
    uint64_t all = 0;

    for (uint32_t page = 0; page < pages; page++) {
        const uint32_t mine = (uint32_t)votes->misses[page] + votes->hits[page];
        if (votes->misses[page] * 5u < mine)
            continue;
        quick += votes->quick[page];
        all += mine;
    }
    return all > 0 ? (double)quick / (double)all : 0;
}

static double at_least(double rate)
{
    return rate > LEAST_RATE ? rate : LEAST_RATE;
}

static void count_votes(const struct votes *votes, struct trace *out)
{
    const double p = at_least(out->false_miss_rate);
    const double q = at_least(out->false_hit_rate);
    const double for_miss = log((1 - q) / p);
    const double for_hit = log((1 - p) / q);
    uint64_t misses = 0;
    uint64_t all = 0;
    double least = INFINITY; /* sum of the least certain page */

    for (uint32_t page = 0; page < out->pages; page++) {
        const double sum = votes->misses[page] * for_miss - votes->hits[page] * for_hit;
        const uint64_t bit = (uint64_t)1 << (page % 64);
        if (sum >= CERTAIN) {
            out->missed[page / 64] |= bit;
            out->missed_pages += 1;
        } else if (sum > -CERTAIN) {
            out->unsure[page / 64] |= bit;
            out->unsure_pages += 1;
        }
        if (fabs(sum) >= CERTAIN)
            least = fmin(least, fabs(sum));
        misses += votes->misses[page];
        all += (uint64_t)votes->misses[page] + votes->hits[page];
    }
    out->margin = isfinite(least) ? 1 - CERTAIN / least : 0;
    out->quick_share = count_quick(votes, out->pages);
    out->miss_share = all > 0 ? (double)misses / (double)all : 0;
}

static bool is_of(const struct observation *o, const struct trace_ask *which, uint32_t *out_point)
{
    const struct probe_spec *spec = &o->spec;
    if (spec->stride_bytes != which->stride_bytes || spec->base_bytes != which->base_bytes ||
        !trace_is(spec) || spec->points[spec->point_count - 1] != which->control_pages)
        return false;
    for (uint32_t p = 0; p + 1 < spec->point_count; p++) {
        if (spec->points[p] != which->pages)
            continue;
        *out_point = p;
        return true;
    }
    return false;
}

const struct observation *trace_find(const struct observation_set *set,
                                     const struct trace_ask *which, uint32_t *out_point)
{
    const struct observation *o = NULL;
    while ((o = observation_next(set, o, PROBE_CHASE)) && !is_of(o, which, out_point))
        ;
    return o;
}

void trace_read(const struct observation_set *set, const struct trace_ask *which,
                double penalty_cycles, struct trace *out)
{
    struct votes votes;
    struct gauge gauge;
    uint32_t point;

    memset(out, 0, sizeof *out);
    memset(&votes, 0, sizeof votes);
    out->pages = (uint32_t)which->pages;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        if (!is_of(o, which, &point))
            continue;
        calibrate(o, penalty_cycles, &gauge);
        cast(o, point, &gauge, &votes, out);
    }
    if (out->attempts > 0)
        count_votes(&votes, out);
}

/* Two laps that agree are enough if less than one of a million pages is misjudged twice. */
uint32_t trace_laps_needed(double error_rate)
{
    const double e = at_least(error_rate);
    if (e > 0.35)
        return UINT32_MAX;
    if (error_rate < QUIET_RATE)
        return TRACE_MIN_LAPS;
    const double laps = ceil(2.4 * CERTAIN / ((1 - 2 * e) * log((1 - e) / e)));
    return (uint32_t)laps;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_asks(const void *left, const void *right)
{
    const struct trace_ask *a = left;
    const struct trace_ask *b = right;
    int c = compare_u64(a->stride_bytes, b->stride_bytes);
    if (c == 0)
        c = compare_u64(a->base_bytes, b->base_bytes);
    if (c == 0)
        c = compare_u64(a->control_pages, b->control_pages);
    return c != 0 ? c : compare_u64(b->pages, a->pages);
}

void trace_sort(struct trace_ask *asks, uint32_t count)
{
    qsort(asks, count, sizeof asks[0], compare_asks);
}

uint32_t trace_spec(const struct trace_ask *asks, uint32_t count, uint16_t sm,
                    struct probe_spec *out)
{
    uint32_t n = 0;

    *out = (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = asks[0].stride_bytes,
                               .base_bytes = asks[0].base_bytes,
                               .warm_laps = asks[0].warm_laps,
                               .sm_count = 1,
                               .sms = {sm}};
    while (n < count && n + 1 < POINTS_A_SPEC && asks[n].stride_bytes == asks[0].stride_bytes &&
           asks[n].base_bytes == asks[0].base_bytes &&
           asks[n].control_pages == asks[0].control_pages &&
           (n == 0 || asks[n].pages < asks[n - 1].pages)) {
        if (asks[n].samples > out->samples)
            out->samples = asks[n].samples;
        out->points[out->point_count++] = asks[n++].pages;
    }
    out->points[out->point_count++] = asks[0].control_pages;
    if (out->samples > PROBE_MAX_SAMPLES)
        out->samples = PROBE_MAX_SAMPLES;
    return n;
}

/* ---- steps ---- */

int steps_joined(const struct cycle *before, const struct cycle *after)
{
    const uint32_t fresh = (uint32_t)after->pages - 1;
    int n = 0;
    for (uint32_t i = 0; i < TRACE_WORDS; i++) {
        if (before->trace.missed[i] & ~after->trace.missed[i])
            return -1;
        n += __builtin_popcountll(after->trace.missed[i] & ~before->trace.missed[i]);
    }
    return n == 0 || trace_bit(after->trace.missed, fresh) ? n : -1;
}

void steps_find(const struct cycle *cycles, uint32_t count, struct steps *out)
{
    memset(out, 0, sizeof *out);
    out->broken = cycles[0].trace.missed_pages > 0;
    for (uint32_t i = 1; i < count && !out->broken; i++) {
        const int n = steps_joined(&cycles[i - 1], &cycles[i]);
        out->broken = n < 0 || (n == 1 && out->count == 0);
        if (n < 2)
            continue;
        if (out->count == 0)
            out->first_at = cycles[i].pages;
        out->size[out->count++] = (uint32_t)n;
    }
}

bool steps_first_is_special(const struct steps *steps)
{
    for (uint32_t i = 1; i < steps->count; i++)
        if (steps->size[i] == steps->size[0])
            return false;
    return steps->count > 1;
}

bool steps_others_are_equal(const struct steps *steps)
{
    for (uint32_t i = 2; i < steps->count; i++)
        if (steps->size[i] != steps->size[1])
            return false;
    return steps->count > 1;
}
