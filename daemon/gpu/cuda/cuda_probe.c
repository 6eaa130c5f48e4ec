/* cuda_probe.c: see cuda_probe.h.
 *
 * One scratch allocation holds all that host and device exchange:
 *
 *     0        control words: arrivals, "gave up", sink          zeroed before each launch
 *     4 KiB    SM id -> position                                 written once, after the census
 *     8 KiB    table of this launch: points, pivots or windows
 *     32 KiB   read: lines, started, ended of each SM
 *     64 KiB   values
 */
#include "gpu/cuda/cuda_probe.h"

#include "base/units.h"
#include "gpu/cuda/cuda_line.h"
#include "kernels/abi.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    AT_ARRIVED = 0,
    AT_GAVE_UP = 64,
    AT_SINK = 128,
    AT_POSITIONS = 4 << 10,
    AT_TABLE = 8 << 10,
    AT_LINES = 32 << 10,
    AT_STARTED = 36 << 10,
    AT_ENDED = 44 << 10,
    AT_VALUES = 64 << 10,
    WARP = 32,
    /* Reads before the count starts: enough to fill every TLB and to start all SMs. */
    READ_WARM_DIVISOR = 2
};

extern const unsigned char reach_fatbin_start[];
extern const unsigned char reach_fatbin_end[];

static const char *const kernel_names[CUDA_KERNELS] = {
    [KERNEL_CENSUS] = "reach_census",
    [KERNEL_CHASE] = "reach_chase",
    [KERNEL_ROUND] = "reach_round",
    [KERNEL_PAIRS] = "reach_pairs",
    [KERNEL_READ] = "reach_read",
    [KERNEL_READ_SECTORS] = "reach_read_sectors",
    [KERNEL_READ_BLOCKS] = "reach_read_blocks",
    [KERNEL_ATOMIC] = "reach_atomic",
    [KERNEL_WRITE] = "reach_write",
};

static struct reach_grid grid_of(const struct cuda_probe *p)
{
    return (struct reach_grid){
        .arrived = p->scratch + AT_ARRIVED,
        .gave_up = p->scratch + AT_GAVE_UP,
        .positions = p->scratch + AT_POSITIONS,
        .limit_ns = p->deadline_ns,
        .blocks = p->sm_count,
        .sm_slots = REACH_MAX_SMS,
    };
}

/* Waits for the stream by asking, because a call that waits could wait indefinitely. Probes take
 * milliseconds: the first two are spent asking at once, then it sleeps between questions. */
static enum status wait_stream(const struct cuda_probe *p, const char *name, struct err *err)
{
    const nsec_t start = clock_monotonic();
    for (;;) {
        const cu_result r = p->api->stream_query(p->stream);
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

/* Zeroes the control words, launches one block an SM, waits, and asks whether a wait gave up. */
static enum status launch(const struct cuda_probe *p, enum cuda_kernel kernel, unsigned threads,
                          void *args, struct err *err)
{
    const struct cuda_api *api = p->api;
    const char *name = kernel_names[kernel];
    void *parameters[] = {args};
    uint32_t gave_up = 0;
    enum status s;

    s = cuda_api_check(api, api->memset_d8(p->scratch, 0, AT_POSITIONS), "cuMemsetD8", err);
    if (s != STATUS_OK)
        return s;
    s = cuda_api_check(api,
                       api->launch_kernel(p->kernels[kernel], p->sm_count, 1, 1, threads, 1, 1,
                                          p->shared_bytes, p->stream, parameters, NULL),
                       name, err);
    if (s != STATUS_OK)
        return s;
    s = wait_stream(p, name, err);
    if (s != STATUS_OK)
        return s;
    s = cuda_api_check(api, api->memcpy_dtoh(&gave_up, p->scratch + AT_GAVE_UP, sizeof gave_up),
                       "cuMemcpyDtoH", err);
    if (s == STATUS_OK && gave_up)
        return err_set(err, STATUS_DEADLINE, "%s: the blocks did not meet within %llu ms", name,
                       (unsigned long long)(p->deadline_ns / NSEC_PER_MSEC));
    return s;
}

static enum status put_table(const struct cuda_probe *p, const void *table, size_t bytes,
                             struct err *err)
{
    return cuda_api_check(p->api, p->api->memcpy_htod(p->scratch + AT_TABLE, table, bytes),
                          "cuMemcpyHtoD", err);
}

/* Which SM ids are there: one block sits on each. Tells every SM its position. */
static enum status take_census(struct cuda_probe *p, struct err *err)
{
    struct reach_census_args args = {.grid = grid_of(p), .seen = p->scratch + AT_TABLE};
    uint32_t seen[REACH_MAX_SMS] = {0};
    uint32_t positions[REACH_MAX_SMS] = {0};
    uint32_t n = 0;
    enum status s;

    s = put_table(p, seen, sizeof seen, err);
    if (s == STATUS_OK)
        s = launch(p, KERNEL_CENSUS, WARP, &args, err);
    if (s == STATUS_OK)
        s = cuda_api_check(p->api, p->api->memcpy_dtoh(seen, p->scratch + AT_TABLE, sizeof seen),
                           "cuMemcpyDtoH", err);
    if (s != STATUS_OK)
        return s;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
        if (seen[id] == 0)
            continue;
        positions[id] = n;
        p->sm_ids[n++] = (uint16_t)id;
    }
    if (n != p->sm_count)
        return err_set(err, STATUS_GPU_BUSY,
                       "%u blocks of one SM each landed on %u SMs; is another process limiting us?",
                       p->sm_count, n);
    return cuda_api_check(
        p->api, p->api->memcpy_htod(p->scratch + AT_POSITIONS, positions, sizeof positions),
        "cuMemcpyHtoD", err);
}

/* More than half of an SM's shared memory for one block, so that no second one fits beside it. */
static enum status choose_shared(const struct cuda_api *api, cu_device device, unsigned *out,
                                 struct err *err)
{
    int per_sm = 0;
    int per_block = 0;
    enum status s;

    s = cuda_api_check(api,
                       api->device_get_attribute(
                           &per_sm, CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_MULTIPROCESSOR, device),
                       "cuDeviceGetAttribute", err);
    if (s == STATUS_OK)
        s = cuda_api_check(
            api,
            api->device_get_attribute(&per_block, CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                      device),
            "cuDeviceGetAttribute", err);
    if (s != STATUS_OK)
        return s;
    *out = (unsigned)per_sm / 2 + 1024;
    if (per_block < (int)*out || *out < REACH_CHASE_MAX_SAMPLES * sizeof(uint32_t))
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "a block may have %d of an SM's %d bytes of shared memory; more than half "
                       "is needed to keep one block on each SM",
                       per_block, per_sm);
    return STATUS_OK;
}

static enum status load_kernels(struct cuda_probe *p, struct err *err)
{
    const struct cuda_api *api = p->api;
    enum status s;

    if (&reach_fatbin_start[0] == &reach_fatbin_end[0])
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "this build has no device code (it was made without nvcc)");
    s = cuda_api_check(api, api->module_load_data(&p->module, reach_fatbin_start),
                       "cuModuleLoadData", err);
    if (s != STATUS_OK) {
        p->module = NULL;
        return s;
    }
    for (int k = 0; k < CUDA_KERNELS && s == STATUS_OK; k++) {
        s = cuda_api_check(api,
                           api->module_get_function(&p->kernels[k], p->module, kernel_names[k]),
                           kernel_names[k], err);
        if (s == STATUS_OK)
            s = cuda_api_check(api,
                               api->func_set_attribute(
                                   p->kernels[k], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   (int)p->shared_bytes),
                               "cuFuncSetAttribute", err);
    }
    return s;
}

enum status cuda_probe_open(const struct cuda_api *api, cu_device device, nsec_t deadline_ns,
                            struct cuda_probe *out, struct err *err)
{
    struct cuda_probe p = {.api = api, .deadline_ns = deadline_ns};
    int sms = 0;
    enum status s;

    s = cuda_api_check(
        api, api->device_get_attribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
        "cuDeviceGetAttribute", err);
    if (s == STATUS_OK && (sms < 1 || sms > REACH_MAX_SMS))
        s = err_set(err, STATUS_NOT_SUPPORTED, "%d SMs; at most %d are supported", sms,
                    REACH_MAX_SMS);
    if (s != STATUS_OK)
        goto out;
    p.sm_count = (uint32_t)sms;
    s = choose_shared(api, device, &p.shared_bytes, err);
    if (s == STATUS_OK)
        s = load_kernels(&p, err);
    if (s != STATUS_OK)
        goto out;
    s = cuda_api_check(api, api->stream_create(&p.stream, 0), "cuStreamCreate", err);
    if (s != STATUS_OK) {
        p.stream = NULL;
        goto out;
    }
    s = cuda_api_check(api, api->mem_alloc(&p.scratch, CUDA_SCRATCH_BYTES), "cuMemAlloc", err);
    if (s != STATUS_OK) {
        p.scratch = 0;
        goto out;
    }
    s = take_census(&p, err);
out:
    if (s != STATUS_OK)
        cuda_probe_close(&p);
    *out = p;
    return s;
}

void cuda_probe_close(struct cuda_probe *probe)
{
    if (probe->scratch)
        probe->api->mem_free(probe->scratch);
    if (probe->stream)
        probe->api->stream_destroy(probe->stream);
    if (probe->module)
        probe->api->module_unload(probe->module);
    *probe = (struct cuda_probe){.api = probe->api};
}

static enum status run_chase(struct cuda_probe *p, const struct probe_spec *spec, cu_deviceptr base,
                             struct err *err)
{
    struct reach_chase_args args = {
        .grid = grid_of(p),
        .base = base,
        .stride_bytes = spec->stride_bytes,
        .points = p->scratch + AT_TABLE,
        .values = p->scratch + AT_VALUES,
        .point_count = spec->point_count,
        .samples = spec->samples,
        .warm_laps = spec->warm_laps,
        .sm = spec->sms[0],
    };
    enum status s = put_table(p, spec->points, spec->point_count * sizeof spec->points[0], err);
    return s == STATUS_OK ? launch(p, KERNEL_CHASE, WARP, &args, err) : s;
}

/* Finds the line that suits this SM best, once an SM. */
static enum status choose_line(struct cuda_probe *p, struct cuda_arena *arena, uint16_t sm,
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
    s = run_chase(p, &spec, arena->line.base, err);
    if (s == STATUS_OK)
        s = cuda_api_check(p->api,
                           p->api->memcpy_dtoh(cycles, p->scratch + AT_VALUES, sizeof cycles),
                           "cuMemcpyDtoH", err);
    if (s != STATUS_OK)
        return s;
    arena->line_offset = (uint64_t)cuda_line_choose(cycles) * CUDA_LINE_STEP_BYTES;
    arena->line_known = true;
    arena->line_sm = sm;
    return STATUS_OK;
}

static enum status run_round(struct cuda_probe *p, const struct probe_spec *spec, cu_deviceptr base,
                             struct err *err)
{
    struct reach_round_args args = {
        .grid = grid_of(p),
        .base = base,
        .stride_bytes = spec->stride_bytes,
        .values = p->scratch + AT_VALUES,
        .pivot = spec->sms[0],
        .slice_pages = spec->slice_pages,
        .flush_pages = spec->flush_pages,
        .thrash_pages = spec->thrash_pages,
        .laps = spec->warm_laps,
        .repeats = spec->repeats,
    };
    return launch(p, KERNEL_ROUND, WARP, &args, err);
}

static enum status run_pairs(struct cuda_probe *p, const struct probe_spec *spec, cu_deviceptr base,
                             struct err *err)
{
    uint32_t pivots[REACH_MAX_SMS];
    struct reach_pairs_args args = {
        .grid = grid_of(p),
        .base = base,
        .stride_bytes = spec->stride_bytes,
        .pivots = p->scratch + AT_TABLE,
        .values = p->scratch + AT_VALUES,
        .pivot_count = spec->sm_count,
        .slice_pages = spec->slice_pages,
        .flush_pages = spec->flush_pages,
        .thrash_pages = spec->thrash_pages,
        .laps = spec->warm_laps,
    };
    enum status s;
    for (uint32_t i = 0; i < spec->sm_count; i++)
        pivots[i] = spec->sms[i];
    s = put_table(p, pivots, spec->sm_count * sizeof pivots[0], err);
    return s == STATUS_OK ? launch(p, KERNEL_PAIRS, WARP, &args, err) : s;
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

/* The window of each SM; Returns the number of SMs that read. */
static uint32_t fill_windows(const struct cuda_probe *p, const struct probe_spec *spec,
                             uint64_t region_bytes, struct reach_window *out)
{
    uint32_t readers = 0;

    for (uint32_t i = 0; i < p->sm_count; i++) {
        const uint32_t id = p->sm_ids[i];
        uint64_t from = 0;
        uint64_t length = 0;
        if (id < spec->window_sms && spec->window_of_sm[id] != PROBE_SM_IDLE)
            probe_window(spec, p->sm_ids, p->sm_count, region_bytes, spec->window_of_sm[id], &from,
                         &length);
        out[id] = (struct reach_window){
            .first_line = (spec->base_bytes + from) / PROBE_LINE_BYTES,
            .lines = length / PROBE_LINE_BYTES,
            .rank = readers,
        };
        readers += out[id].lines > 0;
    }
    return readers;
}

/* The kernel for the spec's kind of access; probe_check has let no other pass. */
static enum cuda_kernel read_kernel(const struct probe_spec *spec)
{
    if (spec->access == ACCESS_ATOMIC)
        return KERNEL_ATOMIC;
    if (spec->access == ACCESS_WRITE)
        return KERNEL_WRITE;
    if (probe_is_line_read(spec))
        return KERNEL_READ;
    return probe_access_bytes(spec) == (uint32_t)PROBE_SECTOR_BYTES ? KERNEL_READ_SECTORS
                                                                    : KERNEL_READ_BLOCKS;
}

/* Lines after which the memory behind the range begins anew; 0 where it does not, or where there
 * are too few of them for each of the warps to have 32 blocks of its own. */
static uint64_t period_lines(const struct cuda_arena *arena, uint32_t readers)
{
    const uint64_t lines =
        arena->kind == ARENA_ALIAS ? arena->bulk.handle_bytes / PROBE_LINE_BYTES : 0;
    return lines >= (uint64_t)readers * REACH_READ_THREADS * REACH_BLOCK_LINES ? lines : 0;
}

/* Reads one region once; row: elapsed ns, then the lines (or accesses) of each SM. */
static enum status read_once(struct cuda_probe *p, const struct cuda_arena *arena,
                             const struct probe_spec *spec, uint64_t region_bytes, uint32_t seed,
                             uint32_t *row, struct err *err)
{
    struct reach_window windows[REACH_MAX_SMS] = {{0}};
    const uint32_t readers = fill_windows(p, spec, region_bytes, windows);
    const uint64_t period = period_lines(arena, readers);
    uint64_t times[2][REACH_MAX_SMS];
    const nsec_t run_ns = (nsec_t)spec->duration_us * 1000;
    struct reach_read_args args = {
        .grid = grid_of(p),
        .base = arena->bulk.base,
        .windows = p->scratch + AT_TABLE,
        .lines = p->scratch + AT_LINES,
        .started = p->scratch + AT_STARTED,
        .ended = p->scratch + AT_ENDED,
        .sink = p->scratch + AT_SINK,
        .warm_ns = run_ns / READ_WARM_DIVISOR,
        .run_ns = run_ns,
        .period_lines = period,
        .seed = seed,
        .readers = readers,
        .random_share = random_share(region_bytes, period * PROBE_LINE_BYTES),
    };
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    enum status s;

    s = put_table(p, windows, sizeof windows, err);
    if (s == STATUS_OK)
        s = launch(p, read_kernel(spec), REACH_READ_THREADS, &args, err);
    if (s == STATUS_OK)
        s = cuda_api_check(
            p->api,
            p->api->memcpy_dtoh(row + 1, p->scratch + AT_LINES, p->sm_count * sizeof(uint32_t)),
            "cuMemcpyDtoH", err);
    for (int k = 0; k < 2 && s == STATUS_OK; k++)
        s = cuda_api_check(p->api,
                           p->api->memcpy_dtoh(times[k],
                                               p->scratch + (k == 0 ? AT_STARTED : AT_ENDED),
                                               p->sm_count * sizeof(uint64_t)),
                           "cuMemcpyDtoH", err);
    if (s != STATUS_OK)
        return s;
    for (uint32_t i = 0; i < p->sm_count; i++) {
        first = times[0][i] < first ? times[0][i] : first;
        last = times[1][i] > last ? times[1][i] : last;
    }
    row[0] = last > first ? (uint32_t)(last - first) : 0;
    return STATUS_OK;
}

static enum status run_read(struct cuda_probe *p, const struct cuda_arena *arena,
                            const struct probe_spec *spec, uint32_t *values, struct err *err)
{
    for (uint32_t k = 0; k < spec->point_count * spec->repeats; k++) {
        const uint64_t region_bytes = spec->points[k / spec->repeats];
        enum status s = read_once(p, arena, spec, region_bytes, spec->seed + k,
                                  values + (size_t)k * (1 + p->sm_count), err);
        if (s != STATUS_OK)
            return s;
    }
    return STATUS_OK;
}

/* Pages that a latency probe touches, all counted. */
static uint64_t pages_of(const struct probe_spec *spec, uint32_t sm_count)
{
    const uint64_t bytes = probe_range_bytes(spec, sm_count) - spec->base_bytes;
    return (bytes + spec->stride_bytes - 1) / spec->stride_bytes;
}

/* A kernel whose SM does not exist would leave its values unwritten. */
static enum status check_sm_ids(const struct cuda_probe *p, const struct probe_spec *spec,
                                struct err *err)
{
    for (uint32_t k = 0; spec->kind != PROBE_READ && k < spec->sm_count; k++) {
        uint32_t i = 0;
        while (i < p->sm_count && p->sm_ids[i] != spec->sms[k])
            i++;
        if (i == p->sm_count)
            return err_set(err, STATUS_INVALID_ARGUMENT, "this GPU has no SM with id %u",
                           spec->sms[k]);
    }
    return STATUS_OK;
}

enum status cuda_probe_run(struct cuda_probe *probe, struct cuda_arena *arena,
                           const struct probe_spec *spec, struct probe_result *out, struct err *err)
{
    const size_t count = probe_value_count(spec, probe->sm_count);
    cu_deviceptr base = arena->bulk.base + spec->base_bytes;
    uint32_t *values = NULL;
    enum status s;

    s = check_sm_ids(probe, spec, err);
    if (s != STATUS_OK)
        return s;
    if (count * sizeof *values > CUDA_SCRATCH_BYTES - AT_VALUES)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "the answer would have %zu values; ask in parts", count);
    values = calloc(count, sizeof *values);
    if (!values)
        return err_set(err, STATUS_NO_MEMORY, "no memory for %zu values", count);
    if (spec->kind == PROBE_CHASE)
        s = choose_line(probe, arena, spec->sms[0], err);
    if (s == STATUS_OK && spec->kind != PROBE_READ)
        s = cuda_arena_latency_base(arena, spec->base_bytes, spec->stride_bytes,
                                    pages_of(spec, probe->sm_count), &base, err);
    if (s != STATUS_OK)
        goto out;
    if (spec->kind == PROBE_READ)
        s = run_read(probe, arena, spec, values, err);
    else if (spec->kind == PROBE_CHASE)
        s = run_chase(probe, spec, base, err);
    else if (spec->kind == PROBE_ROUND)
        s = run_round(probe, spec, base, err);
    else
        s = run_pairs(probe, spec, base, err);
    if (s == STATUS_OK && spec->kind != PROBE_READ)
        s = cuda_api_check(
            probe->api,
            probe->api->memcpy_dtoh(values, probe->scratch + AT_VALUES, count * sizeof *values),
            "cuMemcpyDtoH", err);
out:
    if (s != STATUS_OK) {
        free(values);
        return s;
    }
    out->sm_count = probe->sm_count;
    memcpy(out->sm_ids, probe->sm_ids, sizeof out->sm_ids);
    out->values = values;
    out->value_count = count;
    return STATUS_OK;
}
