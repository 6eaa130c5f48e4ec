/* memory.c: see memory.h. */
#include "analysis/memory/memory.h"

#include "analysis/levels/sweep.h"
#include "analysis/throughput/throughput.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

/* A region is reached at REACHED of the plateau, and the link is full at FILLED of the plateau. */
#define REACHED 0.9
#define FILLED  0.95

/* Output slows reads if they have at most this share of the speed without it. Two runs over the
 * same region differ by 1.5 %, and a prediction is precise to 3 %. */
#define SLOWED 0.97

/* Walks that miss take longer than walks that hit by this share at least. */
#define CLEAR_SHARE 0.03
/* If half of the loads of a walk hit, this quantile is a hit. */
#define LOW_QUANTILE 0.1
/* See memory_cached_bytes. */
enum { L2_TIMES = 32 };

const struct memory_row_kind memory_rows[FINGERPRINT_MAX_ROWS] = {
    {ACCESS_READ, 64},   {ACCESS_READ, 256},   {ACCESS_READ, 512},
    {ACCESS_READ, 1024}, {ACCESS_ATOMIC, 256}, {ACCESS_WRITE, 256}};

/* ---- points ---- */

/* Adds a point in ascending order; a newer point replaces an older one at the same place. */
static void add_point(struct memory_points *p, uint64_t at, double value, struct evidence evidence)
{
    uint32_t i = 0;

    while (i < p->count && p->points[i].at < at)
        i++;
    if (i == p->count || p->points[i].at != at) {
        if (p->count == MEMORY_MAX_POINTS)
            return;
        memmove(&p->points[i + 1], &p->points[i], (p->count - i) * sizeof p->points[0]);
        p->count += 1;
    }
    p->points[i] = (struct memory_point){at, value, evidence};
}

/* Returns the number of SMs that read, and sets the group of all of them, or FINGERPRINT_NO_GROUP
 * if they belong to several groups. */
static uint32_t count_readers(const struct observation *o, const struct sm_partition *partition,
                              uint32_t *out_group)
{
    uint32_t readers = 0;

    *out_group = FINGERPRINT_NO_GROUP;
    for (uint32_t i = 0; i < o->result.sm_count; i++) {
        const uint16_t id = o->result.sm_ids[i];
        if (probe_window_index(&o->spec, id) == PROBE_SM_IDLE)
            continue;
        if (readers == 0)
            *out_group = partition->group_of_sm[id];
        else if (partition->group_of_sm[id] != *out_group)
            *out_group = FINGERPRINT_NO_GROUP;
        readers += 1;
    }
    return readers;
}

/* Returns whether this READ keeps one whole group busy and all other SMs idle. */
static bool is_group_alone(const struct observation *o, const struct sm_partition *partition)
{
    uint32_t group = FINGERPRINT_NO_GROUP;
    uint32_t members = 0;

    if (partition->group_count < 2)
        return false;
    const uint32_t readers = count_readers(o, partition, &group);
    if (group == FINGERPRINT_NO_GROUP)
        return false;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        members += partition->group_of_sm[id] == group;
    return readers == members;
}

/* Returns the list to which the points of this READ belong, or NULL. */
static struct memory_points *list_of(const struct observation *o,
                                     const struct sm_partition *partition,
                                     struct memory_estimate *e)
{
    if (throughput_all_sms_read(o))
        return &e->naive;
    return is_group_alone(o, partition) ? &e->alone : NULL;
}

/* Adds a point of accesses that are not reads of the curve. */
static void add_access(const struct probe_spec *spec, struct memory_point point,
                       struct memory_estimate *e)
{
    const uint32_t bytes = probe_access_bytes(spec);

    if (spec->output) {
        if (bytes == FINGERPRINT_WRITTEN_BYTES && point.at >= e->written.at)
            e->written = point;
        return;
    }
    if (bytes == PROBE_SECTOR_BYTES)
        e->rates[spec->access] = point;
    for (size_t i = 0; i < FINGERPRINT_MAX_ROWS; i++) {
        struct memory_row *const row = &e->rows[i];
        if (memory_rows[i].access != spec->access || memory_rows[i].bytes != bytes)
            continue;
        if (row->near.at == 0 || point.at <= row->near.at)
            row->near = point;
        if (point.at >= row->far.at)
            row->far = point;
    }
}

/* Adds the points of a READ in one window. Regions of fewer than `least` bytes are left out,
 * because they measure the cache. */
static void read_reads(const struct observation *o, const struct sm_partition *partition,
                       uint64_t least, struct memory_estimate *e)
{
    struct memory_points *const list = list_of(o, partition, e);
    const bool is_curve = probe_is_line_read(&o->spec);

    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        struct evidence evidence;
        const double gbps = throughput_median_gbps(
            o, p, is_curve ? EVIDENCE_RANDOM_READS : EVIDENCE_RANDOM_ACCESSES, &evidence);
        uint32_t group;
        if (o->spec.points[p] < least)
            continue;
        if (!is_curve)
            add_access(&o->spec, (struct memory_point){o->spec.points[p], gbps, evidence}, e);
        else if (list)
            add_point(list, o->spec.points[p], gbps, evidence);
        else
            add_point(&e->counts, count_readers(o, partition, &group), gbps, evidence);
    }
}

/* A walk beyond the reach belongs to the search for the entry. If every other load hits, the median
 * lies anywhere between hits and misses; the lowest decile is still a hit. */
static void read_walk(const struct observation *o, struct memory_estimate *e)
{
    const struct probe_spec *const s = &o->spec;
    const double low = sweep_quantile(o, 0, LOW_QUANTILE);
    const double median = sweep_median(o, 0);
    const struct evidence evidence =
        evidence_make(EVIDENCE_WALKS, s->samples,
                      1 - sweep_spread(o, 0, LOW_QUANTILE, 1 - LOW_QUANTILE) / median);

    if (e->reach.onset > 0 && s->points[0] * s->stride_bytes >= e->reach.onset) {
        add_point(&e->strides, s->stride_bytes, low, evidence);
        add_point(&e->walks, s->stride_bytes, median, evidence);
    } else {
        e->near = (struct memory_point){s->stride_bytes, median, evidence};
    }
}

/* ---- windows ---- */

/* Returns the next READ of this memory after `o` that has an answer, in one window or in several.
 */
static const struct observation *next_read(const struct observation_set *set,
                                           const struct observation *o,
                                           const struct probe_spec *same, bool in_windows)
{
    do
        o = observation_next_same_memory(set, o, same);
    while (o && (probe_is_absent(&o->spec, &o->result) || o->spec.kind != PROBE_READ ||
                 (o->spec.window_count > 1) != in_windows));
    return o;
}

/* Returns the smallest speed per SM of a window, or of a group if there is one window, relative to
 * the mean speed per SM: the median of the repeats. */
static double slowest_share(const struct observation *o, const struct sm_partition *partition,
                            uint32_t point)
{
    double slowest[PROBE_MAX_REPEATS];

    for (uint32_t r = 0; r < o->spec.repeats; r++) {
        double gbps[REACH_MAX_SMS] = {0}, all = 0;
        uint32_t sms[REACH_MAX_SMS] = {0}, readers = 0;
        for (uint32_t i = 0; i < o->result.sm_count; i++) {
            const uint16_t id = o->result.sm_ids[i];
            const uint32_t part = o->spec.window_count > 1 ? probe_window_index(&o->spec, id)
                                                           : partition->group_of_sm[id];
            if (part >= REACH_MAX_SMS)
                continue;
            const double own = observation_read_sm_gbps(o, point, r, i);
            gbps[part] += own;
            all += own;
            sms[part] += 1;
            readers += 1;
        }
        slowest[r] = 1;
        for (uint32_t k = 0; k < REACH_MAX_SMS; k++)
            if (sms[k] > 0 && all > 0)
                slowest[r] = fmin(slowest[r], gbps[k] / sms[k] / (all / readers));
    }
    return stats_median_f64(slowest, o->spec.repeats);
}

/* Returns the share of the slowest group in the largest region of at most half of the reach. A link
 * does not serve all groups equally, although no group waits for translations there. */
static double fair_share(const struct observation_set *set, const struct probe_spec *same,
                         const struct sm_partition *partition, uint64_t reach)
{
    uint64_t largest = 0;
    double share = 1;

    for (const struct observation *o = NULL; (o = next_read(set, o, same, false));)
        for (uint32_t p = 0; p < o->spec.point_count; p++)
            if (o->spec.points[p] >= largest && o->spec.points[p] <= reach / 2 &&
                probe_is_line_read(&o->spec) && throughput_all_sms_read(o)) {
                largest = o->spec.points[p];
                share = slowest_share(o, partition, p);
            }
    return share;
}

/* Adds the points of a READ in several windows. A job ends with its slowest window, so the speed of
 * a job is lower than the sum over the windows if one of them is slow. A window that waits for the
 * link only is not slow: it catches up when others are done. */
static void read_windows(const struct observation *o, const struct sm_partition *partition,
                         uint64_t least, double fair, struct memory_estimate *e)
{
    struct memory_points *const list =
        throughput_is_by_group(&o->spec, partition) ? &e->by_group : &e->by_sm;

    e->windows = o->spec.window_count;
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        struct evidence evidence;
        const double gbps = throughput_median_gbps(o, p, EVIDENCE_RANDOM_READS, &evidence);
        if (o->spec.points[p] >= least)
            add_point(list, o->spec.points[p],
                      fair > 0 ? gbps * fmin(1, slowest_share(o, partition, p) / fair) : gbps,
                      evidence);
    }
}

/* ---- bounds ---- */

uint64_t memory_cached_bytes(const struct observation_set *set)
{
    const uint64_t bytes = L2_TIMES * set->gpu.l2_cache_bytes;

    return bytes > MEMORY_LEAST_HOST_BYTES ? bytes : MEMORY_LEAST_HOST_BYTES;
}

uint64_t memory_host_range(uint64_t allowed)
{
    enum { STEPS = 8 };
    uint64_t range = 1;

    while (range <= allowed / 2)
        range *= 2;
    const uint64_t step = range / STEPS;
    const uint64_t steps = step > 0 ? (allowed - range) / step : 0;
    return steps > 0 ? range + (steps - 1) * step : range;
}

/* Returns the highest point, if two agree: a curve that falls from its first point on has no
 * plateau. */
static struct memory_point plateau_of(const struct memory_points *p)
{
    struct memory_point best = {0};
    uint32_t agree = 0;

    for (uint32_t i = 0; i < p->count; i++)
        if (p->points[i].value > best.value)
            best = p->points[i];
    for (uint32_t i = 0; i < p->count; i++)
        agree += p->points[i].value >= REACHED * best.value;
    return agree >= 2 ? best : (struct memory_point){0};
}

/* Finds the reach and the onset of a list. `plateau` is the plateau of this list or of another
 * list. */
static void find_bounds(const struct memory_points *p, struct memory_point plateau,
                        struct memory_bounds *out)
{
    const struct memory_point *in = NULL, *over = NULL;
    const double limit = REACHED * plateau.value;

    *out = (struct memory_bounds){.plateau = plateau.value, .plateau_evidence = plateau.evidence};
    if (plateau.at == 0)
        return;
    for (uint32_t i = 0; i < p->count && !over; i++) {
        if (p->points[i].value < limit)
            over = &p->points[i];
        else
            in = &p->points[i];
    }
    out->reach = in ? in->at : 0;
    out->onset = over ? over->at : 0;
    if (!in || !over)
        return;
    const double above = (in->value - limit) / (plateau.value - limit);
    const double below = (limit - over->value) / limit;
    out->evidence = evidence_weaker(
        evidence_make(EVIDENCE_RANDOM_READS, in->evidence.repeats, above < below ? above : below),
        evidence_make(EVIDENCE_RANDOM_READS, over->evidence.repeats, 1));
}

void memory_estimate(const struct observation_set *set, const struct sm_partition *partition,
                     enum memory_kind kind, uint32_t peer, struct memory_estimate *out)
{
    const struct probe_spec same = {.memory = kind, .peer = peer};
    const uint64_t least = kind == MEMORY_MANAGED_DEVICE ? memory_cached_bytes(set) : 0;

    memset(out, 0, sizeof *out);
    out->kind = kind;
    out->peer = peer;
    out->bytes = UNKNOWN_U64(REASON_NOT_MEASURED);
    for (const struct observation *o = NULL; (o = observation_next_same_memory(set, o, &same));) {
        out->tried = true;
        out->bytes = o->result.conditions.memory_bytes;
        memcpy(out->peer_uuid, o->result.conditions.peer_uuid, sizeof out->peer_uuid);
        out->peer_bytes = o->result.conditions.peer_memory_bytes;
    }
    for (const struct observation *o = NULL; (o = next_read(set, o, &same, false));)
        read_reads(o, partition, least, out);
    const struct memory_point plateau = plateau_of(&out->naive);
    find_bounds(&out->naive, plateau, &out->reach);
    const double fair = fair_share(set, &same, partition, out->reach.reach);
    for (const struct observation *o = NULL; (o = next_read(set, o, &same, true));)
        read_windows(o, partition, least, fair, out);
    find_bounds(&out->by_group, plateau, &out->windows_reach);
    find_bounds(&out->alone, plateau_of(&out->alone), &out->group_reach);
    for (const struct observation *o = NULL; (o = observation_next_same_memory(set, o, &same));)
        if (!probe_is_absent(&o->spec, &o->result) && o->spec.kind == PROBE_CHASE)
            read_walk(o, out);
}

/* If a stride is an entry or longer, either no load misses or all do. At shorter strides some loads
 * hit the entry that the previous load has filled. So the entry is the shortest stride at which the
 * quickest loads miss, if a shorter one has been tried. */
uint64_t memory_entry_bytes(const struct memory_estimate *e, struct evidence *out)
{
    const struct memory_point *const p = e->strides.points;
    double low = 0, high = 0;
    uint32_t i = 0;

    for (uint32_t k = 0; k < e->strides.count; k++) {
        low = k == 0 || p[k].value < low ? p[k].value : low;
        high = p[k].value > high ? p[k].value : high;
    }
    if (high - low < CLEAR_SHARE * low)
        return 0;
    while (i < e->strides.count && p[i].value <= (low + high) / 2)
        i++;
    if (i == 0 || i == e->strides.count)
        return 0;
    /* The margin is the rise between two neighboring strides, as a share of the whole rise. */
    *out = evidence_make(EVIDENCE_STRIDES, p[i].evidence.repeats,
                         (p[i].value - p[i - 1].value) / (high - low));
    return p[i].at;
}

/* ---- the fingerprint ---- */

static void set_bytes(struct maybe_u64 *out, uint64_t bytes, enum reason without)
{
    *out = bytes > 0 ? KNOWN_U64(bytes) : UNKNOWN_U64(without);
}

/* Returns whether the range of this kind is all host memory that was allowed. */
static bool is_cut(const struct observation_set *set, const struct memory_estimate *e)
{
    return memory_kind_is_host(e->kind) && e->naive.count > 0 &&
           e->naive.points[e->naive.count - 1].at ==
               memory_host_range(set->limits.host_memory_bytes);
}

/* If every probed region is reached, neither bound was seen. */
static void set_bounds(const struct memory_bounds *b, bool cut, struct maybe_u64 *reach,
                       struct maybe_u64 *onset, struct evidence *evidence)
{
    if (b->reach > 0 && b->onset == 0) {
        *reach = *onset =
            cut ? UNKNOWN_U64(REASON_NO_HOST_MEMORY) : NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
        return;
    }
    set_bytes(reach, b->onset > 0 ? b->reach : 0, REASON_TOO_LITTLE_DATA);
    set_bytes(onset, b->onset, REASON_TOO_LITTLE_DATA);
    if (IS_KNOWN(*reach))
        *evidence = b->evidence;
}

static void set_number(const struct memory_point *p, struct maybe_f64 *out,
                       struct evidence *evidence)
{
    if (p->at == 0)
        return;
    *out = KNOWN_F64(p->value);
    *evidence = p->evidence;
}

/* A row that was read over one region only has no number for the whole range. */
static void fill_rows(const struct memory_estimate *e, uint64_t probed_bytes,
                      struct memory_facts *out)
{
    for (size_t i = 0; i < FINGERPRINT_MAX_ROWS; i++) {
        struct row_rate *const row = &out->rows[out->row_count];
        if (e->rows[i].near.at == 0)
            continue;
        row->access = memory_rows[i].access;
        row->transaction_bytes = memory_rows[i].bytes;
        set_number(&e->rows[i].near, &row->plateau_gbps, &row->evidence.plateau_gbps);
        if (e->rows[i].far.at == probed_bytes)
            set_number(&e->rows[i].far, &row->probed_gbps, &row->evidence.probed_gbps);
        out->row_count++;
    }
}

/* Compares rows that are also written with the same rows without output. */
static void fill_written(const struct memory_estimate *e, uint64_t probed_bytes,
                         struct memory_facts *out)
{
    for (size_t i = 0; i < FINGERPRINT_MAX_ROWS; i++) {
        const struct memory_point *const read = &e->rows[i].far;
        if (memory_rows[i].access != ACCESS_READ ||
            memory_rows[i].bytes != FINGERPRINT_WRITTEN_BYTES || read->at != probed_bytes ||
            e->written.at != probed_bytes || e->written.value > SLOWED * read->value)
            continue;
        out->written_factor = KNOWN_F64(e->written.value / read->value);
        out->evidence.written_factor = evidence_weaker(e->written.evidence, read->evidence);
    }
}

static struct curve_point *point_at(struct memory_facts *out, uint64_t bytes)
{
    for (uint32_t i = 0; i < out->curve_count; i++)
        if (out->curve[i].region_bytes == bytes)
            return &out->curve[i];
    return NULL;
}

/* Windows are compared with the same region without windows; other regions are left out. */
static void fill_curve(const struct memory_estimate *e, struct memory_facts *out)
{
    const struct memory_points *const windows[] = {&e->by_group, &e->by_sm};

    for (uint32_t i = 0; i < e->naive.count && out->curve_count < FINGERPRINT_MAX_MEMORY_CURVE;
         i++) {
        struct curve_point *const p = &out->curve[out->curve_count++];
        p->region_bytes = e->naive.points[i].at;
        p->naive_gbps = KNOWN_F64(e->naive.points[i].value);
        p->evidence.naive_gbps = e->naive.points[i].evidence;
        p->windows = 1;
    }
    for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++)
        for (uint32_t i = 0; i < windows[w]->count; i++) {
            const struct memory_point *const x = &windows[w]->points[i];
            struct curve_point *const p = point_at(out, x->at);
            if (!p)
                continue;
            *(w == 0 ? &p->by_group_gbps : &p->by_sm_gbps) = KNOWN_F64(x->value);
            *(w == 0 ? &p->evidence.by_group_gbps : &p->evidence.by_sm_gbps) = x->evidence;
            p->windows = e->windows;
        }
}

static void fill_walks(const struct memory_estimate *e, struct memory_facts *out)
{
    struct memory_evidence *const evidence = &out->evidence;
    const uint64_t entry = memory_entry_bytes(e, &evidence->entry_bytes);

    for (uint32_t i = 0; i < e->walks.count; i++) {
        if (entry > 0 && e->walks.points[i].at == entry)
            set_number(&e->walks.points[i], &out->beyond_latency_cycles,
                       &evidence->beyond_latency_cycles);
    }
    set_number(&e->near, &out->latency_cycles, &evidence->latency_cycles);
    if (e->strides.count > 0)
        set_bytes(&out->entry_bytes, entry, REASON_NO_CONTRAST);
}

uint32_t memory_filling_count(const struct memory_estimate *e)
{
    uint32_t i = 0;

    while (i < e->counts.count && e->counts.points[i].value < FILLED * e->reach.plateau)
        i++;
    return i;
}

static void fill_fewest_sms(const struct memory_estimate *e, uint32_t sm_count,
                            struct memory_facts *out)
{
    const uint32_t i = memory_filling_count(e);

    if (e->counts.count == 0)
        return;
    out->sms_to_fill = KNOWN_U32(i < e->counts.count ? (uint32_t)e->counts.points[i].at : sm_count);
    out->evidence.sms_to_fill =
        e->counts.points[i < e->counts.count ? i : e->counts.count - 1].evidence;
}

static void fill_facts(const struct observation_set *set, const struct memory_estimate *e,
                       struct memory_facts *out)
{
    struct memory_evidence *const evidence = &out->evidence;
    const bool cut = is_cut(set, e);

    if (e->naive.count == 0) {
        out->probed_bytes = !IS_KNOWN(e->bytes)                ? e->bytes
                            : e->kind == MEMORY_MANAGED_DEVICE ? UNKNOWN_U64(REASON_TOO_LITTLE_DATA)
                                                               : UNKNOWN_U64(REASON_DISAGREEMENT);
        if (!e->tried && memory_kind_is_host(e->kind) &&
            set->limits.host_memory_bytes < MEMORY_LEAST_HOST_BYTES)
            out->probed_bytes = UNKNOWN_U64(REASON_NO_HOST_MEMORY);
        return;
    }
    const struct memory_point *const last = &e->naive.points[e->naive.count - 1];
    out->probed_bytes = KNOWN_U64(last->at);
    out->plateau_gbps = UNKNOWN_F64(REASON_TOO_LITTLE_DATA);
    if (e->reach.plateau > 0) {
        out->plateau_gbps = KNOWN_F64(e->reach.plateau);
        evidence->plateau_gbps = e->reach.plateau_evidence;
    }
    set_bounds(&e->reach, cut, &out->reach_bytes, &out->onset_bytes, &evidence->reach_bytes);
    if (e->by_group.count > 0)
        set_bounds(&e->windows_reach, cut, &out->windows_reach_bytes, &out->windows_onset_bytes,
                   &evidence->windows_reach_bytes);
    else if (e->reach.plateau > 0 && e->reach.onset == 0)
        out->windows_reach_bytes = out->windows_onset_bytes = UNKNOWN_U64(REASON_NOT_APPLICABLE);
    if (e->alone.count > 0)
        set_bounds(&e->group_reach, cut, &out->group_reach_bytes, &out->group_onset_bytes,
                   &evidence->group_reach_bytes);
    if (e->reach.onset > 0 || e->reach.plateau <= 0)
        set_number(last, &out->beyond_gbps, &evidence->beyond_gbps);
    else
        out->beyond_gbps =
            cut ? UNKNOWN_F64(REASON_NO_HOST_MEMORY) : NOT_OBSERVABLE_F64(REASON_BEYOND_MEMORY);
    fill_walks(e, out);
    fill_fewest_sms(e, set->limits.sm_count, out);
    set_number(&e->rates[ACCESS_WRITE], &out->write_gbps, &evidence->write_gbps);
    set_number(&e->rates[ACCESS_ATOMIC], &out->atomic_gbps, &evidence->atomic_gbps);
    fill_curve(e, out);
    fill_rows(e, last->at, out);
    fill_written(e, last->at, out);
}

/* Adds a read of memory of one NUMA node, in ascending order of nodes. A newer read replaces an
 * older one. */
static void add_node(const struct observation *o, struct memory_facts *out)
{
    struct memory_node found = {.node = o->spec.node - 1,
                                .gbps = UNKNOWN_F64(o->result.conditions.memory_bytes.reason)};
    struct evidence evidence;
    uint32_t i = 0;

    if (!probe_is_absent(&o->spec, &o->result))
        found.gbps = KNOWN_F64(throughput_median_gbps(o, 0, EVIDENCE_RANDOM_READS, &evidence));
    while (i < out->node_count && out->nodes[i].node < found.node)
        i++;
    if (i == out->node_count || out->nodes[i].node != found.node) {
        if (out->node_count == FINGERPRINT_MAX_NODES)
            return;
        memmove(&out->nodes[i + 1], &out->nodes[i], (out->node_count - i) * sizeof found);
        out->node_count += 1;
    }
    out->nodes[i] = found;
}

static void fill_nodes(const struct observation_set *set, struct memory_facts *out)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct probe_spec *const spec = &set->items[i].spec;
        if (spec->memory == out->kind && spec->node > 0 && spec->kind == PROBE_READ)
            add_node(&set->items[i], out);
    }
}

void memory_derive(const struct observation_set *set, struct fingerprint *out)
{
    struct memory_estimate e;
    uint32_t peers = 0;
    bool any = false;

    for (size_t i = 0; i < set->count; i++)
        any = any || set->items[i].spec.memory != MEMORY_DEVICE;
    if (!any)
        return;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_MEMORY; i++) {
        struct memory_facts *const facts = &out->memory[i];
        facts->kind = i + 1 < MEMORY_PEER ? (enum memory_kind)(i + 1) : MEMORY_PEER;
        peers = facts->kind == MEMORY_PEER ? i + 1 - MEMORY_PEER : 0;
        memory_estimate(set, &out->topology.partition, facts->kind, peers, &e);
        if (facts->kind == MEMORY_PEER && !e.tried)
            break; /* a peer has no name until it is tried */
        memcpy(facts->peer_uuid, e.peer_uuid, sizeof facts->peer_uuid);
        if (facts->kind == MEMORY_PEER && IS_KNOWN(e.peer_bytes))
            facts->peer_memory_bytes = e.peer_bytes;
        fill_facts(set, &e, facts);
        fill_nodes(set, facts);
        out->memory_count = i + 1;
    }
}
