/* alloc_frame.c: creates, maps, moves and releases the memory behind one frame. See alloc_state.h.
 *
 * A handle is never longer than a frame. The driver of an H200 (580.159) looks for a physical run
 * of the handle's length and takes scattered pages if there is none. With 5 % of the memory held by
 * scattered pages, random reads over 97 GiB depend on the handle length. They ran at 776 GB/s with
 * handles of 1 GiB, 871 with 64 MiB, and 1054 with 32 MiB (the frame). Handles of one frame cost
 * 0.15 s more for 97 GiB.
 */
#include "clients/cuda/alloc/alloc_state.h"

#include <stdlib.h>

bool frame_is_backed(const struct alloc_frame *frame)
{
    return frame->handle != 0 || frame->pieces;
}

uint64_t frame_address(const struct reach_pool *pool, uint64_t index)
{
    return pool->base + index * pool->frame_bytes;
}

static enum reach_alloc_status create(struct reach_pool *pool, uint64_t bytes, uint64_t *handle,
                                      struct reach_alloc_error *error)
{
    const struct drv_prop prop = {.type = DRV_PINNED, .location = pool->location};
    const enum reach_alloc_status s = DRV(pool, error, cuMemCreate, handle, bytes, &prop, 0);

    if (s != REACH_ALLOC_OK)
        *handle = 0;
    return s;
}

static void release_handles(struct reach_pool *pool, struct alloc_frame *frame)
{
    const uint64_t pieces = frame->pieces ? pool->frame_bytes / pool->granule_bytes : 0;

    if (frame->handle)
        (void)pool->driver.cuMemRelease(frame->handle);
    for (uint64_t i = 0; i < pieces && frame->pieces[i]; i++)
        (void)pool->driver.cuMemRelease(frame->pieces[i]);
    free(frame->pieces);
    frame->pieces = NULL;
    frame->handle = 0;
}

static enum reach_alloc_status create_pieces(struct reach_pool *pool, struct alloc_frame *frame,
                                             struct reach_alloc_error *error)
{
    const uint64_t pieces = pool->frame_bytes / pool->granule_bytes;
    enum reach_alloc_status s = REACH_ALLOC_OK;

    frame->pieces = calloc(pieces, sizeof *frame->pieces);
    if (!frame->pieces)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                          "cannot allocate a table of handles: out of memory");
    for (uint64_t i = 0; i < pieces && s == REACH_ALLOC_OK; i++)
        s = create(pool, pool->granule_bytes, &frame->pieces[i], error);
    if (s != REACH_ALLOC_OK)
        release_handles(pool, frame);
    return s;
}

/* Maps the memory of `frame` at `address` and gives the device access. On failure nothing is
 * mapped. */
static enum reach_alloc_status map_frame(struct reach_pool *pool, uint64_t address,
                                         const struct alloc_frame *frame,
                                         struct reach_alloc_error *error)
{
    const struct drv_access access = {{DRV_DEVICE, pool->device}, DRV_READ_WRITE};
    const uint64_t bytes = frame->handle ? pool->frame_bytes : pool->granule_bytes;
    const uint64_t count = pool->frame_bytes / bytes;
    enum reach_alloc_status s = REACH_ALLOC_OK;
    uint64_t mapped = 0;

    for (uint64_t i = 0; i < count && s == REACH_ALLOC_OK; i++) {
        const uint64_t handle = frame->handle ? frame->handle : frame->pieces[i];
        s = DRV(pool, error, cuMemMap, address + mapped, bytes, 0, handle, 0);
        if (s == REACH_ALLOC_OK)
            mapped += bytes;
    }
    if (s == REACH_ALLOC_OK)
        s = DRV(pool, error, cuMemSetAccess, address, pool->frame_bytes, &access, 1);
    if (s != REACH_ALLOC_OK && mapped > 0)
        (void)pool->driver.cuMemUnmap(address, mapped);
    return s;
}

enum reach_alloc_status frame_back(struct reach_pool *pool, uint64_t index,
                                   struct reach_alloc_error *error)
{
    struct alloc_frame *frame = &pool->frames[index];
    enum reach_alloc_status s = create(pool, pool->frame_bytes, &frame->handle, error);

    if (s == REACH_ALLOC_NO_MEMORY && pool->frame_bytes > pool->granule_bytes)
        s = create_pieces(pool, frame, error);
    if (s != REACH_ALLOC_OK)
        return s;
    s = map_frame(pool, frame_address(pool, index), frame, error);
    if (s != REACH_ALLOC_OK) {
        release_handles(pool, frame);
        return s;
    }
    frame->scattered = false;
    pool->backed++;
    return REACH_ALLOC_OK;
}

void frame_release(struct reach_pool *pool, uint64_t index)
{
    struct alloc_frame *frame = &pool->frames[index];

    if (!frame_is_backed(frame))
        return;
    (void)pool->driver.cuMemUnmap(frame_address(pool, index), pool->frame_bytes);
    release_handles(pool, frame);
    frame->scattered = false;
    pool->backed--;
}

uint64_t frame_trim(struct reach_pool *pool)
{
    const uint64_t before = pool->backed;

    for (uint64_t i = 0; i < pool->frame_top; i++) {
        if (pool->frames[i].use == FRAME_FREE)
            frame_release(pool, i);
    }
    return before - pool->backed;
}

/* Maps `fresh`, which already holds the contents, at the frame's own address. On failure maps the
 * old memory again. */
static enum reach_alloc_status replace(struct reach_pool *pool, uint64_t index,
                                       struct alloc_frame *fresh, struct reach_alloc_error *error)
{
    struct alloc_frame *frame = &pool->frames[index];
    const uint64_t address = frame_address(pool, index);
    enum reach_alloc_status s;

    (void)pool->driver.cuMemUnmap(address, pool->frame_bytes);
    s = map_frame(pool, address, fresh, error);
    if (s != REACH_ALLOC_OK) {
        if (map_frame(pool, address, frame, error) != REACH_ALLOC_OK &&
            map_frame(pool, address, fresh, error) == REACH_ALLOC_OK)
            s = REACH_ALLOC_OK;
    }
    if (s == REACH_ALLOC_OK) {
        struct alloc_frame old = *frame;
        frame->handle = fresh->handle;
        frame->pieces = NULL;
        frame->scattered = false;
        *fresh = old;
    }
    return s;
}

enum reach_alloc_status frame_move(struct reach_pool *pool, uint64_t index,
                                   struct reach_alloc_error *error)
{
    const uint64_t scratch = frame_address(pool, pool->frame_count);
    struct alloc_frame fresh = {.handle = 0};
    enum reach_alloc_status s = create(pool, pool->frame_bytes, &fresh.handle, error);

    if (s != REACH_ALLOC_OK)
        return s;
    s = map_frame(pool, scratch, &fresh, error);
    if (s != REACH_ALLOC_OK)
        goto out;
    s = DRV(pool, error, cuMemcpyDtoD, scratch, frame_address(pool, index), pool->frame_bytes);
    /* The copy may continue after the call has returned. */
    if (s == REACH_ALLOC_OK)
        s = DRV(pool, error, cuCtxSynchronize);
    if (s == REACH_ALLOC_OK)
        s = replace(pool, index, &fresh, error);
    (void)pool->driver.cuMemUnmap(scratch, pool->frame_bytes);
out:
    release_handles(pool, &fresh); /* releases the memory that is not behind the frame */
    return s;
}
