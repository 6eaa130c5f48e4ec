/* alloc_compact.c: selects the frames that are moved into whole ones, and reports the cost. See
 * reach_alloc.h.
 */
#include "clients/cuda/alloc/alloc_state.h"

#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Calls is_scattered for each frame in use, before any frame is moved. */
static uint64_t mark(struct reach_pool *pool, const struct reach_compact_options *o)
{
    uint64_t marked = 0;

    for (uint64_t i = 0; i < pool->frame_top; i++) {
        struct alloc_frame *frame = &pool->frames[i];
        if (frame->use == FRAME_FREE)
            continue;
        if (o->is_scattered)
            frame->scattered = o->is_scattered(
                o->context, (const void *)(uintptr_t)frame_address(pool, i), pool->frame_bytes);
        marked += frame->pieces || frame->scattered;
    }
    return marked;
}

static enum reach_alloc_status move_marked(struct reach_pool *pool, uint64_t max_frames,
                                           struct reach_compaction *done,
                                           struct reach_alloc_error *error)
{
    enum reach_alloc_status s = REACH_ALLOC_OK;

    for (uint64_t i = 0; i < pool->frame_top; i++) {
        const struct alloc_frame *frame = &pool->frames[i];
        if (frame->use == FRAME_FREE || !(frame->pieces || frame->scattered))
            continue;
        if (max_frames > 0 && done->frames == max_frames)
            break;
        s = frame_move(pool, i, error);
        if (s != REACH_ALLOC_OK)
            break;
        done->frames++;
        done->frames_left--;
    }
    return s == REACH_ALLOC_NO_MEMORY ? REACH_ALLOC_OK : s;
}

enum reach_alloc_status reach_compact(struct reach_pool *pool,
                                      const struct reach_compact_options *options,
                                      struct reach_compaction *out, struct reach_alloc_error *error)
{
    struct reach_compact_options o = {.size = 0};
    struct reach_compaction done = {.size = 0};
    const uint64_t start = now_ns();
    enum reach_alloc_status s;

    if (!options || options->size < sizeof options->size || (out && out->size < sizeof out->size))
        return alloc_fail(
            error, REACH_ALLOC_INVALID_ARGUMENT,
            "size of the options and size of the result must be the sizeof of the structs");
    memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    s = alloc_enter(pool, error);
    if (s != REACH_ALLOC_OK)
        return s;
    s = DRV(pool, error, cuCtxSynchronize);
    if (s == REACH_ALLOC_OK) {
        (void)array_settle(pool, false);
        (void)frame_trim(pool); /* makes room for whole frames */
        done.frames_left = mark(pool, &o);
        s = move_marked(pool, o.max_frames, &done, error);
    }
    done.ns = now_ns() - start;
    done.break_even_misses = o.gain_ns > 0 && done.frames > 0 ? (double)done.ns / o.gain_ns : 0;
    pool->compacted_frames += done.frames;
    pool->compact_ns += done.ns;
    alloc_leave(pool);
    if (out) {
        done.size = out->size < sizeof done ? out->size : sizeof done;
        memcpy(out, &done, done.size);
    }
    return s;
}
