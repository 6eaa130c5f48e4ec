/* alloc_host.c: host memory for kernels, by kind. See reach_alloc.h. The pages are written by many
 * threads (alloc_pages.c), because one thread takes about ten times as long. The driver receives
 * pinned memory and handles in pieces, because calls of other processes to the driver wait for
 * each. It receives pinned memory only after the last write: nvidia-smi waited up to 6 s for
 * pieces that were registered while other threads still wrote pages. */
#include "clients/cuda/alloc/alloc_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES   ((uint64_t)2 << 20)
#define HANDLE_BYTES ((uint64_t)64 << 20) /* of one handle */

/* Everything that making one allocation needs. */
struct request {
    struct reach_pool *pool;
    const struct reach_host_options *options;
    int node; /* NUMA node of the pages; -1 means any */
    struct alloc_host *host;
    struct reach_alloc_error *error;
};

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static uint64_t piece_at(const struct alloc_host *h, uint64_t at)
{
    return h->bytes - at < h->piece_bytes ? h->bytes - at : h->piece_bytes;
}

/* ---- the first write ---- */

static enum reach_alloc_status touch(const struct request *r)
{
    const struct alloc_touch options = {.threads = r->options->threads,
                                        .node = r->node,
                                        .progress = r->options->progress,
                                        .context = r->options->context};

    return alloc_pages_touch(r->host->memory, r->host->bytes, &options, r->error);
}

/* ---- pinned memory ---- */

/* Maps addresses without pages, aligned to huge pages. */
static enum reach_alloc_status map_addresses(const struct request *r)
{
    const uint64_t more = r->host->bytes + HUGE_BYTES;
    char *const p = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return alloc_fail(r->error, REACH_ALLOC_NO_MEMORY,
                          "cannot map %llu MiB of host memory: %s. Check ulimit -v, and "
                          "vm.overcommit_memory, which is 2 if the host allows no overcommit.",
                          (unsigned long long)(more >> 20), strerror(errno));
    const uint64_t before = round_up((uintptr_t)p, HUGE_BYTES) - (uintptr_t)p;
    if (before > 0)
        (void)munmap(p, before);
    if (more > before + r->host->bytes)
        (void)munmap(p + before + r->host->bytes, more - before - r->host->bytes);
    r->host->memory = p + before;
    return REACH_ALLOC_OK;
}

static void free_pinned(struct reach_pool *pool, const struct alloc_host *h)
{
    register_undo(pool, h);
    if (h->borrowed)
        register_set_fork(h, MADV_DOFORK);
    else
        (void)munmap(h->memory, h->bytes);
}

static enum reach_alloc_status make_pinned(const struct request *r)
{
    enum reach_alloc_status s = map_addresses(r);

    if (s != REACH_ALLOC_OK)
        return s;
    r->host->piece_bytes = r->options->piece_bytes;
    (void)madvise(r->host->memory, r->host->bytes, MADV_HUGEPAGE); /* ordinary pages also work */
    (void)madvise(r->host->memory, r->host->bytes, MADV_DONTFORK);
    s = touch(r);
    if (s == REACH_ALLOC_OK)
        s = register_pieces(r->pool, r->host, r->error);
    if (s != REACH_ALLOC_OK)
        (void)munmap(r->host->memory, r->host->bytes);
    return s;
}

/* ---- managed memory ---- */

static enum reach_alloc_status advise(const struct request *r, int advice, int device)
{
    return DRV(r->pool, r->error, cuMemAdvise, (uintptr_t)r->host->memory, r->host->bytes, advice,
               device);
}

/* The advice comes before the first write: pages that exist would have to be mapped again. */
static enum reach_alloc_status make_managed(const struct request *r)
{
    uint64_t address = 0;
    enum reach_alloc_status s =
        DRV(r->pool, r->error, cuMemAllocManaged, &address, r->host->bytes, DRV_ATTACH_GLOBAL);

    if (s != REACH_ALLOC_OK)
        return s;
    r->host->memory = (void *)(uintptr_t)address;
    s = advise(r, DRV_ADVISE_PREFERRED_LOCATION, DRV_CPU);
    if (s == REACH_ALLOC_OK)
        s = advise(r, DRV_ADVISE_ACCESSED_BY, r->pool->device);
    for (uint32_t i = 0; i < r->options->device_count && s == REACH_ALLOC_OK; i++)
        s = advise(r, DRV_ADVISE_ACCESSED_BY, r->options->devices[i]);
    if (s == REACH_ALLOC_OK)
        s = touch(r);
    if (s != REACH_ALLOC_OK)
        (void)r->pool->driver.cuMemFree(address);
    return s;
}

/* ---- handles of the virtual memory API ---- */

/* Creates the handle of the next piece and maps it. */
static enum reach_alloc_status add_handle(const struct request *r, const struct drv_prop *prop)
{
    struct alloc_host *const h = r->host;
    const uint64_t address = (uintptr_t)h->memory + h->mapped_bytes;
    const uint64_t piece = piece_at(h, h->mapped_bytes);
    uint64_t *const handle = &h->handles[h->mapped_bytes / h->piece_bytes];
    enum reach_alloc_status s = DRV(r->pool, r->error, cuMemCreate, handle, piece, prop, 0);

    if (s != REACH_ALLOC_OK)
        return s;
    s = DRV(r->pool, r->error, cuMemMap, address, piece, 0, *handle, 0);
    if (s != REACH_ALLOC_OK)
        (void)r->pool->driver.cuMemRelease(*handle);
    else
        h->mapped_bytes += piece;
    if (s == REACH_ALLOC_OK && r->options->progress)
        r->options->progress(r->options->context, h->mapped_bytes, h->bytes);
    return s;
}

static void free_handles(struct reach_pool *pool, const struct alloc_host *h)
{
    const uint64_t address = (uintptr_t)h->memory;

    for (uint64_t at = 0; at < h->mapped_bytes; at += h->piece_bytes) {
        (void)pool->driver.cuMemUnmap(address + at, piece_at(h, at));
        (void)pool->driver.cuMemRelease(h->handles[at / h->piece_bytes]);
    }
    (void)pool->driver.cuMemAddressFree(address, h->bytes);
    free(h->handles);
}

/* Allows the host and all devices to access the memory. */
static enum reach_alloc_status allow_access(const struct request *r, struct drv_location host)
{
    struct drv_access access[REACH_HOST_MAX_DEVICES + 2] = {
        {{DRV_DEVICE, r->pool->device}, DRV_READ_WRITE}, {host, DRV_READ_WRITE}};
    const uint32_t count = r->options->device_count;

    for (uint32_t i = 0; i < count; i++)
        access[i + 2] = (struct drv_access){{DRV_DEVICE, r->options->devices[i]}, DRV_READ_WRITE};
    return DRV(r->pool, r->error, cuMemSetAccess, (uintptr_t)r->host->memory, r->host->bytes,
               access, count + 2);
}

static enum reach_alloc_status make_vmm(const struct request *r)
{
    const struct drv_prop prop = {.type = DRV_PINNED,
                                  .location = {DRV_HOST_NUMA, r->node < 0 ? 0 : r->node}};
    struct alloc_host *const h = r->host;
    uint64_t address = 0;
    size_t granule = 1;
    enum reach_alloc_status s =
        DRV(r->pool, r->error, cuMemGetAllocationGranularity, &granule, &prop, 0);

    if (s != REACH_ALLOC_OK)
        return s;
    h->bytes = round_up(h->bytes, granule);
    h->piece_bytes = round_up(HANDLE_BYTES, granule);
    h->handles = calloc(h->bytes / h->piece_bytes + 1, sizeof *h->handles);
    if (!h->handles)
        return alloc_fail(r->error, REACH_ALLOC_NO_MEMORY,
                          "cannot allocate the handles of host memory: out of memory");
    s = DRV(r->pool, r->error, cuMemAddressReserve, &address, h->bytes, granule, 0, 0);
    if (s != REACH_ALLOC_OK) {
        free(h->handles);
        return s;
    }
    h->memory = (void *)(uintptr_t)address;
    while (s == REACH_ALLOC_OK && h->mapped_bytes < h->bytes)
        s = add_handle(r, &prop);
    if (s == REACH_ALLOC_OK)
        s = allow_access(r, prop.location);
    if (s != REACH_ALLOC_OK)
        free_handles(r->pool, h);
    return s;
}

/* ---- all kinds ---- */

static enum reach_alloc_status make_kind(const struct request *r, enum reach_host_kind kind)
{
    *r->host = (struct alloc_host){.kind = kind, .bytes = round_up(r->options->bytes, HUGE_BYTES)};
    switch (kind) {
    case REACH_HOST_PINNED:
        return make_pinned(r);
    case REACH_HOST_MANAGED:
        return make_managed(r);
    case REACH_HOST_VMM:
        return make_vmm(r);
    case REACH_HOST_BEST:
        break;
    }
    return alloc_fail(r->error, REACH_ALLOC_INVALID_ARGUMENT, "%d is not a kind of host memory",
                      (int)kind);
}

static enum reach_alloc_status make(const struct request *r)
{
    const enum reach_host_kind *const order = r->pool->host_order;
    enum reach_alloc_status s;

    if (r->options->kind != REACH_HOST_BEST)
        return make_kind(r, r->options->kind);
    s = make_kind(r, order[0]);
    for (int i = 1; i < REACH_HOST_KINDS && order[i] && s != REACH_ALLOC_OK; i++)
        s = make_kind(r, order[i]);
    return s;
}

int host_node(struct reach_pool *pool, const struct reach_host_options *options)
{
    int node = -1;

    if (options->node > 0)
        return options->node - 1;
    if (options->node < 0 ||
        pool->driver.cuDeviceGetAttribute(&node, DRV_ATTRIBUTE_HOST_NUMA_ID, pool->device) != 0)
        return -1;
    return node;
}

void host_release(struct reach_pool *pool, struct alloc_host *take)
{
    if (take->kind == REACH_HOST_PINNED)
        free_pinned(pool, take);
    else if (take->kind == REACH_HOST_MANAGED)
        (void)pool->driver.cuMemFree((uintptr_t)take->memory);
    else
        free_handles(pool, take);
    free(take);
}

enum reach_alloc_status host_check_options(const struct reach_host_options *options,
                                           struct reach_alloc_error *error)
{
    if (!options || options->size != sizeof *options)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "size must be sizeof(struct reach_host_options)");
    if (options->node < REACH_HOST_ANY_NODE)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "node must be at least %d, not %d",
                          REACH_HOST_ANY_NODE, options->node);
    if (options->bytes == 0 || options->bytes > (uint64_t)1 << 50)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "bytes must be 1 to 2^50, not %llu",
                          (unsigned long long)options->bytes);
    if (options->piece_bytes % HUGE_BYTES != 0)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "piece_bytes must be a multiple of 2 MiB, not %llu",
                          (unsigned long long)options->piece_bytes);
    if (options->device_count > REACH_HOST_MAX_DEVICES ||
        (options->device_count && !options->devices))
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "device_count must be 0 to %d, and devices must have that number",
                          REACH_HOST_MAX_DEVICES);
    return REACH_ALLOC_OK;
}

void host_add(struct reach_pool *pool, struct alloc_host *take)
{
    (void)pthread_mutex_lock(&pool->lock);
    take->next = pool->hosts;
    pool->hosts = take;
    (void)pthread_mutex_unlock(&pool->lock);
}

enum reach_alloc_status reach_host_alloc(struct reach_pool *pool,
                                         const struct reach_host_options *options, void **out,
                                         enum reach_host_kind *used,
                                         struct reach_alloc_error *error)
{
    struct request r = {.pool = pool, .options = options, .error = error};
    enum reach_alloc_status s = host_check_options(options, error);

    *out = NULL;
    if (s == REACH_ALLOC_OK)
        s = alloc_pages_check(options->bytes, error);
    if (s == REACH_ALLOC_OK)
        s = alloc_enter_unlocked(pool, error);
    if (s != REACH_ALLOC_OK)
        return s;
    r.host = calloc(1, sizeof *r.host);
    r.node = host_node(pool, options);
    if (r.host)
        s = make(&r);
    else
        s = alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                       "cannot allocate an entry of the pool: out of memory");
    if (s == REACH_ALLOC_OK) {
        *out = r.host->memory;
        if (used)
            *used = r.host->kind;
        host_add(pool, r.host);
    } else {
        free(r.host);
    }
    alloc_leave_unlocked(pool);
    return s;
}

enum reach_alloc_status reach_host_free(struct reach_pool *pool, void *memory, void *stream,
                                        struct reach_alloc_error *error)
{
    struct alloc_host **at;
    struct alloc_host *take = NULL;
    enum reach_alloc_status s;

    if (!memory)
        return REACH_ALLOC_OK;
    s = alloc_enter(pool, error);
    if (s != REACH_ALLOC_OK)
        return s;
    for (at = &pool->hosts; *at && (char *)(*at)->memory + (*at)->lead_bytes != memory;)
        at = &(*at)->next;
    if (!*at)
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "%p is not host memory of this pool",
                       memory);
    else if (!stream)
        s = DRV(pool, error, cuCtxSynchronize);
    else if (stream != REACH_NO_STREAM)
        s = DRV(pool, error, cuStreamSynchronize, stream);
    if (s == REACH_ALLOC_OK) {
        take = *at;
        *at = take->next;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (take)
        host_release(pool, take);
    alloc_leave_unlocked(pool);
    return s;
}
