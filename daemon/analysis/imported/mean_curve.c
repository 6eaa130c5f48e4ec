/* mean_curve.c: see mean_curve.h.
 *
 * Plateaus are grown greedily, and must not drift. A plateau inside a curve must have half more
 * pages at its end than at its beginning. Two levels lie further apart, and the slow ramp of a
 * level with many sets leaves the tolerance earlier. A plateau at an end of the curve may be
 * shorter, because the curve stops there. At the upper end it must be long enough to show the ramp
 * before it.
 */
#include "analysis/imported/mean_curve.h"

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE_FLOOR_CYCLES 2.0
#define TOLERANCE_SIGMAS       4.0
#define SIGMA_QUANTILE         0.6827 /* share of the values within one sigma of the middle */

/* The ratio of the pages at the end of an inner plateau to the pages at its beginning. The smaller
 * ratio is enough if many points confirm the plateau. */
#define INNER_SPAN       1.5
#define INNER_SPAN_DENSE 1.25
#define GAP_SPAN         1.25

/* A first rise of at least SHARP tolerances is the true onset. Misses grow with pages, so a rise
 * hidden below the tolerance one page earlier would be half as high, within the scatter. If the
 * next point falls again, the first rise was an outlier. */
#define SHARP 3.0

enum {
    MIN_RUN = 3,     /* fewest points of a plateau */
    DENSE_RUN = 40,  /* number of points of a plateau that allows the smaller ratio */
    CENTER_RUN = 64, /* number of first points of a plateau whose median is its height */
    TRIM_RUN = 5,
    LOOK_AHEAD = 3 /* number of points on the plateau that must follow an outlier */
};

struct run {
    uint32_t first, last; /* indices of points, both on the plateau */
    double center;
};

static int compare_points(const void *a, const void *b)
{
    const struct mean_point *const x = a;
    const struct mean_point *const y = b;
    return (x->pages > y->pages) - (x->pages < y->pages);
}

/* Sorts the points, and averages values of the same footprint. */
static void order_points(struct mean_curve *c)
{
    uint32_t kept = 0;
    uint32_t same = 1;

    if (c->count == 0)
        return;
    qsort(c->points, c->count, sizeof c->points[0], compare_points);
    for (uint32_t i = 1; i < c->count; i++) {
        struct mean_point *const last = &c->points[kept];
        if (c->points[i].pages == last->pages) {
            same += 1;
            last->cycles += (c->points[i].cycles - last->cycles) / same;
        } else {
            same = 1;
            c->points[++kept] = c->points[i];
        }
    }
    c->count = kept + 1;
}

/* Returns the tolerance in cycles, from the scatter of neighboring points after the median slope is
 * subtracted. `scratch` has room for c->count values. */
static double tolerance_of(const struct mean_curve *c, double *scratch)
{
    if (c->count < 2)
        return TOLERANCE_FLOOR_CYCLES;
    for (uint32_t i = 0; i + 1 < c->count; i++)
        scratch[i] = c->points[i + 1].cycles - c->points[i].cycles;
    const uint32_t n = c->count - 1;
    const double slope = stats_median_f64(scratch, n);
    for (uint32_t i = 0; i < n; i++)
        scratch[i] = fabs(scratch[i] - slope);
    const double sigma = stats_quantile_f64(scratch, n, SIGMA_QUANTILE) / sqrt(2.0);
    return fmax(TOLERANCE_FLOOR_CYCLES, TOLERANCE_SIGMAS * sigma);
}

static double median_of_points(const struct mean_curve *c, uint32_t first, uint32_t count)
{
    double v[CENTER_RUN];
    if (count > CENTER_RUN)
        count = CENTER_RUN;
    for (uint32_t i = 0; i < count; i++)
        v[i] = c->points[first + i].cycles;
    return stats_median_f64(v, count);
}

static bool is_on(const struct mean_curve *c, uint32_t i, double center)
{
    return fabs(c->points[i].cycles - center) <= c->tolerance_cycles;
}

/* Returns whether the points after `i` lie on the plateau again, so that `i` alone is an
 * outlier. */
static bool comes_back(const struct mean_curve *c, uint32_t i, double center)
{
    uint32_t seen = 0;
    for (uint32_t j = i + 1; j < c->count && seen < LOOK_AHEAD; j++, seen++) {
        if (!is_on(c, j, center))
            return false;
    }
    return seen > 1;
}

/* A run may have begun on the ramp before it, which shifts its height. The run is cut to begin at
 * the first few points that together are as high as the run. */
static void trim(const struct mean_curve *c, struct run *r)
{
    while (r->last - r->first >= MIN_RUN) {
        const uint32_t left = r->last - r->first + 1;
        const uint32_t few = left < TRIM_RUN ? left : TRIM_RUN;
        const double begins = median_of_points(c, r->first, few);
        if (is_on(c, r->first, r->center) && fabs(begins - r->center) <= c->tolerance_cycles / 2)
            return;
        r->first += 1;
        r->center = median_of_points(c, r->first, left - 1);
    }
}

static struct run grow(const struct mean_curve *c, uint32_t first)
{
    struct run r = {.first = first, .last = first};

    r.center = median_of_points(c, first, MIN_RUN);
    if (!is_on(c, first, r.center))
        return r;
    for (uint32_t i = first + 1; i < c->count; i++) {
        if (is_on(c, i, r.center))
            r.last = i;
        else if (!comes_back(c, i, r.center))
            break;
        if (i - first < CENTER_RUN)
            r.center = median_of_points(c, first, r.last - first + 1);
    }
    trim(c, &r);
    return r;
}

/* Returns whether a run at an end of the curve is level, within its scatter. */
static bool is_level(const struct mean_curve *c, const struct run *r)
{
    const uint32_t third = (r->last - r->first + 1) / 3;
    if (third < 2)
        return true;
    const double begins = median_of_points(c, r->first, third);
    const double ends = median_of_points(c, r->last + 1 - third, third);
    return fabs(ends - begins) <= c->tolerance_cycles / 2;
}

/* Returns whether the ramp before a run at the curve's end would be visible in the run, had it
 * continued. */
static bool has_settled(const struct mean_curve *c, const struct run *r)
{
    const uint32_t points = r->last - r->first + 1;
    const uint32_t back = r->first > points ? points : r->first;

    return r->center - c->points[r->first - back].cycles > 2 * c->tolerance_cycles;
}

/* Cuts drifting points off the end of a run. The next level may begin so gently that its first
 * points are still within the tolerance. */
static void cut_drift(const struct mean_curve *c, struct run *r)
{
    const uint32_t last = r->last;

    while (!is_level(c, r))
        r->last -= (r->last - r->first + 1) / 3;
    if (r->last == last)
        return;
    r->center = median_of_points(c, r->first, r->last - r->first + 1);
    while (r->last < last &&
           fabs(c->points[r->last + 1].cycles - r->center) <= c->tolerance_cycles / 2)
        r->last += 1;
}

static bool is_plateau(const struct mean_curve *c, const struct run *r)
{
    const uint32_t points = r->last - r->first + 1;

    if (points < MIN_RUN)
        return false;
    if (r->first == 0 || (r->last + 1 == c->count && has_settled(c, r)))
        return true;
    const double span = points >= DENSE_RUN ? INNER_SPAN_DENSE : INNER_SPAN;
    return (double)c->points[r->last].pages >= span * (double)c->points[r->first].pages;
}

/* Reads the step between two plateaus, the lower one first. */
static void read_step(const struct mean_curve *c, const struct run *from, const struct run *to,
                      struct mean_step *out)
{
    const uint32_t dirty = from->last + 1;

    *out = (struct mean_step){.last_fit_pages = c->points[from->last].pages,
                              .first_miss_pages = c->points[dirty].pages,
                              .full_pages = c->points[to->first].pages,
                              .from_cycles = from->center,
                              .to_cycles = to->center};
    out->sharp = c->points[dirty].cycles - from->center > SHARP * c->tolerance_cycles &&
                 c->points[dirty + 1 < c->count ? dirty + 1 : dirty].cycles >
                     c->points[dirty].cycles - c->tolerance_cycles;
    for (uint32_t i = dirty; i <= to->first; i++) {
        const uint64_t before = c->points[i - 1].pages;
        const uint64_t pages = c->points[i].pages;
        if (pages > before + 1 && (double)pages >= GAP_SPAN * (double)before)
            out->gapped = true;
    }
    for (uint32_t i = dirty + 1; i < to->first; i++)
        out->falls_back = out->falls_back || is_on(c, i, from->center);
}

static void find_steps(struct mean_curve *c)
{
    struct run before = {0};
    bool any = false;

    for (uint32_t i = 0; i + MIN_RUN <= c->count;) {
        struct run r = grow(c, i);
        cut_drift(c, &r);
        if (!is_plateau(c, &r)) {
            /* A long run that is not a plateau is skipped by halves, so that the time stays
             * linear. */
            i += 1 + (r.last - r.first) / 2;
            continue;
        }
        if (any && r.center - before.center > c->tolerance_cycles &&
            c->step_count < MEAN_CURVE_MAX_STEPS)
            read_step(c, &before, &r, &c->steps[c->step_count++]);
        for (uint32_t k = r.first; k <= r.last; k++)
            c->outliers += !is_on(c, k, r.center);
        before = r;
        any = true;
        i = r.last + 1;
    }
}

/* Finds the curve of this stride, or makes room for it in order. Returns NULL if there are too many
 * strides. */
static struct mean_curve *curve_of(struct mean_curves *out, uint64_t stride_bytes)
{
    uint32_t i = 0;
    while (i < out->count && out->curves[i].stride_bytes < stride_bytes)
        i++;
    if (i < out->count && out->curves[i].stride_bytes == stride_bytes)
        return &out->curves[i];
    if (out->count == MEAN_CURVES_MAX)
        return NULL;
    memmove(&out->curves[i + 1], &out->curves[i], (out->count - i) * sizeof out->curves[0]);
    out->curves[i] = (struct mean_curve){.stride_bytes = stride_bytes};
    out->count += 1;
    return &out->curves[i];
}

static enum status append(struct mean_curve *c, const struct observation *o, struct err *err)
{
    const uint32_t more = o->spec.point_count;
    struct mean_point *points =
        reallocarray(c->points, (size_t)c->count + more, sizeof c->points[0]);

    if (!points)
        return err_no_memory(err, "a curve");
    c->points = points;
    for (uint32_t p = 0; p < more; p++)
        points[c->count++] =
            (struct mean_point){.pages = o->spec.points[p], .cycles = observation_mean(o, p)};
    return STATUS_OK;
}

static enum status finish(struct mean_curve *c, struct err *err)
{
    order_points(c);
    double *const scratch = calloc((size_t)c->count + 1, sizeof *scratch);
    if (!scratch)
        return err_no_memory(err, "a curve");
    c->tolerance_cycles = tolerance_of(c, scratch);
    free(scratch);
    find_steps(c);
    const uint32_t few = c->count < CENTER_RUN ? c->count : CENTER_RUN;
    c->last_cycles = median_of_points(c, c->count - few, few);
    return STATUS_OK;
}

enum status mean_curves_read(const struct observation_set *set, struct mean_curves *out,
                             struct err *err)
{
    enum status s = STATUS_OK;

    *out = (struct mean_curves){0};
    for (const struct observation *o = NULL;
         s == STATUS_OK && (o = observation_next(set, o, PROBE_MEANS));) {
        struct mean_curve *const c = curve_of(out, o->spec.stride_bytes);
        if (c)
            s = append(c, o, err);
    }
    for (uint32_t i = 0; i < out->count && s == STATUS_OK; i++)
        s = finish(&out->curves[i], err);
    if (s != STATUS_OK)
        mean_curves_free(out);
    return s;
}

void mean_curves_free(struct mean_curves *take)
{
    for (uint32_t i = 0; i < take->count; i++)
        free(take->curves[i].points);
    *take = (struct mean_curves){0};
}

struct mean_curve *mean_curves_at(struct mean_curves *curves, uint64_t stride_bytes)
{
    for (uint32_t i = 0; i < curves->count; i++) {
        if (curves->curves[i].stride_bytes == stride_bytes)
            return &curves->curves[i];
    }
    return NULL;
}
