/* alloc_torch.c: the two functions that torch.cuda.memory.CUDAPluggableAllocator calls. PyTorch
 * passes no context, so the pools are global here: one per device, for the life of the process. */
#include "clients/cuda/alloc/alloc_state.h"

#include <stdatomic.h>
#include <unistd.h>

enum { MAX_DEVICES = 64 };

static atomic_int process; /* first process that opened a pool; 0 if there is none yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reach_pool *pools[MAX_DEVICES];

/* Returns whether an open pool has the domain that the options name, if they name one. */
static bool has_domain(const struct reach_pool *pool, const struct reach_pool_options *options)
{
    /* The options of a caller that was built before the member `domain` was added are shorter. */
    const uint64_t domain = options->size < sizeof *options ? 0 : options->domain;
    const struct drv_location location = alloc_location(pool->device, domain);

    return domain == 0 ||
           (pool->location.type == location.type && pool->location.id == location.id);
}

enum reach_alloc_status reach_torch_open(const struct reach_pool_options *options,
                                         struct reach_pool **out, struct reach_alloc_error *error)
{
    enum reach_alloc_status s = REACH_ALLOC_OK;
    int first = 0;

    *out = NULL;
    if (!options || options->device < 0 || options->device >= MAX_DEVICES)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "device must be 0 .. %d",
                          MAX_DEVICES - 1);
    if (!atomic_compare_exchange_strong(&process, &first, getpid()) && first != getpid())
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "process %d opened the pools, and CUDA does not work after a fork; start "
                          "this process with spawn",
                          first);
    (void)pthread_mutex_lock(&lock);
    if (!pools[options->device])
        s = reach_pool_open(options, &pools[options->device], error);
    else if (!has_domain(pools[options->device], options))
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                       "the pool of device %d is open and takes its memory from another domain "
                       "than %llu; use one process for each domain",
                       options->device, (unsigned long long)options->domain);
    *out = s == REACH_ALLOC_OK ? pools[options->device] : NULL;
    (void)pthread_mutex_unlock(&lock);
    return s;
}

void *reach_torch_malloc(ptrdiff_t bytes, int device, void *stream)
{
    const struct reach_pool_options options = {.size = sizeof options, .device = device};
    struct reach_pool *pool;
    void *array = NULL;

    if (bytes > 0 && reach_torch_open(&options, &pool, NULL) == REACH_ALLOC_OK)
        (void)reach_device_alloc(pool, (uint64_t)bytes, stream, &array, NULL);
    return array;
}

void reach_torch_free(void *array, ptrdiff_t bytes, int device, void *stream)
{
    const struct reach_pool_options options = {.size = sizeof options, .device = device};
    struct reach_pool *pool;

    (void)bytes;
    if (reach_torch_open(&options, &pool, NULL) == REACH_ALLOC_OK)
        (void)reach_device_free(pool, array, stream, NULL);
}
