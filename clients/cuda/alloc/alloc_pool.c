/* alloc_pool.c: opens, closes and counts pools. */
#include "clients/cuda/alloc/alloc_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Addresses cost nothing. A reservation of several times the memory has a run of free frames for
 * arrays of any size, in any order. */
enum { ADDRESSES_PER_BYTE = 4 };

struct drv_location alloc_location(int device, uint64_t domain)
{
    return domain == 0
               ? (struct drv_location){DRV_DEVICE, device}
               : (struct drv_location){DRV_DEVICE_DOMAIN,
                                       (int)((unsigned)device | (unsigned)(domain - 1) << 8)};
}

/* Sets the location of the device memory. Drivers before CUDA 13.4 do not know the attribute. */
static enum reach_alloc_status choose_location(struct reach_pool *pool,
                                               const struct reach_pool_options *options,
                                               struct reach_alloc_error *error)
{
    const int number = DRV_ATTRIBUTE_DOMAIN_COUNT;
    int domains = 0;
    int result;

    pool->location = alloc_location(pool->device, options->domain);
    if (options->domain == 0)
        return REACH_ALLOC_OK;
    result = pool->driver.cuDeviceGetAttribute(&domains, number, pool->device);
    if (result == DRV_INVALID_VALUE)
        return alloc_fail(error, REACH_ALLOC_NOT_SUPPORTED,
                          "the driver has no locality domains, which need CUDA 13.4; set domain "
                          "to 0");
    if (result == 0 && options->domain > (uint64_t)domains)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "domain is %llu, but device %d has %d locality domains, from 1",
                          (unsigned long long)options->domain, options->device, domains);
    return alloc_driver_check(&pool->driver, result, "cuDeviceGetAttribute", error);
}

static enum reach_alloc_status choose_frame(struct reach_pool *pool,
                                            const struct reach_pool_options *options,
                                            struct reach_alloc_error *error)
{
    const struct drv_prop prop = {.type = DRV_PINNED, .location = pool->location};
    const uint64_t wanted = options->frame_bytes;
    size_t granule = 0;
    enum reach_alloc_status s = DRV(pool, error, cuMemGetAllocationGranularity, &granule, &prop, 0);

    if (s != REACH_ALLOC_OK)
        return s;
    pool->granule_bytes = granule;
    pool->frame_is_granularity = wanted == 0;
    pool->frame_bytes = wanted ? wanted : granule;
    if (pool->frame_bytes < granule || (pool->frame_bytes & (pool->frame_bytes - 1)) != 0)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "frame_bytes is %llu; frame_bytes must be a power of two and at least "
                          "%zu, the driver's allocation granularity",
                          (unsigned long long)wanted, granule);
    return REACH_ALLOC_OK;
}

static enum reach_alloc_status reserve(struct reach_pool *pool, struct reach_alloc_error *error)
{
    size_t memory_bytes = 0;
    enum reach_alloc_status s = DRV(pool, error, cuDeviceTotalMem, &memory_bytes, pool->device);

    if (s != REACH_ALLOC_OK)
        return s;
    pool->frame_count = ADDRESSES_PER_BYTE * (uint64_t)memory_bytes / pool->frame_bytes;
    pool->frames = calloc(pool->frame_count, sizeof *pool->frames);
    if (!pool->frames)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                          "cannot allocate a table of %llu frames: out of memory",
                          (unsigned long long)pool->frame_count);
    pool->range_bytes = (pool->frame_count + 1) * pool->frame_bytes;
    s = DRV(pool, error, cuMemAddressReserve, &pool->base, pool->range_bytes, pool->frame_bytes, 0,
            0);
    if (s != REACH_ALLOC_OK)
        pool->range_bytes = 0;
    return s;
}

static enum reach_alloc_status prepare(struct reach_pool *pool,
                                       const struct reach_pool_options *options,
                                       struct reach_alloc_error *error)
{
    int vmm = 0;
    enum reach_alloc_status s =
        DRV(pool, error, cuDeviceGetAttribute, &vmm, DRV_ATTRIBUTE_VMM, pool->device);

    if (s == REACH_ALLOC_OK && !vmm)
        s = alloc_fail(error, REACH_ALLOC_NOT_SUPPORTED,
                       "device %d does not support the virtual memory API; use cudaMalloc",
                       options->device);
    if (s == REACH_ALLOC_OK)
        s = choose_location(pool, options, error);
    if (s == REACH_ALLOC_OK)
        s = choose_frame(pool, options, error);
    return s == REACH_ALLOC_OK ? reserve(pool, error) : s;
}

/* Copies the fields that the caller's version of the options has; the others are 0. */
static enum reach_alloc_status copy_options(const struct reach_pool_options *options,
                                            struct reach_pool_options *out,
                                            struct reach_alloc_error *error)
{
    if (!options || options->size < sizeof options->size)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "size of the options must be sizeof(struct reach_pool_options)");
    memset(out, 0, sizeof *out);
    memcpy(out, options, options->size < sizeof *out ? options->size : sizeof *out);
    for (int i = 0; i < REACH_HOST_KINDS; i++) {
        if ((unsigned)out->host_order[i] > REACH_HOST_KINDS)
            return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                              "host_order[%d] is %d, which is not a kind of memory", i,
                              (int)out->host_order[i]);
    }
    if (out->host_order[0] == REACH_HOST_BEST)
        out->host_order[0] = REACH_HOST_PINNED;
    return REACH_ALLOC_OK;
}

enum reach_alloc_status reach_pool_open(const struct reach_pool_options *options,
                                        struct reach_pool **out, struct reach_alloc_error *error)
{
    struct reach_pool_options o;
    struct reach_pool *pool = NULL;
    enum reach_alloc_status s = copy_options(options, &o, error);

    *out = NULL;
    if (s != REACH_ALLOC_OK)
        return s;
    pool = calloc(1, sizeof *pool);
    if (!pool)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY, "cannot allocate a pool: out of memory");
    pool->process = getpid();
    (void)pthread_mutex_init(&pool->lock, NULL);
    pool->keep_bytes = o.keep_bytes;
    memcpy(pool->host_order, o.host_order, sizeof pool->host_order);
    s = alloc_driver_open(o.driver, &pool->driver, error);
    if (s == REACH_ALLOC_OK)
        s = DRV(pool, error, cuDeviceGet, &pool->device, o.device);
    if (s == REACH_ALLOC_OK)
        s = DRV(pool, error, cuDevicePrimaryCtxRetain, &pool->context, pool->device);
    if (s == REACH_ALLOC_OK) {
        s = alloc_enter(pool, error);
        if (s == REACH_ALLOC_OK) {
            s = prepare(pool, &o, error);
            alloc_leave(pool);
        }
    }
    if (s == REACH_ALLOC_OK)
        *out = pool;
    else
        reach_pool_close(pool);
    return s;
}

/* A lost context cannot be made current. Its memory is gone, and every call of the driver fails. */
static void release_all(struct reach_pool *pool)
{
    const bool entered = alloc_enter(pool, NULL) == REACH_ALLOC_OK;

    if (entered)
        (void)pool->driver.cuCtxSynchronize();
    while (pool->pending) {
        struct alloc_pending *p = pool->pending;
        pool->pending = p->next;
        (void)pool->driver.cuEventDestroy(p->event);
        free(p);
    }
    for (uint64_t i = 0; i < pool->frame_top; i++) {
        while (pool->frames[i].blocks) {
            struct alloc_block *b = pool->frames[i].blocks;
            pool->frames[i].blocks = b->next;
            free(b);
        }
        frame_release(pool, i);
    }
    while (pool->hosts) {
        struct alloc_host *h = pool->hosts;
        pool->hosts = h->next;
        host_release(pool, h);
    }
    if (pool->range_bytes > 0)
        (void)pool->driver.cuMemAddressFree(pool->base, pool->range_bytes);
    if (entered)
        alloc_leave(pool);
}

void reach_pool_close(struct reach_pool *take)
{
    if (!take || alloc_check_process(take, NULL) != REACH_ALLOC_OK)
        return;
    if (take->context) {
        release_all(take);
        (void)take->driver.cuDevicePrimaryCtxRelease(take->device);
    }
    alloc_driver_close(&take->driver);
    free(take->frames);
    (void)pthread_mutex_destroy(&take->lock);
    free(take);
}

enum reach_alloc_status reach_alloc_stats(struct reach_pool *pool, struct reach_alloc_stats *out,
                                          struct reach_alloc_error *error)
{
    struct reach_alloc_stats stats = {.size = 0};
    enum reach_alloc_status s;

    if (!pool || !out || out->size < sizeof out->size)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "the pool and the stats must not be NULL, and size must be sizeof(struct "
                          "reach_alloc_stats)");
    s = alloc_check_process(pool, error);
    if (s != REACH_ALLOC_OK)
        return s;
    (void)pthread_mutex_lock(&pool->lock);
    stats.frame_bytes = pool->frame_bytes;
    stats.frame_is_granularity = pool->frame_is_granularity;
    stats.arrays = pool->arrays;
    stats.array_bytes = pool->array_bytes;
    for (const struct alloc_pending *p = pool->pending; p; p = p->next)
        stats.pending_arrays++;
    stats.frames = pool->backed;
    stats.device_bytes = pool->backed * pool->frame_bytes;
    for (uint64_t i = 0; i < pool->frame_top; i++)
        stats.frames_scattered += pool->frames[i].pieces || pool->frames[i].scattered;
    stats.frames_whole = pool->backed - stats.frames_scattered;
    stats.frames_free = pool->backed - pool->in_use;
    for (const struct alloc_host *h = pool->hosts; h; h = h->next)
        stats.host_bytes += h->bytes;
    stats.compacted_frames = pool->compacted_frames;
    stats.compact_ns = pool->compact_ns;
    (void)pthread_mutex_unlock(&pool->lock);
    stats.size = out->size < sizeof stats ? out->size : sizeof stats;
    memcpy(out, &stats, stats.size);
    return REACH_ALLOC_OK;
}
