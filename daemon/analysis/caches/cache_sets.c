/* cache_sets.c: see cache_sets.h. Each cycle is one line longer than the previous one and shows the
 * next set. Under LRU, the lines of an overflowed set miss in every lap. */
#include "analysis/caches/cache_sets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LRU_SHARE      0.97 /* least share of loads that miss in an overflowed set under LRU */
#define OTHER_SHARE    0.90
#define FLIPPING_SHARE 0.2 /* least share of missing lines that also hit, if not LRU */
#define STEADY_SHARE   0.01

enum {
    STEPS = 12,
    MOST_TRACED = 5,
    LEAST_MISSING = 4,
    LEAST_QUICK = 4 /* least number of loads that hit if the policy is not LRU */
};

struct set_walks {
    const struct observation *o;
    const struct observation *later; /* the walks of `o`, timed one lap later, or NULL */
    struct walk_votes before, at;
};

/* Returns the number of lines that begin to miss when the cycle gets one line longer. Returns -1 if
 * some lines no longer miss. */
static int joined(const struct walk_votes *before, const struct walk_votes *after)
{
    int n = 0;

    for (uint32_t i = 0; i < after->elements; i++) {
        const bool was = i < before->elements && walks_misses(before, i);
        if (was && !walks_misses(after, i))
            return -1;
        n += walks_misses(after, i) && !was;
    }
    return n;
}

/* Finds the ways, and how many lines in a row choose the same set. */
static enum reason read_steps(struct chase *c, struct set_walks *s)
{
    int first = 0;
    uint32_t since = 0;

    walks_votes(s->o, c->lines, &c->how, &s->before);
    if (walks_missing(&s->before) > 0)
        return REASON_DISAGREEMENT;
    for (uint32_t k = 1; k <= STEPS; k++) {
        walks_votes(s->o, c->lines + k, &c->how, &s->at);
        const int more = joined(&s->before, &s->at);
        if (k == 1) {
            first = more;
            since = 1;
            if (more < 2)
                return REASON_IRREGULAR;
        } else if (more == 1) {
            since++;
        } else if (more == first) {
            if (c->block > 0 && since != c->block)
                return REASON_IRREGULAR;
            c->block = since;
            since = 1;
        } else {
            return REASON_IRREGULAR;
        }
        s->before = s->at;
    }
    c->ways = (uint32_t)first - 1;
    if (c->block == 0)
        c->block = since == STEPS ? 1 : 0; /* one set: all lines join at once, then single lines */
    if (c->lines % c->ways != 0 || c->block == 0)
        return REASON_IRREGULAR;
    c->sets = c->lines / c->ways;
    return c->sets == 1 || since < STEPS || c->block == 1 ? REASON_NONE : REASON_IRREGULAR;
}

/* Adds the loads of the lines that miss, in their order, to the trace. */
static void add_trace(const struct chase *c, const struct observation *o,
                      const struct walk_votes *v)
{
    size_t n = strlen(c->out->trace);
    uint32_t p = 0;

    while (o->spec.points[p] != c->lines + 1)
        p++;
    const uint32_t *const row = observation_chase(o, p);
    for (uint32_t k = 0; k < o->spec.samples && n + 1 < FINGERPRINT_TRACE_BYTES; k++) {
        if (!walks_misses(v, k % (c->lines + 1)))
            continue;
        c->out->trace[n++] = row[k] > c->how.threshold ? 'M' : 'H';
    }
    c->out->trace[n] = '\0';
}

static void read_policy(const struct chase *c, struct set_walks *s)
{
    uint32_t votes = 0;
    uint32_t slow = 0;

    walks_votes(s->o, c->lines + 1, &c->how, &s->at);
    for (uint32_t i = 0; i < s->at.elements; i++) {
        if (!walks_misses(&s->at, i))
            continue;
        votes += s->at.all[i];
        slow += s->at.missed[i];
    }
    const double share = votes ? (double)slow / votes : 0;
    if (share >= LRU_SHARE)
        c->out->replacement = REPLACEMENT_LRU;
    else if (share < OTHER_SHARE && votes - slow >= LEAST_QUICK)
        c->out->replacement = REPLACEMENT_NOT_LRU;
    else
        return;
    c->out->evidence.replacement =
        evidence_make(EVIDENCE_TRACES, votes,
                      c->out->replacement == REPLACEMENT_LRU ? (share - LRU_SHARE) / (1 - LRU_SHARE)
                                                             : 1 - share / OTHER_SHARE);
    add_trace(c, s->o, &s->at);
}

/* Returns the number of lines of a cycle that usually miss and sometimes hit. The votes of up to
 * MOST_TRACED of these lines are kept in `shown`. */
static uint32_t count_flipping(const struct walk_votes *v, uint32_t *out_missing,
                               struct walk_votes *shown)
{
    uint32_t flipping = 0;

    *out_missing = 0;
    memset(shown, 0, sizeof *shown);
    for (uint32_t i = 0; i < v->elements; i++) {
        const uint32_t hits = (uint32_t)(v->all[i] - v->missed[i]);
        const bool misses = walks_misses(v, i);
        const bool flips = misses && hits >= 2 && hits >= v->all[i] / 10;
        *out_missing += misses;
        flipping += flips;
        if (flips && flipping <= MOST_TRACED) {
            shown->all[i] = v->all[i];
            shown->missed[i] = v->missed[i];
        }
    }
    return flipping;
}

static void set_policy(struct chase *c, enum replacement policy, uint32_t missing, double margin,
                       const struct set_walks *s, const struct walk_votes *shown)
{
    c->out->replacement = policy;
    c->out->evidence.replacement = evidence_make(EVIDENCE_TRACES, missing, margin);
    add_trace(c, s->o, shown);
    if (s->later)
        add_trace(c, s->later, shown);
}

/* Walks cycles of `count` lengths in lines so that each timed line is timed in two laps of the same
 * run. One lap does not show whether a line misses in every lap. A second run does not show it
 * either, because runs that start alike may evict the same lines. The first timed lap does not
 * count. So if a run has fewer than three timed laps, half of the runs begin to time one lap
 * later. */
static bool walk_two_laps(struct chase *c, struct set_walks *s, const uint64_t *lengths,
                          uint32_t count)
{
    struct probe_spec spec = chase_spec(c, c->line_bytes, PROBE_MAX_SAMPLES);
    const bool twice = 3 * lengths[count - 1] > spec.samples;
    const uint32_t divisor = twice ? 6 : 3; /* a third of CHASE_VOTES is enough */

    for (uint32_t k = 0; k < count; k++)
        walks_add_points(&spec, lengths[k],
                         (chase_repeats(lengths[k], spec.samples) + divisor - 1) / divisor);
    s->o = walks_find(c->w, &spec);
    s->later = NULL;
    if (!twice)
        return s->o != NULL;
    spec.warm_laps++;
    s->later = walks_find(c->w, &spec);
    return s->o && s->later;
}

/* Counts the votes of the cycles of `length` lines in `s->at`. Returns how many of the missing
 * lines also hit. The votes of some of those lines are kept in `s->before`. */
static uint32_t look_at_length(struct chase *c, struct set_walks *s, uint64_t length,
                               uint32_t *out_missing)
{
    c->lines = (uint32_t)(length - 1);
    walks_votes(s->o, length, &c->how, &s->at);
    if (s->later)
        walks_add_votes(s->later, length, &c->how, &s->at);
    return count_flipping(&s->at, out_missing, &s->before);
}

/* Finds the policy if the sets follow no rule. In cycles somewhat too long, LRU misses the same
 * lines in every lap and in every run, in any set. If a line hits once and misses once, the policy
 * is not LRU. At many lengths other policies look the same (half of the lengths on an H200), so
 * there are many cycles, up to 3/8 longer. The first cycle fits; its lines change only because
 * loads took long by chance. */
static enum reason policy_without_sets(struct chase *c, struct set_walks *s)
{
    enum { LENGTHS = 13, PARTS = 32 };
    uint64_t lengths[LENGTHS];
    uint32_t steady = 0;
    uint32_t missing = 0;
    double worst = 0;

    for (uint32_t k = 0; k < LENGTHS; k++)
        lengths[k] = c->out->fits_bytes.v * (PARTS + k) / PARTS / c->line_bytes + (k > 0);
    if (!walk_two_laps(c, s, lengths, LENGTHS))
        return REASON_NOT_MEASURED;
    const uint32_t by_chance = look_at_length(c, s, lengths[0], &missing);
    for (uint32_t k = 1; k < LENGTHS; k++) {
        if (lengths[k] == lengths[k - 1])
            continue;
        const uint32_t all = look_at_length(c, s, lengths[k], &missing);
        const uint32_t flipping = all > 3 * by_chance ? all - 3 * by_chance : 0;
        const double share = missing > 0 ? (double)flipping / missing : 0;
        if (missing >= LEAST_MISSING && share >= FLIPPING_SHARE) {
            set_policy(c, REPLACEMENT_NOT_LRU, missing, 1 - FLIPPING_SHARE / share, s, &s->before);
            return REASON_NONE;
        }
        steady += missing >= LEAST_MISSING;
        worst = fmax(worst, share);
    }
    if (steady > 0 && worst <= STEADY_SHARE)
        set_policy(c, REPLACEMENT_LRU, missing, 1 - worst / FLIPPING_SHARE, s, &s->at);
    return REASON_NONE;
}

/* Returns whether the lines that do not miss repeatedly always hit, except for the share of slow
 * loads of a cycle that fits. With a random victim some lines of an overflowed set miss too seldom
 * to count. */
static bool others_hit(const struct walk_votes *v, const struct walk_votes *fits)
{
    enum { FEW = 3, TIMES = 3 };
    const double by_chance = fits->loads > 0 ? (double)fits->slow / fits->loads : 0;
    uint32_t votes = 0;
    uint32_t missed = 0;

    for (uint32_t i = 0; i < v->elements; i++) {
        if (walks_misses(v, i))
            continue;
        votes += v->all[i];
        missed += v->missed[i];
    }
    return missed <= FEW + TIMES * by_chance * votes;
}

/* Checks the last set. In the shortest cycle that overflows every set, all lines miss. In a cycle
 * of one line less, one set still hits. */
static enum reason check_last_set(struct chase *c, struct set_walks *s)
{
    const uint32_t full = c->lines + (c->sets - 1) * c->block + 1;
    struct probe_spec spec = chase_spec(
        c, c->line_bytes, (uint32_t)fmin(PROBE_MAX_SAMPLES, (double)(CHASE_VOTES + 2) * full));
    const uint32_t repeats = chase_repeats(full, spec.samples);

    if (full > WALKS_MAX_ELEMENTS)
        return REASON_TOO_LITTLE_DATA;
    if (c->sets == 1)
        return REASON_NONE;
    walks_votes(s->o, c->lines, &c->how, &s->at);
    walks_add_points(&spec, full - 1, repeats);
    walks_add_points(&spec, full, repeats);
    s->o = walks_find(c->w, &spec);
    if (!s->o)
        return REASON_NOT_MEASURED;
    walks_votes(s->o, full - 1, &c->how, &s->before);
    const bool one_hits = walks_missing(&s->before) == full - 1 - c->ways;
    const bool sure = others_hit(&s->before, &s->at);
    walks_votes(s->o, full, &c->how, &s->at);
    const bool right = one_hits && sure && walks_missing(&s->at) == full;
    return right ? REASON_NONE : REASON_IRREGULAR;
}

/* Makes a probe of cycles of `c->lines` lines and of up to `steps` lines more. */
static struct probe_spec steps_spec(const struct chase *c, uint32_t steps, uint32_t most_repeats)
{
    struct probe_spec spec = chase_spec(
        c, c->line_bytes,
        (uint32_t)fmin(PROBE_MAX_SAMPLES, (double)(CHASE_VOTES + 2) * (c->lines + STEPS)));
    const uint32_t repeats = chase_repeats(c->lines + STEPS, spec.samples);

    for (uint32_t k = 0; k <= steps; k++)
        walks_add_points(&spec, c->lines + k, repeats < most_repeats ? repeats : most_repeats);
    return spec;
}

/* Looks at the first steps if the probe of all steps is long; it has up to a million loads. The
 * first steps show whether sets that follow a rule are likely. */
static enum reason look_at_steps(struct chase *c, struct set_walks *s)
{
    enum { FEW_STEPS = 3, FEW_REPEATS = 3, LONG_LOADS = 1 << 18 };
    struct probe_spec spec = steps_spec(c, STEPS, CHASE_MOST_REPEATS);
    int first = 0;

    if (spec.point_count * spec.samples < LONG_LOADS)
        return REASON_NONE;
    spec = steps_spec(c, FEW_STEPS, FEW_REPEATS);
    s->o = walks_find(c->w, &spec);
    if (!s->o)
        return REASON_NOT_MEASURED;
    walks_votes(s->o, c->lines, &c->how, &s->before);
    if (walks_missing(&s->before) > 0)
        return REASON_DISAGREEMENT;
    for (uint32_t k = 1; k <= FEW_STEPS; k++) {
        walks_votes(s->o, c->lines + k, &c->how, &s->at);
        const int more = joined(&s->before, &s->at);
        first = k == 1 ? more : first;
        if (first < 2 || (more != 1 && more != first))
            return REASON_IRREGULAR;
        s->before = s->at;
    }
    return REASON_NONE;
}

/* Finds the sets by their steps, confirms them by the last step, and finds their policy. */
static enum reason regular_sets(struct chase *c, struct set_walks *s)
{
    struct probe_spec spec = steps_spec(c, STEPS, CHASE_MOST_REPEATS);
    enum reason reason = look_at_steps(c, s);

    if (reason != REASON_NONE)
        return reason;
    s->o = walks_find(c->w, &spec);
    if (!s->o)
        return REASON_NOT_MEASURED;
    const struct observation *const steps = s->o;
    reason = read_steps(c, s);
    if (reason == REASON_NONE)
        reason = check_last_set(c, s);
    s->o = steps;
    if (reason == REASON_NONE)
        read_policy(c, s);
    return reason;
}

enum reason cache_policy_find(struct chase *c)
{
    struct set_walks *const s = malloc(sizeof *s);
    const enum reason reason = s ? policy_without_sets(c, s) : REASON_NOT_MEASURED;

    free(s);
    return reason;
}

enum reason cache_sets_find(struct chase *c)
{
    struct set_walks *const s = malloc(sizeof *s);
    enum reason reason = REASON_IRREGULAR;

    if (!s)
        return REASON_NOT_MEASURED;
    c->lines = (uint32_t)(c->sectors * c->sector_bytes / c->line_bytes);
    if (c->lines * c->line_bytes == c->sectors * c->sector_bytes)
        reason = regular_sets(c, s);
    if (reason == REASON_IRREGULAR || reason == REASON_DISAGREEMENT) {
        const enum reason policy = policy_without_sets(c, s);
        reason = policy == REASON_NOT_MEASURED ? policy : reason;
    }
    free(s);
    return reason;
}
