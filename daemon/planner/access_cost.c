/* access_cost.c: from GB/s at some sizes to nanoseconds at any size.
 *
 * Time, not throughput, is what adds up, and over n pages of which e are translated a random access
 * misses 1 - e/n of the time: its time is a straight line in 1 / bytes. So between two measured
 * points ns are interpolated linearly in 1 / bytes. Where the line bends between two points because
 * another resource takes over, the line of the next two points is drawn backwards, and an access
 * costs the dearer of that and of the point before the bend.
 *
 * Sizes that were not measured: between two measured ones of the same kind, ns are linear in the
 * bytes of a transaction. Of larger ones memory takes as much for a byte as of the largest
 * measured. Smaller ones are taken to cost as much as the smallest measured, which is the most that
 * they can: a quarter of the bytes takes four fifths of the time on an H200, not a quarter of it.
 * Translation takes as much for an access of any kind and size; where memory hides it, or nothing
 * is measured of this kind, it is that of the fastest accesses that are measured; and where memory
 * hides it there too, it is read off their first point that shows it, along the line through the
 * reach.
 */
#include "planner/access_cost.h"

#include <math.h>
#include <stddef.h>

/* Beyond the last point a line is believed for an eighth of its size, as predict.c does. */
enum { BEYOND_DIVISOR = 8 };

/* Writes against reads: the size that both are measured at, and what is assumed otherwise. */
enum { FACTOR_BYTES = 32, UNMEASURED_FACTOR = 2 };

/* Points that are slower by less than this show memory, not translation. */
static const double VISIBLE = 1.02;

static double ns_of(uint32_t transaction_bytes, double gbps)
{
    return transaction_bytes / gbps;
}

static void add_point(struct access_cost_series *s, uint64_t reach_bytes, uint64_t bytes, double ns)
{
    if (s->count < ACCESS_COST_MAX_POINTS && bytes > reach_bytes &&
        (s->count == 0 || bytes > s->points[s->count - 1].bytes))
        s->points[s->count++] = (struct access_cost_point){bytes, ns};
}

static void add_gbps(struct access_cost_series *s, const struct access_cost_source *of,
                     uint64_t reach_bytes, uint64_t bytes, struct maybe_f64 gbps)
{
    if (IS_KNOWN(gbps) && gbps.v > 0)
        add_point(s, reach_bytes, bytes, ns_of(of->transaction_bytes, gbps.v));
}

static bool begin_source(struct access_cost_source *s, uint32_t transaction_bytes,
                         uint64_t reach_bytes, struct maybe_f64 plateau)
{
    *s = (struct access_cost_source){.transaction_bytes = transaction_bytes};
    if (!IS_KNOWN(plateau) || !(plateau.v > 0))
        return false;
    s->in_reach_ns = ns_of(transaction_bytes, plateau.v);
    if (reach_bytes > 0) {
        add_point(&s->naive, 0, reach_bytes, s->in_reach_ns);
        add_point(&s->by_group, 0, reach_bytes, s->in_reach_ns);
    }
    return true;
}

static bool source_of_curve(const struct throughput *t, uint64_t reach_bytes,
                            struct access_cost_source *out)
{
    if (!begin_source(out, FINGERPRINT_CURVE_BYTES, reach_bytes, t->plateau_gbps))
        return false;
    for (uint32_t i = 0; i < t->curve_count; i++) {
        const struct curve_point *p = &t->curve[i];
        add_gbps(&out->naive, out, reach_bytes, p->region_bytes, p->naive_gbps);
        add_gbps(&out->by_group, out, reach_bytes, p->region_bytes, p->by_group_gbps);
    }
    return true;
}

static bool source_of_rate(const struct access_rate *r, uint64_t reach_bytes,
                           struct access_cost_source *out)
{
    if (!begin_source(out, r->transaction_bytes, reach_bytes, r->plateau_gbps))
        return false;
    for (uint32_t i = 0; i < r->point_count; i++) {
        const struct rate_point *p = &r->points[i];
        add_gbps(&out->naive, out, reach_bytes, p->region_bytes, p->naive_gbps);
        add_gbps(&out->by_group, out, reach_bytes, p->region_bytes, p->by_group_gbps);
    }
    return true;
}

/* ---- which measurements speak for this kind and size ---- */

/* The nearest measured sizes at or below, and at or above; 0: none. */
struct neighbours {
    uint32_t low;
    uint32_t high;
};

static void consider(struct neighbours *n, uint32_t have, uint32_t want, struct maybe_f64 plateau)
{
    if (!IS_KNOWN(plateau) || !(plateau.v > 0))
        return;
    if (have <= want && have > n->low)
        n->low = have;
    if (have >= want && (n->high == 0 || have < n->high))
        n->high = have;
}

static struct neighbours find_neighbours(const struct throughput *t, enum access access,
                                         uint32_t want)
{
    struct neighbours n = {0, 0};

    if (access == ACCESS_READ)
        consider(&n, FINGERPRINT_CURVE_BYTES, want, t->plateau_gbps);
    for (uint32_t i = 0; i < t->rate_count && i < FINGERPRINT_MAX_RATES; i++) {
        if (t->rates[i].access == access)
            consider(&n, t->rates[i].transaction_bytes, want, t->rates[i].plateau_gbps);
    }
    return n;
}

static void read_source(const struct throughput *t, enum access access, uint32_t have,
                        uint64_t reach_bytes, struct access_cost_source *out)
{
    if (access == ACCESS_READ && have == (uint32_t)FINGERPRINT_CURVE_BYTES) {
        (void)source_of_curve(t, reach_bytes, out);
        return;
    }
    for (uint32_t i = 0; i < t->rate_count && i < FINGERPRINT_MAX_RATES; i++) {
        if (t->rates[i].access == access && t->rates[i].transaction_bytes == have)
            (void)source_of_rate(&t->rates[i], reach_bytes, out);
    }
}

static void combine(const struct throughput *t, enum access access, struct access_cost *p)
{
    const uint32_t want = p->transaction_bytes;
    const struct neighbours n = find_neighbours(t, access, want);
    const uint32_t nearest = n.low != 0 ? n.low : n.high;
    double in_reach;

    if (nearest == 0)
        return;
    p->sources = 1;
    read_source(t, access, nearest, p->reach_bytes, &p->low);
    in_reach = p->low.in_reach_ns;
    if (nearest == want) {
        p->basis = BASIS_MEASURED;
    } else if (n.low != 0 && n.high != 0) {
        p->basis = BASIS_BETWEEN;
        p->sources = 2;
        read_source(t, access, n.high, p->reach_bytes, &p->high);
        p->part = (double)(want - n.low) / (n.high - n.low);
        in_reach += p->part * (p->high.in_reach_ns - in_reach);
    } else {
        p->basis = BASIS_SCALED;
        if (want > nearest)
            in_reach *= (double)want / nearest;
    }
    p->in_reach_ns = KNOWN_F64(in_reach);
}

/* Needs points beyond the reach: without them a source says nothing of translation. */
static void find_clear(const struct throughput *t, struct access_cost *p)
{
    struct access_cost_source s;

    p->clear.transaction_bytes = 0;
    if (source_of_curve(t, p->reach_bytes, &s) && s.naive.count > 1)
        p->clear = s;
    for (uint32_t i = 0; i < t->rate_count && i < FINGERPRINT_MAX_RATES; i++) {
        if (source_of_rate(&t->rates[i], p->reach_bytes, &s) && s.naive.count > 1 &&
            (p->clear.transaction_bytes == 0 || s.in_reach_ns < p->clear.in_reach_ns))
            p->clear = s;
    }
}

/* A sector that is written in part is read first, and goes back to memory later. */
static double write_factor(const struct throughput *t)
{
    double reads = 0;
    double writes = 0;

    for (uint32_t i = 0; i < t->rate_count && i < FINGERPRINT_MAX_RATES; i++) {
        const struct access_rate *r = &t->rates[i];
        if (r->transaction_bytes != FACTOR_BYTES || !IS_KNOWN(r->plateau_gbps))
            continue;
        if (r->access == ACCESS_READ)
            reads = r->plateau_gbps.v;
        if (r->access == ACCESS_WRITE)
            writes = r->plateau_gbps.v;
    }
    return writes > 0 && reads > writes ? reads / writes : UNMEASURED_FACTOR;
}

void access_cost_read(const struct fingerprint *fp, const struct reach_limit *limit,
                      enum access access, uint32_t transaction_bytes, double in_reach_gbps,
                      struct access_cost *out)
{
    const struct maybe_f64 plateau = fp->throughput.plateau_gbps;

    out->basis = BASIS_NONE;
    out->transaction_bytes = transaction_bytes;
    out->reach_bytes = limit->observed ? limit->reach_bytes : 0;
    out->in_reach_ns = UNKNOWN_F64(REASON_NOT_MEASURED);
    out->stream_ns = IS_KNOWN(plateau) && plateau.v > 0 ? 1 / plateau.v : 0;
    out->write_factor = write_factor(&fp->throughput);
    out->sources = 0;
    out->part = 0;
    combine(&fp->throughput, access, out);
    find_clear(&fp->throughput, out);
    if (in_reach_gbps > 0) {
        out->in_reach_ns = KNOWN_F64(ns_of(transaction_bytes, in_reach_gbps));
        if (out->basis == BASIS_NONE)
            out->basis = BASIS_JOB;
    }
}

/* ---- at any size ---- */

/* ns at `bytes` on the straight line in 1 / bytes through two points. */
static double on_line(const struct access_cost_point *a, const struct access_cost_point *b,
                      uint64_t bytes)
{
    const double from = 1 / (double)a->bytes;
    const double to = 1 / (double)b->bytes;

    return a->ns + (1 / (double)bytes - from) / (to - from) * (b->ns - a->ns);
}

/* Between points i and i + 1. */
static double between(const struct access_cost_series *s, uint32_t i, uint64_t bytes)
{
    const struct access_cost_point *a = &s->points[i];
    const struct access_cost_point *b = &s->points[i + 1];
    double bent;

    if (i + 2 < s->count && b->ns > a->ns && s->points[i + 2].ns > b->ns &&
        on_line(b, &s->points[i + 2], a->bytes) < a->ns) {
        bent = on_line(b, &s->points[i + 2], bytes);
        return bent > a->ns ? bent : a->ns;
    }
    return on_line(a, b, bytes);
}

/* False beyond what was measured. */
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

/* What translation takes where memory takes longer: along the line from nothing at the reach to the
 * first point that shows it. */
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

/* Translation as this source shows it: false where memory hides it, or beyond what was measured. */
static bool shown(const struct access_cost_source *s, uint64_t bytes, double *out)
{
    return series_at(&s->naive, s->in_reach_ns, bytes, out) && *out > s->in_reach_ns * VISIBLE;
}

struct maybe_f64 access_cost_translation_ns(const struct access_cost *p, uint64_t bytes)
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

/* By how much an access in windows was measured to be slower than one inside the reach. */
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
