/* rates.c: see rates.h. */
#include "analysis/throughput/rates.h"

#include "analysis/throughput/group_reads.h"
#include "analysis/throughput/throughput.h"

const struct rate_kind rate_kinds[RATE_KINDS] = {
    {ACCESS_READ, PROBE_SECTOR_BYTES},
    {ACCESS_READ, PROBE_BLOCK_BYTES},
    {ACCESS_ATOMIC, PROBE_SECTOR_BYTES},
    {ACCESS_WRITE, PROBE_SECTOR_BYTES},
};

static bool is_before(const struct access_rate *rate, const struct probe_spec *spec)
{
    return rate->access < spec->access ||
           (rate->access == spec->access && rate->transaction_bytes < probe_access_bytes(spec));
}

/* The rate of this kind, in order; NULL where there is no room for one more. */
static struct access_rate *rate_for(struct throughput *t, const struct probe_spec *spec)
{
    const struct access_rate unused = t->rates[FINGERPRINT_MAX_RATES - 1];
    uint32_t at = 0;

    while (at < t->rate_count && is_before(&t->rates[at], spec))
        at++;
    if (at < t->rate_count && t->rates[at].access == spec->access &&
        t->rates[at].transaction_bytes == probe_access_bytes(spec))
        return &t->rates[at];
    if (t->rate_count == FINGERPRINT_MAX_RATES)
        return NULL;
    for (uint32_t i = t->rate_count++; i > at; i--)
        t->rates[i] = t->rates[i - 1];
    t->rates[at] = unused;
    t->rates[at].access = spec->access;
    t->rates[at].transaction_bytes = probe_access_bytes(spec);
    return &t->rates[at];
}

/* The point of this region, in ascending order; NULL where there is no room for one more. */
static struct rate_point *point_for(struct access_rate *rate, uint64_t region_bytes)
{
    uint32_t at = 0;

    while (at < rate->point_count && rate->points[at].region_bytes < region_bytes)
        at++;
    if (at < rate->point_count && rate->points[at].region_bytes == region_bytes)
        return &rate->points[at];
    if (rate->point_count == FINGERPRINT_MAX_RATE_POINTS)
        return NULL;
    for (uint32_t i = rate->point_count++; i > at; i--)
        rate->points[i] = rate->points[i - 1];
    rate->points[at] = (struct rate_point){.region_bytes = region_bytes,
                                           .naive_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                           .by_group_gbps = UNKNOWN_F64(REASON_NOT_MEASURED)};
    return &rate->points[at];
}

/* One region beyond the reach. */
static void read_point(const struct observation *o, uint32_t p,
                       const struct sm_partition *partition, struct access_rate *rate)
{
    const enum throughput_column column = throughput_column_of(&o->spec, partition);
    struct rate_point *point = NULL;
    struct evidence evidence;
    const struct maybe_f64 gbps =
        KNOWN_F64(throughput_median_gbps(o, p, EVIDENCE_RANDOM_ACCESSES, &evidence));

    if (column != THROUGHPUT_BY_SM)
        point = point_for(rate, o->spec.points[p]);
    if (!point)
        return;
    if (column == THROUGHPUT_NAIVE) {
        point->naive_gbps = gbps;
        point->evidence[RATE_POINT_EVIDENCE_NAIVE_GBPS] = evidence;
    } else {
        point->by_group_gbps = gbps;
        point->evidence[RATE_POINT_EVIDENCE_BY_GROUP_GBPS] = evidence;
    }
}

/* The largest naive region within the reach (or at all, where no reach limits) makes the plateau.
 * `*plateau_bytes` is that of the rate so far. */
static void read_inside(const struct observation *o, uint32_t p, uint64_t *plateau_bytes,
                        struct access_rate *rate)
{
    if (o->spec.window_count != 1 || o->spec.points[p] < *plateau_bytes)
        return;
    *plateau_bytes = o->spec.points[p];
    rate->plateau_gbps = KNOWN_F64(throughput_median_gbps(
        o, p, EVIDENCE_RANDOM_ACCESSES, &rate->evidence[RATE_EVIDENCE_PLATEAU_GBPS]));
}

/* By group is told at the largest region alone: everywhere else it is the plateau's business. */
static void keep_last_by_group(struct access_rate *rate)
{
    for (uint32_t k = 0; k + 1 < rate->point_count; k++) {
        rate->points[k].by_group_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
        rate->points[k].evidence[RATE_POINT_EVIDENCE_BY_GROUP_GBPS] = (struct evidence){0};
    }
}

static void read_kind(const struct observation_set *set, struct fingerprint *out,
                      const struct rate_kind *kind)
{
    const struct maybe_u64 reach = out->windows.reach_bytes;
    uint64_t plateau_bytes = 0;
    struct access_rate *rate = NULL;

    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));) {
        if (o->spec.access != kind->access ||
            probe_access_bytes(&o->spec) != kind->transaction_bytes || !throughput_all_sms_read(o))
            continue;
        rate = rate_for(&out->throughput, &o->spec);
        for (uint32_t p = 0; rate && p < o->spec.point_count; p++) {
            if (!throughput_region_counts(set, o->spec.points[p]))
                continue;
            if (!IS_KNOWN(reach) || o->spec.points[p] <= reach.v)
                read_inside(o, p, &plateau_bytes, rate);
            else
                read_point(o, p, &out->topology.partition, rate);
        }
    }
    if (rate)
        keep_last_by_group(rate);
}

void rates_derive(const struct observation_set *set, struct fingerprint *out)
{
    if (!throughput_is_from_memory(set))
        return;
    for (uint32_t k = 0; k < RATE_KINDS; k++)
        read_kind(set, out, &rate_kinds[k]);
}
