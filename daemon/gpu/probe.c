/* probe.c: which specs are valid, and how long their answers are. It is pure arithmetic: every
 * source and every reader of observations uses only these functions to count.
 *
 * Each kind of probe has a row in `kinds`, and each number of a spec has a row in `fields`.
 */
#include "gpu/probe.h"

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
    BACKING_PER_RUN = 16, /* minimum length of the memory behind the range, in runs */
    /* Each of REACH_MAX_SMS SMs has at least one line for any choice of the windows. */
    MIN_REGION_BYTES = PROBE_LINE_BYTES * REACH_MAX_SMS,
    MAX_GRANULES = 1 << 19 /* largest number of granules of a set that have sides; each takes one
                              bit of shared memory */
};

NAME_FUNCTION(probe_path_name, enum probe_path, [PATH_L2] = "l2", [PATH_L1] = "l1",
              [PATH_READ_ONLY] = "read-only", [PATH_CONSTANT] = "constant", [PATH_NONE] = "none")

NAME_FUNCTION(
    set_read_name,
    enum set_read, [SET_READ_SAME] = "same", [SET_READ_OWN] = "own", [SET_READ_NEAR] = "near")

NAME_FUNCTION(arena_kind_name, enum arena_kind, [ARENA_ALIAS] = "alias", [ARENA_PLAIN] = "plain",
              [ARENA_SIMULATED] = "simulated")

/* ---- the numbers of a spec ---- */

#define FIELD(member, part)                                                                        \
#member, offsetof(struct probe_spec, member), sizeof(((struct probe_spec *)0)->member), part

/* Each row has a member, its part of a spec, and its range in the kinds of probes that have the
 * part. */
static const struct {
    const char *name;
    size_t offset, size;
    unsigned part;
    uint64_t low, high;
} fields[] = {
    {FIELD(stride_bytes, SPEC_PAGES), PROBE_LINE_BYTES, UINT64_MAX},
    {FIELD(stride_bytes, SPEC_STRIDE), 1, UINT64_MAX},
    {FIELD(base_bytes, SPEC_BASE), 0, UINT64_MAX},
    {FIELD(point_count, SPEC_POINTS), 1, PROBE_MAX_POINTS},
    {FIELD(samples, SPEC_SAMPLES), 1, PROBE_MAX_SAMPLES},
    {FIELD(warm_laps, SPEC_LAPS), 0, MAX_WARM_LAPS},
    {FIELD(warm_laps, SPEC_SLICE), 1, MAX_WARM_LAPS},
    {FIELD(slice_pages, SPEC_SLICE), 1, PROBE_MAX_SLICE},
    {FIELD(flush_pages, SPEC_SLICE), 0, 1 << 20},
    {FIELD(thrash_pages, SPEC_THRASH), 1, UINT32_MAX},
    {FIELD(repeats, SPEC_REPEATS), 1, PROBE_MAX_REPEATS},
    {FIELD(sm_count, SPEC_ONE_SM), 1, 1},
    {FIELD(sm_count, SPEC_SMS), 1, REACH_MAX_SMS},
    {FIELD(sm_count, SPEC_SET_READ), 0, REACH_MAX_SMS},
    {FIELD(path, SPEC_CACHE), PATH_L2, PATH_COUNT - 1},
    {FIELD(warm_path, SPEC_CACHE), PATH_L2, PATH_COUNT - 1},
    {FIELD(scattered, SPEC_CACHE), 0, 1},
    {FIELD(sweep_footprint, SPEC_CACHE), 0, PROBE_SWEEP_ELEMENTS},
    {FIELD(sweep_bytes, SPEC_CACHE), 0, UINT64_MAX},
    {FIELD(touch_bytes, SPEC_CACHE), 0, UINT64_MAX},
    {FIELD(evict_bytes, SPEC_CACHE), 0, UINT64_MAX},
    {FIELD(shared_bytes, SPEC_CACHE), 0, UINT32_MAX},
    {FIELD(warps, SPEC_SHARED), 1, PROBE_MAX_WARPS},
    {FIELD(in_flight, SPEC_SHARED), 1, PROBE_MAX_SHARED_IN_FLIGHT},
    {FIELD(cluster_sms, SPEC_CLUSTER), 2, PROBE_MAX_CLUSTER},
    {FIELD(duration_us, SPEC_DURATION), MIN_DURATION_US, MAX_DURATION_US},
    {FIELD(seed, SPEC_DURATION), 0, UINT32_MAX},
    {FIELD(access, SPEC_ACCESS), ACCESS_READ, ACCESS_COUNT - 1},
    {FIELD(output, SPEC_ACCESS), 0, 1},
    {FIELD(run_bytes, SPEC_ACCESS), 0, UINT64_MAX},
    {FIELD(scattered_bytes, SPEC_ACCESS), 0, UINT64_MAX},
    {FIELD(transaction_bytes, SPEC_TRANSACTION), 0, UINT32_MAX},
    {FIELD(set_read, SPEC_SET_READ), SET_READ_SAME, SET_READ_COUNT - 1},
    {FIELD(region_bytes, SPEC_REGION), MIN_REGION_BYTES, UINT64_MAX},
    {FIELD(window_count, SPEC_WINDOWS), 1, PROBE_MAX_WINDOWS},
    {FIELD(window_sms, SPEC_WINDOWS), 1, REACH_MAX_SMS},
    {FIELD(memory, SPEC_MEMORY), MEMORY_DEVICE, MEMORY_PEER},
    {FIELD(peer, SPEC_MEMORY), 0, UINT32_MAX},
    {FIELD(node, SPEC_MEMORY), 0, PROBE_MAX_NODES},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* Returns the value of field `i`. */
static uint64_t field_value(const struct probe_spec *spec, size_t i)
{
    const char *const at = (const char *)spec + fields[i].offset;
    uint64_t wide;
    uint32_t narrow;

    memcpy(&narrow, at, sizeof narrow);
    if (fields[i].size == sizeof narrow)
        return narrow;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

/* ---- is a spec complete? ---- */

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

static enum status fail(struct err *err, const char *what)
{
    return err_set(err, STATUS_INVALID_ARGUMENT, "probe: %s", what);
}

/* Checks the parts that only SHARED has. The lanes of a warp, in all chains, must stay within
 * PROBE_SHARED_BYTES. */
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

    for (uint32_t i = 0; s == STATUS_OK && i < spec->point_count; i++) {
        const uint32_t loads = probe_concurrency_loads(spec->points[i]);
        if (spec->points[i] != probe_concurrency(probe_concurrency_warps(spec->points[i]), loads) ||
            probe_concurrency_warps(spec->points[i]) - 1u >= PROBE_MAX_WARPS || loads == 0 ||
            loads > PROBE_MAX_IN_FLIGHT || (loads & (loads - 1)) != 0)
            s = fail(err, "points must be 64 times 1 to 32 warps and 1, 2, 4, 8, 16 or 32 loads");
    }
    return s;
}

/* Returns whether the table in probe.h lists this kind of access. */
static bool is_access(const struct probe_spec *spec)
{
    const uint32_t bytes = probe_access_bytes(spec);

    if (spec->memory != MEMORY_DEVICE)
        return bytes >= PROBE_SECTOR_BYTES && bytes <= PROBE_ROW_BYTES &&
               (bytes & (bytes - 1)) == 0;
    return bytes == PROBE_SECTOR_BYTES ||
           (spec->access == ACCESS_READ &&
            (bytes == PROBE_LINE_BYTES || bytes == PROBE_BLOCK_BYTES));
}

/* Checks the parts that only READ has: the kind of access, and windows. */
static enum status check_read(const struct probe_spec *spec, struct err *err)
{
    enum status s;

    if (!is_access(spec))
        return err_set(err, STATUS_INVALID_ARGUMENT, "probe: transaction_bytes is %u, must be %s",
                       probe_access_bytes(spec),
                       spec->memory != MEMORY_DEVICE ? "a power of two from 32 to 1024"
                       : spec->access == ACCESS_READ ? "32, 128 or 512"
                                                     : "32");
    if (spec->output &&
        (spec->access != ACCESS_READ || probe_access_bytes(spec) == PROBE_SECTOR_BYTES ||
         spec->memory == MEMORY_DEVICE || spec->memory == MEMORY_HOST_GATHERED))
        return fail(err, "output is for reads of 64 bytes or more by SMs, in memory of other kinds "
                         "than the device's own");
    s = check_windows(spec, err);
    if (s != STATUS_OK)
        return s;
    if (spec->run_bytes == 0
            ? spec->scattered_bytes > 0
            : spec->scattered_bytes % spec->run_bytes != 0 || spec->base_bytes > 0 ||
                  spec->point_count > 1 || spec->scattered_bytes > spec->points[0] ||
                  spec->memory != MEMORY_DEVICE)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: scattered_bytes is %llu, must lie in runs within the single region "
                       "of device memory, which begins at 0",
                       (unsigned long long)spec->scattered_bytes);
    return STATUS_OK;
}

typedef unsigned __int128 extent; /* bytes of memory; never overflows */

static uint64_t saturate(extent v)
{
    return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

uint64_t probe_largest_point(const struct probe_spec *spec)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < spec->point_count; i++)
        most = spec->points[i] > most ? spec->points[i] : most;
    return most;
}

static enum status check_working_set(const struct probe_spec *spec, struct err *err)
{
    const uint32_t bytes = probe_access_bytes(spec);
    const bool near = spec->set_read == SET_READ_NEAR;

    if (bytes != PROBE_LINE_BYTES && bytes != PROBE_BLOCK_BYTES)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: transaction_bytes is %u, must be 128 or 512", bytes);
    if (spec->stride_bytes < PROBE_BLOCK_BYTES ||
        (spec->stride_bytes & (spec->stride_bytes - 1)) != 0)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: stride_bytes must be a power of two of at least 512, not %llu",
                       (unsigned long long)spec->stride_bytes);
    if (near != (spec->sm_count > 0))
        return err_set(
            err, STATUS_INVALID_ARGUMENT,
            "probe: sms must have the SMs of one side if spread is near, and be empty otherwise");
    if (near && probe_largest_point(spec) / spec->stride_bytes > MAX_GRANULES)
        return check_range("points", probe_largest_point(spec), 1,
                           MAX_GRANULES * spec->stride_bytes, err);
    return STATUS_OK;
}

/* Returns the golden section of n, which spreads the elements of every part of a cycle evenly. */
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
    const uint64_t bytes = saturate((extent)probe_largest_point(spec) * spec->stride_bytes);

    return spec->path == PATH_CONSTANT
               ? (bytes + PROBE_LINE_BYTES - 1) / PROBE_LINE_BYTES * PROBE_LINE_BYTES
               : saturate(((extent)bytes + CACHE_ALIGN_BYTES - 1) / CACHE_ALIGN_BYTES *
                          CACHE_ALIGN_BYTES);
}

/* Checks the parts that only CACHE has. */
static enum status check_cache(const struct probe_spec *spec, struct err *err)
{
    const bool constant = spec->path == PATH_CONSTANT;
    const char *what = NULL;

    if (spec->stride_bytes % PROBE_WORD_BYTES != 0)
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
    else if (constant && (extent)probe_largest_point(spec) * spec->stride_bytes +
                                 spec->evict_bytes + PROBE_LINE_BYTES >
                             PROBE_CONSTANT_BYTES)
        what = "the bank of constants has 65536 bytes";
    return what ? fail(err, what) : STATUS_OK;
}

/* ---- the kinds of probes ---- */

/* The length of an axis of an answer. */
enum axis {
    NONE,
    POINTS,
    SAMPLES,
    REPEATS,
    NAMED, /* the SMs that the spec names */
    SMS,   /* the SMs of the GPU */
    ROWS,  /* the number of SMs of the GPU plus one */
    SLICE,
    HALVES,
    PEER_COLUMNS
};

enum {
    WALK = SPEC_BASE | SPEC_LAPS,
    THRASH = SPEC_PAGES | WALK | SPEC_SLICE | SPEC_THRASH,
    TIMED = SPEC_BASE | SPEC_POINTS | SPEC_REPEATS | SPEC_DURATION
};

/* clang-format off */
static const struct {
    const char *name;
    unsigned parts;
    enum axis axes[PROBE_MAX_AXES];
    enum status (*check)(const struct probe_spec *spec, struct err *err); /* checks what `fields` cannot; NULL if there is nothing more */
} kinds[PROBE_KIND_COUNT] = {
    [PROBE_CHASE] = {"chase",
        SPEC_PAGES | WALK | SPEC_ONE_SM | SPEC_POINTS | SPEC_SAMPLES | SPEC_MEMORY,
        {POINTS, SAMPLES}, NULL},
    [PROBE_ROUND] = {"round",
        THRASH | SPEC_ONE_SM | SPEC_REPEATS, {REPEATS, HALVES, SMS, SLICE}, NULL},
    [PROBE_PAIRS] = {"pairs",
        THRASH | SPEC_SMS, {NAMED, HALVES, SMS, SLICE}, NULL},
    [PROBE_READ] = {"read",
        TIMED | SPEC_WINDOWS | SPEC_ACCESS | SPEC_MEMORY, {POINTS, REPEATS, ROWS}, check_read},
    [PROBE_MEANS] = {"means",
        SPEC_PAGES | SPEC_POINTS | SPEC_IMPORTED, {POINTS}, NULL},
    [PROBE_MEAN_PAIRS] = {"mean-pairs",
        SPEC_PAGES | SPEC_THRASH | SPEC_IMPORTED, {SMS, SMS}, NULL},
    [PROBE_SIDES] = {"sides",
        SPEC_PAGES | WALK | SPEC_SMS | SPEC_ASCENDING | SPEC_SAMPLES | SPEC_REPEATS,
        {REPEATS, NAMED, SAMPLES}, NULL},
    [PROBE_CACHE] = {"cache",
        SPEC_STRIDE | WALK | SPEC_SMS | SPEC_POINTS | SPEC_SAMPLES | SPEC_CACHE,
        {POINTS, SAMPLES}, check_cache},
    [PROBE_SHARED] = {"shared",
        SPEC_LAPS | SPEC_SMS | SPEC_ASCENDING | SPEC_POINTS | SPEC_SAMPLES | SPEC_REPEATS |
        SPEC_TRANSACTION | SPEC_SHARED,
        {REPEATS, NAMED, POINTS}, check_shared},
    [PROBE_PEER] = {"peer",
        SPEC_SAMPLES | SPEC_REPEATS | SPEC_CLUSTER, {REPEATS, ROWS, PEER_COLUMNS}, NULL},
    [PROBE_CONCURRENCY] = {"in-flight",
        TIMED | SPEC_WINDOWS | SPEC_REGION, {POINTS, REPEATS, ROWS}, check_concurrency},
    [PROBE_WORKING_SET_READ] = {"spread",
        TIMED | SPEC_STRIDE | SPEC_ASCENDING | SPEC_TRANSACTION | SPEC_SET_READ,
        {POINTS, REPEATS, ROWS}, check_working_set},
};
/* clang-format on */

const char *probe_kind_name(enum probe_kind kind)
{
    return (unsigned)kind < PROBE_KIND_COUNT ? kinds[kind].name : "invalid";
}

bool probe_kind_from_name(const char *name, enum probe_kind *out)
{
    unsigned i = 0;

    while (i < PROBE_KIND_COUNT && strcmp(name, kinds[i].name) != 0)
        i++;
    if (i < PROBE_KIND_COUNT)
        *out = (enum probe_kind)i;
    return i < PROBE_KIND_COUNT;
}

unsigned probe_parts(enum probe_kind kind)
{
    return kinds[kind].parts;
}

uint32_t probe_shape(const struct probe_spec *spec, uint32_t sm_count, uint32_t *axes)
{
    const uint32_t lengths[] = {[POINTS] = spec->point_count,
                                [SAMPLES] = spec->samples,
                                [REPEATS] = spec->repeats,
                                [NAMED] = spec->sm_count,
                                [SMS] = sm_count,
                                [ROWS] = 1 + sm_count,
                                [SLICE] = spec->slice_pages,
                                [HALVES] = 2,
                                [PEER_COLUMNS] = probe_peer_columns(spec)};
    const enum axis *const own = kinds[spec->kind].axes;
    uint32_t count = 0;

    for (; count < PROBE_MAX_AXES && own[count] != NONE; count++)
        axes[count] = lengths[own[count]];
    return count;
}

size_t probe_value_count(const struct probe_spec *spec, uint32_t sm_count)
{
    uint32_t axes[PROBE_MAX_AXES];
    size_t values = 1;

    for (uint32_t i = probe_shape(spec, sm_count, axes); i > 0; i--)
        values *= axes[i - 1];
    return values;
}

static enum status check_fields(const struct probe_spec *spec, struct err *err)
{
    const unsigned parts = probe_parts(spec->kind);
    enum status s = STATUS_OK;

    for (size_t i = 0; s == STATUS_OK && i < FIELDS; i++) {
        if (fields[i].part & parts)
            s = check_range(fields[i].name, field_value(spec, i), fields[i].low, fields[i].high,
                            err);
    }
    if (s == STATUS_OK && !(parts & SPEC_MEMORY))
        s = check_range("memory", spec->memory, MEMORY_DEVICE, MEMORY_DEVICE, err);
    if (s == STATUS_OK && parts & SPEC_PAGES)
        s = check_lines("stride_bytes", spec->stride_bytes, err);
    return s;
}

/* Checks the elements of the lists, whose lengths have been checked. */
static enum status check_lists(const struct probe_spec *spec, struct err *err)
{
    const unsigned parts = probe_parts(spec->kind);
    const uint64_t least = parts & (SPEC_ACCESS | SPEC_SET_READ) ? MIN_REGION_BYTES : 1;
    const uint64_t most = spec->kind == PROBE_MEANS ? INT64_MAX / spec->stride_bytes : UINT64_MAX;
    const uint32_t points = parts & SPEC_POINTS ? spec->point_count : 0;
    const uint32_t sms = parts & SPEC_ANY_SMS ? spec->sm_count : 0;
    enum status s = STATUS_OK;

    for (uint32_t i = 0; s == STATUS_OK && i < points; i++)
        s = check_range("points", spec->points[i], least, most, err);
    for (uint32_t i = 0; s == STATUS_OK && i < sms; i++)
        s = check_range("sms", spec->sms[i], 0, REACH_MAX_SMS - 1, err);
    for (uint32_t i = 1; s == STATUS_OK && parts & SPEC_ASCENDING && i < sms; i++)
        if (spec->sms[i] <= spec->sms[i - 1])
            s = fail(err, "sms must ascend");
    return s;
}

static enum status check_complete(const struct probe_spec *spec, struct err *err)
{
    enum status s = check_lines("base_bytes", spec->base_bytes, err);

    if (s == STATUS_OK && (unsigned)spec->kind >= PROBE_KIND_COUNT)
        s = err_set(err, STATUS_INVALID_ARGUMENT, "probe: unknown kind %d", (int)spec->kind);
    if (s == STATUS_OK)
        s = check_fields(spec, err);
    if (s == STATUS_OK && spec->node > 0 && !memory_kind_is_host(spec->memory))
        s = fail(err, "node is for memory of the host");
    if (s == STATUS_OK && spec->memory == MEMORY_HOST_GATHERED &&
        (spec->kind != PROBE_READ || spec->access != ACCESS_READ || spec->window_count != 1))
        s = fail(err, "the CPU gathers rows only for reads in one window");
    if (s == STATUS_OK)
        s = check_lists(spec, err);
    return s == STATUS_OK && kinds[spec->kind].check ? kinds[spec->kind].check(spec, err) : s;
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

/* Checks run_bytes. Runs are mapped one by one, so each run has whole granules. */
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
    if (probe_parts(spec->kind) & SPEC_IMPORTED)
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
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: peer %u does not exist; the node has %u peers", spec->peer,
                       limits->peer_count);
    if (spec->memory != MEMORY_DEVICE)
        return STATUS_OK; /* the source makes its range as long as needed */
    uint64_t need = probe_range_bytes(spec, limits->sm_count);
    if (spec->kind == PROBE_WORKING_SET_READ && need > limits->backing_bytes)
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "probe: a set of %llu bytes exceeds the memory of %llu bytes",
                       (unsigned long long)need, (unsigned long long)limits->backing_bytes);
    if (need > limits->range_bytes)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: %s touches %llu bytes, the GPU's range is %llu",
                       probe_kind_name(spec->kind), (unsigned long long)need,
                       (unsigned long long)limits->range_bytes);
    return STATUS_OK;
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

bool probe_same(const struct probe_spec *a, const struct probe_spec *b)
{
    bool same = a->kind == b->kind && same_lists(a, b);

    for (size_t i = 0; same && i < FIELDS; i++)
        same = field_value(a, i) == field_value(b, i);
    return same;
}

bool probe_same_memory(const struct probe_spec *a, const struct probe_spec *b)
{
    return a->memory == b->memory && a->node == b->node &&
           (a->memory != MEMORY_PEER || a->peer == b->peer);
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
    return spec->kind == PROBE_READ && spec->access == ACCESS_READ && !spec->output &&
           probe_access_bytes(spec) == (uint32_t)PROBE_LINE_BYTES;
}

/* Returns the pages that a spec touches, or the bytes behind base_bytes if its kind has no
 * pages. */
static extent touched(const struct probe_spec *spec, uint32_t sm_count)
{
    const unsigned parts = probe_parts(spec->kind);

    if (parts & SPEC_SLICE)
        return (extent)spec->slice_pages * (spec->kind == PROBE_ROUND ? sm_count : 1) +
               spec->flush_pages + spec->thrash_pages;
    if (parts & SPEC_THRASH)
        return (extent)spec->thrash_pages * 2;
    if (parts & SPEC_REGION)
        return spec->region_bytes;
    if (parts & SPEC_CACHE)
        return spec->path == PATH_CONSTANT ? 0
                                           : (extent)probe_cache_behind(spec) + spec->sweep_bytes +
                                                 spec->evict_bytes + PROBE_LINE_BYTES;
    if (parts & (SPEC_SHARED | SPEC_CLUSTER))
        return 0;
    return parts & SPEC_POINTS ? probe_largest_point(spec) : spec->samples;
}

uint64_t probe_range_bytes(const struct probe_spec *spec, uint32_t sm_count)
{
    const extent n = touched(spec, sm_count);

    if (n == 0)
        return 0;
    if (!(probe_parts(spec->kind) & SPEC_PAGES))
        return saturate(n + spec->base_bytes);
    /* n and the stride are both below 2^64, so only the addition of the line could overflow 128
     * bits. */
    const extent last = (n - 1) * spec->stride_bytes;
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
        const uint32_t of = probe_window_index(spec, sm_ids[i]);
        all += of != PROBE_SM_IDLE;
        before += of < w;
        within += of == w;
    }
    *first_byte = 0;
    *length_bytes = 0;
    if (all == 0)
        return;
    *first_byte = (uint64_t)((extent)region_bytes * before / all) / line * line;
    if (within > 0)
        *length_bytes =
            (uint64_t)((extent)region_bytes * (before + within) / all) / line * line - *first_byte;
}

uint32_t probe_window_index(const struct probe_spec *spec, uint16_t sm_id)
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

bool probe_has_reference(const struct probe_spec *spec)
{
    return (spec->kind == PROBE_CHASE && spec->memory == MEMORY_DEVICE && spec->warm_laps > 0) ||
           spec->kind == PROBE_ROUND || spec->kind == PROBE_PAIRS;
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
        .pcie_generation = UNKNOWN_U32(REASON_NOT_REPORTED),
        .peer_memory_bytes = UNKNOWN_U64(REASON_NOT_APPLICABLE),
    };
}

void probe_result_free(struct probe_result *take)
{
    free(take->values);
    memset(take, 0, sizeof *take);
}
