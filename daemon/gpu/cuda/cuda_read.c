/* cuda_read.c: see cuda_read.h. */
#include "gpu/cuda/cuda_read.h"

#include "kernels/abi.h"

#include <math.h>
#include <string.h>

enum {
    /* The reads before the count take the duration of the run divided by this number. They fill
     * every TLB and start all SMs. */
    READ_WARM_DIVISOR = 2,
    LATE_DIVISOR = 4,
    MOST_OUTPUT_BYTES = 1 << 30
};

_Static_assert(CUDA_AT_TABLE + REACH_MAX_SMS * sizeof(struct reach_window) <= CUDA_AT_LINES,
               "the table");

/* Returns the share (of 2^32) of a warp's lines over aliases that are drawn at random. With this
 * share, the hit rate in L2 is equal to the hit rate of `region_bytes` of separate memory. Let h be
 * the hit rate of random lines of one period B: the size of L2 over B. Lines in order never hit
 * each other; random lines hit lines of both kinds. If the share p is random, the hit rate is about
 * p * h + (1 - p) * p * h. A region of R bytes would give h * B / R. Both hit rates are equal at p
 * = 1 - sqrt(1 - B / R). */
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
        const uint32_t w = probe_window_index(spec, id);
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

/* Divides each window among its SMs, so that each SM has its own part. */
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

/* Returns the kernel for the spec's kind of access; probe_check refuses all other kinds. */
static enum cuda_kernel read_kernel(const struct probe_spec *spec)
{
    static const enum cuda_kernel far[ACCESS_COUNT] = {[ACCESS_READ] = KERNEL_READ_FAR,
                                                       [ACCESS_ATOMIC] = KERNEL_ATOMIC_FAR,
                                                       [ACCESS_WRITE] = KERNEL_WRITE_FAR};
    const bool sectors = probe_access_bytes(spec) == (uint32_t)PROBE_SECTOR_BYTES;

    if (spec->output)
        return KERNEL_COPY_FAR;
    if (spec->memory != MEMORY_DEVICE && !sectors)
        return far[spec->access];
    if (spec->access == ACCESS_ATOMIC)
        return KERNEL_ATOMIC;
    if (spec->access == ACCESS_WRITE)
        return KERNEL_WRITE;
    if (probe_is_line_read(spec))
        return KERNEL_READ;
    return sectors ? KERNEL_READ_SECTORS : KERNEL_READ_BLOCKS;
}

/* Returns the number of lines after which the memory behind the range repeats. Returns 0 if it does
 * not repeat, or if a warp would get fewer than 32 blocks of lines. */
static uint64_t period_lines(const struct cuda_read_range *range, uint32_t readers)
{
    const uint64_t lines = range->period_bytes / PROBE_LINE_BYTES;
    return lines >= (uint64_t)readers * REACH_READ_THREADS * REACH_BLOCK_LINES ? lines : 0;
}

/* Returns the largest power of two that the output holds, at most MOST_OUTPUT_BYTES. */
static uint32_t output_bytes(const struct cuda_read_range *range)
{
    uint32_t bytes = range->output_bytes > 0;

    while (bytes > 0 && bytes < MOST_OUTPUT_BYTES && bytes <= range->output_bytes / 2)
        bytes *= 2;
    return bytes;
}

/* The arguments of one launch. */
struct reading {
    enum cuda_kernel kernel;
    uint64_t region_bytes;
    uint32_t seed;
    uint32_t warps;
    uint32_t in_flight;
};

/* Reads one region once. The row has the elapsed ns, then the lines (or accesses) of each SM. */
static enum status read_once(const struct cuda_probe *p, const struct cuda_read_range *range,
                             const struct probe_spec *spec, const struct reading *r, uint32_t *row,
                             struct err *err)
{
    struct reach_window windows[REACH_MAX_SMS] = {{0}};
    const uint32_t readers = fill_windows(p, spec, r->region_bytes, windows);
    const uint64_t period = period_lines(range, readers);
    const nsec_t run_ns = (nsec_t)spec->duration_us * 1000;
    struct reach_read_args args = {
        .grid = cuda_launch_grid(p),
        .base = range->base,
        .windows = p->scratch + CUDA_AT_TABLE,
        .lines = p->scratch + CUDA_AT_LINES,
        .started = p->scratch + CUDA_AT_STARTED,
        .ended = p->scratch + CUDA_AT_ENDED,
        .sink = p->scratch + CUDA_AT_SINK,
        .warm_ns = run_ns / READ_WARM_DIVISOR,
        .run_ns = run_ns,
        .late_ns = spec->memory == MEMORY_DEVICE ? run_ns / LATE_DIVISOR : run_ns,
        .period_lines = period,
        .seed = r->seed,
        .readers = readers,
        .in_flight = r->in_flight,
        .warps = r->warps,
        .row_bytes = probe_access_bytes(spec),
        .output = range->output,
        .output_bytes = output_bytes(range),
        .random_share = random_share(r->region_bytes, period * PROBE_LINE_BYTES),
    };
    enum status s;

    if (r->kernel == KERNEL_READ_CONCURRENT)
        divide_windows(p, windows);
    s = cuda_launch_put(p, windows, sizeof windows, err);
    if (s == STATUS_OK)
        s = cuda_launch(p, r->kernel, r->warps * CUDA_WARP, &args, err);
    return s == STATUS_OK ? cuda_read_row(p, row, err) : s;
}

enum status cuda_read_row(const struct cuda_probe *p, uint32_t *row, struct err *err)
{
    uint64_t copy[(CUDA_AT_ENDED - CUDA_AT_LINES) / sizeof(uint64_t) +
                  REACH_MAX_SMS]; /* lines, starts and ends of all SMs */
    const uint64_t *const started = copy + (CUDA_AT_STARTED - CUDA_AT_LINES) / sizeof(uint64_t);
    const uint64_t *const ended = copy + (CUDA_AT_ENDED - CUDA_AT_LINES) / sizeof(uint64_t);
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    enum status s = cuda_launch_read(
        p, CUDA_AT_LINES, copy, CUDA_AT_ENDED - CUDA_AT_LINES + p->sm_count * sizeof ended[0], err);

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

enum status cuda_read_run(const struct cuda_probe *p, const struct cuda_read_range *range,
                          const struct probe_spec *spec, uint32_t *values, struct err *err)
{
    const bool concurrent = spec->kind == PROBE_CONCURRENCY;
    enum status s = STATUS_OK;

    for (uint32_t k = 0; s == STATUS_OK && k < spec->point_count * spec->repeats; k++) {
        const uint64_t point = spec->points[k / spec->repeats];
        struct reading r = {read_kernel(spec), point, spec->seed + k,
                            REACH_READ_THREADS / CUDA_WARP, 0};
        if (concurrent)
            r = (struct reading){KERNEL_READ_CONCURRENT, spec->region_bytes, spec->seed + k,
                                 probe_concurrency_warps(point), probe_concurrency_loads(point)};
        s = read_once(p, range, spec, &r, values + (size_t)k * (1 + p->sm_count), err);
    }
    return s;
}

enum status cuda_read_scattered(const struct cuda_probe *p, struct cuda_arena *arena,
                                const struct probe_spec *spec, uint32_t *values, struct err *err)
{
    enum status s = cuda_arena_open_runs(arena, spec, err);

    if (s == STATUS_OK)
        s = cuda_read_run(p, &(struct cuda_read_range){.base = arena->runs.base}, spec, values,
                          err);
    return s;
}
