/* order.c: the order of the GPUs in a snapshot, which is the order of their indices (docs/http.md):
 * by PCI address. A lost GPU keeps its place, so the indices of the other GPUs do not change. A
 * lost GPU comes last if another GPU has its address: it was replaced, or the state file is from
 * another node. */
#include "measure/order.h"

#include "base/log.h"
#include "measure/pipeline_state.h"

#include <string.h>

/* Returns whether a GPU that is present has the address of this lost GPU. */
static bool is_displaced(const struct snapshot *s, const struct snapshot_gpu *gpu)
{
    if (gpu->state != GPU_STATE_LOST)
        return false;
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (s->gpus[i].state != GPU_STATE_LOST &&
            identity_is_same_address(&s->gpus[i].identity, &gpu->identity))
            return true;
    }
    return false;
}

/* Returns whether `a` comes after `b`. */
static bool is_behind(const struct snapshot *s, const struct snapshot_gpu *a,
                      const struct snapshot_gpu *b)
{
    const bool last = is_displaced(s, a);

    return last != is_displaced(s, b) ? last : identity_compare(&a->identity, &b->identity) > 0;
}

/* Writes the GPUs in their order, as indices of the draft. Returns whether any GPU moves. The sort
 * is stable. */
static bool order_of(const struct snapshot *s, uint32_t out[REACH_MAX_GPUS])
{
    bool moved = false;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        uint32_t at = i;
        for (; at > 0 && is_behind(s, &s->gpus[out[at - 1]], &s->gpus[i]); at--)
            out[at] = out[at - 1];
        out[at] = i;
        moved = moved || at != i;
    }
    return moved;
}

/* Sets the indices of the threads. A change is logged unless GPUs are still being discovered. */
static void tell_threads(struct pipeline *p, const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        struct gpu_thread *const thread = pipeline_find_thread(p, s->gpus[i].identity.uuid);
        if (!thread || thread->index == i)
            continue;
        if (p->discovery.found && thread->index != UINT32_MAX)
            log_info("gpu %u %s is now gpu %u", thread->index, thread->identity.uuid, i);
        thread->index = i;
    }
}

struct snapshot *pipeline_sort(struct pipeline *p, struct snapshot *take,
                               bool which[REACH_MAX_GPUS])
{
    uint32_t order[REACH_MAX_GPUS];
    bool before[REACH_MAX_GPUS];
    struct snapshot *const sorted = order_of(take, order) ? snapshot_draft(take->gpu_count) : NULL;

    if (sorted) {
        memcpy(sorted, take, sizeof *take);
        memcpy(before, which, sizeof before);
        for (uint32_t i = 0; i < take->gpu_count; i++) {
            sorted->gpus[i] = take->gpus[order[i]];
            which[i] = before[order[i]];
        }
        snapshot_discard(take);
    }
    tell_threads(p, sorted ? sorted : take);
    return sorted ? sorted : take;
}
