/* alloc_register.c: registers memory with the driver in pieces, because other processes that use
 * the driver wait for each call. */
#include "clients/cuda/alloc/alloc_state.h"

#include <sys/mman.h>

#define REGISTER_BYTES ((uint64_t)512 << 20) /* registered in one call, by default */

/* Registers the next piece. The device must see it at the address that the CPU uses. */
static enum reach_alloc_status register_piece(struct reach_pool *pool, struct alloc_host *h,
                                              struct reach_alloc_error *error)
{
    char *const at = (char *)h->memory + h->mapped_bytes;
    const uint64_t left = h->bytes - h->mapped_bytes;
    const uint64_t piece = left < h->piece_bytes ? left : h->piece_bytes;
    uint64_t address = 0;
    enum reach_alloc_status s =
        DRV(pool, error, cuMemHostRegister, at, piece, DRV_HOST_PORTABLE_MAPPED);

    if (s != REACH_ALLOC_OK)
        return s;
    h->mapped_bytes += piece;
    s = DRV(pool, error, cuMemHostGetDevicePointer, &address, at, 0);
    if (s == REACH_ALLOC_OK && address != (uintptr_t)at)
        s = alloc_fail(error, REACH_ALLOC_NOT_SUPPORTED,
                       "the device does not see registered memory at the address of the CPU; use "
                       "another kind of memory");
    return s;
}

enum reach_alloc_status register_pieces(struct reach_pool *pool, struct alloc_host *h,
                                        struct reach_alloc_error *error)
{
    enum reach_alloc_status s = REACH_ALLOC_OK;

    h->piece_bytes = h->piece_bytes ? h->piece_bytes : REGISTER_BYTES;
    while (s == REACH_ALLOC_OK && h->mapped_bytes < h->bytes)
        s = register_piece(pool, h, error);
    if (s != REACH_ALLOC_OK)
        register_undo(pool, h);
    return s;
}

void register_set_fork(const struct alloc_host *h, int advice)
{
    const uint64_t page = alloc_page_bytes();
    const uint64_t first = h->lead_bytes ? page : 0,
                   last = h->tail_bytes ? h->bytes - page : h->bytes;

    if (h->is_private && last > first)
        (void)madvise((char *)h->memory + first, last - first, advice);
}

void register_undo(struct reach_pool *pool, const struct alloc_host *h)
{
    for (uint64_t at = 0; at < h->mapped_bytes; at += h->piece_bytes)
        (void)pool->driver.cuMemHostUnregister((char *)h->memory + at);
}
