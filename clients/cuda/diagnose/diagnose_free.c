/* diagnose_free.c: takes the free device memory and diagnoses it. See reach_diagnose.h. */
#include "clients/cuda/diagnose/diagnose_parts.h"

enum {
    MARGIN_DIVISOR = 128, /* share that is left for the call's own needs and other processes */
    STEP_DIVISOR = 64,    /* step by which the size is reduced if the driver refuses */
    TRIES = 8
};
#define GRANULE_BYTES ((uint64_t)2 << 20)

/* The time for allocating the memory does not count. */
static enum reach_alloc_status diagnose_at(struct diagnose *d, uint64_t address, uint64_t bytes,
                                           struct reach_alloc_error *error)
{
    d->start_ns += read_elapsed_ns(d);
    return diagnose_run(d, address, bytes, error);
}

static enum reach_alloc_status take_plain(struct diagnose *d, uint64_t bytes, bool *taken,
                                          struct reach_alloc_error *error)
{
    uint64_t address = 0;
    enum reach_alloc_status s = DRV(d, error, cuMemAlloc, &address, bytes);

    *taken = s == REACH_ALLOC_OK;
    if (!*taken)
        return s;
    s = diagnose_at(d, address, bytes, error);
    (void)d->driver.cuMemFree(address);
    return s;
}

static enum reach_alloc_status take_frames(struct diagnose *d, uint64_t bytes, bool *taken,
                                           struct reach_alloc_error *error)
{
    const struct reach_pool_options options = {.size = sizeof options,
                                               .device = d->options.device,
                                               .driver = d->options.driver,
                                               .frame_bytes = d->options.frame_bytes};
    struct reach_pool *pool = NULL;
    void *memory = NULL;
    enum reach_alloc_status s = reach_pool_open(&options, &pool, error);

    if (s == REACH_ALLOC_OK)
        s = reach_device_alloc(pool, bytes, REACH_NO_STREAM, &memory, error);
    *taken = s == REACH_ALLOC_OK;
    if (*taken)
        s = diagnose_at(d, (uintptr_t)memory, bytes, error);
    reach_pool_close(pool);
    return s;
}

/* Allocates as much as the driver grants. */
static enum reach_alloc_status take(struct diagnose *d, enum reach_free_way way,
                                    struct reach_alloc_error *error)
{
    const uint64_t unit = way == REACH_FREE_FRAMES ? d->options.frame_bytes : GRANULE_BYTES;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    uint64_t bytes;
    bool taken = false;
    enum reach_alloc_status s = DRV(d, error, cuMemGetInfo, &free_bytes, &total_bytes);

    if (s != REACH_ALLOC_OK)
        return s;
    d->found.free_bytes = free_bytes;
    bytes =
        free_bytes > total_bytes / MARGIN_DIVISOR ? free_bytes - total_bytes / MARGIN_DIVISOR : 0;
    for (int i = 0; i < TRIES && !taken; i++, bytes -= bytes / STEP_DIVISOR) {
        const uint64_t whole = bytes / unit * unit;
        if (whole == 0)
            return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                              "only %zu bytes of device memory are free; free some", free_bytes);
        s = way == REACH_FREE_FRAMES ? take_frames(d, whole, &taken, error)
                                     : take_plain(d, whole, &taken, error);
        if (s != REACH_ALLOC_OK && s != REACH_ALLOC_NO_MEMORY)
            break;
    }
    return s;
}

enum reach_alloc_status reach_diagnose_free(enum reach_free_way way,
                                            const struct reach_diagnose_options *options,
                                            struct reach_diagnosis *out,
                                            struct reach_alloc_error *error)
{
    struct diagnose *d;
    enum reach_alloc_status s = diagnose_open(options, &d, error);

    if (s == REACH_ALLOC_OK && way == REACH_FREE_FRAMES && d->options.frame_bytes == 0)
        s = alloc_fail(
            error, REACH_ALLOC_INVALID_ARGUMENT,
            "frame_bytes is 0; take frame_bytes from reachd's fingerprint of depth full");
    if (s == REACH_ALLOC_OK)
        s = take(d, way, error);
    if (s == REACH_ALLOC_OK)
        s = diagnose_copy(d, out, error);
    diagnose_close(d);
    return s;
}
