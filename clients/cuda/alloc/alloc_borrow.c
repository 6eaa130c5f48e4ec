/* alloc_borrow.c: registers memory of the caller. Many threads make its pages present first,
 * because the driver takes missing pages by one thread while other processes that use the driver
 * wait. */
#include "clients/cuda/alloc/alloc_state.h"

#include <stdlib.h>
#include <sys/mman.h>

static enum reach_alloc_status register_memory(struct reach_pool *pool, struct alloc_host *h,
                                               const struct reach_host_options *options,
                                               struct reach_alloc_error *error)
{
    const struct alloc_touch touch = {.threads = options->threads,
                                      .node = host_node(pool, options),
                                      .keep = true,
                                      .progress = options->progress,
                                      .context = options->context};
    uint64_t missing = 0;
    enum reach_alloc_status s =
        alloc_pages_mapped(h->memory, h->bytes, &h->is_private, &missing, error);

    if (s == REACH_ALLOC_OK && missing > 0)
        s = alloc_pages_check(missing, error);
    if (s != REACH_ALLOC_OK)
        return s;
    if (missing > 0)
        (void)madvise(h->memory, h->bytes, MADV_HUGEPAGE); /* ordinary pages also work */
    s = alloc_pages_touch(h->memory, h->bytes, &touch, error);
    if (s == REACH_ALLOC_OK)
        s = register_pieces(pool, h, error);
    if (s == REACH_ALLOC_OK)
        register_set_fork(h, MADV_DONTFORK);
    return s;
}

enum reach_alloc_status reach_host_register(struct reach_pool *pool,
                                            const struct reach_host_options *options, void *memory,
                                            struct reach_alloc_error *error)
{
    const uint64_t page = alloc_page_bytes();
    enum reach_alloc_status s = host_check_options(options, error);
    struct alloc_host *h;

    if (s == REACH_ALLOC_OK && (!memory || (uintptr_t)memory + options->bytes < options->bytes))
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "%p is not memory of the process",
                       memory);
    if (s == REACH_ALLOC_OK && options->kind != REACH_HOST_PINNED &&
        options->kind != REACH_HOST_BEST)
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                       "registered memory is pinned: kind must be REACH_HOST_PINNED, not %d",
                       (int)options->kind);
    if (s == REACH_ALLOC_OK)
        s = alloc_enter_unlocked(pool, error);
    if (s != REACH_ALLOC_OK)
        return s;
    const uint64_t lead = (uintptr_t)memory % page;
    const uint64_t bytes = (lead + options->bytes + page - 1) / page * page;
    h = malloc(sizeof *h);
    if (!h) {
        s = alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                       "cannot allocate an entry of the pool: out of memory");
    } else {
        *h = (struct alloc_host){.kind = REACH_HOST_PINNED,
                                 .memory = (char *)memory - lead,
                                 .bytes = bytes,
                                 .piece_bytes = options->piece_bytes,
                                 .borrowed = true,
                                 .lead_bytes = lead,
                                 .tail_bytes = bytes - lead - options->bytes};
        s = register_memory(pool, h, options, error);
    }
    if (s == REACH_ALLOC_OK)
        host_add(pool, h);
    else
        free(h);
    alloc_leave_unlocked(pool);
    return s;
}
