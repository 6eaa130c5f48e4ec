/* alloc_enter.c: what each call does first and last: the lock of the pool, the context of its
 * device. */
#include "clients/cuda/alloc/alloc_pool.h"

enum reach_alloc_status alloc_enter(struct reach_pool *pool, struct reach_alloc_error *error)
{
    enum reach_alloc_status s;

    if (!pool)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "no pool; call reach_pool_open");
    (void)pthread_mutex_lock(&pool->lock);
    s = DRV(pool, error, cuCtxPushCurrent, pool->context);
    if (s != REACH_ALLOC_OK)
        (void)pthread_mutex_unlock(&pool->lock);
    return s;
}

void alloc_leave(struct reach_pool *pool)
{
    void *context;

    (void)pool->driver.cuCtxPopCurrent(&context);
    (void)pthread_mutex_unlock(&pool->lock);
}
