/* clusters.c: see clusters.h. */
#include "analysis/onchip/clusters.h"

#include "base/stats.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 64, REPEATS = 3, MOST_PAIRS = REACH_MAX_SMS * PROBE_MAX_CLUSTER };

static struct probe_spec spec_of(uint32_t size)
{
    return (struct probe_spec){
        .kind = PROBE_PEER, .samples = SAMPLES, .repeats = REPEATS, .cluster_sms = size};
}

static const struct observation *find(const struct observation_set *set, uint32_t size)
{
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_PEER));)
        if (o->spec.cluster_sms == size)
            return o;
    return NULL;
}

uint32_t clusters_missing(const struct observation_set *set, struct probe_spec *out, uint32_t max)
{
    uint32_t count = 0;

    for (uint32_t size = 2; size <= set->limits.cluster_sms && count < max; size++)
        if (!find(set, size))
            out[count++] = spec_of(size);
    return count;
}

/* ---- one size ---- */

/* Returns whether each cluster ran once, with one SM for each of its blocks. */
static bool is_whole(const struct observation *o, uint32_t repeat)
{
    const uint32_t size = o->spec.cluster_sms;
    const uint32_t launched = observation_peer(o, repeat, 0)[1];
    uint32_t members[REACH_MAX_SMS + 1] = {0};
    uint32_t ranks[REACH_MAX_SMS + 1] = {0};

    if (launched > o->result.sm_count / size)
        return false;
    for (uint32_t row = 1; row <= o->result.sm_count; row++) {
        const uint32_t *const v = observation_peer(o, repeat, row);
        if (v[0] == 0)
            continue;
        if (v[0] > launched || v[1] >= size || (ranks[v[0]] >> v[1] & 1))
            return false;
        ranks[v[0]] |= 1U << v[1];
        members[v[0]]++;
    }
    for (uint32_t c = 1; c <= launched; c++)
        if (members[c] != size)
            return false;
    return true;
}

static bool all_whole(const struct observation *o)
{
    bool whole = true;

    for (uint32_t r = 0; r < o->spec.repeats; r++)
        whole = whole && is_whole(o, r);
    return whole;
}

/* Returns the median cycles of one load in `repeat`, from the shared memory of another SM of the
 * cluster or of the same SM (`own`). Returns 0 if there is no load. */
static double latency(const struct observation *o, uint32_t repeat, bool own)
{
    double *const cycles = malloc(MOST_PAIRS * sizeof *cycles);
    uint32_t n = 0;
    double median = 0;

    for (uint32_t row = 1; cycles && row <= o->result.sm_count; row++) {
        const uint32_t *const v = observation_peer(o, repeat, row);
        for (uint32_t k = 0; v[0] > 0 && k < o->spec.cluster_sms; k++)
            if ((k == v[1]) == own)
                cycles[n++] = (double)v[2 + k] / o->spec.samples;
    }
    if (n > 0)
        median = stats_median_f64(cycles, n);
    free(cycles);
    return median;
}

static double ring_speed(const struct observation *o, uint32_t repeat)
{
    double speeds[REACH_MAX_SMS];
    uint32_t n = 0;

    for (uint32_t row = 1; row <= o->result.sm_count; row++) {
        const uint32_t *const v = observation_peer(o, repeat, row);
        if (v[0] > 0 && v[2 + o->spec.cluster_sms] > 0)
            speeds[n++] = (double)PROBE_RING_BYTES / v[2 + o->spec.cluster_sms];
    }
    return n > 0 ? stats_median_f64(speeds, n) : 0;
}

/* Returns the median of all repeats, which is unknown if a repeat has no value. */
static struct maybe_f64 of_repeats(const struct observation *o, const double *values,
                                   struct evidence *out)
{
    for (uint32_t r = 0; r < o->spec.repeats; r++)
        if (!(values[r] > 0))
            return UNKNOWN_F64(REASON_TOO_LITTLE_DATA);
    *out = evidence_of_repeats(EVIDENCE_CLUSTERS, values, o->spec.repeats);
    return KNOWN_F64(stats_median_f64(values, o->spec.repeats));
}

static void fill_size(const struct observation *o, struct cluster_size *out)
{
    const uint32_t clusters = observation_peer(o, 0, 0)[1];
    double cycles[PROBE_MAX_REPEATS];
    double speeds[PROBE_MAX_REPEATS];

    out->sms = o->spec.cluster_sms;
    if (!all_whole(o)) {
        out->clusters = out->usable_sms = UNKNOWN_U32(REASON_DISAGREEMENT);
        out->latency_cycles = out->bytes_per_cycle = UNKNOWN_F64(REASON_DISAGREEMENT);
        return;
    }
    out->clusters = KNOWN_U32(clusters);
    out->usable_sms = KNOWN_U32(clusters * out->sms);
    out->evidence.clusters = evidence_make(EVIDENCE_CLUSTERS, o->spec.repeats, 1);
    for (uint32_t r = 0; r < o->spec.repeats; r++) {
        cycles[r] = latency(o, r, false);
        speeds[r] = ring_speed(o, r);
    }
    out->latency_cycles = of_repeats(o, cycles, &out->evidence.latency_cycles);
    out->bytes_per_cycle = of_repeats(o, speeds, &out->evidence.bytes_per_cycle);
}

/* ---- GPCs ---- */

/* Sets of SM positions. The parent of a position is another position of its set, and the first
 * position of a set is its own parent. */
struct sets {
    uint32_t count;
    uint16_t parent[REACH_MAX_SMS];
};

static uint32_t root_of(const struct sets *s, uint32_t i)
{
    while (s->parent[i] != i)
        i = s->parent[i];
    return i;
}

static void unite(struct sets *s, uint32_t a, uint32_t b)
{
    a = root_of(s, a);
    b = root_of(s, b);
    if (a < b)
        s->parent[b] = (uint16_t)a;
    else
        s->parent[a] = (uint16_t)b;
}

static void unite_clusters(const struct observation *o, uint32_t repeat, struct sets *s)
{
    uint32_t first[REACH_MAX_SMS + 1] = {0}; /* row of each cluster's first SM */

    for (uint32_t row = 1; row <= o->result.sm_count; row++) {
        const uint32_t cluster = observation_peer(o, repeat, row)[0];
        if (cluster == 0)
            continue;
        if (first[cluster] > 0)
            unite(s, first[cluster] - 1, row - 1);
        else
            first[cluster] = row;
    }
}

/* Returns the number of clusters of `size` that fit into sets of these lengths. */
static uint32_t fitting(const uint32_t *lengths, uint32_t count, uint32_t size)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += lengths[i] / size;
    return sum;
}

/* Returns whether sets of these lengths explain the number of clusters of each size that fit. */
static bool explains(const struct fingerprint_clusters *c, const uint32_t *lengths, uint32_t count)
{
    for (uint32_t k = 0; k < c->size_count; k++)
        if (fitting(lengths, count, c->sizes[k].sms) != c->sizes[k].clusters.v)
            return false;
    return true;
}

/* Returns whether the sets would also explain these numbers if two of the sets were one. */
static bool is_ambiguous(const struct fingerprint_clusters *c, const uint32_t *lengths,
                         uint32_t count)
{
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = a + 1; b < count; b++) {
            uint32_t joined[REACH_MAX_SMS];
            memcpy(joined, lengths, count * sizeof joined[0]);
            joined[a] += joined[b];
            joined[b] = 0;
            if (explains(c, joined, count))
                return true;
        }
    }
    return false;
}

/* Numbers the sets by their first SM. */
static uint32_t count_sets(const struct sets *s, uint16_t *out_number, uint32_t *out_lengths)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t root = root_of(s, i);
        if (root == i) {
            out_lengths[count] = 0;
            out_number[i] = (uint16_t)count++;
        }
        out_number[i] = out_number[root];
        out_lengths[out_number[i]]++;
    }
    return count;
}

static void find_gpcs(const struct observation_set *set, struct fingerprint_clusters *out)
{
    struct sets s = {.count = 0};
    uint16_t number[REACH_MAX_SMS];
    uint32_t lengths[REACH_MAX_SMS];
    const struct observation *last = NULL;

    for (uint32_t k = 0; k < out->size_count; k++)
        if (!IS_KNOWN(out->sizes[k].clusters)) {
            out->gpcs = UNKNOWN_U32(REASON_DISAGREEMENT);
            return;
        }
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_PEER));) {
        for (; s.count < o->result.sm_count; s.count++)
            s.parent[s.count] = (uint16_t)s.count;
        for (uint32_t r = 0; r < o->spec.repeats; r++)
            unite_clusters(o, r, &s);
        last = o;
    }
    const uint32_t count = count_sets(&s, number, lengths);
    if (!last || count > REACH_MAX_GROUPS || !explains(out, lengths, count)) {
        out->gpcs = UNKNOWN_U32(REASON_IRREGULAR);
        return;
    }
    if (is_ambiguous(out, lengths, count)) {
        out->gpcs = UNKNOWN_U32(REASON_NO_CONTRAST);
        return;
    }
    out->gpcs = KNOWN_U32(count);
    out->gpc_of_sm.group_count = count;
    for (uint32_t i = 0; i < s.count; i++)
        out->gpc_of_sm.group_of_sm[last->result.sm_ids[i]] = number[i];
    out->evidence.gpcs = evidence_make(EVIDENCE_CLUSTERS, (uint64_t)REPEATS * out->size_count, 1);
}

/* ---- the whole ---- */

void clusters_derive(const struct observation_set *set, struct fingerprint *out)
{
    struct fingerprint_clusters *const c = &out->clusters;
    double own[PROBE_MAX_REPEATS];

    if (set->limits.shared_block_bytes == 0) /* the source reports no clusters */
        return;
    if (set->limits.cluster_sms == 0) {
        c->largest = UNKNOWN_U32(REASON_NOT_SUPPORTED);
        c->own_cycles = UNKNOWN_F64(REASON_NOT_SUPPORTED);
        c->gpcs = UNKNOWN_U32(REASON_NOT_SUPPORTED);
        return;
    }
    for (uint32_t size = 2; size <= set->limits.cluster_sms; size++) {
        const struct observation *const o = find(set, size);
        if (!o) {
            c->size_count = 0;
            return;
        }
        fill_size(o, &c->sizes[c->size_count++]);
    }
    c->largest = KNOWN_U32(set->limits.cluster_sms);
    c->evidence.largest = evidence_make(EVIDENCE_CLUSTERS, REPEATS, 1);
    const struct observation *const smallest = find(set, 2);
    for (uint32_t r = 0; r < smallest->spec.repeats; r++)
        own[r] = latency(smallest, r, true);
    c->own_cycles = of_repeats(smallest, own, &c->evidence.own_cycles);
    find_gpcs(set, c);
}
