/* diagnose_read.c: timed random reads with the kernels of the probes (kernels/abi.h), in a stream
 * that belongs to the diagnosis. There is one block per SM, and all blocks share one window. No SM
 * ids are looked up: the table of positions is the identity, so each SM counts at the place of its
 * id.
 */
#include "clients/cuda/diagnose/diagnose_parts.h"

#include <stddef.h>
#include <time.h>

enum {
    AT_ARRIVED = 0, /* offsets in words of `control` */
    AT_GAVE_UP = 16,
    AT_SINK = 32,
    ATTRIBUTE_SMS = 16,
    ATTRIBUTE_L2_BYTES = 38,
    ATTRIBUTE_SHARED_PER_SM = 81,
    ATTRIBUTE_SHARED_PER_BLOCK = 97,
    FUNCTION_SHARED_BYTES = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    WARM_NS = 1000000,
    RUN_NS = 2000000,
    MEET_NS = 20000000 /* longest time that a block waits for the others */
};

extern const unsigned char reach_fatbin_start[];
extern const unsigned char reach_fatbin_end[];

static enum reach_alloc_status read_attributes(struct diagnose *d, struct reach_alloc_error *error)
{
    static const int attributes[] = {ATTRIBUTE_SMS, ATTRIBUTE_L2_BYTES, ATTRIBUTE_SHARED_PER_SM,
                                     ATTRIBUTE_SHARED_PER_BLOCK};
    int values[4] = {0};
    enum reach_alloc_status s = REACH_ALLOC_OK;

    for (int i = 0; i < 4 && s == REACH_ALLOC_OK; i++)
        s = DRV(d, error, cuDeviceGetAttribute, &values[i], attributes[i], d->device);
    if (s != REACH_ALLOC_OK)
        return s;
    d->sm_count = (uint32_t)values[0];
    d->l2_bytes = (uint64_t)values[1];
    /* More than half of an SM's shared memory, so that no second block fits. */
    d->shared_bytes = (unsigned)values[2] / 2 + 1024;
    if (d->sm_count > DIAGNOSE_SM_SLOTS || (unsigned)values[3] < d->shared_bytes)
        d->unread = "this device cannot keep one block of a kernel on each SM";
    return REACH_ALLOC_OK;
}

static enum reach_alloc_status load_kernels(struct diagnose *d, struct reach_alloc_error *error)
{
    static const char *const names[DIAGNOSE_KERNELS] = {
        [DIAGNOSE_READ] = "reach_read", [DIAGNOSE_READ_FAR] = "reach_read_far"};
    enum reach_alloc_status s = DRV(d, error, cuModuleLoadData, &d->module, reach_fatbin_start);

    if (s != REACH_ALLOC_OK)
        d->module = NULL;
    for (int k = 0; k < DIAGNOSE_KERNELS && s == REACH_ALLOC_OK; k++) {
        s = DRV(d, error, cuModuleGetFunction, &d->kernels[k], d->module, names[k]);
        if (s == REACH_ALLOC_OK)
            s = DRV(d, error, cuFuncSetAttribute, d->kernels[k], FUNCTION_SHARED_BYTES,
                    (int)d->shared_bytes);
    }
    return s;
}

enum reach_alloc_status read_open(struct diagnose *d, struct reach_alloc_error *error)
{
    enum reach_alloc_status s;

    if (&reach_fatbin_start[0] == &reach_fatbin_end[0]) {
        d->unread = "this build of libreach-cuda has no device code (it was made without nvcc)";
        return REACH_ALLOC_OK;
    }
    s = read_attributes(d, error);
    if (s != REACH_ALLOC_OK || d->unread)
        return s;
    s = load_kernels(d, error);
    if (s == REACH_ALLOC_OK) {
        s = DRV(d, error, cuStreamCreate, &d->stream, DRV_STREAM_NON_BLOCKING);
        d->stream = s == REACH_ALLOC_OK ? d->stream : NULL;
    }
    if (s == REACH_ALLOC_OK) {
        s = DRV(d, error, cuMemAlloc, &d->scratch, sizeof d->exchange);
        d->scratch = s == REACH_ALLOC_OK ? d->scratch : 0;
    }
    for (uint32_t i = 0; i < DIAGNOSE_SM_SLOTS; i++)
        d->exchange.positions[i] = i;
    return s;
}

void read_close(struct diagnose *d)
{
    if (d->scratch)
        (void)d->driver.cuMemFree(d->scratch);
    if (d->stream)
        (void)d->driver.cuStreamDestroy(d->stream);
    if (d->module)
        (void)d->driver.cuModuleUnload(d->module);
}

static struct reach_read_args arguments(const struct diagnose *d, uint32_t gap_lines)
{
    return (struct reach_read_args){
        .grid = {.arrived = d->scratch + AT_ARRIVED * sizeof(uint32_t),
                 .gave_up = d->scratch + AT_GAVE_UP * sizeof(uint32_t),
                 .positions = d->scratch + offsetof(struct diagnose_exchange, positions),
                 .limit_ns = MEET_NS,
                 .blocks = d->sm_count,
                 .sm_slots = DIAGNOSE_SM_SLOTS},
        .base = d->address,
        .windows = d->scratch + offsetof(struct diagnose_exchange, windows),
        .lines = d->scratch + offsetof(struct diagnose_exchange, lines),
        .started = d->scratch + offsetof(struct diagnose_exchange, started),
        .ended = d->scratch + offsetof(struct diagnose_exchange, ended),
        .sink = d->scratch + AT_SINK * sizeof(uint32_t),
        .warm_ns = WARM_NS,
        .run_ns = RUN_NS,
        .late_ns = RUN_NS,
        .seed = d->launches,
        .readers = d->sm_count,
        .gap_lines = gap_lines,
        .row_bytes = DIAGNOSE_LINE,
    };
}

uint64_t read_elapsed_ns(const struct diagnose *d)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - d->start_ns;
}

/* Returns the elapsed time per access, or 0 if no access was made. */
static double time_per_access(const struct diagnose_exchange *x)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    uint64_t lines = 0;

    for (uint32_t i = 0; i < DIAGNOSE_SM_SLOTS; i++) {
        if (x->ended[i] == 0)
            continue;
        lines += x->lines[i];
        first = x->started[i] < first ? x->started[i] : first;
        last = x->ended[i] > last ? x->ended[i] : last;
    }
    return lines > 0 && last > first ? (double)(last - first) / (double)lines : 0;
}

enum reach_alloc_status read_ns(struct diagnose *d, enum diagnose_kernel kernel, uint64_t bytes,
                                uint32_t gap_lines, double *ns, struct reach_alloc_error *error)
{
    struct diagnose_exchange *const x = &d->exchange;
    struct reach_read_args args = arguments(d, gap_lines);
    void *parameters[] = {&args};
    enum reach_alloc_status s;

    *ns = 0;
    d->launches++;
    for (uint32_t i = 0; i < DIAGNOSE_SM_SLOTS; i++) {
        x->windows[i] = (struct reach_window){.lines = bytes / DIAGNOSE_LINE, .rank = i};
        x->ended[i] = 0;
    }
    for (uint32_t i = 0; i < sizeof x->control / sizeof *x->control; i++)
        x->control[i] = 0;
    s = DRV(d, error, cuMemcpyHtoDAsync, d->scratch, x, sizeof *x, d->stream);
    if (s == REACH_ALLOC_OK)
        s = DRV(d, error, cuLaunchKernel, d->kernels[kernel], d->sm_count, 1, 1, REACH_READ_THREADS,
                1, 1, d->shared_bytes, d->stream, parameters, NULL);
    if (s == REACH_ALLOC_OK)
        s = DRV(d, error, cuMemcpyDtoHAsync, x, d->scratch, sizeof *x, d->stream);
    if (s == REACH_ALLOC_OK)
        s = DRV(d, error, cuStreamSynchronize, d->stream);
    if (s == REACH_ALLOC_OK && !x->control[AT_GAVE_UP])
        *ns = time_per_access(x);
    if (s == REACH_ALLOC_OK && *ns == 0)
        d->unread = "other kernels occupy some of the SMs; call again when the GPU is idle";
    return s;
}
