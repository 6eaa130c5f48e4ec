/* probe.c: which specs are valid, and how long their answers are. Pure arithmetic: every source and
 * every reader of observations counts with these functions and with no others.
 *
 * A probe's reach in memory, in pages of `stride` bytes, of which each touches one line:
 *   CHASE  the longest cycle            ROUND  all slices and the thrashing walk behind them
 *   PAIRS  one slice and the walk       READ   the largest region, in bytes
 *   SIDES  the pages                    CONCURRENCY its region
 *   CACHE  footprint, and what is swept and evicted
 *   WORKING_SET_READ the largest set, in bytes
 */
#include "gpu/probe.h"

#include "base/assert.h"
#include "types/name_of.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_WARM_LAPS = 16,
    CACHE_ALIGN_BYTES = 1 << 21,
    PROBE_MAX_SHARED_IN_FLIGHT = 8,
    WARP = 32,
    CONCURRENCY_SCALE = 64, /* above PROBE_MAX_IN_FLIGHT */
    MIN_DURATION_US = 100,
    MAX_DURATION_US = 100000,
    BACKING_PER_RUN = 16, /* a run is memory beside that behind the range */
    /* So that each of REACH_MAX_SMS SMs has at least one line, however the windows fall. */
    MIN_REGION_BYTES = PROBE_LINE_BYTES * REACH_MAX_SMS,
    MAX_GRANULES = 1 << 19 /* of a set whose granules have sides: a bit each in shared memory */
};

NAME_FUNCTIONS(
    probe_kind,
    enum probe_kind, [PROBE_CHASE] = "chase", [PROBE_ROUND] = "round", [PROBE_PAIRS] = "pairs",
    [PROBE_READ] = "read", [PROBE_MEANS] = "means", [PROBE_MEAN_PAIRS] = "mean-pairs",
    [PROBE_SIDES] = "sides", [PROBE_CACHE] = "cache", [PROBE_SHARED] = "shared",
    [PROBE_PEER] = "peer", [PROBE_CONCURRENCY] = "in-flight", [PROBE_WORKING_SET_READ] = "spread")

NAME_FUNCTIONS(probe_path, enum probe_path, [PATH_L2] = "l2", [PATH_L1] = "l1",
               [PATH_READ_ONLY] = "read-only", [PATH_CONSTANT] = "constant", [PATH_NONE] = "none")

NAME_FUNCTION(
    set_read_name,
    enum set_read, [SET_READ_SAME] = "same", [SET_READ_OWN] = "own", [SET_READ_NEAR] = "near")

NAME_FUNCTIONS(arena_kind, enum arena_kind, [ARENA_ALIAS] = "alias", [ARENA_PLAIN] = "plain",
               [ARENA_SIMULATED] = "simulated")

/* ---- is a spec complete? ---- */

enum {
    CHASE = 1 << PROBE_CHASE,
    ROUND = 1 << PROBE_ROUND,
    PAIRS = 1 << PROBE_PAIRS,
    READ = 1 << PROBE_READ,
    MEANS = 1 << PROBE_MEANS,
    MEAN_PAIRS = 1 << PROBE_MEAN_PAIRS,
    SIDES = 1 << PROBE_SIDES,
    WORKING_SET_READ = 1 << PROBE_WORKING_SET_READ,
    CACHE = 1 << PROBE_CACHE,
    SHARED = 1 << PROBE_SHARED,
    PEER = 1 << PROBE_PEER,
    CONCURRENCY = 1 << PROBE_CONCURRENCY,
    PAGED = CHASE | ROUND | PAIRS | MEANS | MEAN_PAIRS | SIDES /* touch pages */
};

#define FIELD(member) #member, offsetof(struct probe_spec, member)

/* The numbers of 32 bits, and their range in the kinds that use them. */
static const struct {
    const char *name;
    size_t offset;
    unsigned kinds;
    uint32_t low, high;
} fields[] = {
    {FIELD(point_count), CHASE | READ | MEANS | CACHE | SHARED | CONCURRENCY | WORKING_SET_READ, 1,
     PROBE_MAX_POINTS},
    {FIELD(samples), CHASE | SIDES | CACHE | SHARED | PEER, 1, PROBE_MAX_SAMPLES},
    {FIELD(warm_laps), CHASE | SIDES | CACHE | SHARED, 0, MAX_WARM_LAPS},
    {FIELD(path), CACHE, PATH_L2, PATH_COUNT - 1},
    {FIELD(warm_path), CACHE, PATH_L2, PATH_COUNT - 1},
    {FIELD(scattered), CACHE, 0, 1},
    {FIELD(sweep_footprint), CACHE, 0, PROBE_SWEEP_ELEMENTS},
    {FIELD(warm_laps), ROUND | PAIRS, 1, MAX_WARM_LAPS},
    {FIELD(slice_pages), ROUND | PAIRS, 1, PROBE_MAX_SLICE},
    {FIELD(flush_pages), ROUND | PAIRS, 0, 1 << 20},
    {FIELD(thrash_pages), ROUND | PAIRS | MEAN_PAIRS, 1, UINT32_MAX},
    {FIELD(repeats), ROUND | READ | SIDES | SHARED | PEER | CONCURRENCY | WORKING_SET_READ, 1,
     PROBE_MAX_REPEATS},
    {FIELD(duration_us), READ | CONCURRENCY | WORKING_SET_READ, MIN_DURATION_US, MAX_DURATION_US},
    {FIELD(access), READ, ACCESS_READ, ACCESS_COUNT - 1},
    {FIELD(memory), CHASE | READ, MEMORY_DEVICE, MEMORY_PEER},
    {FIELD(memory),
     ROUND | PAIRS | MEANS | MEAN_PAIRS | SIDES | CACHE | SHARED | PEER | CONCURRENCY |
         WORKING_SET_READ,
     MEMORY_DEVICE, MEMORY_DEVICE},
    {FIELD(sm_count), CHASE | ROUND, 1, 1},
    {FIELD(sm_count), PAIRS | SIDES | CACHE | SHARED, 1, REACH_MAX_SMS},
    {FIELD(sm_count), WORKING_SET_READ, 0, REACH_MAX_SMS},
    {FIELD(set_read), WORKING_SET_READ, SET_READ_SAME, SET_READ_COUNT - 1},
    {FIELD(window_count), READ | CONCURRENCY, 1, PROBE_MAX_WINDOWS},
    {FIELD(window_sms), READ | CONCURRENCY, 1, REACH_MAX_SMS},
    {FIELD(warps), SHARED, 1, PROBE_MAX_WARPS},
    {FIELD(in_flight), SHARED, 1, PROBE_MAX_SHARED_IN_FLIGHT},
    {FIELD(cluster_sms), PEER, 2, PROBE_MAX_CLUSTER},
};

_Static_assert(sizeof(enum access) == sizeof(uint32_t) &&
                   sizeof(enum probe_path) == sizeof(uint32_t) &&
                   sizeof(enum memory_kind) == sizeof(uint32_t),
               "fields like the others");

static enum status check_range(const char *field, uint64_t v, uint64_t low, uint64_t high,
                               struct err *err)
{
    if (v >= low && v <= high)
        return STATUS_OK;
    return err_set(err, STATUS_INVALID_ARGUMENT, "probe: %s is %llu, must be %llu..%llu", field,
                   (unsigned long long)v, (unsigned long long)low, (unsigned long long)high);
}

static enum status check_lines(const char *field, uint64_t bytes, struct err *err)
{
    if (bytes % PROBE_LINE_BYTES == 0)
        return STATUS_OK;
    return err_set(err, STATUS_INVALID_ARGUMENT, "probe: %s is %llu, must be a multiple of %d",
                   field, (unsigned long long)bytes, PROBE_LINE_BYTES);
}

static enum status check_fields(const struct probe_spec *spec, struct err *err)
{
    enum status s = STATUS_OK;
    for (size_t i = 0; s == STATUS_OK && i < sizeof(fields) / sizeof(fields)[0]; i++) {
        uint32_t v;
        memcpy(&v, (const char *)spec + fields[i].offset, sizeof v);
        if (fields[i].kinds >> spec->kind & 1)
            s = check_range(fields[i].name, v, fields[i].low, fields[i].high, err);
    }
    return s;
}

/* The elements of the lists, whose lengths have been checked. */
static enum status check_lists(const struct probe_spec *spec, struct err *err)
{
    const unsigned kind = 1u << spec->kind;
    const uint64_t least = kind & (READ | WORKING_SET_READ) ? MIN_REGION_BYTES : 1;
    const uint64_t most = kind == MEANS ? INT64_MAX / spec->stride_bytes : UINT64_MAX;
    const uint32_t points =
        kind & (CHASE | READ | MEANS | CACHE | WORKING_SET_READ) ? spec->point_count : 0;
    const uint32_t sms = kind & (CHASE | ROUND | PAIRS | SIDES | CACHE | SHARED | WORKING_SET_READ)
                             ? spec->sm_count
                             : 0;
    enum status s = STATUS_OK;

    for (uint32_t i = 0; s == STATUS_OK && i < points; i++)
        s = check_range("points", spec->points[i], least, most, err);
    for (uint32_t i = 0; s == STATUS_OK && i < sms; i++)
        s = check_range("sms", spec->sms[i], 0, REACH_MAX_SMS - 1, err);
    for (uint32_t i = 1; s == STATUS_OK && (kind & (SIDES | SHARED | WORKING_SET_READ)) && i < sms;
         i++)
        if (spec->sms[i] <= spec->sms[i - 1])
            s = err_set(err, STATUS_INVALID_ARGUMENT, "probe: sms must ascend");
    return s;
}

static enum status fail(struct err *err, const char *what)
{
    return err_set(err, STATUS_INVALID_ARGUMENT, "probe: %s", what);
}

/* The bytes that the lanes of a warp touch, in all chains. */
static enum status check_shared(const struct probe_spec *spec, struct err *err)
{
    const uint32_t width = spec->transaction_bytes;

    if (width != 4 && width != 8 && width != 16)
        return fail(err, "transaction_bytes must be 4, 8 or 16 for shared memory");
    if ((spec->in_flight & (spec->in_flight - 1)) != 0)
        return fail(err, "in_flight must be 1, 2, 4 or 8");
    if (spec->samples % PROBE_MAX_SHARED_IN_FLIGHT != 0)
        return fail(err, "samples must be a multiple of 8 for shared memory");
    for (uint32_t i = 0; i < spec->point_count; i++) {
        const uint64_t d = spec->points[i];
        if (d < width || d % width != 0 || d > PROBE_SHARED_BYTES / (WARP * spec->in_flight))
            return fail(err, "points must be multiples of transaction_bytes, and all lanes within "
                             "32 KiB of shared memory");
    }
    return STATUS_OK;
}

static enum status check_windows(const struct probe_spec *spec, struct err *err)
{
    bool any = false;

    for (uint32_t i = 0; i < spec->window_sms; i++) {
        const uint32_t w = spec->window_of_sm[i];
        if (w != PROBE_SM_IDLE && w >= spec->window_count)
            return check_range("window_of_sm", w, 0, spec->window_count - 1, err);
        any = any || w != PROBE_SM_IDLE;
    }
    return any ? STATUS_OK : fail(err, "window_of_sm leaves every SM idle");
}

static enum status check_concurrency(const struct probe_spec *spec, struct err *err)
{
    enum status s = check_windows(spec, err);

    if (s == STATUS_OK)
        s = check_range("region_bytes", spec->region_bytes, MIN_REGION_BYTES, UINT64_MAX, err);
    for (uint32_t i = 0; s == STATUS_OK && i < spec->point_count; i++) {
        const uint32_t loads = probe_concurrency_loads(spec->points[i]);
        if (spec->points[i] != probe_concurrency(probe_concurrency_warps(spec->points[i]), loads) ||
            probe_concurrency_warps(spec->points[i]) - 1u >= PROBE_MAX_WARPS || loads == 0 ||
            loads > PROBE_MAX_IN_FLIGHT || (loads & (loads - 1)) != 0)
            s = fail(err, "points must be 64 times 1 to 32 warps and 1, 2, 4, 8, 16 or 32 loads");
    }
    return s;
}

/* What only READ has: the kinds of access that the table in probe.h lists, and windows. */
static enum status check_read(const struct probe_spec *spec, struct err *err)
{
    const bool is_read = spec->access == ACCESS_READ;
    const uint32_t bytes = probe_access_bytes(spec);
    enum status s;

    if (bytes != PROBE_SECTOR_BYTES &&
        !(is_read && (bytes == PROBE_LINE_BYTES || bytes == PROBE_BLOCK_BYTES)))
        return err_set(err, STATUS_INVALID_ARGUMENT, "probe: transaction_bytes is %u, must be %d%s",
                       bytes, PROBE_SECTOR_BYTES, is_read ? ", 128 or 512" : "");
    s = check_windows(spec, err);
    if (s != STATUS_OK)
        return s;
    if (spec->run_bytes == 0
            ? spec->scattered_bytes > 0
            : spec->scattered_bytes % spec->run_bytes != 0 || spec->base_bytes > 0 ||
                  spec->point_count > 1 || spec->scattered_bytes > spec->points[0] ||
                  spec->memory != MEMORY_DEVICE)
        return err_set(
            err, STATUS_INVALID_ARGUMENT,
            "probe: scattered_bytes is %llu, must be runs within the one region of device "
            "memory, which begins at 0",
            (unsigned long long)spec->scattered_bytes);
    return STATUS_OK;
}

static uint64_t saturate(unsigned __int128 v)
{
    return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

static uint64_t largest_point(const struct probe_spec *spec)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < spec->point_count; i++)
        most = spec->points[i] > most ? spec->points[i] : most;
    return most;
}

static enum status check_spread(const struct probe_spec *spec, struct err *err)
{
    const uint32_t bytes = probe_access_bytes(spec);
    const bool near = spec->set_read == SET_READ_NEAR;

    if (bytes != PROBE_LINE_BYTES && bytes != PROBE_BLOCK_BYTES)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: transaction_bytes is %u, must be 128 or 512", bytes);
    if (spec->stride_bytes < PROBE_BLOCK_BYTES ||
        (spec->stride_bytes & (spec->stride_bytes - 1)) != 0)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: stride_bytes is %llu, must be a power of two from 512 on",
                       (unsigned long long)spec->stride_bytes);
    if (near != (spec->sm_count > 0))
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: sms must name the SMs of one side, with spread near alone");
    if (near && largest_point(spec) / spec->stride_bytes > MAX_GRANULES)
        return check_range("points", largest_point(spec), 1, MAX_GRANULES * spec->stride_bytes,
                           err);
    return STATUS_OK;
}

/* The golden section of n, which spreads the elements of every part of a cycle evenly. */
static uint64_t even_step(uint64_t n)
{
    return n - n * 0.6180339887498949;
}

bool probe_scatters_evenly(uint64_t n)
{
    return probe_scatter_step(n) == even_step(n);
}

uint64_t probe_scatter_step(uint64_t n)
{
    for (uint64_t step = even_step(n); step > 1; step--) {
        uint64_t a = n;
        uint64_t b = step;
        while (b > 0) {
            const uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
    return 1;
}

uint64_t probe_cache_behind(const struct probe_spec *spec)
{
    const uint64_t bytes = saturate((unsigned __int128)largest_point(spec) * spec->stride_bytes);

    return spec->path == PATH_CONSTANT
               ? (bytes + PROBE_LINE_BYTES - 1) / PROBE_LINE_BYTES * PROBE_LINE_BYTES
               : saturate(((unsigned __int128)bytes + CACHE_ALIGN_BYTES - 1) / CACHE_ALIGN_BYTES *
                          CACHE_ALIGN_BYTES);
}

/* What only CACHE has. */
static enum status check_cache(const struct probe_spec *spec, struct err *err)
{
    const bool constant = spec->path == PATH_CONSTANT;
    const char *what = NULL;

    if (spec->stride_bytes == 0 || spec->stride_bytes % PROBE_WORD_BYTES != 0)
        what = "stride_bytes must be a multiple of 4";
    else if (constant != (spec->warm_path == PATH_CONSTANT))
        what = "warm_path must be constant if path is, and only then";
    else if (spec->sweep_footprint && spec->sweep_bytes > 0)
        what = "sweep_bytes must be 0 with sweep_footprint";
    else if (constant && (spec->base_bytes > 0 || spec->sweep_footprint || spec->sweep_bytes > 0 ||
                          spec->touch_bytes > 0))
        what = "constants are neither swept nor touched";
    else if (spec->touch_bytes % PROBE_LINE_BYTES != 0 || spec->evict_bytes % PROBE_LINE_BYTES != 0)
        what = "touch_bytes and evict_bytes must be multiples of 128";
    else if (spec->shared_bytes > UINT32_MAX)
        what = "shared_bytes is 4 GiB or more";
    else if (constant && (unsigned __int128)largest_point(spec) * spec->stride_bytes +
                                 spec->evict_bytes + PROBE_LINE_BYTES >
                             PROBE_CONSTANT_BYTES)
        what = "the bank of constants has 65536 bytes";
    return what ? err_set(err, STATUS_INVALID_ARGUMENT, "probe: %s", what) : STATUS_OK;
}

static enum status check_complete(const struct probe_spec *spec, struct err *err)
{
    enum status s = check_lines("base_bytes", spec->base_bytes, err);

    if (s == STATUS_OK && (unsigned)spec->kind >= PROBE_KIND_COUNT)
        s = err_set(err, STATUS_INVALID_ARGUMENT, "probe: unknown kind %d", (int)spec->kind);
    if (s == STATUS_OK && (PAGED >> spec->kind & 1))
        s = check_lines("stride_bytes", spec->stride_bytes, err);
    if (s == STATUS_OK && (PAGED >> spec->kind & 1))
        s = check_range("stride_bytes", spec->stride_bytes, PROBE_LINE_BYTES, UINT64_MAX, err);
    if (s == STATUS_OK)
        s = check_fields(spec, err);
    if (s == STATUS_OK)
        s = check_lists(spec, err);
    if (s == STATUS_OK && spec->kind == PROBE_READ)
        s = check_read(spec, err);
    else if (s == STATUS_OK && spec->kind == PROBE_SHARED)
        s = check_shared(spec, err);
    else if (s == STATUS_OK && spec->kind == PROBE_CONCURRENCY)
        s = check_concurrency(spec, err);
    else if (s == STATUS_OK && spec->kind == PROBE_CACHE)
        s = check_cache(spec, err);
    else if (s == STATUS_OK && spec->kind == PROBE_WORKING_SET_READ)
        s = check_spread(spec, err);
    return s;
}

uint64_t probe_longest_run(const struct gpu_limits *limits)
{
    const uint64_t most = limits->backing_bytes / BACKING_PER_RUN;
    uint64_t run = limits->granule_bytes;

    if (limits->arena == ARENA_PLAIN || limits->backing_bytes >= limits->range_bytes || run > most)
        return 0;
    while (run <= most / 2)
        run *= 2;
    return run;
}

/* Runs are mapped one by one, so they are whole granules. */
static enum status check_runs(const struct probe_spec *spec, const struct gpu_limits *limits,
                              struct err *err)
{
    const uint64_t longest = probe_longest_run(limits);
    const uint64_t granules = spec->run_bytes / limits->granule_bytes;

    if (longest == 0)
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "probe: run_bytes needs the virtual memory API and more device memory");
    if (spec->run_bytes % limits->granule_bytes != 0 || (granules & (granules - 1)) != 0)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: run_bytes is %llu, must be a power of two times %llu",
                       (unsigned long long)spec->run_bytes,
                       (unsigned long long)limits->granule_bytes);
    return check_range("run_bytes", spec->run_bytes, limits->granule_bytes, longest, err);
}

enum status probe_check(const struct probe_spec *spec, const struct gpu_limits *limits,
                        struct err *err)
{
    enum status s = check_complete(spec, err);
    if (s != STATUS_OK || !limits)
        return s;
    if (spec->kind == PROBE_MEANS || spec->kind == PROBE_MEAN_PAIRS)
        return err_set(err, STATUS_NOT_SUPPORTED, "probe: %s is imported and never measured",
                       probe_kind_name(spec->kind));
    if (spec->kind == PROBE_READ && spec->run_bytes > 0) {
        s = check_runs(spec, limits, err);
        if (s != STATUS_OK)
            return s;
    }
    if (spec->kind == PROBE_SHARED && limits->shared_block_bytes < PROBE_SHARED_BYTES)
        return err_set(err, STATUS_NOT_SUPPORTED, "probe: this source has no shared memory");
    if (spec->kind == PROBE_PEER && spec->cluster_sms > limits->cluster_sms)
        return err_set(err, STATUS_NOT_SUPPORTED, "probe: clusters have at most %u SMs",
                       limits->cluster_sms);
    if (spec->memory == MEMORY_PEER && spec->peer >= limits->peer_count)
        return err_set(err, STATUS_INVALID_ARGUMENT, "probe: peer is %u, the node has %u",
                       spec->peer, limits->peer_count);
    if (spec->memory != MEMORY_DEVICE)
        return STATUS_OK; /* its range is made as long as it needs to be */
    uint64_t need = probe_range_bytes(spec, limits->sm_count);
    if (spec->kind == PROBE_WORKING_SET_READ && need > limits->backing_bytes)
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "probe: a set of %llu bytes needs as much memory, and %llu are there",
                       (unsigned long long)need, (unsigned long long)limits->backing_bytes);
    if (need > limits->range_bytes)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: %s touches %llu bytes, the GPU's range is %llu",
                       probe_kind_name(spec->kind), (unsigned long long)need,
                       (unsigned long long)limits->range_bytes);
    return STATUS_OK;
}

size_t probe_value_count(const struct probe_spec *spec, uint32_t sm_count)
{
    size_t halves = 2 * (size_t)sm_count * spec->slice_pages;
    switch (spec->kind) {
    case PROBE_CHASE:
    case PROBE_CACHE:
        return (size_t)spec->point_count * spec->samples;
    case PROBE_ROUND:
        return spec->repeats * halves;
    case PROBE_PAIRS:
        return spec->sm_count * halves;
    case PROBE_READ:
    case PROBE_WORKING_SET_READ:
    case PROBE_CONCURRENCY:
        return (size_t)spec->point_count * spec->repeats * (1 + (size_t)sm_count);
    case PROBE_MEANS:
        return spec->point_count;
    case PROBE_MEAN_PAIRS:
        return (size_t)sm_count * sm_count;
    case PROBE_SIDES:
        return (size_t)spec->repeats * spec->sm_count * spec->samples;
    case PROBE_SHARED:
        return (size_t)spec->repeats * spec->sm_count * spec->point_count;
    case PROBE_PEER:
        return (size_t)spec->repeats * (1 + (size_t)sm_count) * probe_peer_columns(spec);
    case PROBE_KIND_COUNT:
        break;
    }
    return 0;
}

uint32_t probe_peer_columns(const struct probe_spec *spec)
{
    return spec->cluster_sms + 3;
}

uint64_t probe_concurrency(uint32_t warps, uint32_t loads)
{
    return (uint64_t)warps * CONCURRENCY_SCALE + loads;
}

uint32_t probe_concurrency_warps(uint64_t point)
{
    return (uint32_t)(point / CONCURRENCY_SCALE);
}

uint32_t probe_concurrency_loads(uint64_t point)
{
    return (uint32_t)(point % CONCURRENCY_SCALE);
}

static bool same_lists(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->point_count == b->point_count && a->sm_count == b->sm_count &&
           a->window_sms == b->window_sms &&
           memcmp(a->points, b->points, a->point_count * sizeof a->points[0]) == 0 &&
           memcmp(a->sms, b->sms, a->sm_count * sizeof a->sms[0]) == 0 &&
           memcmp(a->window_of_sm, b->window_of_sm, a->window_sms * sizeof a->window_of_sm[0]) == 0;
}

static bool same_cache(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->path == b->path && a->warm_path == b->warm_path && a->scattered == b->scattered &&
           a->sweep_footprint == b->sweep_footprint && a->sweep_bytes == b->sweep_bytes &&
           a->touch_bytes == b->touch_bytes && a->evict_bytes == b->evict_bytes &&
           a->shared_bytes == b->shared_bytes;
}

static bool same_read(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->duration_us == b->duration_us && a->seed == b->seed && a->access == b->access &&
           a->transaction_bytes == b->transaction_bytes && a->set_read == b->set_read &&
           a->run_bytes == b->run_bytes && a->scattered_bytes == b->scattered_bytes &&
           a->region_bytes == b->region_bytes && a->window_count == b->window_count;
}

bool probe_same(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->kind == b->kind && a->memory == b->memory && a->peer == b->peer &&
           a->stride_bytes == b->stride_bytes && a->base_bytes == b->base_bytes &&
           a->warps == b->warps && a->in_flight == b->in_flight &&
           a->cluster_sms == b->cluster_sms && a->samples == b->samples &&
           a->warm_laps == b->warm_laps && a->slice_pages == b->slice_pages &&
           a->flush_pages == b->flush_pages && a->thrash_pages == b->thrash_pages &&
           a->repeats == b->repeats && same_cache(a, b) && same_read(a, b) && same_lists(a, b);
}

bool probe_same_memory(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->memory == b->memory && (a->memory != MEMORY_PEER || a->peer == b->peer);
}

bool probe_is_absent(const struct probe_spec *spec, const struct probe_result *result)
{
    return spec->memory != MEMORY_DEVICE && !IS_KNOWN(result->conditions.memory_bytes);
}

uint32_t probe_access_bytes(const struct probe_spec *spec)
{
    return spec->transaction_bytes ? spec->transaction_bytes : (uint32_t)PROBE_LINE_BYTES;
}

bool probe_is_line_read(const struct probe_spec *spec)
{
    return spec->kind == PROBE_READ && spec->access == ACCESS_READ &&
           probe_access_bytes(spec) == (uint32_t)PROBE_LINE_BYTES;
}

uint64_t probe_range_bytes(const struct probe_spec *spec, uint32_t sm_count)
{
    const uint64_t slices =
        (uint64_t)spec->slice_pages * (spec->kind == PROBE_ROUND ? sm_count : 1);
    unsigned __int128 pages = largest_point(spec);

    if (spec->kind == PROBE_READ || spec->kind == PROBE_WORKING_SET_READ)
        return saturate((unsigned __int128)spec->base_bytes + pages);
    if (spec->kind == PROBE_CACHE)
        return spec->path == PATH_CONSTANT
                   ? 0
                   : saturate((unsigned __int128)spec->base_bytes + probe_cache_behind(spec) +
                              spec->sweep_bytes + spec->evict_bytes + PROBE_LINE_BYTES);
    if (spec->kind == PROBE_CONCURRENCY)
        return saturate((unsigned __int128)spec->base_bytes + spec->region_bytes);
    if (spec->kind == PROBE_SHARED || spec->kind == PROBE_PEER)
        return 0;
    if (spec->kind == PROBE_SIDES)
        pages = spec->samples;
    else if (spec->kind == PROBE_MEAN_PAIRS)
        pages = (unsigned __int128)spec->thrash_pages * 2;
    else if (spec->kind == PROBE_ROUND || spec->kind == PROBE_PAIRS)
        pages = (unsigned __int128)slices + spec->flush_pages + spec->thrash_pages;
    if (pages == 0)
        return 0;
    /* pages and stride are both below 2^64, so only the line on top could overflow 128 bits. */
    unsigned __int128 last = (pages - 1) * spec->stride_bytes;
    return last > UINT64_MAX ? UINT64_MAX : saturate(last + spec->base_bytes + PROBE_LINE_BYTES);
}

void probe_window(const struct probe_spec *spec, const uint16_t *sm_ids, uint32_t sm_count,
                  uint64_t region_bytes, uint32_t w, uint64_t *first_byte, uint64_t *length_bytes)
{
    const uint64_t line = PROBE_LINE_BYTES;
    uint64_t before = 0;
    uint64_t within = 0;
    uint64_t all = 0;

    for (uint32_t i = 0; i < sm_count; i++) {
        const uint32_t of = probe_window_of(spec, sm_ids[i]);
        all += of != PROBE_SM_IDLE;
        before += of < w;
        within += of == w;
    }
    *first_byte = 0;
    *length_bytes = 0;
    if (all == 0)
        return;
    *first_byte = (uint64_t)((unsigned __int128)region_bytes * before / all) / line * line;
    if (within > 0)
        *length_bytes =
            (uint64_t)((unsigned __int128)region_bytes * (before + within) / all) / line * line -
            *first_byte;
}

uint32_t probe_window_of(const struct probe_spec *spec, uint16_t sm_id)
{
    return sm_id < spec->window_sms ? spec->window_of_sm[sm_id] : (uint32_t)PROBE_SM_IDLE;
}

uint32_t probe_sm_position(const uint16_t *sm_ids, uint32_t sm_count, uint16_t sm_id)
{
    uint32_t i = 0;
    while (i < sm_count && sm_ids[i] != sm_id)
        i++;
    return i;
}

void probe_conditions_init(const struct gpu_limits *limits, struct probe_conditions *out)
{
    *out = (struct probe_conditions){
        .arena = limits->arena,
        .range_bytes = limits->range_bytes,
        .backing_bytes = limits->backing_bytes,
        .device_memory_bytes = limits->device_memory_bytes,
        .sm_clock_khz = UNKNOWN_U32(REASON_NOT_REPORTED),
        .memory_clock_khz = UNKNOWN_U32(REASON_NOT_REPORTED),
        .temperature_celsius = UNKNOWN_U32(REASON_NOT_REPORTED),
        .other_processes = UNKNOWN_U32(REASON_NOT_REPORTED),
        .throttle_reasons = UNKNOWN_U64(REASON_NOT_REPORTED),
        .sm_clock_before_khz = UNKNOWN_U32(REASON_NOT_REPORTED),
        .busy_percent_before = UNKNOWN_U32(REASON_NOT_REPORTED),
        .concurrent_processes = UNKNOWN_U32(REASON_NOT_REPORTED),
        .interruptions = UNKNOWN_U32(REASON_NOT_REPORTED),
        .uncorrected_errors = UNKNOWN_U64(REASON_NOT_REPORTED),
        .xid = UNKNOWN_U64(REASON_NOT_REPORTED),
        .peer_memory_bytes = UNKNOWN_U64(REASON_NOT_APPLICABLE),
    };
}

void probe_result_free(struct probe_result *take)
{
    free(take->values);
    memset(take, 0, sizeof *take);
}
