/* alloc_array.c: the placement of arrays in the frames of a pool, and the reuse of their memory.
 *
 * Placement is first fit by address, so arrays allocated in a row lie side by side. Arrays that are
 * smaller than a frame share frames: 40 arrays of 3 MiB take four frames of 32 MiB, not 40.
 */
#include "clients/cuda/alloc/alloc_state.h"

#include <stdlib.h>

static void set_use(struct reach_pool *pool, uint64_t index, enum frame_use use)
{
    struct alloc_frame *frame = &pool->frames[index];

    pool->in_use += (use != FRAME_FREE);
    pool->in_use -= (frame->use != FRAME_FREE);
    frame->use = use;
    if (index >= pool->frame_top)
        pool->frame_top = index + 1;
}

/* Keeps or releases the memory of a frame that holds nothing any more. */
static void vacate(struct reach_pool *pool, uint64_t index)
{
    set_use(pool, index, FRAME_FREE);
    if ((pool->backed - pool->in_use) * pool->frame_bytes > pool->keep_bytes)
        frame_release(pool, index);
}

/* Returns the first of `count` free frames side by side, or frame_count if no run is long
 * enough. */
static uint64_t find_run_of(const struct reach_pool *pool, uint64_t count, bool backed)
{
    uint64_t run = 0;

    for (uint64_t i = 0; i < pool->frame_count && (!backed || i < pool->frame_top); i++) {
        const struct alloc_frame *frame = &pool->frames[i];
        run = frame->use == FRAME_FREE && (!backed || frame_is_backed(frame)) ? run + 1 : 0;
        if (run == count)
            return i + 1 - count;
    }
    return pool->frame_count;
}

/* Returns the first of `count` free frames side by side, if possible of frames that still have
 * memory. */
static uint64_t find_run(const struct reach_pool *pool, uint64_t count)
{
    const uint64_t kept = find_run_of(pool, count, true);

    return kept < pool->frame_count ? kept : find_run_of(pool, count, false);
}

/* Puts a block of `bytes` into the first hole of a frame that it fits. Returns false if no hole
 * fits, or if host memory runs out; `*s` reports which. */
static bool add_block(struct reach_pool *pool, uint64_t index, uint64_t bytes, uint64_t *offset,
                      enum reach_alloc_status *s, struct reach_alloc_error *error)
{
    struct alloc_block **at = &pool->frames[index].blocks;
    struct alloc_block *block;

    for (*offset = 0; *at && (*at)->offset - *offset < bytes; at = &(*at)->next)
        *offset = (*at)->offset + (*at)->bytes;
    if (pool->frame_bytes - *offset < bytes)
        return false;
    block = malloc(sizeof *block);
    if (!block) {
        *s = alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                        "cannot allocate an array's entry: out of memory");
        return false;
    }
    *block = (struct alloc_block){.next = *at, .offset = *offset, .bytes = bytes};
    *at = block;
    return true;
}

/* Puts memory behind `count` free frames from `first`. On failure, frames that had no memory have
 * none. */
static enum reach_alloc_status back_run(struct reach_pool *pool, uint64_t first, uint64_t count,
                                        struct reach_alloc_error *error)
{
    enum reach_alloc_status s = REACH_ALLOC_OK;
    uint64_t i;

    for (i = first; i < first + count && s == REACH_ALLOC_OK; i++) {
        if (!frame_is_backed(&pool->frames[i]))
            s = frame_back(pool, i, error);
    }
    /* Frames that were kept before may be released as well, because memory is short. */
    while (s != REACH_ALLOC_OK && i-- > first)
        frame_release(pool, i);
    return s;
}

static enum reach_alloc_status place_small(struct reach_pool *pool, uint64_t bytes,
                                           uint64_t *address, struct reach_alloc_error *error)
{
    enum reach_alloc_status s = REACH_ALLOC_OK;
    uint64_t offset = 0;
    uint64_t i;

    for (i = 0; i < pool->frame_top && s == REACH_ALLOC_OK; i++) {
        if (pool->frames[i].use == FRAME_SHARED && add_block(pool, i, bytes, &offset, &s, error)) {
            *address = frame_address(pool, i) + offset;
            return REACH_ALLOC_OK;
        }
    }
    if (s != REACH_ALLOC_OK)
        return s;
    i = find_run(pool, 1);
    if (i == pool->frame_count)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                          "cannot reserve addresses: the pool has no free addresses left");
    s = back_run(pool, i, 1, error);
    if (s != REACH_ALLOC_OK)
        return s;
    set_use(pool, i, FRAME_SHARED);
    if (!add_block(pool, i, bytes, &offset, &s, error)) {
        vacate(pool, i);
        return s;
    }
    *address = frame_address(pool, i);
    return REACH_ALLOC_OK;
}

static enum reach_alloc_status place_run(struct reach_pool *pool, uint64_t bytes, uint64_t *address,
                                         struct reach_alloc_error *error)
{
    const uint64_t full = bytes / pool->frame_bytes;
    const uint64_t tail = bytes % pool->frame_bytes;
    const uint64_t first = find_run(pool, full + (tail > 0));
    enum reach_alloc_status s;
    uint64_t offset;

    if (first == pool->frame_count)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                          "cannot reserve %llu contiguous bytes of addresses; request less",
                          (unsigned long long)bytes);
    s = back_run(pool, first, full + (tail > 0), error);
    if (s != REACH_ALLOC_OK)
        return s;
    for (uint64_t i = first; i < first + full; i++)
        set_use(pool, i, FRAME_RUN);
    if (tail > 0) {
        set_use(pool, first + full, FRAME_SHARED);
        if (!add_block(pool, first + full, tail, &offset, &s, error)) {
            for (uint64_t i = first; i <= first + full; i++)
                vacate(pool, i);
            return s;
        }
        pool->frames[first + full].blocks->tail = true;
    }
    pool->frames[first].run_frames = full;
    pool->frames[first].run_bytes = bytes;
    *address = frame_address(pool, first);
    return REACH_ALLOC_OK;
}

static enum reach_alloc_status place(struct reach_pool *pool, uint64_t bytes, uint64_t *address,
                                     struct reach_alloc_error *error)
{
    return bytes < pool->frame_bytes ? place_small(pool, bytes, address, error)
                                     : place_run(pool, bytes, address, error);
}

/* An array: the frame in which it begins, and its block there if it is smaller than a frame. */
struct found {
    uint64_t index;
    struct alloc_block *block;
    uint64_t bytes;
    bool *freed;
};

static bool find_array(struct reach_pool *pool, uint64_t address, struct found *out)
{
    const uint64_t index = (address - pool->base) / pool->frame_bytes;
    struct alloc_block *block;

    if (address < pool->base || index >= pool->frame_top)
        return false;
    *out = (struct found){.index = index,
                          .bytes = pool->frames[index].run_bytes,
                          .freed = &pool->frames[index].freed};
    if (pool->frames[index].run_frames > 0)
        return address == frame_address(pool, index);
    block = pool->frames[index].blocks;
    while (block && frame_address(pool, index) + block->offset != address)
        block = block->next;
    if (!block || block->tail)
        return false;
    out->block = block;
    out->bytes = block->bytes;
    out->freed = &block->freed;
    return true;
}

static void remove_block(struct reach_pool *pool, uint64_t index, const struct alloc_block *take)
{
    struct alloc_block **at = &pool->frames[index].blocks;
    struct alloc_block *block;

    while (*at != take)
        at = &(*at)->next;
    block = *at;
    *at = block->next;
    free(block);
    if (!pool->frames[index].blocks)
        vacate(pool, index);
}

static void release_array(struct reach_pool *pool, const struct found *found)
{
    struct alloc_frame *frame = &pool->frames[found->index];
    const uint64_t end = found->index + frame->run_frames;

    pool->arrays--;
    pool->array_bytes -= found->bytes;
    if (found->block) {
        remove_block(pool, found->index, found->block);
        return;
    }
    if (frame->run_bytes % pool->frame_bytes > 0)
        remove_block(pool, end, pool->frames[end].blocks);
    frame->run_frames = 0;
    frame->run_bytes = 0;
    frame->freed = false;
    for (uint64_t i = found->index; i < end; i++)
        vacate(pool, i);
}

uint64_t array_settle(struct reach_pool *pool, bool wait)
{
    struct alloc_pending **at = &pool->pending;
    uint64_t settled = 0;

    while (*at) {
        struct alloc_pending *p = *at;
        struct found found;
        const int r =
            wait ? pool->driver.cuEventSynchronize(p->event) : pool->driver.cuEventQuery(p->event);
        if (r != 0 || !find_array(pool, p->address, &found)) {
            at = &p->next;
            continue;
        }
        release_array(pool, &found);
        (void)pool->driver.cuEventDestroy(p->event);
        *at = p->next;
        free(p);
        settled++;
    }
    return settled;
}

/* Finds an array of the same size that was freed on the same stream. Later work on the stream runs
 * after the last use of the array. */
static bool reuse(struct reach_pool *pool, uint64_t bytes, const void *stream, uint64_t *address)
{
    struct alloc_pending **at = &pool->pending;
    struct alloc_pending *p;
    struct found found;

    if (stream == REACH_NO_STREAM || (uintptr_t)stream == DRV_STREAM_PER_THREAD)
        return false;
    while (*at && ((*at)->stream != stream || (*at)->bytes != bytes))
        at = &(*at)->next;
    p = *at;
    if (!p || !find_array(pool, p->address, &found))
        return false;
    *found.freed = false;
    *address = p->address;
    (void)pool->driver.cuEventDestroy(p->event);
    *at = p->next;
    free(p);
    return true;
}

enum reach_alloc_status reach_device_alloc(struct reach_pool *pool, uint64_t bytes, void *stream,
                                           void **out, struct reach_alloc_error *error)
{
    enum reach_alloc_status s = alloc_enter(pool, error);
    uint64_t address = 0;

    *out = NULL;
    if (s != REACH_ALLOC_OK)
        return s;
    if (bytes == 0 || bytes > pool->range_bytes) {
        alloc_leave(pool);
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "invalid size of an array: %llu bytes", (unsigned long long)bytes);
    }
    bytes = (bytes + ALLOC_ALIGNMENT - 1) / ALLOC_ALIGNMENT * ALLOC_ALIGNMENT;
    const bool reused = reuse(pool, bytes, stream, &address);
    (void)array_settle(pool, false);
    if (!reused) {
        s = place(pool, bytes, &address, error);
        if (s == REACH_ALLOC_NO_MEMORY && array_settle(pool, true) + frame_trim(pool) > 0)
            s = place(pool, bytes, &address, error);
        pool->arrays += s == REACH_ALLOC_OK;
        pool->array_bytes += s == REACH_ALLOC_OK ? bytes : 0;
    }
    if (s == REACH_ALLOC_OK)
        *out = (void *)(uintptr_t)address; /* device address, never dereferenced */
    alloc_leave(pool);
    return s;
}

/* Records an event that shows when `stream` has completed the work submitted so far. */
static enum reach_alloc_status defer(struct reach_pool *pool, uint64_t address, uint64_t bytes,
                                     void *stream, struct reach_alloc_error *error)
{
    enum reach_alloc_status s;
    struct alloc_pending *pending = malloc(sizeof *pending);

    if (!pending)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY, "cannot note a free: out of memory");
    *pending = (struct alloc_pending){
        .next = pool->pending, .stream = stream, .address = address, .bytes = bytes};
    s = DRV(pool, error, cuEventCreate, &pending->event, DRV_EVENT_DISABLE_TIMING);
    if (s != REACH_ALLOC_OK)
        goto out;
    s = DRV(pool, error, cuEventRecord, pending->event, stream);
    if (s != REACH_ALLOC_OK) {
        (void)pool->driver.cuEventDestroy(pending->event);
        goto out;
    }
    pool->pending = pending;
    return REACH_ALLOC_OK;
out:
    free(pending);
    return s;
}

enum reach_alloc_status reach_device_free(struct reach_pool *pool, void *array, void *stream,
                                          struct reach_alloc_error *error)
{
    const uint64_t address = (uintptr_t)array;
    struct found found;
    enum reach_alloc_status s;

    if (!array)
        return REACH_ALLOC_OK;
    s = alloc_enter(pool, error);
    if (s != REACH_ALLOC_OK)
        return s;
    if (!find_array(pool, address, &found) || *found.freed) {
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                       "0x%llx is not an array of this pool, or was already freed",
                       (unsigned long long)address);
    } else if (stream == REACH_NO_STREAM) {
        release_array(pool, &found);
    } else {
        s = defer(pool, address, found.bytes, stream, error);
        *found.freed = s == REACH_ALLOC_OK;
    }
    alloc_leave(pool);
    return s;
}
