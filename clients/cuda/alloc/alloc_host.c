/* alloc_host.c: host memory for kernels, by kind. See reach_alloc.h. */
#include "clients/cuda/alloc/alloc_state.h"

#include <stdlib.h>

static enum reach_alloc_status take_pinned(struct reach_pool *pool, struct alloc_host *h,
                                           struct reach_alloc_error *error)
{
    return DRV(pool, error, cuMemHostAlloc, &h->memory, h->bytes, DRV_HOST_PORTABLE_MAPPED);
}

static enum reach_alloc_status take_managed(struct reach_pool *pool, struct alloc_host *h,
                                            struct reach_alloc_error *error)
{
    uint64_t address = 0;
    enum reach_alloc_status s =
        DRV(pool, error, cuMemAllocManaged, &address, h->bytes, DRV_ATTACH_GLOBAL);

    if (s != REACH_ALLOC_OK)
        return s;
    h->memory = (void *)(uintptr_t)address;
    s = DRV(pool, error, cuMemAdvise, address, h->bytes, DRV_ADVISE_PREFERRED_LOCATION, DRV_CPU);
    if (s == REACH_ALLOC_OK)
        s = DRV(pool, error, cuMemAdvise, address, h->bytes, DRV_ADVISE_ACCESSED_BY, pool->device);
    if (s != REACH_ALLOC_OK)
        (void)pool->driver.cuMemFree(address);
    return s;
}

static void unmap_vmm(struct reach_pool *pool, const struct alloc_host *h)
{
    (void)pool->driver.cuMemUnmap((uintptr_t)h->memory, h->bytes);
    (void)pool->driver.cuMemRelease(h->handle);
    (void)pool->driver.cuMemAddressFree((uintptr_t)h->memory, h->bytes);
}

/* Maps `h->handle` at the addresses, for the device and the host. The handle and the addresses
 * already exist. */
static enum reach_alloc_status map_vmm(struct reach_pool *pool, const struct alloc_host *h,
                                       struct drv_location location,
                                       struct reach_alloc_error *error)
{
    const struct drv_access access[2] = {{{DRV_DEVICE, pool->device}, DRV_READ_WRITE},
                                         {location, DRV_READ_WRITE}};
    const uint64_t address = (uintptr_t)h->memory;
    enum reach_alloc_status s = DRV(pool, error, cuMemMap, address, h->bytes, 0, h->handle, 0);

    if (s != REACH_ALLOC_OK)
        return s;
    s = DRV(pool, error, cuMemSetAccess, address, h->bytes, access, 2);
    if (s != REACH_ALLOC_OK)
        (void)pool->driver.cuMemUnmap(address, h->bytes);
    return s;
}

static enum reach_alloc_status take_vmm(struct reach_pool *pool, struct alloc_host *h,
                                        struct reach_alloc_error *error)
{
    struct drv_prop prop = {.type = DRV_PINNED, .location = {DRV_HOST_NUMA, 0}};
    uint64_t address = 0;
    size_t granule = 1;
    enum reach_alloc_status s = DRV(pool, error, cuDeviceGetAttribute, &prop.location.id,
                                    DRV_ATTRIBUTE_HOST_NUMA_ID, pool->device);

    if (s != REACH_ALLOC_OK)
        return s;
    if (prop.location.id < 0) /* the driver reports no node, so the host has one */
        prop.location.id = 0;
    s = DRV(pool, error, cuMemGetAllocationGranularity, &granule, &prop, 0);
    if (s != REACH_ALLOC_OK)
        return s;
    h->bytes = (h->bytes + granule - 1) / granule * granule;
    s = DRV(pool, error, cuMemAddressReserve, &address, h->bytes, granule, 0, 0);
    if (s != REACH_ALLOC_OK)
        return s;
    h->memory = (void *)(uintptr_t)address;
    s = DRV(pool, error, cuMemCreate, &h->handle, h->bytes, &prop, 0);
    if (s == REACH_ALLOC_OK) {
        s = map_vmm(pool, h, prop.location, error);
        if (s != REACH_ALLOC_OK)
            (void)pool->driver.cuMemRelease(h->handle);
    }
    if (s != REACH_ALLOC_OK)
        (void)pool->driver.cuMemAddressFree(address, h->bytes);
    return s;
}

static enum reach_alloc_status take_kind(struct reach_pool *pool, enum reach_host_kind kind,
                                         uint64_t bytes, struct alloc_host *h,
                                         struct reach_alloc_error *error)
{
    *h = (struct alloc_host){.kind = kind, .bytes = bytes};
    switch (kind) {
    case REACH_HOST_PINNED:
        return take_pinned(pool, h, error);
    case REACH_HOST_MANAGED:
        return take_managed(pool, h, error);
    case REACH_HOST_VMM:
        return take_vmm(pool, h, error);
    case REACH_HOST_BEST:
        break;
    }
    return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "unknown kind of host memory %d",
                      (int)kind);
}

static enum reach_alloc_status take_best(struct reach_pool *pool, uint64_t bytes,
                                         struct alloc_host *h, struct reach_alloc_error *error)
{
    enum reach_alloc_status s = take_kind(pool, pool->host_order[0], bytes, h, error);

    for (int i = 1; i < REACH_HOST_KINDS && pool->host_order[i] && s != REACH_ALLOC_OK; i++)
        s = take_kind(pool, pool->host_order[i], bytes, h, error);
    return s;
}

void host_release(struct reach_pool *pool, struct alloc_host *take)
{
    if (take->kind == REACH_HOST_PINNED)
        (void)pool->driver.cuMemFreeHost(take->memory);
    else if (take->kind == REACH_HOST_MANAGED)
        (void)pool->driver.cuMemFree((uintptr_t)take->memory);
    else
        unmap_vmm(pool, take);
    free(take);
}

enum reach_alloc_status reach_host_alloc(struct reach_pool *pool, enum reach_host_kind kind,
                                         uint64_t bytes, void **out, enum reach_host_kind *used,
                                         struct reach_alloc_error *error)
{
    struct alloc_host *h = calloc(1, sizeof *h);
    enum reach_alloc_status s;

    *out = NULL;
    if (!h)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                          "cannot allocate an entry of host memory: out of memory");
    if (bytes == 0 || bytes > (uint64_t)1 << 50)
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                       "invalid size of host memory: %llu bytes", (unsigned long long)bytes);
    else
        s = alloc_enter(pool, error);
    if (s != REACH_ALLOC_OK) {
        free(h);
        return s;
    }
    s = kind == REACH_HOST_BEST ? take_best(pool, bytes, h, error)
                                : take_kind(pool, kind, bytes, h, error);
    if (s == REACH_ALLOC_OK) {
        h->next = pool->hosts;
        pool->hosts = h;
        *out = h->memory;
        if (used)
            *used = h->kind;
    } else {
        free(h);
    }
    alloc_leave(pool);
    return s;
}

enum reach_alloc_status reach_host_free(struct reach_pool *pool, void *memory, void *stream,
                                        struct reach_alloc_error *error)
{
    struct alloc_host **at;
    enum reach_alloc_status s;

    if (!memory)
        return REACH_ALLOC_OK;
    s = alloc_enter(pool, error);
    if (s != REACH_ALLOC_OK)
        return s;
    for (at = &pool->hosts; *at && (*at)->memory != memory; at = &(*at)->next)
        continue;
    if (!*at)
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "%p is not host memory of this pool",
                       memory);
    else if (stream != REACH_NO_STREAM)
        s = DRV(pool, error, cuStreamSynchronize, stream);
    if (s == REACH_ALLOC_OK) {
        struct alloc_host *take = *at;
        *at = take->next;
        host_release(pool, take);
    }
    alloc_leave(pool);
    return s;
}
