/* access_cost.c: computes the nanoseconds of an access to any number of bytes from the GB/s of the
 * measured sizes (docs/planner.md, "An access"). It works with times, because times add up and
 * throughputs do not. The time of translation is linear in 1 / bytes. */
#include "planner/access_cost.h"

#include <math.h>
#include <stddef.h>

/* The curve is extended beyond its last point by an eighth of the size of that point, as in
 * predict_gbps. */
enum { BEYOND_DIVISOR = 8 };

/* FACTOR_BYTES is the size of an access for which both reads and writes are measured.
 * UNMEASURED_FACTOR is the cost of a write relative to a read if these measurements are missing. */
enum { FACTOR_BYTES = 32, UNMEASURED_FACTOR = 2 };

/* A point shows the time of translation only if it is slower than an access within the reach by
 * this factor. A faster point shows the time of memory. */
static const double VISIBLE = 1.02;

static const double LINE_BYTES = FINGERPRINT_CURVE_BYTES;

static double ns_of(uint32_t transaction_bytes, double gbps)
{
    return transaction_bytes / gbps;
}

/* ---- what is measured ---- */

/* Measured accesses of one kind and size. Number 0 stands for the reads of the curve, and number k
 * for rates[k - 1]. */
struct measured {
    enum access access;
    uint32_t transaction_bytes;
    double plateau_gbps; /* 0 if not known */
    const struct curve_point *points;
    uint32_t count;
};

static uint32_t measured_count(const struct throughput *t)
{
    return 1 + (t->rate_count < FINGERPRINT_MAX_RATES ? t->rate_count : FINGERPRINT_MAX_RATES);
}

static struct measured measured_at(const struct throughput *t, uint32_t k)
{
    const struct access_rate *r;

    if (k == 0)
        return (struct measured){ACCESS_READ, FINGERPRINT_CURVE_BYTES, t->plateau_gbps.v, t->curve,
                                 t->curve_count};
    r = &t->rates[k - 1];
    return (struct measured){r->access, r->transaction_bytes, r->plateau_gbps.v, r->points,
                             r->point_count};
}

static void add_point(struct access_cost_series *s, uint64_t reach_bytes, uint64_t bytes, double ns)
{
    if (s->count < ACCESS_COST_MAX_POINTS && bytes > reach_bytes &&
        (s->count == 0 || bytes > s->points[s->count - 1].bytes))
        s->points[s->count++] = (struct access_cost_point){bytes, ns};
}

static void add_gbps(struct access_cost_source *s, uint64_t reach_bytes, uint64_t bytes,
                     double naive, double by_group)
{
    if (naive > 0)
        add_point(&s->naive, reach_bytes, bytes, ns_of(s->transaction_bytes, naive));
    if (by_group > 0)
        add_point(&s->by_group, reach_bytes, bytes, ns_of(s->transaction_bytes, by_group));
}

/* Reads the measurements with number `k`. Returns false if their plateau is not known, because the
 * points have no meaning without a plateau. */
static bool read_source(const struct throughput *t, uint32_t k, uint64_t reach_bytes,
                        struct access_cost_source *out)
{
    const struct measured of = measured_at(t, k);

    *out = (struct access_cost_source){.transaction_bytes = of.transaction_bytes};
    if (!(of.plateau_gbps > 0))
        return false;
    out->in_reach_ns = ns_of(of.transaction_bytes, of.plateau_gbps);
    out->naive.reach_bytes = reach_bytes;
    if (reach_bytes > 0)
        add_gbps(out, 0, reach_bytes, of.plateau_gbps, of.plateau_gbps);
    for (uint32_t i = 0; i < of.count; i++)
        add_gbps(out, reach_bytes, of.points[i].region_bytes, of.points[i].naive_gbps.v,
                 of.points[i].by_group_gbps.v);
    return true;
}

/* ---- the measurements nearest to this kind and size ---- */

enum { NO_NEIGHBOR = UINT32_MAX };

/* The measurements with the nearest sizes: `low` is at or below the wanted size, and `high` is at
 * or above it. Both are numbers for measured_at, or NO_NEIGHBOR. */
struct neighbors {
    uint32_t low;
    uint32_t high;
};

static struct neighbors find_neighbors(const struct throughput *t, enum access access,
                                       uint32_t want)
{
    struct neighbors n = {NO_NEIGHBOR, NO_NEIGHBOR};

    for (uint32_t k = 0; k < measured_count(t); k++) {
        const struct measured m = measured_at(t, k);
        const uint32_t have = m.transaction_bytes;

        if (m.access != access || !(m.plateau_gbps > 0))
            continue;
        if (have <= want &&
            (n.low == NO_NEIGHBOR || have > measured_at(t, n.low).transaction_bytes))
            n.low = k;
        if (have >= want &&
            (n.high == NO_NEIGHBOR || have < measured_at(t, n.high).transaction_bytes))
            n.high = k;
    }
    return n;
}

static void combine(const struct throughput *t, enum access access, struct access_cost *p)
{
    const uint32_t want = p->transaction_bytes;
    const struct neighbors n = find_neighbors(t, access, want);
    const bool has_both = n.low != NO_NEIGHBOR && n.high != NO_NEIGHBOR;
    double in_reach;

    if (n.low == NO_NEIGHBOR && n.high == NO_NEIGHBOR)
        return;
    p->sources = 1;
    (void)read_source(t, n.low != NO_NEIGHBOR ? n.low : n.high, p->reach_bytes, &p->low);
    in_reach = p->low.in_reach_ns;
    if (p->low.transaction_bytes == want) {
        p->basis = BASIS_MEASURED;
    } else if (has_both) {
        p->basis = BASIS_BETWEEN;
        p->sources = 2;
        (void)read_source(t, n.high, p->reach_bytes, &p->high);
        p->part = (double)(want - p->low.transaction_bytes) /
                  (p->high.transaction_bytes - p->low.transaction_bytes);
        in_reach += p->part * (p->high.in_reach_ns - in_reach);
    } else {
        p->basis = BASIS_SCALED;
        if (want > p->low.transaction_bytes)
            in_reach *= (double)want / p->low.transaction_bytes;
    }
    p->in_reach_ns = KNOWN_F64(in_reach);
}

/* Chooses the source that memory serves fastest. A source without points beyond the reach has no
 * information about translation and is left out. */
static void find_clear(const struct throughput *t, struct access_cost *p)
{
    struct access_cost_source s;

    p->clear.transaction_bytes = 0;
    for (uint32_t k = 0; k < measured_count(t); k++) {
        if (read_source(t, k, p->reach_bytes, &s) && s.naive.count > 1 &&
            (p->clear.transaction_bytes == 0 || s.in_reach_ns < p->clear.in_reach_ns))
            p->clear = s;
    }
}

/* Returns the cost of a write relative to a read. A sector that is only partly written is read
 * first and written back later. */
static double write_factor(const struct throughput *t)
{
    double reads = 0;
    double writes = 0;

    for (uint32_t k = 0; k < measured_count(t); k++) {
        const struct measured m = measured_at(t, k);

        if (m.transaction_bytes == FACTOR_BYTES && m.access == ACCESS_READ)
            reads = m.plateau_gbps;
        if (m.transaction_bytes == FACTOR_BYTES && m.access == ACCESS_WRITE)
            writes = m.plateau_gbps;
    }
    return writes > 0 && reads > writes ? reads / writes : UNMEASURED_FACTOR;
}

void access_cost_read(const struct throughput *t, const struct reach_limit *limit,
                      enum access access, uint32_t transaction_bytes, struct access_cost *out)
{
    const struct maybe_f64 plateau = t->plateau_gbps;

    out->basis = BASIS_NONE;
    out->transaction_bytes = transaction_bytes;
    out->element_bytes = 0;
    out->lines = 0;
    out->moved_bytes = transaction_bytes;
    out->reach_bytes = limit->observed ? limit->reach_bytes : 0;
    out->in_reach_ns = UNKNOWN_F64(REASON_NOT_MEASURED);
    out->stream_ns = IS_KNOWN(plateau) && plateau.v > 0 ? 1 / plateau.v : 0;
    out->write_factor = write_factor(t);
    out->sources = 0;
    out->part = 0;
    out->scattering = KNOWN_F64(1);
    combine(t, access, out);
    find_clear(t, out);
}

uint64_t access_cost_touched_bytes(uint32_t element_bytes, uint32_t unit_bytes)
{
    const uint32_t power = element_bytes & -element_bytes;

    return (uint64_t)element_bytes + unit_bytes - (power < unit_bytes ? power : unit_bytes);
}

static double measured_ns(const struct throughput *t, uint32_t k)
{
    const struct measured m = measured_at(t, k);

    return ns_of(m.transaction_bytes, m.plateau_gbps);
}

/* Returns the nanoseconds of one further line of a read, without its sectors; 0 if not known. */
static double further_line_ns(const struct throughput *t)
{
    const struct neighbors sector = find_neighbors(t, ACCESS_READ, ACCESS_COST_SECTOR_BYTES);
    const struct neighbors longer = find_neighbors(t, ACCESS_READ, FINGERPRINT_CURVE_BYTES + 1);
    double line;
    double each;

    if (sector.low == NO_NEIGHBOR || sector.low != sector.high || longer.high == NO_NEIGHBOR ||
        !(t->plateau_gbps.v > 0))
        return 0;
    line = measured_ns(t, 0);
    each = (measured_ns(t, longer.high) - line) /
           (measured_at(t, longer.high).transaction_bytes - LINE_BYTES);
    each -= fmax(0, line - measured_ns(t, sector.low)) / (LINE_BYTES - ACCESS_COST_SECTOR_BYTES);
    return fmax(0, each * LINE_BYTES);
}

/* Returns the nanoseconds of an aligned read of these bytes, between two measured sizes. */
static double aligned_read_ns(const struct throughput *t, double bytes)
{
    const struct neighbors n = find_neighbors(t, ACCESS_READ, (uint32_t)bytes);
    double low;
    double from;

    if (n.low == NO_NEIGHBOR)
        return measured_ns(t, n.high);
    low = measured_ns(t, n.low);
    from = measured_at(t, n.low).transaction_bytes;
    if (n.high == NO_NEIGHBOR)
        return low * bytes / from;
    if (n.high == n.low)
        return low;
    return low + (bytes - from) / (measured_at(t, n.high).transaction_bytes - from) *
                     (measured_ns(t, n.high) - low);
}

void access_cost_add_lines(struct access_cost *p, const struct throughput *t, enum access access,
                           uint32_t element_bytes)
{
    const double touched =
        (double)access_cost_touched_bytes(element_bytes, FINGERPRINT_CURVE_BYTES);

    p->element_bytes = element_bytes;
    p->lines = 0;
    if (access != ACCESS_READ || !IS_KNOWN(p->in_reach_ns) ||
        p->transaction_bytes != access_cost_touched_bytes(element_bytes, ACCESS_COST_SECTOR_BYTES))
        return;
    p->lines = touched / FINGERPRINT_CURVE_BYTES;
    p->in_reach_ns.v +=
        (p->lines - fmax(1, p->transaction_bytes / LINE_BYTES)) * further_line_ns(t);
}

void access_cost_share_lines(struct access_cost *p, const struct throughput *t, double lines)
{
    const double of_line = p->transaction_bytes / (p->lines * LINE_BYTES);
    const double apart = fmin(1, lines);
    double bytes;

    if (!(lines > 0) || !(lines < p->lines))
        return;
    bytes = lines * LINE_BYTES * (1 - pow(1 - of_line, p->lines / lines)) / apart;
    p->in_reach_ns.v = apart * (aligned_read_ns(t, bytes) +
                                (lines / apart - fmax(1, bytes / LINE_BYTES)) * further_line_ns(t));
    p->lines = lines;
    p->moved_bytes = bytes * apart;
}

struct maybe_f64 access_cost_gbps(struct maybe_f64 ns, uint32_t transaction_bytes)
{
    if (IS_KNOWN(ns))
        ns.v = transaction_bytes / ns.v;
    return ns;
}

void access_cost_scatter(struct access_cost *p, const struct fingerprint *fp, double scattered)
{
    p->scattering = KNOWN_F64(1);
    if (!(scattered > 0))
        return;
    p->scattering = contiguity_factor(&fp->contiguity);
    if (IS_KNOWN(p->scattering))
        p->scattering.v = 1 + scattered * (p->scattering.v - 1);
}

/* ---- at any size ---- */

/* Returns the nanoseconds at `bytes` on the straight line in 1 / bytes through two points. */
static double on_line(const struct access_cost_point *a, const struct access_cost_point *b,
                      uint64_t bytes)
{
    const double from = 1 / (double)a->bytes;
    const double to = 1 / (double)b->bytes;

    return a->ns + (1 / (double)bytes - from) / (to - from) * (b->ns - a->ns);
}

/* Returns the nanoseconds at `bytes`, between points i and i + 1. If point i is as fast as an
 * access within the reach, the line bends between the two points. The bend is on the line through
 * points i + 1 and i + 2, extended backwards. Without point i + 2 the bend is on the line that
 * rises from 0 at the reach. If point i is slower, there is no bend, and an extended line would
 * carry the noise of two points that are close together. */
static double between(const struct access_cost_series *s, uint32_t i, uint64_t bytes)
{
    const struct access_cost_point *a = &s->points[i];
    const struct access_cost_point *b = &s->points[i + 1];
    const struct access_cost_point at_reach = {s->reach_bytes, 0};
    const struct access_cost_point *other = NULL;
    double bent;

    if (i + 2 < s->count && s->points[i + 2].ns > b->ns)
        other = b + 1;
    if (i + 2 == s->count && s->reach_bytes > 0 && b->ns > s->points[0].ns * VISIBLE)
        other = &at_reach;
    if (other && a->ns <= s->points[0].ns * VISIBLE && b->ns > a->ns &&
        on_line(b, other, a->bytes) < a->ns) {
        bent = on_line(b, other, bytes);
        return bent > a->ns ? bent : a->ns;
    }
    return on_line(a, b, bytes);
}

/* Writes the nanoseconds at `bytes` to `*out`. Returns false if `bytes` is beyond the measured
 * range. */
static bool series_at(const struct access_cost_series *s, double in_reach_ns, uint64_t bytes,
                      double *out)
{
    const struct access_cost_point *last;
    uint32_t i = 0;

    *out = in_reach_ns;
    if (s->count == 0)
        return false;
    if (bytes <= s->points[0].bytes)
        return true;
    while (i + 1 < s->count && s->points[i + 1].bytes < bytes)
        i++;
    if (i + 1 < s->count) {
        *out = between(s, i, bytes);
        return true;
    }
    last = &s->points[s->count - 1];
    *out = last->ns;
    if (s->count > 1) {
        double further = on_line(&s->points[s->count - 2], last, bytes);
        if (further > last->ns)
            *out = further;
    }
    return s->count > 1 && bytes - last->bytes <= last->bytes / BEYOND_DIVISOR;
}

/* Returns the time of translation if memory takes longer. This time is on the line from 0 at the
 * reach to the first point that shows translation. */
static double hidden(const struct access_cost_source *s, uint64_t reach_bytes, uint64_t bytes)
{
    const struct access_cost_point reach = {reach_bytes, 0};

    for (uint32_t i = 0; reach_bytes > 0 && bytes > reach_bytes && i < s->naive.count; i++) {
        const struct access_cost_point *p = &s->naive.points[i];
        if (p->bytes > bytes && p->ns > s->in_reach_ns * VISIBLE)
            return on_line(&reach, p, bytes);
    }
    return 0;
}

/* Writes the time of translation in this source to `*out`. Returns false if memory hides the time,
 * or if `bytes` is beyond the measured range. */
static bool shown(const struct access_cost_source *s, uint64_t bytes, double *out)
{
    return series_at(&s->naive, s->in_reach_ns, bytes, out) && *out > s->in_reach_ns * VISIBLE;
}

static struct maybe_f64 contiguous_ns(const struct access_cost *p, uint64_t bytes)
{
    double low;
    double high;

    if (p->reach_bytes > 0 && bytes <= p->reach_bytes)
        return KNOWN_F64(0);
    if (p->sources == 1 && shown(&p->low, bytes, &low))
        return KNOWN_F64(low);
    if (p->sources == 2 && shown(&p->low, bytes, &low) && shown(&p->high, bytes, &high))
        return KNOWN_F64(low + p->part * (high - low));
    if (p->clear.transaction_bytes == 0)
        return UNKNOWN_F64(REASON_NOT_MEASURED);
    if (shown(&p->clear, bytes, &low))
        return KNOWN_F64(low);
    if (!series_at(&p->clear.naive, p->clear.in_reach_ns, bytes, &low))
        return UNKNOWN_F64(REASON_BEYOND_MEMORY);
    return KNOWN_F64(hidden(&p->clear, p->reach_bytes, bytes));
}

struct maybe_f64 access_cost_translation_ns(const struct access_cost *p, uint64_t bytes)
{
    struct maybe_f64 ns = contiguous_ns(p, bytes);

    if (!IS_KNOWN(ns) || !(ns.v > 0))
        return ns;
    if (!IS_KNOWN(p->scattering))
        return p->scattering;
    ns.v *= p->scattering.v;
    return ns;
}

struct maybe_f64 access_cost_naive_ns(const struct access_cost *p, uint64_t bytes)
{
    struct maybe_f64 ns = access_cost_translation_ns(p, bytes);

    if (!IS_KNOWN(p->in_reach_ns))
        return p->in_reach_ns;
    if (IS_KNOWN(ns))
        ns.v = fmax(ns.v, p->in_reach_ns.v);
    return ns;
}

/* Returns the measured slowdown of an access in windows, relative to an access within the reach. */
static double slowdown_by_group(const struct access_cost_source *s, uint64_t bytes)
{
    double ns;

    (void)series_at(&s->by_group, s->in_reach_ns, bytes, &ns);
    return ns / s->in_reach_ns;
}

double access_cost_by_group_slowdown(const struct access_cost *p, uint64_t bytes)
{
    double slowdown = 1;

    if (p->sources > 0)
        slowdown = slowdown_by_group(&p->low, bytes);
    if (p->sources > 1)
        slowdown += p->part * (slowdown_by_group(&p->high, bytes) - slowdown);
    return slowdown;
}
