/* throughput.c: see throughput.h. */
#include "analysis/throughput/throughput.h"

#include "base/stats.h"
#include "base/units.h"

#include <math.h>

#define DISAGREE 0.01 /* largest difference of two repeats, as a share of the higher one */

enum { L2_TIMES = 4 };
#define SMALLEST_REGION_BYTES (32 * MIB)

/* The assignment of the SMs of a READ to windows. */
enum throughput_column { THROUGHPUT_NAIVE = 0, THROUGHPUT_BY_GROUP, THROUGHPUT_BY_SM };

/* A region that fits the cache measures the cache. */
bool throughput_region_counts(const struct observation_set *set, uint64_t bytes)
{
    return bytes >= L2_TIMES * set->gpu.l2_cache_bytes && bytes >= SMALLEST_REGION_BYTES;
}

bool throughput_is_from_memory(const struct observation_set *set)
{
    return set->limits.backing_bytes >= L2_TIMES * set->gpu.l2_cache_bytes;
}

bool throughput_all_sms_read(const struct observation *o)
{
    for (uint32_t i = 0; i < o->result.sm_count; i++) {
        if (probe_window_index(&o->spec, o->result.sm_ids[i]) == PROBE_SM_IDLE)
            return false;
    }
    return true;
}

static enum throughput_column column_of(const struct probe_spec *spec,
                                        const struct sm_partition *partition)
{
    uint32_t window_of_group[REACH_MAX_GROUPS];
    if (spec->window_count == 1)
        return THROUGHPUT_NAIVE;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        window_of_group[g] = PROBE_SM_IDLE;
    for (uint32_t id = 0; id < spec->window_sms; id++) {
        const uint32_t g = partition->group_of_sm[id];
        const uint32_t w = spec->window_of_sm[id];
        if (g == FINGERPRINT_NO_GROUP || w == PROBE_SM_IDLE)
            continue;
        if (window_of_group[g] != PROBE_SM_IDLE && window_of_group[g] != w)
            return THROUGHPUT_BY_SM;
        window_of_group[g] = w;
    }
    return THROUGHPUT_BY_GROUP;
}

bool throughput_is_by_group(const struct probe_spec *spec, const struct sm_partition *partition)
{
    return column_of(spec, partition) == THROUGHPUT_BY_GROUP;
}

double throughput_median_gbps(const struct observation *o, uint32_t point,
                              enum evidence_method method, struct evidence *out)
{
    double gbps[PROBE_MAX_REPEATS];
    for (uint32_t r = 0; r < o->spec.repeats; r++)
        gbps[r] = observation_read_gbps(o, point, r);
    *out = evidence_of_repeats(method, gbps, o->spec.repeats);
    return stats_median_f64(gbps, o->spec.repeats);
}

double throughput_spread(const struct observation *o, uint32_t point)
{
    double low = INFINITY;
    double high = 0;

    for (uint32_t r = 0; r < o->spec.repeats; r++) {
        low = fmin(low, observation_read_gbps(o, point, r));
        high = fmax(high, observation_read_gbps(o, point, r));
    }
    return high > 0 ? (high - low) / high : 1;
}

bool throughput_disagrees(const struct observation *o, uint32_t point)
{
    return o->spec.repeats == THROUGHPUT_REPEATS && throughput_spread(o, point) > DISAGREE;
}

/* Finds the point of this region, or makes room for it in ascending order. Returns NULL if there is
 * no room for another one. `without` is the reason why a new point has no windows. */
static struct curve_point *point_for(struct curve_point *points, uint32_t *count, uint32_t max,
                                     uint64_t region_bytes, enum reason without)
{
    uint32_t at = 0;
    while (at < *count && points[at].region_bytes < region_bytes)
        at++;
    if (at < *count && points[at].region_bytes == region_bytes)
        return &points[at];
    if (*count == max)
        return NULL;
    for (uint32_t i = (*count)++; i > at; i--)
        points[i] = points[i - 1];
    points[at] = (struct curve_point){.region_bytes = region_bytes,
                                      .naive_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                      .by_group_gbps = UNKNOWN_F64(without),
                                      .by_sm_gbps = UNKNOWN_F64(without),
                                      .windows = 1};
    return &points[at];
}

static void set_column(struct curve_point *out, enum throughput_column column,
                       struct maybe_f64 gbps, struct evidence evidence)
{
    const struct {
        struct maybe_f64 *gbps;
        struct evidence *evidence;
    } columns[] = {
        [THROUGHPUT_NAIVE] = {&out->naive_gbps, &out->evidence.naive_gbps},
        [THROUGHPUT_BY_GROUP] = {&out->by_group_gbps, &out->evidence.by_group_gbps},
        [THROUGHPUT_BY_SM] = {&out->by_sm_gbps, &out->evidence.by_sm_gbps},
    };

    *columns[column].gbps = gbps;
    *columns[column].evidence = evidence;
}

/* Fills in the reads of each group in a naive measurement within the reach, with all groups
 * active. */
static void read_groups(const struct observation *o, uint32_t point, struct topology *topology)
{
    double gbps[REACH_MAX_GROUPS][PROBE_MAX_REPEATS] = {{0}};
    for (uint32_t r = 0; r < o->spec.repeats; r++)
        for (uint32_t i = 0; i < o->result.sm_count; i++) {
            const uint16_t g = topology->partition.group_of_sm[o->result.sm_ids[i]];
            if (g != FINGERPRINT_NO_GROUP)
                gbps[g][r] += observation_read_sm_gbps(o, point, r, i);
        }
    for (uint32_t g = 0; g < topology->partition.group_count; g++) {
        struct sm_group *group = &topology->groups[g];
        group->evidence.random_read_gbps =
            evidence_of_repeats(EVIDENCE_RANDOM_READS, gbps[g], o->spec.repeats);
        group->random_read_gbps = KNOWN_F64(stats_median_f64(gbps[g], o->spec.repeats));
    }
}

/* The largest regions so far that gave the plateau and the speed of the whole memory. */
struct largest {
    uint64_t plateau_bytes;
    uint64_t memory_bytes;
};

/* The largest naive region within the reach makes the plateau. If no reach limits, the largest of
 * all does. */
static void read_naive(const struct observation *o, uint32_t p, struct maybe_f64 gbps,
                       struct evidence evidence, struct largest *largest, struct fingerprint *out)
{
    const struct maybe_u64 reach = out->windows.reach_bytes;
    const uint64_t bytes = o->spec.points[p];

    if (bytes >= largest->plateau_bytes && (!IS_KNOWN(reach) || bytes <= reach.v)) {
        largest->plateau_bytes = bytes;
        out->throughput.plateau_gbps = gbps;
        out->throughput.evidence.plateau_gbps = evidence;
        read_groups(o, p, &out->topology);
    }
    if (bytes >= largest->memory_bytes) {
        largest->memory_bytes = bytes;
        out->throughput.whole_memory_gbps = gbps;
        out->throughput.evidence.whole_memory_gbps = evidence;
    }
}

static void read_curve(const struct observation_set *set, const struct observation *o,
                       struct largest *largest, struct fingerprint *out)
{
    const enum throughput_column column = column_of(&o->spec, &out->topology.partition);
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        struct evidence evidence;
        if (!throughput_region_counts(set, o->spec.points[p]))
            continue;
        struct curve_point *c =
            point_for(out->throughput.curve, &out->throughput.curve_count, FINGERPRINT_MAX_CURVE,
                      o->spec.points[p], REASON_NOT_APPLICABLE);
        const struct maybe_f64 gbps =
            KNOWN_F64(throughput_median_gbps(o, p, EVIDENCE_RANDOM_READS, &evidence));
        if (column == THROUGHPUT_NAIVE)
            read_naive(o, p, gbps, evidence, largest, out);
        if (!c)
            continue;
        set_column(c, column, gbps, evidence);
        if (column != THROUGHPUT_NAIVE)
            c->windows = o->spec.window_count;
    }
}

void throughput_derive(const struct observation_set *set, struct fingerprint *out)
{
    struct largest largest = {0};

    if (!throughput_is_from_memory(set)) {
        out->throughput.plateau_gbps = UNKNOWN_F64(REASON_NO_DEVICE_MEMORY);
        out->throughput.whole_memory_gbps = UNKNOWN_F64(REASON_NO_DEVICE_MEMORY);
        return;
    }
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));)
        if (probe_is_line_read(&o->spec) && o->spec.run_bytes == 0 && throughput_all_sms_read(o))
            read_curve(set, o, &largest, out);
}

/* ---- other kinds of access ---- */

const struct rate_kind rate_kinds[RATE_KINDS] = {
    {ACCESS_READ, PROBE_SECTOR_BYTES},
    {ACCESS_READ, PROBE_BLOCK_BYTES},
    {ACCESS_ATOMIC, PROBE_SECTOR_BYTES},
    {ACCESS_WRITE, PROBE_SECTOR_BYTES},
};

/* Reads one region beyond the reach. */
static void read_beyond(const struct observation *o, uint32_t p,
                        const struct sm_partition *partition, struct access_rate *rate)
{
    const enum throughput_column column = column_of(&o->spec, partition);
    struct curve_point *point = NULL;
    struct evidence evidence;
    const struct maybe_f64 gbps =
        KNOWN_F64(throughput_median_gbps(o, p, EVIDENCE_RANDOM_ACCESSES, &evidence));

    if (column != THROUGHPUT_BY_SM)
        point = point_for(rate->points, &rate->point_count, FINGERPRINT_MAX_RATE_POINTS,
                          o->spec.points[p], REASON_NOT_MEASURED);
    if (point)
        set_column(point, column, gbps, evidence);
}

/* The largest naive region within the reach makes the plateau. If no reach limits, the largest of
 * all does. `*plateau_bytes` is the region that gave the plateau so far. */
static void read_within(const struct observation *o, uint32_t p, uint64_t *plateau_bytes,
                        struct access_rate *rate)
{
    if (o->spec.window_count != 1 || o->spec.points[p] < *plateau_bytes)
        return;
    *plateau_bytes = o->spec.points[p];
    rate->plateau_gbps = KNOWN_F64(
        throughput_median_gbps(o, p, EVIDENCE_RANDOM_ACCESSES, &rate->evidence.plateau_gbps));
}

/* Keeps the speed by group at the largest region only, because the plateau shows it elsewhere. */
static void keep_last_by_group(struct access_rate *rate)
{
    for (uint32_t k = 0; k + 1 < rate->point_count; k++) {
        rate->points[k].by_group_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
        rate->points[k].evidence.by_group_gbps = (struct evidence){0};
    }
}

/* Adds the rate of one kind of access. The calls come in the order of the rates. */
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
        if (!rate) {
            rate = &out->throughput.rates[out->throughput.rate_count++];
            rate->access = kind->access;
            rate->transaction_bytes = kind->transaction_bytes;
        }
        for (uint32_t p = 0; p < o->spec.point_count; p++) {
            if (!throughput_region_counts(set, o->spec.points[p]))
                continue;
            if (!IS_KNOWN(reach) || o->spec.points[p] <= reach.v)
                read_within(o, p, &plateau_bytes, rate);
            else
                read_beyond(o, p, &out->topology.partition, rate);
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
