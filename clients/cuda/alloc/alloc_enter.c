/* alloc_enter.c: the first and last steps of each call: the lock of the pool and the context of its
 * device. */
#include "clients/cuda/alloc/alloc_state.h"

#include <unistd.h>

enum reach_alloc_status alloc_check_process(const struct reach_pool *pool,
                                            struct reach_alloc_error *error)
{
    if (pool->process == getpid())
        return REACH_ALLOC_OK;
    return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                      "process %d opened this pool, and CUDA does not work after a fork; open a "
                      "pool in a process that did not use CUDA before the fork (spawn)",
                      (int)pool->process);
}

static enum reach_alloc_status check_pool(const struct reach_pool *pool,
                                          struct reach_alloc_error *error)
{
    if (!pool)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "the pool is NULL; call reach_pool_open");
    return alloc_check_process(pool, error);
}

enum reach_alloc_status alloc_enter_unlocked(struct reach_pool *pool,
                                             struct reach_alloc_error *error)
{
    const enum reach_alloc_status s = check_pool(pool, error);

    return s == REACH_ALLOC_OK ? DRV(pool, error, cuCtxPushCurrent, pool->context) : s;
}

void alloc_leave_unlocked(struct reach_pool *pool)
{
    void *context;

    (void)pool->driver.cuCtxPopCurrent(&context);
}

enum reach_alloc_status alloc_enter(struct reach_pool *pool, struct reach_alloc_error *error)
{
    enum reach_alloc_status s = check_pool(pool, error);

    if (s != REACH_ALLOC_OK)
        return s;
    (void)pthread_mutex_lock(&pool->lock);
    s = DRV(pool, error, cuCtxPushCurrent, pool->context);
    if (s != REACH_ALLOC_OK)
        (void)pthread_mutex_unlock(&pool->lock);
    return s;
}

void alloc_leave(struct reach_pool *pool)
{
    alloc_leave_unlocked(pool);
    (void)pthread_mutex_unlock(&pool->lock);
}
