/* cuda_probe.c: see cuda_probe.h.
 *
 * One scratch allocation holds all that host and device exchange:
 *
 *     0        control words: arrivals, "gave up", sink, away    zeroed before each launch
 *     1 KiB    cache: the SMs on which a block sits               zeroed too
 *     4 KiB    SM id -> position                                 written once, after the census
 *     8 KiB    table of this launch: points, pivots or windows
 *     32 KiB   read: lines, started, ended of each SM
 *     64 KiB   values
 */
#include "gpu/cuda/cuda_probe.h"

#include "base/stats.h"
#include "kernels/abi.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    AT_ARRIVED = 0,
    AT_GAVE_UP = 64,
    AT_SINK = CUDA_AT_SINK,
    AT_AWAY = 192,
    AT_CLAIMED = 1 << 10,
    AT_POSITIONS = 4 << 10,
    AT_TABLE = CUDA_AT_TABLE,
    AT_LINES = CUDA_AT_LINES,
    AT_STARTED = CUDA_AT_STARTED,
    AT_ENDED = CUDA_AT_ENDED,
    AT_VALUES = CUDA_AT_VALUES,
    WARP = 32,
    /* Reads before the count starts: enough to fill every TLB and to start all SMs. */
    READ_WARM_DIVISOR = 2,
    LATE_DIVISOR = 4,
    CLUSTER_CODE = 90, /* architecture from which on device code can use clusters */
};

#define LINE_QUANTILE 0.9

extern const unsigned char reach_fatbin_start[];
extern const unsigned char reach_fatbin_end[];

static const char *const kernel_names[CUDA_KERNELS] = {
    [KERNEL_CENSUS] = "reach_census",
    [KERNEL_CHASE] = "reach_chase",
    [KERNEL_ROUND] = "reach_round",
    [KERNEL_PAIRS] = "reach_pairs",
    [KERNEL_SIDES] = "reach_sides",
    [KERNEL_CACHE] = "reach_cache",
    [KERNEL_READ] = "reach_read",
    [KERNEL_READ_FLIGHT] = "reach_read_flight",
    [KERNEL_READ_FAR] = "reach_read_far",
    [KERNEL_READ_SECTORS] = "reach_read_sectors",
    [KERNEL_READ_BLOCKS] = "reach_read_blocks",
    [KERNEL_ATOMIC] = "reach_atomic",
    [KERNEL_WRITE] = "reach_write",
    [KERNEL_SPREAD_SORT] = "reach_spread_sort",
    [KERNEL_SPREAD_LINES] = "reach_spread_lines",
    [KERNEL_SPREAD_BLOCKS] = "reach_spread_blocks",
    [KERNEL_SHARED] = "reach_shared",
    [KERNEL_PEER] = "reach_peer",
};

static struct reach_grid grid_of(const struct cuda_probe *p)
{
    return (struct reach_grid){
        .arrived = p->scratch + AT_ARRIVED,
        .gave_up = p->scratch + AT_GAVE_UP,
        .away = p->scratch + AT_AWAY,
        .positions = p->scratch + AT_POSITIONS,
        .limit_ns = p->deadline_ns,
        .blocks = p->sm_count,
        .sm_slots = REACH_MAX_SMS,
    };
}

/* Polls the stream, because a blocking call could block indefinitely. Probes take milliseconds: for
 * the first two it polls without a pause, then it sleeps between polls. */
static enum status wait_stream(const struct cuda_probe *p, const char *name, struct err *err)
{
    const nsec_t start = clock_monotonic();
    for (;;) {
        const cu_result r = p->api->cuStreamQuery(p->stream);
        const nsec_t waited = clock_monotonic() - start;
        if (r != CU_ERROR_NOT_READY)
            return cuda_api_check(p->api, r, name, err);
        if (waited > p->deadline_ns + NSEC_PER_SEC)
            return err_set(err, STATUS_DEADLINE, "%s did not end within %llu ms", name,
                           (unsigned long long)(waited / NSEC_PER_MSEC));
        if (waited < 2 * NSEC_PER_MSEC)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

/* One block per SM, or `blocks` of them in clusters of `cluster_sms` if that is not 0. */
struct shape {
    unsigned threads;
    unsigned blocks;
    unsigned cluster_sms;
    unsigned shared_bytes; /* of a block */
};

static struct cu_launch_config config_of(const struct cuda_probe *p, struct shape shape,
                                         struct cu_launch_attribute *attribute)
{
    *attribute = (struct cu_launch_attribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                              .cluster = {shape.cluster_sms, 1, 1}};
    return (struct cu_launch_config){.grid = {shape.blocks, 1, 1},
                                     .block = {shape.threads, 1, 1},
                                     .shared_bytes = shape.shared_bytes,
                                     .stream = p->stream,
                                     .attributes = attribute,
                                     .attribute_count = 1};
}

/* Zeroes the control words, launches, waits, and checks whether a wait gave up. */
static enum status launch_as(const struct cuda_probe *p, enum cuda_kernel kernel,
                             struct shape shape, void *args, struct err *err)
{
    const struct cuda_api *api = p->api;
    const char *name = kernel_names[kernel];
    void *parameters[] = {args};
    struct cu_launch_attribute attribute;
    const struct cu_launch_config config = config_of(p, shape, &attribute);
    uint32_t gave_up = 0;
    cu_result r;
    enum status s = CUDA_CALL(api, err, cuMemsetD8, p->scratch, 0, AT_POSITIONS);
    if (s != STATUS_OK)
        return s;
    if (shape.cluster_sms > 0)
        r = api->cuLaunchKernelEx(&config, p->kernels[kernel], parameters, NULL);
    else
        r = api->cuLaunchKernel(p->kernels[kernel], shape.blocks, 1, 1, shape.threads, 1, 1,
                                shape.shared_bytes, p->stream, parameters, NULL);
    s = cuda_api_check(api, r, name, err);
    if (s != STATUS_OK)
        return s;
    s = wait_stream(p, name, err);
    if (s != STATUS_OK)
        return s;
    s = CUDA_CALL(api, err, cuMemcpyDtoH, &gave_up, p->scratch + AT_GAVE_UP, sizeof gave_up);
    if (s == STATUS_OK && gave_up)
        return err_set(err, STATUS_DEADLINE, "%s: the blocks did not meet within %llu ms", name,
                       (unsigned long long)(p->deadline_ns / NSEC_PER_MSEC));
    return s;
}

/* One block per SM. */
static enum status launch(const struct cuda_probe *p, enum cuda_kernel kernel, unsigned threads,
                          unsigned shared_bytes, void *args, struct err *err)
{
    return launch_as(
        p, kernel,
        (struct shape){.threads = threads, .blocks = p->sm_count, .shared_bytes = shared_bytes},
        args, err);
}

static enum status put_table(const struct cuda_probe *p, const void *table, size_t bytes,
                             struct err *err)
{
    return CUDA_CALL(p->api, err, cuMemcpyHtoD, p->scratch + AT_TABLE, table, bytes);
}

/* Copies `bytes` from offset `at` of the scratch memory. */
static enum status read_back(const struct cuda_probe *p, uint32_t at, void *out, size_t bytes,
                             struct err *err)
{
    return CUDA_CALL(p->api, err, cuMemcpyDtoH, out, p->scratch + at, bytes);
}

/* Finds the SM ids: one block sits on each. Writes the position of every SM. */
static enum status run_census(struct cuda_probe *p, struct err *err)
{
    struct reach_census_args args = {.grid = grid_of(p), .seen = p->scratch + AT_TABLE};
    uint32_t seen[REACH_MAX_SMS] = {0};
    uint32_t positions[REACH_MAX_SMS] = {0};
    uint32_t n = 0;
    enum status s = put_table(p, seen, sizeof seen, err);
    if (s == STATUS_OK)
        s = launch(p, KERNEL_CENSUS, WARP, p->shared_bytes, &args, err);
    if (s == STATUS_OK)
        s = read_back(p, AT_TABLE, seen, sizeof seen, err);
    if (s != STATUS_OK)
        return s;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
        if (seen[id] == 0)
            continue;
        positions[id] = n;
        p->sm_ids[n++] = (uint16_t)id;
    }
    if (n != p->sm_count)
        return err_set(
            err, STATUS_GPU_BUSY,
            "%u blocks of one SM each ran on %u SMs; does another process limit the SMs?",
            p->sm_count, n);
    return CUDA_CALL(p->api, err, cuMemcpyHtoD, p->scratch + AT_POSITIONS, positions,
                     sizeof positions);
}

/* More than half of an SM's shared memory for one block, so that no second one fits. */
static enum status choose_shared(const struct cuda_api *api, cu_device device,
                                 struct cuda_probe *out, struct err *err)
{
    int per_sm = 0;
    int per_block = 0;
    enum status s = CUDA_CALL(api, err, cuDeviceGetAttribute, &per_sm,
                              CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceGetAttribute, &per_block,
                      CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    if (s != STATUS_OK)
        return s;
    out->sm_shared_bytes = (unsigned)per_sm;
    out->shared_block_bytes = (unsigned)per_block;
    out->shared_bytes = (unsigned)per_sm / 2 + 1024;
    if (per_block < (int)out->shared_bytes ||
        out->shared_bytes < REACH_CHASE_MAX_SAMPLES * sizeof(uint32_t))
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "a block may have %d of an SM's %d bytes of shared memory; more than half "
                       "is needed to keep one block on each SM",
                       per_block, per_sm);
    return STATUS_OK;
}

/* Of the shared memory of a CACHE's block: what the driver takes of each block, and the kernel's
 * own variables. */
enum { CACHE_TAKEN_BYTES = 1024 + 256 };

/* The most dynamic shared memory of such a block. */
static unsigned most_cache_shared(const struct cuda_probe *p)
{
    return p->shared_block_bytes - CACHE_TAKEN_BYTES;
}

static enum status load_kernels(struct cuda_probe *p, struct err *err)
{
    const struct cuda_api *api = p->api;
    enum status s;

    if (&reach_fatbin_start[0] == &reach_fatbin_end[0])
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "this build has no device code (it was made without nvcc)");
    s = CUDA_CALL(api, err, cuModuleLoadData, &p->module, reach_fatbin_start);
    if (s != STATUS_OK) {
        p->module = NULL;
        return s;
    }
    for (int k = 0; k < CUDA_KERNELS && s == STATUS_OK; k++) {
        s = cuda_api_check(api,
                           api->cuModuleGetFunction(&p->kernels[k], p->module, kernel_names[k]),
                           kernel_names[k], err);
        if (s == STATUS_OK)
            s = CUDA_CALL(api, err, cuFuncSetAttribute, p->kernels[k],
                          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                          (int)(k == KERNEL_CACHE ? most_cache_shared(p) : p->shared_bytes));
    }
    return s;
}

/* Does the GPU take clusters of so many blocks? A size that it does not is no error. */
static unsigned count_clusters(const struct cuda_probe *p, unsigned cluster_sms)
{
    const struct shape shape = {REACH_PEER_THREADS, cluster_sms, cluster_sms, p->shared_bytes};
    struct cu_launch_attribute attribute;
    const struct cu_launch_config config = config_of(p, shape, &attribute);
    int clusters = 0;

    if (p->api->cuOccupancyMaxActiveClusters(&clusters, p->kernels[KERNEL_PEER], &config) !=
        CU_SUCCESS)
        return 0;
    return clusters > 0 ? (unsigned)clusters : 0;
}

/* The largest cluster; 0 if the driver or the chip has none, or if the device code is for chips
 * that have none. */
static unsigned largest_cluster(const struct cuda_probe *p, cu_device device)
{
    const struct cuda_api *api = p->api;
    const cu_function f = p->kernels[KERNEL_PEER];
    unsigned sms = PROBE_MAX_CLUSTER;
    int has_clusters = 0;
    int code = 0;

    if (!api->cuLaunchKernelEx || !api->cuOccupancyMaxActiveClusters || !api->cuFuncGetAttribute ||
        api->cuDeviceGetAttribute(&has_clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device) !=
            CU_SUCCESS ||
        !has_clusters ||
        api->cuFuncGetAttribute(&code, CU_FUNC_ATTRIBUTE_PTX_VERSION, f) != CU_SUCCESS ||
        code < CLUSTER_CODE)
        return 0;
    /* More than eight blocks must be asked for; a driver that refuses has eight at most. */
    (void)api->cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    while (sms > 1 && count_clusters(p, sms) == 0)
        sms--;
    return sms > 1 ? sms : 0;
}

enum status cuda_probe_open(const struct cuda_api *api, cu_device device, nsec_t deadline_ns,
                            struct cuda_probe *out, struct err *err)
{
    struct cuda_probe p = {.api = api, .deadline_ns = deadline_ns};
    int sms = 0;
    enum status s = CUDA_CALL(api, err, cuDeviceGetAttribute, &sms,
                              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (s == STATUS_OK && (sms < 1 || sms > REACH_MAX_SMS))
        s = err_set(err, STATUS_NOT_SUPPORTED, "%d SMs; at most %d are supported", sms,
                    REACH_MAX_SMS);
    if (s != STATUS_OK)
        goto out;
    p.sm_count = (uint32_t)sms;
    s = choose_shared(api, device, &p, err);
    if (s == STATUS_OK)
        s = load_kernels(&p, err);
    if (s != STATUS_OK)
        goto out;
    s = CUDA_CALL(api, err, cuStreamCreate, &p.stream, 0);
    if (s != STATUS_OK) {
        p.stream = NULL;
        goto out;
    }
    s = CUDA_CALL(api, err, cuMemAlloc, &p.scratch, CUDA_SCRATCH_BYTES);
    if (s != STATUS_OK) {
        p.scratch = 0;
        goto out;
    }
    s = run_census(&p, err);
    if (s == STATUS_OK)
        p.cluster_sms = largest_cluster(&p, device);
out:
    if (s != STATUS_OK)
        cuda_probe_close(&p);
    *out = p;
    return s;
}

void cuda_probe_close(struct cuda_probe *probe)
{
    if (probe->scratch)
        probe->api->cuMemFree(probe->scratch);
    if (probe->stream)
        probe->api->cuStreamDestroy(probe->stream);
    if (probe->module)
        probe->api->cuModuleUnload(probe->module);
    *probe = (struct cuda_probe){.api = probe->api};
}

/* A latency probe whose page 0 is at `base`; its values are in the scratch memory afterwards. */
static enum status run_walk(struct cuda_probe *p, const struct probe_spec *spec, cu_deviceptr base,
                            struct err *err)
{
    static const enum cuda_kernel kernels[PROBE_KIND_COUNT] = {[PROBE_CHASE] = KERNEL_CHASE,
                                                               [PROBE_ROUND] = KERNEL_ROUND,
                                                               [PROBE_PAIRS] = KERNEL_PAIRS,
                                                               [PROBE_SIDES] = KERNEL_SIDES};
    const bool chase = spec->kind == PROBE_CHASE;
    const bool round = spec->kind == PROBE_ROUND;
    struct reach_walk_args args = {
        .grid = grid_of(p),
        .base = base,
        .stride_bytes = spec->stride_bytes,
        .points = p->scratch + AT_TABLE,
        .pivots = p->scratch + AT_TABLE,
        .values = p->scratch + AT_VALUES,
        .count = chase   ? spec->point_count
                 : round ? spec->repeats
                         : spec->sm_count,
        .samples = spec->samples,
        .laps = spec->warm_laps,
        .sm = spec->sms[0],
        .slice_pages = spec->slice_pages,
        .flush_pages = spec->flush_pages,
        .thrash_pages = spec->thrash_pages,
        .repeats = spec->repeats,
    };
    uint32_t pivots[REACH_MAX_SMS];
    enum status s = STATUS_OK;

    for (uint32_t i = 0; i < spec->sm_count; i++)
        pivots[i] = spec->sms[i];
    if (chase)
        s = put_table(p, spec->points, spec->point_count * sizeof spec->points[0], err);
    else if (!round)
        s = put_table(p, pivots, spec->sm_count * sizeof pivots[0], err);
    if (s != STATUS_OK)
        return s;
    return launch(p, kernels[spec->kind], WARP, p->shared_bytes, &args, err);
}

_Static_assert(AT_CLAIMED + REACH_MAX_SMS * sizeof(uint32_t) <= AT_POSITIONS, "the claims");
_Static_assert(AT_TABLE + PROBE_MAX_POINTS * sizeof(struct reach_cache_point) <= AT_LINES,
               "the points");
_Static_assert((int)REACH_PATH_L1 == (int)PATH_L1 &&
                   (int)REACH_PATH_READ_ONLY == (int)PATH_READ_ONLY &&
                   (int)REACH_PATH_CONSTANT == (int)PATH_CONSTANT &&
                   (int)REACH_PATH_NONE == (int)PATH_NONE &&
                   (int)REACH_SWEEP_ELEMENTS == (int)PROBE_SWEEP_ELEMENTS &&
                   (int)REACH_CONSTANT_BYTES == (int)PROBE_CONSTANT_BYTES,
               "paths");

/* Dynamic shared memory of a block of a CACHE: its cycles, or all that its SM is to set aside for
 * shared memory, less what the driver and the kernel itself take. A block that asks for little and
 * only prefers a division got a larger one on H200s: 64 KiB for 32. */
static unsigned cache_shared(const struct cuda_probe *p, const struct probe_spec *spec)
{
    const uint64_t cycles = spec->samples * sizeof(uint16_t);
    const uint64_t most = most_cache_shared(p);
    const uint64_t asked =
        spec->shared_bytes > CACHE_TAKEN_BYTES ? spec->shared_bytes - CACHE_TAKEN_BYTES : 0;
    const uint64_t bytes = asked < most ? asked : most;

    return (unsigned)(bytes > cycles ? bytes : cycles);
}

/* How an SM divides its array: `bytes` for shared memory. The driver takes percent of the most, and
 * of the divisions there are the least with so much: percent that are rounded up ask for the next
 * one. A launch that needs more than the hint gets it. */
static enum status set_carveout(const struct cuda_probe *p, uint64_t bytes, struct err *err)
{
    const uint64_t percent = bytes * 100 / p->sm_shared_bytes;

    return CUDA_CALL(p->api, err, cuFuncSetAttribute, p->kernels[KERNEL_CACHE],
                     CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                     percent < 100 ? (int)percent : 100);
}

/* Nothing keeps two blocks from one SM here, so an SM may have been left out. */
static enum status check_claims(const struct cuda_probe *p, const struct probe_spec *spec,
                                struct err *err)
{
    uint32_t claimed[REACH_MAX_SMS];
    enum status s = read_back(p, AT_CLAIMED, claimed, sizeof claimed, err);

    for (uint32_t i = 0; s == STATUS_OK && i < spec->sm_count; i++)
        if (!claimed[spec->sms[i]])
            s = err_set(err, STATUS_GPU_BUSY,
                        "no block of a launch of %u ran on SM %u; does another process use it?",
                        p->sm_count, spec->sms[i]);
    return s;
}

/* A CACHE whose element 0 is at `base`. */
static enum status run_cache(const struct cuda_probe *p, const struct probe_spec *spec,
                             cu_deviceptr base, struct err *err)
{
    enum { CACHE_ATTEMPTS = 4 };
    const unsigned shared_bytes = cache_shared(p, spec);
    const uint64_t behind = probe_cache_behind(spec);
    struct reach_cache_point points[PROBE_MAX_POINTS];
    struct reach_cache_args args = {
        .grid = grid_of(p),
        .claimed = p->scratch + AT_CLAIMED,
        .base = base,
        .stride_bytes = spec->stride_bytes,
        .points = p->scratch + AT_TABLE,
        .values = p->scratch + AT_VALUES,
        .sink = p->scratch + AT_SINK,
        .sweep_base = base + behind,
        .sweep_bytes = spec->sweep_bytes,
        .touch_bytes = spec->touch_bytes,
        .evict_from = behind + spec->sweep_bytes,
        .evict_bytes = spec->evict_bytes,
        .count = spec->point_count,
        .samples = spec->samples,
        .laps = spec->warm_laps,
        .path = (uint32_t)spec->path,
        .warm_path = (uint32_t)spec->warm_path,
        .sweep_footprint = spec->sweep_footprint,
        .rehearse = 1,
    };
    enum status s;

    for (uint32_t i = 0; i < spec->point_count; i++)
        points[i] = (struct reach_cache_point){
            .elements = spec->points[i],
            .step = spec->scattered ? probe_scatter_step(spec->points[i]) : 1,
            .sm = spec->sms[i % spec->sm_count]};
    s = put_table(p, points, spec->point_count * sizeof points[0], err);
    if (s == STATUS_OK)
        s = set_carveout(p, shared_bytes + CACHE_TAKEN_BYTES, err);
    for (int k = 0; k < CACHE_ATTEMPTS && s == STATUS_OK; k++) {
        s = launch(p, KERNEL_CACHE, REACH_CACHE_THREADS, shared_bytes, &args, err);
        if (s != STATUS_OK)
            return s;
        s = check_claims(p, spec, err);
        if (s != STATUS_GPU_BUSY)
            return s;
        s = k + 1 < CACHE_ATTEMPTS ? STATUS_OK : s;
    }
    return s;
}

uint32_t cuda_probe_choose_line(const uint32_t *cycles)
{
    double best_cycles = 0;
    uint32_t best = 0;

    for (uint32_t line = 0; line < CUDA_LINES; line++) {
        uint32_t own[CUDA_LINE_LAPS];
        for (uint32_t lap = 0; lap < CUDA_LINE_LAPS; lap++)
            own[lap] = cycles[lap * CUDA_LINES + line];
        const double high = stats_quantile_u32(own, CUDA_LINE_LAPS, LINE_QUANTILE);
        if (line == 0 || high < best_cycles) {
            best = line;
            best_cycles = high;
        }
    }
    return best;
}

/* Finds the best line for this SM, once per SM. */
static enum status find_line(struct cuda_probe *p, struct cuda_arena *arena, uint16_t sm,
                             struct err *err)
{
    const struct probe_spec spec = {.kind = PROBE_CHASE,
                                    .stride_bytes = CUDA_LINE_STEP_BYTES,
                                    .point_count = 1,
                                    .points = {CUDA_LINES},
                                    .samples = CUDA_LINES * CUDA_LINE_LAPS,
                                    .warm_laps = 1,
                                    .sm_count = 1,
                                    .sms = {sm}};
    uint32_t cycles[CUDA_LINES * CUDA_LINE_LAPS];
    enum status s;

    if (arena->kind != ARENA_ALIAS ||
        arena->line.handle_bytes < (uint64_t)CUDA_LINES * CUDA_LINE_STEP_BYTES ||
        (arena->line_known && arena->line_sm == sm))
        return STATUS_OK;
    s = run_walk(p, &spec, arena->line.base, err);
    if (s == STATUS_OK)
        s = read_back(p, AT_VALUES, cycles, sizeof cycles, err);
    if (s != STATUS_OK)
        return s;
    arena->line_offset = (uint64_t)cuda_probe_choose_line(cycles) * CUDA_LINE_STEP_BYTES;
    arena->line_known = true;
    arena->line_sm = sm;
    return STATUS_OK;
}

_Static_assert(AT_TABLE + REACH_MAX_SMS * sizeof(struct reach_window) <= AT_LINES, "the table");

/* Of a warp's lines over aliases, how many (of 2^32) to draw at random, so that as many of them hit
 * in L2 as would in `region_bytes` of memory of its own. Be h the share that hits among random
 * lines of one period B, of the size of L2 over B. Lines in order never meet one another again,
 * only those drawn at random meet both kinds: p of them random gives about p * h + (1 - p) * p * h.
 * A region of R bytes would give h * B / R. Both are equal at p = 1 - sqrt(1 - B / R). */
static uint32_t random_share(uint64_t region_bytes, uint64_t period_bytes)
{
    const double rest = 1 - (double)period_bytes / (double)region_bytes;
    return rest > 0 ? (uint32_t)((1 - sqrt(rest)) * UINT32_MAX) : UINT32_MAX;
}

/* Writes the window of each SM; returns the number of SMs that read. */
static uint32_t fill_windows(const struct cuda_probe *p, const struct probe_spec *spec,
                             uint64_t region_bytes, struct reach_window *out)
{
    uint32_t readers = 0;

    for (uint32_t i = 0; i < p->sm_count; i++) {
        const uint16_t id = p->sm_ids[i];
        const uint32_t w = probe_window_of(spec, id);
        uint64_t from = 0;
        uint64_t length = 0;
        if (w != PROBE_SM_IDLE)
            probe_window(spec, p->sm_ids, p->sm_count, region_bytes, w, &from, &length);
        out[id] = (struct reach_window){
            .first_line = (spec->base_bytes + from) / PROBE_LINE_BYTES,
            .lines = length / PROBE_LINE_BYTES,
            .rank = readers,
        };
        readers += out[id].lines > 0;
    }
    return readers;
}

/* Each SM gets a part of its window for itself. */
static void divide_windows(const struct cuda_probe *p, struct reach_window *windows)
{
    for (uint32_t i = 0; i < p->sm_count; i++) {
        const struct reach_window whole = windows[p->sm_ids[i]];
        uint32_t members = 0;
        if (whole.lines == 0)
            continue;
        for (uint32_t k = i; k < p->sm_count; k++)
            members += windows[p->sm_ids[k]].first_line == whole.first_line &&
                       windows[p->sm_ids[k]].lines == whole.lines;
        for (uint32_t k = i, place = 0; k < p->sm_count && members > 1; k++) {
            struct reach_window *const w = &windows[p->sm_ids[k]];
            if (w->first_line != whole.first_line || w->lines != whole.lines)
                continue;
            w->lines = whole.lines / members;
            w->first_line = whole.first_line + place++ * w->lines;
        }
    }
}

/* The kernel for the spec's kind of access; probe_check refuses all others. */
static enum cuda_kernel read_kernel(const struct probe_spec *spec)
{
    if (spec->access == ACCESS_ATOMIC)
        return KERNEL_ATOMIC;
    if (spec->access == ACCESS_WRITE)
        return KERNEL_WRITE;
    if (probe_is_line_read(spec))
        return spec->memory == MEMORY_DEVICE ? KERNEL_READ : KERNEL_READ_FAR;
    return probe_access_bytes(spec) == (uint32_t)PROBE_SECTOR_BYTES ? KERNEL_READ_SECTORS
                                                                    : KERNEL_READ_BLOCKS;
}

/* The range that READ touches. */
struct read_range {
    cu_deviceptr base;
    uint64_t period_bytes; /* after which the memory behind it begins anew; 0: it does not */
};

/* Lines after which the memory behind the range begins anew; 0 where it does not, or where there
 * are too few of them for each of the warps to have 32 blocks of its own. */
static uint64_t period_lines(const struct read_range *range, uint32_t readers)
{
    const uint64_t lines = range->period_bytes / PROBE_LINE_BYTES;
    return lines >= (uint64_t)readers * REACH_READ_THREADS * REACH_BLOCK_LINES ? lines : 0;
}

/* What one launch reads. */
struct reading {
    enum cuda_kernel kernel;
    uint64_t region_bytes;
    uint32_t seed;
    uint32_t warps;
    uint32_t in_flight;
};

/* Reads one region once; row: elapsed ns, then the lines (or accesses) of each SM. */
static enum status read_once(struct cuda_probe *p, const struct read_range *range,
                             const struct probe_spec *spec, const struct reading *r, uint32_t *row,
                             struct err *err)
{
    struct reach_window windows[REACH_MAX_SMS] = {{0}};
    const uint32_t readers = fill_windows(p, spec, r->region_bytes, windows);
    const uint64_t period = period_lines(range, readers);
    const nsec_t run_ns = (nsec_t)spec->duration_us * 1000;
    struct reach_read_args args = {
        .grid = grid_of(p),
        .base = range->base,
        .windows = p->scratch + AT_TABLE,
        .lines = p->scratch + AT_LINES,
        .started = p->scratch + AT_STARTED,
        .ended = p->scratch + AT_ENDED,
        .sink = p->scratch + AT_SINK,
        .warm_ns = run_ns / READ_WARM_DIVISOR,
        .run_ns = run_ns,
        .late_ns = spec->memory == MEMORY_DEVICE ? run_ns / LATE_DIVISOR : run_ns,
        .period_lines = period,
        .seed = r->seed,
        .readers = readers,
        .in_flight = r->in_flight,
        .warps = r->warps,
        .random_share = random_share(r->region_bytes, period * PROBE_LINE_BYTES),
    };
    enum status s;

    if (r->kernel == KERNEL_READ_FLIGHT)
        divide_windows(p, windows);
    s = put_table(p, windows, sizeof windows, err);
    if (s == STATUS_OK)
        s = launch(p, r->kernel, r->warps * WARP, p->shared_bytes, &args, err);
    return s == STATUS_OK ? cuda_probe_read_row(p, row, err) : s;
}

enum status cuda_probe_read_row(const struct cuda_probe *p, uint32_t *row, struct err *err)
{
    uint64_t copy[(AT_ENDED - AT_LINES) / sizeof(uint64_t) + REACH_MAX_SMS]; /* of all at once */
    const uint64_t *const started = copy + (AT_STARTED - AT_LINES) / sizeof(uint64_t);
    const uint64_t *const ended = copy + (AT_ENDED - AT_LINES) / sizeof(uint64_t);
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    enum status s =
        read_back(p, AT_LINES, copy, AT_ENDED - AT_LINES + p->sm_count * sizeof ended[0], err);

    if (s != STATUS_OK)
        return s;
    memcpy(row + 1, copy, p->sm_count * sizeof row[0]);
    for (uint32_t i = 0; i < p->sm_count; i++) {
        first = started[i] < first ? started[i] : first;
        last = ended[i] > last ? ended[i] : last;
    }
    row[0] = last > first ? (uint32_t)(last - first) : 0;
    return STATUS_OK;
}

static enum status run_read(struct cuda_probe *p, const struct read_range *range,
                            const struct probe_spec *spec, uint32_t *values, struct err *err)
{
    for (uint32_t k = 0; k < spec->point_count * spec->repeats; k++) {
        const struct reading r = {read_kernel(spec), spec->points[k / spec->repeats],
                                  spec->seed + k, REACH_READ_THREADS / WARP, 0};
        enum status s = read_once(p, range, spec, &r, values + (size_t)k * (1 + p->sm_count), err);
        if (s != STATUS_OK)
            return s;
    }
    return STATUS_OK;
}

static enum status run_flight(struct cuda_probe *p, const struct read_range *range,
                              const struct probe_spec *spec, uint32_t *values, struct err *err)
{
    enum status s = STATUS_OK;

    for (uint32_t k = 0; s == STATUS_OK && k < spec->point_count * spec->repeats; k++) {
        const uint64_t point = spec->points[k / spec->repeats];
        const struct reading r = {KERNEL_READ_FLIGHT, spec->region_bytes, spec->seed + k,
                                  probe_flight_warps(point), probe_flight_loads(point)};
        s = read_once(p, range, spec, &r, values + (size_t)k * (1 + p->sm_count), err);
    }
    return s;
}

/* A READ with run_bytes: what is behind its range does not begin anew. */
static enum status run_scattered(struct cuda_probe *p, struct cuda_arena *arena,
                                 const struct probe_spec *spec, uint32_t *values, struct err *err)
{
    enum status s = cuda_arena_open_runs(arena, spec, err);

    if (s == STATUS_OK)
        s = run_read(p, &(struct read_range){.base = arena->runs.base}, spec, values, err);
    return s;
}

/* Pages that a latency probe touches, all counted. */
static uint64_t pages_of(const struct probe_spec *spec, uint32_t sm_count)
{
    const uint64_t bytes = probe_range_bytes(spec, sm_count) - spec->base_bytes;
    return (bytes + spec->stride_bytes - 1) / spec->stride_bytes;
}

/* Copies the values of a latency probe, and how many stretches of it were interrupted. */
static enum status run_latency(struct cuda_probe *p, struct cuda_arena *arena,
                               const struct cuda_memory *memory, const struct probe_spec *spec,
                               uint32_t *values, size_t count, uint32_t *out_interruptions,
                               struct err *err)
{
    uint32_t away[REACH_AWAY_WORDS] = {0};
    const bool elsewhere = spec->memory != MEMORY_DEVICE;
    cu_deviceptr base = memory->range.base + spec->base_bytes;
    enum status s = STATUS_OK;

    if (spec->kind == PROBE_CHASE && !elsewhere)
        s = find_line(p, arena, spec->sms[0], err);
    if (spec->kind == PROBE_SIDES || spec->kind == PROBE_CACHE)
        base = arena->bulk.base + spec->base_bytes; /* many lines are wanted, not one */
    else if (s == STATUS_OK && !elsewhere)
        s = cuda_arena_latency_base(arena, spec->base_bytes, spec->stride_bytes,
                                    pages_of(spec, p->sm_count), &base, err);
    if (s == STATUS_OK)
        s = spec->kind == PROBE_CACHE ? run_cache(p, spec, base, err)
                                      : run_walk(p, spec, base, err);
    if (s == STATUS_OK)
        s = read_back(p, AT_AWAY, away, sizeof away, err);
    *out_interruptions = away[REACH_AWAY_INTERRUPTED] + away[REACH_AWAY_GIVEN_UP];
    return s == STATUS_OK ? read_back(p, AT_VALUES, values, count * sizeof *values, err) : s;
}

void cuda_probe_grid(const struct cuda_probe *probe, struct reach_grid *out)
{
    *out = grid_of(probe);
}

enum status cuda_probe_put_table(const struct cuda_probe *probe, const void *table, size_t bytes,
                                 struct err *err)
{
    return put_table(probe, table, bytes, err);
}

enum status cuda_probe_launch(const struct cuda_probe *probe, enum cuda_kernel kernel,
                              unsigned threads, void *args, struct err *err)
{
    return launch(probe, kernel, threads, probe->shared_bytes, args, err);
}

static enum status run_shared(struct cuda_probe *p, const struct probe_spec *spec, uint32_t *values,
                              size_t count, struct err *err)
{
    struct reach_shared_args args = {
        .grid = grid_of(p),
        .sms = p->scratch + AT_LINES,
        .points = p->scratch + AT_TABLE,
        .values = p->scratch + AT_VALUES,
        .sm_count = spec->sm_count,
        .count = spec->point_count,
        .samples = spec->samples,
        .laps = spec->warm_laps,
        .repeats = spec->repeats,
        .width = spec->transaction_bytes,
        .warps = spec->warps,
        .in_flight = spec->in_flight,
    };
    uint32_t sms[REACH_MAX_SMS];
    enum status s;

    for (uint32_t i = 0; i < spec->sm_count; i++)
        sms[i] = spec->sms[i];
    s = put_table(p, spec->points, spec->point_count * sizeof spec->points[0], err);
    if (s == STATUS_OK)
        s = CUDA_CALL(p->api, err, cuMemcpyHtoD, args.sms, sms, spec->sm_count * sizeof sms[0]);
    if (s == STATUS_OK)
        s = launch(p, KERNEL_SHARED, spec->warps * WARP, p->shared_bytes, &args, err);
    return s == STATUS_OK ? read_back(p, AT_VALUES, values, count * sizeof *values, err) : s;
}

/* One launch of as many clusters as fit. */
static enum status run_clusters(struct cuda_probe *p, const struct probe_spec *spec,
                                uint32_t clusters, uint32_t *rows, struct err *err)
{
    const uint32_t columns = probe_peer_columns(spec);
    const size_t bytes = (size_t)(1 + p->sm_count) * columns * sizeof *rows;
    struct reach_peer_args args = {.grid = grid_of(p),
                                   .values = p->scratch + AT_VALUES,
                                   .columns = columns,
                                   .samples = spec->samples,
                                   .ring_bytes = PROBE_RING_BYTES};
    enum status s = CUDA_CALL(p->api, err, cuMemsetD8, args.values, 0, bytes);

    if (s == STATUS_OK)
        s = launch_as(p, KERNEL_PEER,
                      (struct shape){REACH_PEER_THREADS, clusters * spec->cluster_sms,
                                     spec->cluster_sms, p->shared_bytes},
                      &args, err);
    if (s == STATUS_OK)
        s = read_back(p, AT_VALUES, rows, bytes, err);
    rows[0] = rows[1] = clusters;
    return s;
}

/* A size of which no cluster fits has rows of 0. */
static enum status run_peer(struct cuda_probe *p, const struct probe_spec *spec, uint32_t *values,
                            struct err *err)
{
    const uint32_t clusters = count_clusters(p, spec->cluster_sms);
    const size_t row_count = (size_t)(1 + p->sm_count) * probe_peer_columns(spec);
    enum status s = STATUS_OK;

    for (uint32_t r = 0; s == STATUS_OK && clusters > 0 && r < spec->repeats; r++)
        s = run_clusters(p, spec, clusters, values + r * row_count, err);
    return s;
}

void cuda_probe_name_sms(const struct cuda_probe *probe, struct probe_result *out)
{
    out->sm_count = probe->sm_count;
    memcpy(out->sm_ids, probe->sm_ids, sizeof out->sm_ids);
}

enum status cuda_probe_values(const struct cuda_probe *probe, const struct probe_spec *spec,
                              uint32_t **out, struct err *err)
{
    const size_t count = probe_value_count(spec, probe->sm_count);

    /* A kernel whose SM does not exist would leave its values unwritten. */
    for (uint32_t k = 0; spec->kind != PROBE_READ && k < spec->sm_count; k++)
        if (probe_sm_position(probe->sm_ids, probe->sm_count, spec->sms[k]) == probe->sm_count)
            return err_set(err, STATUS_INVALID_ARGUMENT, "this GPU has no SM with id %u",
                           spec->sms[k]);
    if (count * sizeof **out > CUDA_SCRATCH_BYTES - AT_VALUES)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "the answer would have %zu values; split the probe", count);
    *out = calloc(count, sizeof **out);
    return *out ? STATUS_OK : err_set(err, STATUS_NO_MEMORY, "no memory for %zu values", count);
}

enum status cuda_probe_run(struct cuda_probe *probe, struct cuda_arena *arena,
                           const struct cuda_memory *memory, const struct probe_spec *spec,
                           struct probe_result *out, struct err *err)
{
    const size_t count = probe_value_count(spec, probe->sm_count);
    const struct read_range range =
        spec->memory == MEMORY_DEVICE
            ? (struct read_range){arena->bulk.base, arena->bulk.handle_bytes}
            : (struct read_range){memory->range.base, memory->range.period_bytes};
    const bool is_read = spec->kind == PROBE_READ || spec->kind == PROBE_FLIGHT;
    const bool watches =
        spec->kind == PROBE_CHASE || spec->kind == PROBE_ROUND || spec->kind == PROBE_PAIRS;
    uint32_t interruptions = 0;
    uint32_t *values = NULL;
    enum status s = cuda_probe_values(probe, spec, &values, err);

    if (s != STATUS_OK)
        return s;
    if (spec->kind == PROBE_SHARED)
        s = run_shared(probe, spec, values, count, err);
    else if (spec->kind == PROBE_PEER)
        s = run_peer(probe, spec, values, err);
    else if (spec->kind == PROBE_FLIGHT)
        s = run_flight(probe, &range, spec, values, err);
    else if (!is_read)
        s = run_latency(probe, arena, memory, spec, values, count, &interruptions, err);
    else if (spec->run_bytes > 0)
        s = run_scattered(probe, arena, spec, values, err);
    else
        s = run_read(probe, &range, spec, values, err);
    if (s != STATUS_OK) {
        free(values);
        return s;
    }
    cuda_probe_name_sms(probe, out);
    if (watches)
        out->conditions.interruptions = KNOWN_U32(interruptions);
    out->values = values;
    out->value_count = count;
    return STATUS_OK;
}
