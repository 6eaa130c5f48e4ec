/* refine.c: see refine.h.
 *
 * A count of slow loads does not show whether a footprint fits. Nine missing pages of 2049 are
 * fewer than the outliers of a noisy chip. But LRU is strict. The pages of a set that overflows
 * miss in every lap, while outliers strike another page each time:
 *
 *              lap 1   lap 2   lap 3
 *     page 0    miss    miss    miss     evicted: its set is one page too full
 *     page 1     hit    slow     hit     an outlier
 *     page 2     hit     hit     hit
 *
 * So each page is weighed by itself. The reference point, a footprint that fits, gives the rates at
 * which a hit looks slow (q) and a miss would look fast (r). The weight of k slow loads of c is k
 * log((1-r)/q) - (c-k) log((1-q)/r). If two pages miss beyond doubt, the footprint does not fit;
 * one page alone cannot overflow a set. If no page is even likely to miss, it fits. Any other
 * footprint is walked again with more laps, and stays unknown if that does not help.
 *
 * If the victim is random, no page misses in every lap, and a footprint that would fit takes many
 * laps to settle. The sign is the rate at which a page changes between hit and miss from one lap to
 * the next. It is almost 0 under LRU, and 2 m (1-m) if m of the loads miss by chance. A level with
 * random victims is not LRU, and its entries cannot be counted in this way. Mei 2016, section 4.5,
 * reports this for the L1 of Fermi.
 */
#include "analysis/levels/refine.h"

#include "analysis/levels/refine_plan.h"

#include "analysis/levels/sweep.h"
#include "analysis/structure/traces.h"
#include "base/assert.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

enum {
    FEWEST_CHANGES = 32, /* least number of pairs of laps that distinguishes LRU from chance */
    FEWEST_SHIFTED = 16,
    /* divisor of the apparent hits: fewer quick loads show that they are misses */
    FEWEST_QUICK_PART = 4,
    FEWEST_DIFFERENCES = 4
};

#define BY_CHANCE              1e-5  /* a result with a lower probability is not chance */
#define LIKELY_SEEN            0.98  /* least share of missing pages that must look like misses */
#define SETTLING               0.004 /* share of pages that may miss after a lap (H200: 5 of 2049) */
#define FULL_SHARE             0.95  /* least share of misses that counts as a miss of every load */
#define CLUSTER_SHARE          0.85  /* least share of loads that lie together if all miss */
#define SMALL_MISSES           0.05  /* between these two shares of misses, LRU and chance differ */
#define LARGE_MISSES           0.95
#define MOST_OVERLAP           0.05 /* largest overlap with which shares are exact to a twentieth */
#define PENALTY_SHARE          0.2
#define MOSTLY_MISSES          0.75 /* share of misses with which the median is a miss */
#define MOST_NOISE_FOR_PENALTY 0.04
/* distance of the quartiles of a normal distribution, in sigmas */
#define QUARTILES_OF_SIGMA 1.349
/* error of the difference of two medians, in sigmas of one load */
#define ERROR_OF_MEDIAN 1.8
#define PENALTY_CYCLES  2.0 /* required precision of a penalty in cycles, or PENALTY_PART */
#define PENALTY_PART    0.05
#define MOST_SHIFT      4.0 /* cycles; a level that costs less cannot be detected (sweep.c) */

/* The rates of single loads at the reference point. */
struct noise {
    double hit;          /* cycles, median */
    double threshold;    /* cycles, half way between hit and miss */
    double slow_share;   /* share of the reference's loads above the threshold */
    double fast_share;   /* share of the reference's loads that lie equally far below the hits */
    double sigma;        /* standard deviation of single loads, in cycles */
    double slow_if_hit;  /* upper bound of the share of hits that look slow */
    double fast_if_miss; /* upper bound of the share of misses that look fast */
    double slow_weight;  /* weight of one slow load for a miss */
    double fast_weight;  /* weight of one fast load against a miss */
};

enum fit { FITS, MISSES, UNDECIDED };

/* The result of one point of an observation. */
struct point {
    enum fit fit;
    bool certain;      /* at least two pages miss beyond doubt */
    double shift;      /* additional cycles of pages that hit, compared with the reference */
    double miss_share; /* share of its loads that miss, corrected for hits */
    bool whole;        /* every page was timed */
    double pairs;      /* number of pairs of successive laps of one page */
    double changes;    /* number of these pairs that change between hit and miss */
    double margin;     /* margin of `fit`, if it is certain: 0..1 (score_fit) */
};

/* ---- one point ---- */

/* An upper bound of the rate of an event that `count` of `n` loads showed. A higher rate is
 * improbable. */
static double upper_bound(double count, double n)
{
    const double bound = (count + 2 * sqrt(count) + 2) / n;
    return bound < REFINE_MOST_CONFUSED ? bound : REFINE_MOST_CONFUSED;
}

static struct noise noise_of(const struct observation *o, double penalty_cycles)
{
    const double n = o->spec.samples;
    const double quartiles = sweep_spread(o, 0, 0.25, 0.75);
    const double hit = sweep_median(o, 0);
    const double slow = sweep_share_above(o, 0, hit + penalty_cycles / 2) * n;
    /* Noise moves loads both ways, and outliers only make them slower. If loads are faster and no
     * other loads are slower, they are hits of a nearer level. */
    const double below = n - sweep_share_above(o, 0, hit - penalty_cycles / 2) * n;
    const double fast = fmin(below, slow);
    const double slow_if_hit = upper_bound(slow, n);
    const double fast_if_miss = upper_bound(fast, n);
    return (struct noise){.hit = hit,
                          .threshold = hit + penalty_cycles / 2,
                          .sigma = fmax(quartiles, 1) / QUARTILES_OF_SIGMA,
                          .slow_share = slow / n,
                          .fast_share = fast / n,
                          .slow_if_hit = slow_if_hit,
                          .fast_if_miss = fast_if_miss,
                          .slow_weight = log((1 - fast_if_miss) / slow_if_hit),
                          .fast_weight = log((1 - slow_if_hit) / fast_if_miss)};
}

/* Returns the probability of X >= k, if X has the binomial distribution of n and p. */
static double binomial_tail(uint32_t n, double p, uint32_t k)
{
    double term = pow(1 - p, n);
    double below = 0;
    for (uint32_t i = 0; i < k; i++) {
        below += term;
        term *= (double)(n - i) / (i + 1) * p / (1 - p);
    }
    return below < 1 ? 1 - below : 0;
}

/* Returns the probability of X >= k, if X has the Poisson distribution of this mean. */
static double poisson_tail(double mean, uint32_t k)
{
    double term = exp(-mean);
    double below = 0;
    for (uint32_t i = 0; i < k; i++) {
        below += term;
        term *= mean / (i + 1);
    }
    return below < 1 ? 1 - below : 0;
}

/* Returns the weight of a page's slow loads. Above 0, a miss is more likely than a hit. */
static double weight(const struct noise *noise, uint32_t laps, uint32_t slow)
{
    return slow * noise->slow_weight - (laps - slow) * noise->fast_weight;
}

/* The result of weighing all pages. */
struct scales {
    uint32_t certain;   /* pages that miss beyond doubt */
    uint32_t likely;    /* number of pages that are more like misses than hits */
    double by_chance;   /* expected number of likely pages from outliers alone */
    double least_power; /* least share of missing pages that become likely pages */
    uint32_t laps;      /* least number of laps of every page */
    double first;       /* weight of the page that weighs most */
    double second;      /* weight of the next page; two pages show that a footprint does not fit */
};

/* Returns the fewest slow loads of `laps` with which a page is more like a miss than a hit. */
static uint32_t fewest_likely(const struct noise *noise, uint32_t laps)
{
    uint32_t k = 0;
    while (k < laps && weight(noise, laps, k) <= 0)
        k++;
    return k;
}

static void score_pages(const struct observation *o, uint32_t p, const struct noise *noise,
                        struct point *out, struct scales *scales)
{
    const uint64_t n = o->spec.points[p];
    const uint32_t *values = observation_chase(o, p);
    REACH_ASSERT(n > 0);
    const uint32_t least = (uint32_t)(o->spec.samples / n);
    const double doubt = log(REFINE_PAGE_ODDS * (double)n);
    const uint32_t most_laps = least + (o->spec.samples % n > 0);
    const double chance[2] = {
        most_laps > 1
            ? binomial_tail(most_laps - 1, noise->slow_if_hit, fewest_likely(noise, most_laps - 1))
            : 0,
        binomial_tail(most_laps, noise->slow_if_hit, fewest_likely(noise, most_laps))};

    *scales = (struct scales){.laps = least, .first = -INFINITY, .second = -INFINITY};
    for (uint64_t page = 0; page < n && page < o->spec.samples; page++) {
        uint32_t laps = 0;
        uint32_t slow = 0;
        for (uint64_t k = page; k < o->spec.samples; k += n, laps++) {
            const bool is_slow = values[k] > noise->threshold;
            slow += is_slow;
            if (laps > 0)
                out->changes += is_slow != (values[k - n] > noise->threshold);
        }
        const double w = weight(noise, laps, slow);
        out->pairs += laps - 1;
        scales->second = fmax(scales->second, fmin(scales->first, w));
        scales->first = fmax(scales->first, w);
        scales->certain += w > doubt;
        scales->likely += w > 0;
        scales->by_chance += chance[laps == most_laps];
    }
    scales->least_power =
        least > 0 ? binomial_tail(least, 1 - noise->fast_if_miss, fewest_likely(noise, least)) : 0;
}

/* Returns the additional cycles of pages of the reference that still hit in this larger footprint.
 * The pages are the same, so their distance cancels. Longer hits mean that a nearer level overflows
 * here. If the reference has few pages, more laps count, unless most of their loads miss: some
 * misses look like hits. */
static double shift_of(const struct observation *o, uint32_t p, const struct noise *noise)
{
    double differences[PROBE_MAX_SAMPLES];
    const uint32_t *before = observation_chase(o, 0);
    const uint32_t *now = observation_chase(o, p);
    const uint64_t first_lap = o->spec.points[0];
    const uint64_t pages = o->spec.points[p];
    size_t loads = 0;
    size_t n = 0;
    REACH_ASSERT(pages > 0);
    for (uint32_t k = 0; k < o->spec.samples && (loads < first_lap || n < FEWEST_SHIFTED); k++) {
        const uint64_t page = k % pages;
        if (page >= first_lap)
            continue;
        loads++;
        if (before[page] <= noise->threshold && now[k] <= noise->threshold)
            differences[n++] = (double)now[k] - (double)before[page];
    }
    if (n < FEWEST_SHIFTED || (loads > first_lap && 2 * n < loads))
        return 0;
    return stats_median_f64(differences, n);
}

/* Misses have noise of their own, which the reference does not show: some misses are as quick as a
 * slow hit. Half of all hits are no slower than their median. If hardly any load is as quick as the
 * median, the loads that look like hits are misses, and even more loads lie just beyond the
 * threshold. The hits are then twice the number of quick loads. Hits that are slower for another
 * reason, such as a change of the SM clock between two points, lie apart from the misses. */
static double share_of_misses(const struct observation *o, uint32_t p, const struct noise *noise,
                              double slow, double expected)
{
    const double n = o->spec.samples;
    const double quick = n - sweep_share_above(o, p, noise->hit) * n;
    const double near = noise->threshold + (noise->threshold - noise->hit) / 2;
    const double just_slow = slow - sweep_share_above(o, p, near) * n;

    if (2 * quick < (n - slow) / FEWEST_QUICK_PART && just_slow > n - slow)
        return 1 - 2 * quick / n;
    return fmax(slow - expected, 0) / n;
}

/* Returns the margin of a point's fit. If the point misses, it is the excess weight of the page
 * that makes the miss certain. If it fits, the lower of two numbers counts. The first is the number
 * of further laps until the page most like a miss is equally like a hit. The second is the share of
 * missing pages that would be seen. */
static double score_fit(const struct observation *o, uint32_t p, const struct noise *noise,
                        const struct scales *s, enum fit fit)
{
    const double doubt = log(REFINE_PAGE_ODDS * (double)o->spec.points[p]);
    if (fit == MISSES)
        return s->second > 0 ? 1 - doubt / s->second : 0;
    return fmin(s->second / weight(noise, s->laps, 0),
                (s->least_power - LIKELY_SEEN) / (1 - LIKELY_SEEN));
}

static struct point classify(const struct observation *o, uint32_t p, const struct noise *noise)
{
    const double expected = noise->slow_share * o->spec.samples;
    const double slow = sweep_share_above(o, p, noise->threshold) * o->spec.samples;
    const double sigma = sqrt(2 * expected + 1); /* the count of the reference has an error too */
    const double unusual = expected + 6 * sigma + 2 + SETTLING * (double)o->spec.points[p];
    struct point out = {.fit = UNDECIDED,
                        .miss_share = share_of_misses(o, p, noise, slow, expected),
                        .whole = o->spec.samples >= o->spec.points[p]};
    struct scales s;

    score_pages(o, p, noise, &out, &s);
    out.certain = s.certain >= 2;
    out.shift = shift_of(o, p, noise);
    if (s.certain >= 2 || (s.likely >= 2 && poisson_tail(s.by_chance, s.likely) < BY_CHANCE) ||
        slow > unusual)
        out.fit = MISSES;
    else if (s.likely < 2 && s.least_power > LIKELY_SEEN)
        out.fit = FITS;
    out.margin = score_fit(o, p, noise, &s, out.fit);
    return out;
}

bool refine_fits(const struct observation *o, uint32_t point, double penalty_cycles)
{
    const struct noise noise = noise_of(o, penalty_cycles);
    const struct point seen = classify(o, point, &noise);
    return point == 0 ? !seen.certain : seen.fit == FITS;
}

bool refine_misses(const struct observation *o, uint32_t point, double penalty_cycles)
{
    const struct noise noise = noise_of(o, penalty_cycles);
    return classify(o, point, &noise).fit == MISSES;
}

/* ---- all points of a level ---- */

/* Returns whether this CHASE is a refinement or a confirmation, at a stride of one entry. */
static bool is_about(const struct probe_spec *s, const struct level_estimate *level)
{
    return s->stride_bytes == level->entry_bytes && s->point_count < LEVELS_SWEEP_POINTS &&
           !trace_is(s);
}

/* Returns whether this is a confirmation (confirm.h) of this level's onset: it has two points,
 * which are both beyond the reference. */
static bool is_confirmation(const struct probe_spec *s, const struct level_estimate *level)
{
    return s->stride_bytes == level->entry_bytes && s->point_count == 2 &&
           s->points[0] > refine_plan_reference(level) &&
           s->points[1] <= level->at_entry.full_pages;
}

/* Returns the most pages that fit in a confirmation. Outliers and disturbances make fitting pages
 * miss, and nothing makes other pages hit. So an onset below this number was wrong. */
static uint64_t refuted_pages(const struct observation_set *set, const struct level_estimate *level)
{
    uint64_t most = 0;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));)
        if (is_confirmation(&o->spec, level) && o->spec.points[1] > most &&
            refine_fits(o, 0, level->penalty_cycles) && refine_fits(o, 1, level->penalty_cycles))
            most = o->spec.points[1];
    return most;
}

/* The cost of a miss in one refinement. */
struct penalty {
    uint64_t pages; /* pages of the footprint with these misses */
    double cycles;
    bool rough; /* from medians of all loads: it may only confirm another one */
    struct evidence evidence;
};

/* The result of all refinements of a level. */
struct tally {
    uint64_t refuted;      /* pages that fit in a confirmation */
    uint64_t most_fitting; /* most pages that fit, regardless of other results */
    uint64_t fewest_certain;
    bool shifted;
    struct penalty penalties[PROBE_MAX_POINTS]; /* one of each refinement */
    uint32_t penalty_count;
    uint64_t undecided[PROBE_MAX_POINTS];
    uint32_t undecided_count;
    double pairs, changes, if_lru, if_chance;
};

static void read_changes(const struct point *point, const struct noise *noise, struct tally *tally)
{
    const double m = point->miss_share;
    if (m < SMALL_MISSES || m > LARGE_MISSES)
        return;
    const double confused = (1 - m) * noise->slow_if_hit + m * noise->fast_if_miss;
    tally->pairs += point->pairs;
    tally->changes += point->changes;
    tally->if_lru += 2 * confused * point->pairs;
    tally->if_chance += 2 * m * (1 - m) * point->pairs;
}

/* Returns 1 if every load of the footprint misses, -1 if some loads hit, and 0 if it is not known.
 * Noise makes some misses look like hits, so the share of misses is corrected for the overlap. */
static int fullness(const struct point *point, const struct noise *noise, uint32_t samples)
{
    const double apart = 1 - noise->slow_share - noise->fast_share;
    if (!point->whole || apart < 1 - MOST_OVERLAP)
        return 0;
    const double share = point->miss_share / apart;
    const double inside = fmin(fmax(share, 0), 1);
    const double error = sqrt(inside * (1 - inside) / samples) / apart + 1.0 / samples;
    return share - error >= FULL_SHARE - 1.0 / samples ? 1 : share + error < FULL_SHARE ? -1 : 0;
}

/* Returns the excess of the share of misses over the required share. */
static double score_full(const struct point *point, const struct noise *noise)
{
    const double share = point->miss_share / (1 - noise->slow_share - noise->fast_share);
    return (share - FULL_SHARE) / (1 - FULL_SHARE);
}

static void read_point(uint64_t pages, const struct point *point, int full,
                       struct level_estimate *level, struct tally *tally)
{
    if (point->fit == MISSES && pages > tally->refuted &&
        (level->hi_pages == 0 || pages < level->hi_pages))
        level->hi_pages = pages;
    if (point->certain && pages > tally->refuted &&
        (tally->fewest_certain == 0 || pages < tally->fewest_certain))
        tally->fewest_certain = pages;
    tally->shifted = tally->shifted || point->shift > MOST_SHIFT;
    if (point->fit == FITS && pages > tally->most_fitting)
        tally->most_fitting = pages;
    if (point->fit == UNDECIDED && tally->undecided_count < PROBE_MAX_POINTS)
        tally->undecided[tally->undecided_count++] = pages;
    if (full > 0 && (level->sat_hi_pages == 0 || pages < level->sat_hi_pages))
        level->sat_hi_pages = pages;
    if (full < 0 && pages > level->sat_lo_pages)
        level->sat_lo_pages = pages;
}

/* Writes the median of the slow loads of one page, or of its other loads. Returns false if these
 * loads are fewer than `share` of the laps, because a page with one slow load in many had an
 * outlier. */
static bool page_median(const struct observation *o, uint32_t p, uint64_t page, double threshold,
                        bool slow, double share, double *out)
{
    double own[REFINE_MOST_LAPS];
    const uint32_t *values = observation_chase(o, p);
    uint32_t laps = 0;
    uint32_t n = 0;
    for (uint64_t k = page; k < o->spec.samples && n < REFINE_MOST_LAPS;
         k += o->spec.points[p], laps++)
        if ((values[k] > threshold) == slow)
            own[n++] = values[k];
    if (n == 0 || n < share * laps)
        return false;
    *out = stats_median_f64(own, n);
    return true;
}

/* Returns the required precision of a penalty, in cycles. */
static double precision_of(double penalty_cycles)
{
    return fmax(PENALTY_CYCLES, PENALTY_PART * penalty_cycles);
}

/* Reads the cost of misses in a footprint with enough of them. Pages of the reference that miss now
 * are compared with themselves. Noise must confuse few loads, otherwise slow loads are not the
 * misses. There must be enough loads for a precision of a twentieth, or of two cycles. Returns
 * false if the cost is not known this precisely. */
static bool read_penalty(const struct observation *o, uint32_t p, const struct point *point,
                         const struct noise *noise, struct penalty *out)
{
    double differences[PROBE_MAX_SAMPLES];
    const uint64_t pages = o->spec.points[p];
    const double laps = fmax(1, fmin((double)o->spec.samples / (double)pages, REFINE_MOST_LAPS));
    size_t n = 0;
    if (point->miss_share < PENALTY_SHARE || noise->slow_if_hit > MOST_NOISE_FOR_PENALTY ||
        noise->fast_if_miss > MOST_NOISE_FOR_PENALTY)
        return false;
    for (uint32_t page = 0; page < o->spec.points[0] && page < o->spec.samples; page++) {
        double before;
        double now;
        if (page_median(o, 0, page, noise->threshold, false, 0.5, &before) &&
            page_median(o, p, page, noise->threshold, true, point->miss_share / 2, &now))
            differences[n++] = now - before;
    }
    if (n < FEWEST_DIFFERENCES)
        return false;
    const double penalty = stats_median_f64(differences, n);
    const double error =
        ERROR_OF_MEDIAN * noise->sigma / sqrt((double)n * fmax(1, laps * point->miss_share));
    /* If the differences are of two kinds, another level hits in one walk and misses in the
     * other. */
    const double halves = stats_quantile_f64(differences, n, 0.75) - penalty;
    if (3 * error > precision_of(penalty) || halves > 2 * precision_of(penalty))
        return false;
    *out = (struct penalty){.pages = pages,
                            .cycles = penalty,
                            .evidence =
                                evidence_make(EVIDENCE_REFINE, n,
                                              1 - fmax(noise->slow_if_hit, noise->fast_if_miss) /
                                                      MOST_NOISE_FOR_PENALTY)};
    return true;
}

/* Adds the penalty of one refinement. The smallest footprint that shows the penalty precisely
 * counts, so that no farther level contributes. */
static void add_penalty(const struct observation *o, const struct point *points,
                        const struct noise *noise, struct tally *tally)
{
    struct penalty *const out = &tally->penalties[tally->penalty_count];
    bool found = false;
    bool precise = false;

    for (uint32_t p = 1; p < o->spec.point_count && !precise; p++) {
        precise = read_penalty(o, p, &points[p], noise, out);
        if (!precise && !found && points[p].miss_share >= MOSTLY_MISSES)
            *out = (struct penalty){.pages = o->spec.points[p],
                                    .cycles = sweep_median(o, p) - noise->hit,
                                    .rough = true};
        found = found || precise || points[p].miss_share >= MOSTLY_MISSES;
    }
    tally->penalty_count += found && tally->penalty_count + 1 < PROBE_MAX_POINTS;
}

static void read_refinement(const struct observation *o, struct level_estimate *level,
                            struct tally *tally)
{
    const struct noise noise = noise_of(o, level->penalty_cycles);
    struct point points[LEVELS_SWEEP_POINTS];

    for (uint32_t p = 1; p < o->spec.point_count; p++) {
        points[p] = classify(o, p, &noise);
        read_point(o->spec.points[p], &points[p], fullness(&points[p], &noise, o->spec.samples),
                   level, tally);
        read_changes(&points[p], &noise, tally);
    }
    add_penalty(o, points, &noise, tally);
}

/* Returns the number of observations that show this penalty. The entry test is one of them, because
 * it has the same reference. */
static uint32_t count_votes(const struct tally *tally, double cycles)
{
    uint32_t votes = 0;

    for (uint32_t i = 0; i < tally->penalty_count; i++)
        votes += fabs(tally->penalties[i].cycles - cycles) <= precision_of(cycles);
    return votes;
}

/* Chooses the penalty of the smallest footprint, first among the penalties that `wanted`
 * observations show. The kernels correct changes of the SM clock within a probe only beyond one
 * part in 128 (kernels/abi.h), and this part of a hit can be a quarter of a penalty. */
static void settle_penalty(const struct tally *tally, uint32_t wanted, struct level_estimate *level)
{
    const struct penalty *best = NULL;
    uint32_t most = 0;

    for (uint32_t i = 0; i < tally->penalty_count; i++) {
        const struct penalty *const p = &tally->penalties[i];
        const uint32_t all = count_votes(tally, p->cycles);
        const uint32_t votes = all < wanted ? all : wanted;

        if (p->rough || votes < most || (votes == most && p->pages >= best->pages))
            continue;
        best = p;
        most = votes;
    }
    level->penalty_votes = best ? most : count_votes(tally, level->penalty_cycles);
    level->onset_penalty_cycles = best ? best->cycles : 0;
    level->onset_penalty_evidence = best ? best->evidence : (struct evidence){.margin = 0};
}

/* If a footprint fits and a smaller one does not, one of the two was disturbed. */
static void settle(const struct tally *tally, struct level_estimate *level)
{
    const bool contradicts = level->hi_pages && tally->most_fitting >= level->hi_pages;
    level->lo_pages = tally->most_fitting;
    if (contradicts)
        level->lo_pages = level->hi_pages - 1;
    level->non_lru = tally->pairs >= FEWEST_CHANGES &&
                     tally->changes > tally->if_lru + fabs(tally->if_chance - tally->if_lru) / 4;
    level->merged = tally->shifted;
    level->counted = !contradicts && !level->non_lru && !level->merged &&
                     refine_plan_onset_is_fine(level) && tally->fewest_certain == level->hi_pages;
    for (uint32_t i = 0; i < tally->undecided_count; i++) {
        const uint64_t pages = tally->undecided[i];
        uint32_t times = 0;
        for (uint32_t k = 0; k < tally->undecided_count; k++)
            times += tally->undecided[k] == pages;
        if (times == 1 && !level->counted && pages > level->lo_pages &&
            (level->hi_pages == 0 || pages < level->hi_pages))
            level->undecided_pages = pages;
    }
    /* A saturation below the onset is not possible. */
    if (level->sat_hi_pages && level->sat_lo_pages >= level->sat_hi_pages)
        level->sat_lo_pages = level->sat_hi_pages - 1;
}

/* Adds the result of one walk of a number of pages. Laps add up, and the best margin counts. */
static void add_to(struct evidence *e, uint64_t laps, double margin)
{
    *e =
        evidence_make(EVIDENCE_REFINE, e->repeats + (laps > 0 ? laps : 1), fmax(e->margin, margin));
}

/* Collects the evidence of lo_pages, hi_pages and sat_hi_pages from all walks of these
 * footprints. */
static void score_bracket(const struct observation_set *set, struct level_estimate *level)
{
    struct evidence fits = {.margin = 0};
    struct evidence misses = {.margin = 0};

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        if (!is_about(&o->spec, level))
            continue;
        const struct noise noise = noise_of(o, level->penalty_cycles);
        for (uint32_t p = 1; p < o->spec.point_count; p++) {
            const uint64_t pages = o->spec.points[p];
            const uint64_t laps = o->spec.samples / pages;
            if (pages != level->lo_pages && pages != level->hi_pages &&
                pages != level->sat_hi_pages)
                continue;
            const struct point point = classify(o, p, &noise);
            if (pages == level->lo_pages && point.fit == FITS)
                add_to(&fits, laps, point.margin);
            if (pages == level->hi_pages && point.certain)
                add_to(&misses, laps, point.margin);
            if (pages == level->sat_hi_pages && fullness(&point, &noise, o->spec.samples) > 0)
                add_to(&level->saturation_evidence, laps, score_full(&point, &noise));
        }
    }
    level->reach_evidence = evidence_weaker(fits, misses);
}

/* Returns whether the same pages hit in two points, each from one observation. A page hits if it
 * does so in at least half of its laps. At least half of the smaller group of hitting pages must
 * hit in both points if the cause is sets that do not overflow yet. If a gap in the order of
 * eviction causes the hits, other pages hit each time. */
static bool same_pages_hit(const struct observation *a, uint32_t i, const struct observation *b,
                           uint32_t k, double threshold)
{
    const uint64_t pages = a->spec.points[i];
    uint32_t in_a = 0;
    uint32_t in_b = 0;
    uint32_t in_both = 0;
    double cycles;

    for (uint64_t page = 0; page < pages && page < a->spec.samples; page++) {
        const bool hits_a = page_median(a, i, page, threshold, false, 0.5, &cycles);
        const bool hits_b = page_median(b, k, page, threshold, false, 0.5, &cycles);
        in_a += hits_a;
        in_b += hits_b;
        in_both += hits_a && hits_b;
    }
    return in_both > 0 && 2 * in_both >= (in_a < in_b ? in_a : in_b);
}

/* The point at which a footprint was first seen to hit in part. */
struct partly {
    const struct observation *o; /* NULL if no footprint did */
    uint32_t point;
};

/* Returns whether most loads of a point lie less than half a penalty below their median. If the SM
 * clock changes within a point, even its hits can be slower than the threshold, but they lie a
 * whole penalty below its misses. */
static bool is_one_cluster(const struct observation *o, uint32_t p, const struct noise *noise)
{
    const double half = noise->threshold - noise->hit;
    return sweep_share_above(o, p, sweep_median(o, p) - half) >= CLUSTER_SHARE;
}

/* Counts how often the bracket of the saturation was seen, and looks for contradictions. Evictions
 * by other processes leave a gap in the order of eviction. So they can make pages hit that never
 * hit on a quiet GPU. */
static void count_saturation(const struct observation_set *set, struct level_estimate *level)
{
    struct partly first = {.o = NULL};
    uint32_t below = 0;
    uint32_t full = 0;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));) {
        if (!is_about(&o->spec, level) || o->spec.points[0] != refine_plan_reference(level))
            continue;
        const struct noise noise = noise_of(o, level->penalty_cycles);
        for (uint32_t p = 1; p < o->spec.point_count; p++) {
            const uint64_t pages = o->spec.points[p];
            const struct point point = classify(o, p, &noise);
            const int seen = fullness(&point, &noise, o->spec.samples);
            if (pages == level->sat_lo_pages && seen < 0) {
                below += !first.o || same_pages_hit(first.o, first.point, o, p, noise.threshold);
                first = first.o ? first : (struct partly){o, p};
            }
            full += pages == level->sat_hi_pages && seen > 0 && is_one_cluster(o, p, &noise);
            if ((pages <= level->sat_lo_pages && seen > 0) ||
                (pages >= level->sat_hi_pages && seen < 0))
                level->sat_refuted = true;
        }
    }
    level->sat_votes = level->sat_lo_pages > level->lo_pages && below < full ? below : full;
}

void refine_derive(const struct observation_set *set, struct level_estimate *level)
{
    const uint64_t reference = refine_plan_reference(level);
    struct tally tally;

    memset(&tally, 0, sizeof tally);
    tally.refuted = tally.most_fitting = refuted_pages(set, level);
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));)
        if (is_about(&o->spec, level) && o->spec.points[0] == reference)
            read_refinement(o, level, &tally);
    settle(&tally, level);
    settle_penalty(&tally, observation_set_is_shared(set) ? 2 : 1, level);
    if (level->sat_hi_pages)
        count_saturation(set, level);
    score_bracket(set, level);
}
