/* memory_probes.c: see probes.h. Chooses the probes of kinds of memory other than plain device
 * memory.
 *
 * Kinds are probed one after the other, because the source allocates the range of a kind again
 * after a probe of another kind. The kinds that differ most come first. Each kind gets random reads
 * over regions that double, then halvings of the gap around the cliff. At depth memory, and for
 * pinned memory, a kind also gets windows, one group alone, numbers of SMs, other accesses and
 * walks. Registered memory, whose pages the process places, is also read on each NUMA node, and
 * rows of it are gathered by the CPU. If the time is too short for a kind, the kind is not probed
 * and is reported as not measured.
 */
#include "campaign/probes.h"

#include "analysis/memory/memory.h"
#include "base/units.h"

#include <string.h>

/* Microseconds of reads or other accesses of one region, which are enough for several of the
 * slowest accesses. */
enum {
    MEMORY_READ_US = 1500,
    MEMORY_RATE_US = 3000,
    GATHER_US = 20000, /* several batches of the CPU */
    /* A job writes some 30 MiB until the L2 of an H200 has page tables and output in a steady
     * proportion. Pinned memory takes 4 ms for it, and 5 ms are not counted. */
    OUTPUT_US = 10000,
    ROW_TIMES = 2,
    MEMORY_REPEATS = 2,
    MEMORY_SEED = 20241
};
/* Microseconds of reads in windows and of reads at depth memory. The first half is not counted and
 * fills the tables of all groups. After 0.75 ms the tables are not full: H200s read 2 GiB of pinned
 * memory at 7.1 GB/s, and a longer job reads at 7.8. */
enum { MEMORY_STEADY_US = 4000 };
/* The first walk has 2^8 pages, and the seventh walk has 2^14 pages. */
enum { FIRST_WALK_PAGES = 256, WALKS = 7, MOST_WALKS = 9, WALK_SAMPLES = 1024, NEAR_PAGES = 1024 };
enum { SHORTEST_STRIDE = 1024 };
enum { MOST_TRIES = 3, FINEST = 16 /* a bound is precise to 1/FINEST of the onset */ };

#define SMALLEST_BYTES MEMORY_LEAST_HOST_BYTES
#define SHORTEST_BYTES MIB
/* The longest range that is not an alias. It must be allocated before the deadline of a probe. */
#define LONGEST_BYTES (32 * GIB)
/* The longest range of pinned memory, which the driver pins in one call while other processes wait.
 * It is more than twice the reach of windows on an H200 (3 GiB), so that the cliff of windows is
 * visible. */
#define LONGEST_PINNED_BYTES (8 * GIB)
/* The longest range of memory that the driver did not allocate. The device may map its pages one by
 * one, each after a fault. */
#define LONGEST_PAGEABLE_BYTES (2 * GIB)
/* The bytes that are allocated per second of budget (see expected_ms). */
#define BYTES_A_SECOND (4 * GIB)
/* Milliseconds that the curve and the search for the cliff take, and that one detailed step
 * takes. */
enum { CURVE_MS = 80, DETAIL_MS = 60 };

/* Defaults for limits without a value, by depth. At depth full the cliff is visible if it is in the
 * first half of the range. At depth memory the range is as long as its share of the time allows. */
static const struct {
    uint32_t ms;
    uint64_t most_bytes, alias_bytes;
} budgets[DEPTH_COUNT] = {
    [DEPTH_FULL] = {1000, 768 * MIB, DEPTH_FULL_REGION_BYTES},
    [DEPTH_MEMORY] = {60000, UINT64_MAX, 64 * GIB},
    [DEPTH_MATRIX] = {1000, 768 * MIB, DEPTH_FULL_REGION_BYTES},
};

/* The kinds before the peers, which share the time evenly, and the kinds after the peers, which get
 * the time that is left. */
static const enum memory_kind kinds[] = {MEMORY_MANAGED_HOST,         MEMORY_HOST_PINNED,
                                         MEMORY_HOST_REGISTERED_HUGE, MEMORY_HOST_REGISTERED,
                                         MEMORY_HOST_VIRTUAL,         MEMORY_MANAGED_DEVICE};
static const enum memory_kind last_kinds[] = {MEMORY_HOST_PAGEABLE, MEMORY_HOST_FILE};
enum {
    KINDS = sizeof kinds / sizeof kinds[0],
    LAST_KINDS = sizeof last_kinds / sizeof last_kinds[0]
};

/* The share of the plateau from which a region counts as equally fast, because of noise. */
static const double AS_FAST = 0.98;

struct memory_plan {
    const struct observation_set *set;
    const struct sm_partition *groups; /* groups of SMs that share a TLB; NULL if unknown */
    struct memory_estimate e;
    enum depth depth;
    uint64_t most_bytes; /* longest range of the kind */
    bool is_alias;       /* the range is an alias: one handle that is mapped repeatedly */
    uint32_t read_us;    /* microseconds of reads of one region */
    nsec_t left;         /* nanoseconds that remain for all kinds */
    struct campaign_step *out;
};

/* ---- probes ---- */

static bool same_read(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->access == b->access && probe_access_bytes(a) == probe_access_bytes(b) &&
           a->output == b->output && a->window_count == b->window_count &&
           memcmp(a->window_of_sm, b->window_of_sm, sizeof a->window_of_sm) == 0;
}

static bool same_probe(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->kind == b->kind && probe_same_memory(a, b) && a->stride_bytes == b->stride_bytes &&
           a->point_count == b->point_count &&
           memcmp(a->points, b->points, sizeof a->points) == 0 &&
           (a->kind != PROBE_READ || same_read(a, b));
}

/* Returns whether the set has a result of the spec, or the spec failed MOST_TRIES times. */
static bool is_done(const struct observation_set *set, const struct probe_spec *spec)
{
    uint32_t tries = 0;

    for (size_t i = 0; i < set->count; i++)
        if (same_probe(&set->items[i].spec, spec))
            return true;
    for (size_t i = 0; i < set->excluded.count; i++)
        tries += same_probe(&set->excluded.items[i].spec, spec);
    return tries >= MOST_TRIES;
}

/* Adds a probe. Returns false if it has no points, cannot run, or is done. */
static bool add(struct memory_plan *p, const struct probe_spec *spec)
{
    if (spec->point_count == 0 || probe_check(spec, &p->set->limits, NULL) != STATUS_OK ||
        is_done(p->set, spec))
        return false;
    if (p->out->spec_count < CAMPAIGN_MAX_SPECS)
        p->out->specs[p->out->spec_count++] = *spec;
    return true;
}

/* Returns a READ without points, with all SMs in one window or with all SMs idle. */
static struct probe_spec read_spec(const struct memory_plan *p, bool all)
{
    struct probe_spec spec = {.kind = PROBE_READ,
                              .repeats = MEMORY_REPEATS,
                              .duration_us = p->read_us,
                              .seed = MEMORY_SEED,
                              .memory = p->e.kind,
                              .peer = p->e.peer,
                              .window_count = 1,
                              .window_sms = REACH_MAX_SMS};
    for (uint32_t id = 0; !all && id < REACH_MAX_SMS; id++)
        spec.window_of_sm[id] = PROBE_SM_IDLE;
    return spec;
}

static bool add_region(struct memory_plan *p, struct probe_spec *spec, uint64_t bytes)
{
    spec->point_count = 1;
    spec->points[0] = bytes;
    return add(p, spec);
}

/* Returns the middle between the largest region that is reached and the smallest region that is
 * not, or 0 if the gap is narrow. */
static uint64_t middle(const struct memory_bounds *b)
{
    if (b->reach == 0 || b->onset == 0 || b->onset - b->reach <= b->onset / FINEST)
        return 0;
    return b->reach + (b->onset - b->reach) / 2 / PROBE_LINE_BYTES * PROBE_LINE_BYTES;
}

/* ---- the missing probes of one kind ---- */

/* Adds regions that double, up to the whole range, and one short region that every TLB should
 * reach. */
static bool add_curve(struct memory_plan *p)
{
    const bool in_l2 = p->e.kind == MEMORY_MANAGED_DEVICE;
    const uint64_t smallest = in_l2 ? memory_cached_bytes(p->set) : SMALLEST_BYTES;
    struct probe_spec spec = read_spec(p, true);
    uint32_t halvings = 0;

    while (p->most_bytes >> (halvings + 1) >= smallest)
        halvings++;
    if (!in_l2)
        spec.points[spec.point_count++] = SHORTEST_BYTES;
    for (uint32_t k = halvings + 1; k-- > 0;)
        spec.points[spec.point_count++] = (p->most_bytes >> k) / (2 * MIB) * (2 * MIB);
    return add(p, &spec);
}

/* Adds the middle of the gap around the cliff. If the curve falls from its first region on, adds
 * half of that region. */
static bool add_cliff(struct memory_plan *p)
{
    struct probe_spec spec = read_spec(p, true);
    uint64_t bytes = middle(&p->e.reach);

    if (p->e.reach.plateau <= 0 && p->e.naive.count > 0 && p->e.kind != MEMORY_MANAGED_DEVICE)
        bytes = p->e.naive.points[0].at / 2;
    return bytes > 0 && add_region(p, &spec, bytes);
}

/* Adds windows by group, and the control, over regions of the curve beyond the reach until a region
 * is slow. Then adds the middle of the gap. */
static bool add_windows(struct memory_plan *p)
{
    const struct memory_bounds *const b = &p->e.windows_reach;
    struct probe_spec spec = read_spec(p, false);
    uint64_t bytes = middle(b);

    if (!p->groups || p->e.reach.onset == 0 || p->e.reach.reach == 0)
        return false;
    for (uint32_t k = 0; b->onset == 0 && bytes == 0 && k < p->e.naive.count; k++)
        if (p->e.naive.points[k].at >= 2 * p->e.reach.reach || k + 1 == p->e.naive.count)
            bytes = p->e.naive.points[k].at > b->reach ? p->e.naive.points[k].at : 0;
    if (bytes == 0)
        return false;
    spec.window_count =
        p->groups->group_count < PROBE_MAX_WINDOWS ? p->groups->group_count : PROBE_MAX_WINDOWS;
    read_probes_by_sm(p->groups, spec.window_count, spec.window_of_sm);
    const bool is_on_curve = b->onset == 0;
    spec.duration_us = MEMORY_STEADY_US;
    bool any = is_on_curve && add_region(p, &spec, bytes);
    read_probes_by_group(p->groups, spec.window_count, spec.window_of_sm);
    return add_region(p, &spec, bytes) || any;
}

/* Returns the largest group; the lowest number wins ties. */
static uint32_t largest_group(const struct sm_partition *groups)
{
    uint32_t sms[REACH_MAX_GROUPS] = {0};
    uint32_t best = 0;

    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        if (groups->group_of_sm[id] != FINGERPRINT_NO_GROUP)
            sms[groups->group_of_sm[id]] += 1;
    for (uint32_t g = 1; g < groups->group_count; g++)
        best = sms[g] > sms[best] ? g : best;
    return best;
}

static bool add_alone(struct memory_plan *p)
{
    struct probe_spec spec = read_spec(p, false);
    const uint64_t bytes = middle(&p->e.group_reach);

    if (!p->groups || p->groups->group_count < 2 || p->e.reach.onset == 0)
        return false;
    const uint32_t group = largest_group(p->groups);
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        if (p->groups->group_of_sm[id] == group)
            spec.window_of_sm[id] = 0;
    if (p->e.alone.count > 0)
        return bytes > 0 && add_region(p, &spec, bytes);
    for (uint32_t k = 0; k < p->e.naive.count; k++)
        if (p->e.naive.points[k].at <= 2 * p->e.reach.onset)
            spec.points[spec.point_count++] = p->e.naive.points[k].at;
    return add(p, &spec);
}

/* Returns the largest region of the curve, up to half of the reach, that is as fast as the plateau.
 * Some kinds slow down long before their speed falls below 90 %. */
static uint64_t near_bytes(const struct memory_plan *p)
{
    const struct memory_bounds *const b = &p->e.reach;
    uint64_t near = b->reach / 2 / PROBE_LINE_BYTES * PROBE_LINE_BYTES;

    for (uint32_t k = 0; k < p->e.naive.count && p->e.naive.points[k].at <= b->reach / 2; k++)
        if (p->e.naive.points[k].value >= AS_FAST * b->plateau)
            near = p->e.naive.points[k].at;
    return near;
}

/* Adds reads by 1, 2, 4 .. SMs, spread over the chip. More than FEW_SMS are added only if fewer SMs
 * do not fill the link, because the smallest sufficient number is wanted. */
static bool add_counts(struct memory_plan *p)
{
    enum { FEW_SMS = 8 };
    const bool few_fill = memory_filling_count(&p->e) < p->e.counts.count;
    uint16_t ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(p->set, ids);
    bool any = false;

    for (uint32_t n = 1; n < sms && p->e.reach.reach > 0; n *= 2) {
        if (n > FEW_SMS && (any || few_fill))
            break;
        struct probe_spec spec = read_spec(p, false);
        for (uint32_t i = 0; i < n; i++)
            spec.window_of_sm[ids[i * sms / n]] = 0;
        any |= add_region(p, &spec, near_bytes(p));
    }
    return any;
}

/* Adds rows that the CPU gathers from registered memory, whose pages are ordinary for the CPU. Half
 * of the range shows whether the speed depends on the size. */
static bool add_gathers(struct memory_plan *p)
{
    struct probe_spec spec = read_spec(p, true);
    bool any = false;

    if (p->e.kind != MEMORY_HOST_REGISTERED)
        return false;
    spec.memory = MEMORY_HOST_GATHERED;
    spec.duration_us = GATHER_US;
    spec.points[spec.point_count++] = p->most_bytes / 2 / PROBE_LINE_BYTES * PROBE_LINE_BYTES;
    spec.points[spec.point_count++] = p->most_bytes;
    for (spec.transaction_bytes = 64; spec.transaction_bytes <= 512; spec.transaction_bytes *= 2)
        any |= add(p, &spec);
    return any;
}

/* Adds writes and atomics, which nothing does to the file. */
static bool add_rates(struct memory_plan *p)
{
    struct probe_spec spec = read_spec(p, true);
    bool any = false;

    if (p->e.kind == MEMORY_HOST_FILE)
        return false;

    spec.duration_us = MEMORY_RATE_US;
    spec.transaction_bytes = PROBE_SECTOR_BYTES;
    for (int access = ACCESS_ATOMIC; access < ACCESS_COUNT && p->e.reach.reach > 0; access++) {
        spec.access = (enum access)access;
        any |= add_region(p, &spec, near_bytes(p));
    }
    return any;
}

/* Adds rows of other lengths, over a region within the reach and over the longest region. All SMs
 * access short rows of far memory for up to 2 ms before the first one returns, so the probes take
 * ROW_TIMES the time of the curve. */
static bool add_rows(struct memory_plan *p)
{
    struct probe_spec spec = read_spec(p, true);
    bool any = false;

    if (p->e.reach.reach == 0)
        return false;
    spec.duration_us = ROW_TIMES * p->read_us;
    spec.points[spec.point_count++] = near_bytes(p);
    spec.points[spec.point_count++] = p->e.naive.points[p->e.naive.count - 1].at;
    for (size_t i = 0; i < FINGERPRINT_MAX_ROWS; i++) {
        spec.access = memory_rows[i].access;
        spec.transaction_bytes = memory_rows[i].bytes;
        if (p->e.kind != MEMORY_HOST_FILE || spec.access == ACCESS_READ)
            any |= add(p, &spec);
    }
    return any;
}

/* Adds rows of far memory of the host that are also written to device memory. Page walks are slower
 * if the output evicts page tables from the L2. The region must be far out of reach, because few
 * reads walk otherwise, and page tables of a short region stay in the L2. */
static bool add_output(struct memory_plan *p)
{
    enum { FAR_TIMES = 8 };
    struct probe_spec spec = read_spec(p, true);
    const uint64_t longest = p->e.naive.points[p->e.naive.count - 1].at;

    if (p->depth != DEPTH_MEMORY || !memory_kind_is_host(p->e.kind) || p->e.reach.reach == 0 ||
        p->e.reach.onset == 0 || longest < FAR_TIMES * p->e.reach.onset)
        return false;
    spec.output = 1;
    spec.transaction_bytes = FINGERPRINT_WRITTEN_BYTES;
    spec.repeats = 1;
    spec.duration_us = OUTPUT_US;
    return add_region(p, &spec, longest);
}

static uint64_t power_of_two(uint64_t v)
{
    uint64_t p = 1;

    while (p <= v / 2)
        p *= 2;
    return p;
}

/* Adds one walk within the reach. Adds walks beyond the reach over one footprint, with strides that
 * are halved until the shortest stride does not miss. */
static bool add_walks(struct memory_plan *p)
{
    struct probe_spec spec = {.kind = PROBE_CHASE,
                              .point_count = 1,
                              .samples = WALK_SAMPLES,
                              .warm_laps = 1,
                              .sm_count = 1,
                              .memory = p->e.kind,
                              .peer = p->e.peer};
    const uint64_t wanted = p->e.reach.onset + p->e.reach.onset / 4;
    const uint64_t beyond = wanted < p->most_bytes ? wanted : p->most_bytes;
    uint16_t ids[REACH_MAX_SMS];
    struct evidence evidence;
    bool any = false;

    if (sharing_sm_ids(p->set, ids) == 0 || p->e.reach.reach == 0)
        return false;
    spec.sms[0] = ids[0];
    spec.stride_bytes = power_of_two(near_bytes(p) / NEAR_PAGES);
    spec.points[0] = near_bytes(p) / spec.stride_bytes;
    any |= add(p, &spec);
    spec.stride_bytes = power_of_two(beyond / FIRST_WALK_PAGES);
    for (uint32_t k = 0; k < MOST_WALKS && p->e.reach.onset > 0; k++, spec.stride_bytes /= 2) {
        if (spec.stride_bytes < SHORTEST_STRIDE ||
            (k >= WALKS && (any || memory_entry_bytes(&p->e, &evidence) > 0)))
            break;
        spec.points[0] = beyond / spec.stride_bytes;
        any |= add(p, &spec);
    }
    return any;
}

/* Adds reads of memory on each NUMA node, if the host has several. One region within the reach
 * shows the speed of the path to a node. */
static bool add_nodes(struct memory_plan *p)
{
    const uint64_t nodes = p->set->limits.host_nodes;
    struct probe_spec spec = read_spec(p, true);
    bool any = false;

    for (uint32_t i = 0; i < PROBE_MAX_NODES && (nodes & (nodes - 1)) && p->e.reach.reach > 0;
         i++) {
        spec.node = i + 1;
        if (nodes >> i & 1)
            any |= add_region(p, &spec, near_bytes(p));
    }
    return any;
}

/* ---- which kind ---- */

/* Returns the range of managed memory at the device, or 0 if there is too little memory. Caches
 * keep a part of it, so the range is large: three quarters of the free memory. Depths below memory
 * do not probe this kind. */
static uint64_t managed_bytes(const struct observation_set *set, enum depth depth)
{
    const uint64_t held = set->limits.device_memory_bytes;
    const uint64_t left = set->limits.free_bytes > held ? set->limits.free_bytes - held : 0;
    const uint64_t bytes = left / 4 * 3 / (2 * MIB) * (2 * MIB);

    return depth == DEPTH_MEMORY && bytes >= 2 * memory_cached_bytes(set) ? bytes : 0;
}

/* Returns whether the range is an alias, that is one handle that is mapped repeatedly. Host memory
 * at depth memory is no alias. On an H200, 16 GiB of a handle of 128 MiB were read at 4.3 GB/s, and
 * other pinned memory at 5.2 GB/s. */
static bool is_alias(enum memory_kind kind, enum depth depth)
{
    return kind == MEMORY_PEER || (kind == MEMORY_HOST_VIRTUAL && depth != DEPTH_MEMORY);
}

static bool is_pageable(enum memory_kind kind)
{
    return kind == MEMORY_HOST_PAGEABLE || kind == MEMORY_HOST_FILE;
}

/* Returns the length of the range of a kind. An alias may have any length. */
static uint64_t range_of(const struct observation_set *set, enum depth depth, uint32_t ms,
                         enum memory_kind kind)
{
    const uint64_t host = set->limits.host_memory_bytes;
    const uint64_t in_time = ms / 1000.0 * BYTES_A_SECOND / KINDS;
    uint64_t most = budgets[depth].most_bytes;

    if (kind == MEMORY_MANAGED_DEVICE)
        return managed_bytes(set, depth);
    if (is_alias(kind, depth))
        return budgets[depth].alias_bytes;
    if (depth == DEPTH_MEMORY)
        most = power_of_two(in_time < GIB             ? GIB
                            : in_time < LONGEST_BYTES ? in_time
                                                      : LONGEST_BYTES);
    if (kind == MEMORY_HOST_PINNED && most > LONGEST_PINNED_BYTES)
        most = LONGEST_PINNED_BYTES;
    if (is_pageable(kind) && most > LONGEST_PAGEABLE_BYTES)
        most = LONGEST_PAGEABLE_BYTES;
    return most < host ? most : memory_host_range(host);
}

static nsec_t time_spent(const struct observation_set *set)
{
    nsec_t spent = 0;

    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].spec.memory != MEMORY_DEVICE)
            spent += set->items[i].result.conditions.duration_ns;
    return spent;
}

/* Returns the milliseconds until the cliff of this kind is known, from the time per GiB on the host
 * of an H200. */
static uint64_t expected_ms(const struct memory_plan *p)
{
    static const uint32_t ms_a_gib[MEMORY_KIND_COUNT] = {
        [MEMORY_HOST_PINNED] = 540,     [MEMORY_MANAGED_HOST] = 260,
        [MEMORY_HOST_REGISTERED] = 230, [MEMORY_HOST_REGISTERED_HUGE] = 120,
        [MEMORY_MANAGED_DEVICE] = 30,   [MEMORY_HOST_VIRTUAL] = 230,
        [MEMORY_HOST_PAGEABLE] = 260,   [MEMORY_HOST_FILE] = 260,
    };
    enum { ALIAS_MS_A_GIB = 22 }; /* milliseconds per GiB of an alias */

    return CURVE_MS +
           (p->is_alias ? ALIAS_MS_A_GIB : ms_a_gib[p->e.kind]) * (p->most_bytes / MIB) / 1024;
}

/* Schedules the next probes of one kind. Returns false if no probe is missing or the time is too
 * short. */
static bool schedule_kind(struct memory_plan *p, bool in_detail)
{
    static bool (*const steps[])(struct memory_plan * p) = {add_windows, add_alone,  add_counts,
                                                            add_rates,   add_rows,   add_output,
                                                            add_walks,   add_gathers};

    if (!p->e.tried)
        return p->left >= (nsec_t)expected_ms(p) * NSEC_PER_MSEC && add_curve(p);
    if (!IS_KNOWN(p->e.bytes))
        return false;
    if (add_cliff(p))
        return true;
    if (p->left < DETAIL_MS * NSEC_PER_MSEC)
        return false;
    for (size_t i = 0; in_detail && i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i](p))
            return true;
    return false;
}

bool memory_probes_next(const struct observation_set *set, const struct structure *s,
                        enum depth depth, struct campaign_step *out)
{
    const uint32_t ms = set->limits.memory_ms ? set->limits.memory_ms : budgets[depth].ms;
    const nsec_t spent = time_spent(set);
    const uint32_t peers = set->limits.peer_count;
    const int k = s->window_level;
    struct memory_plan p = {
        .set = set,
        .depth = depth,
        .read_us = depth == DEPTH_MEMORY ? MEMORY_STEADY_US : MEMORY_READ_US,
        .left = spent < ms * NSEC_PER_MSEC ? ms * NSEC_PER_MSEC - spent : 0,
        .out = out,
    };
    static const struct sm_partition no_groups;

    if (set->limits.host_memory_bytes < SMALLEST_BYTES)
        return false;
    if (k >= 0 && s->shared_by[k] == SHARED_GROUP)
        p.groups = &s->sharing[k].found;
    for (uint32_t i = 0; i < KINDS + peers + LAST_KINDS; i++) {
        const enum memory_kind kind = i < KINDS           ? kinds[i]
                                      : i < KINDS + peers ? MEMORY_PEER
                                                          : last_kinds[i - KINDS - peers];

        memory_estimate(set, p.groups ? p.groups : &no_groups, kind,
                        kind == MEMORY_PEER ? i - KINDS : 0, &p.e);
        p.most_bytes = range_of(set, depth, ms, kind);
        p.is_alias = is_alias(kind, depth);
        if (p.most_bytes > 0 &&
            schedule_kind(&p, depth == DEPTH_MEMORY || kind == MEMORY_HOST_PINNED))
            return true;
    }
    if (depth != DEPTH_MEMORY || p.left < DETAIL_MS * NSEC_PER_MSEC)
        return false;
    memory_estimate(set, p.groups ? p.groups : &no_groups, MEMORY_HOST_REGISTERED, 0, &p.e);
    return add_nodes(&p);
}
