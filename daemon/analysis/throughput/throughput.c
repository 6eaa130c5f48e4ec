/* throughput.c: see throughput.h. */
#include "analysis/throughput/throughput.h"

#include "base/stats.h"
#include "base/units.h"

enum { L2_TIMES = 4 };
#define SMALLEST_REGION_BYTES (32 * MIB)

/* The columns are also the places of their evidence. */
_Static_assert((int)THROUGHPUT_NAIVE == (int)CURVE_EVIDENCE_NAIVE_GBPS &&
                   (int)THROUGHPUT_BY_GROUP == (int)CURVE_EVIDENCE_BY_GROUP_GBPS &&
                   (int)THROUGHPUT_BY_SM == (int)CURVE_EVIDENCE_BY_SM_GBPS,
               "columns");

/* A region that fits the cache tells of the cache. */
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
        if (probe_window_of(&o->spec, o->result.sm_ids[i]) == PROBE_SM_IDLE)
            return false;
    }
    return true;
}

enum throughput_column throughput_column_of(const struct probe_spec *spec,
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

double throughput_median_gbps(const struct observation *o, uint32_t point,
                              enum evidence_method method, struct evidence *out)
{
    double gbps[PROBE_MAX_REPEATS];
    for (uint32_t r = 0; r < o->spec.repeats; r++)
        gbps[r] = observation_read_gbps(o, point, r);
    *out = evidence_of_repeats(method, gbps, o->spec.repeats);
    return stats_median_f64(gbps, o->spec.repeats);
}

/* The curve's point for this region, in ascending order; NULL where the curve is full. */
static struct curve_point *point_for(struct throughput *t, uint64_t region_bytes)
{
    uint32_t at = 0;
    while (at < t->curve_count && t->curve[at].region_bytes < region_bytes)
        at++;
    if (at < t->curve_count && t->curve[at].region_bytes == region_bytes)
        return &t->curve[at];
    if (t->curve_count == FINGERPRINT_MAX_CURVE)
        return NULL;
    for (uint32_t i = t->curve_count++; i > at; i--)
        t->curve[i] = t->curve[i - 1];
    t->curve[at] = (struct curve_point){.region_bytes = region_bytes,
                                        .naive_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                        .by_group_gbps = UNKNOWN_F64(REASON_NOT_APPLICABLE),
                                        .by_sm_gbps = UNKNOWN_F64(REASON_NOT_APPLICABLE),
                                        .windows = 1};
    return &t->curve[at];
}

static void read_read(const struct observation_set *set, const struct observation *o,
                      const struct sm_partition *partition, struct throughput *t)
{
    const enum throughput_column column = throughput_column_of(&o->spec, partition);
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        struct curve_point *c = throughput_region_counts(set, o->spec.points[p])
                                    ? point_for(t, o->spec.points[p])
                                    : NULL;
        struct evidence evidence;
        const struct maybe_f64 gbps =
            KNOWN_F64(throughput_median_gbps(o, p, EVIDENCE_RANDOM_READS, &evidence));
        if (!c)
            continue;
        c->evidence[column] = evidence;
        if (column == THROUGHPUT_NAIVE) {
            c->naive_gbps = gbps;
            continue;
        }
        c->windows = o->spec.window_count;
        if (column == THROUGHPUT_BY_GROUP)
            c->by_group_gbps = gbps;
        else
            c->by_sm_gbps = gbps;
    }
}

/* What each group read in a naive run inside the reach, all groups at work. */
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
        group->evidence[GROUP_EVIDENCE_RANDOM_READ_GBPS] =
            evidence_of_repeats(EVIDENCE_RANDOM_READS, gbps[g], o->spec.repeats);
        group->random_read_gbps = KNOWN_F64(stats_median_f64(gbps[g], o->spec.repeats));
    }
}

/* The largest naive region within the reach (or at all, where no reach limits) makes the plateau.
 */
static void read_plateau(const struct observation_set *set, struct fingerprint *out)
{
    const struct maybe_u64 reach = out->windows.reach_bytes;
    struct evidence *const evidence = out->throughput.evidence;
    uint64_t best_bytes = 0;
    uint64_t most_bytes = 0;
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));) {
        if (!probe_is_line_read(&o->spec) || o->spec.window_count != 1 ||
            !throughput_all_sms_read(o))
            continue;
        for (uint32_t p = 0; p < o->spec.point_count; p++) {
            const uint64_t bytes = o->spec.points[p];
            if (!throughput_region_counts(set, bytes))
                continue;
            if (bytes >= best_bytes && (!IS_KNOWN(reach) || bytes <= reach.v)) {
                best_bytes = bytes;
                out->throughput.plateau_gbps = KNOWN_F64(throughput_median_gbps(
                    o, p, EVIDENCE_RANDOM_READS, &evidence[THROUGHPUT_EVIDENCE_PLATEAU_GBPS]));
                read_groups(o, p, &out->topology);
            }
            if (bytes >= most_bytes) {
                most_bytes = bytes;
                out->throughput.whole_memory_gbps = KNOWN_F64(throughput_median_gbps(
                    o, p, EVIDENCE_RANDOM_READS, &evidence[THROUGHPUT_EVIDENCE_WHOLE_MEMORY_GBPS]));
            }
        }
    }
}

void throughput_derive(const struct observation_set *set, struct fingerprint *out)
{
    if (!throughput_is_from_memory(set)) {
        out->throughput.plateau_gbps = UNKNOWN_F64(REASON_NO_DEVICE_MEMORY);
        out->throughput.whole_memory_gbps = UNKNOWN_F64(REASON_NO_DEVICE_MEMORY);
        return;
    }
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_READ));)
        if (probe_is_line_read(&o->spec) && throughput_all_sms_read(o))
            read_read(set, o, &out->topology.partition, &out->throughput);
    read_plateau(set, out);
}
