/* core.c: see core.h. In each step the core issues one instruction of a warp that is ready. */
#include "clients/lab/papers/engine/core.h"

#include "clients/lab/papers/engine/block.h"
#include "clients/lab/papers/engine/l1_queue.h"
#include "clients/lab/papers/engine/mmu.h"

static uint64_t bit(uint32_t warp)
{
    return (uint64_t)1 << warp;
}

/* ---- issue ---- */

static void find_pages(struct lab_core *c, uint32_t warp)
{
    struct lab_warp *w = &c->warps[warp];
    const struct lab_block *b = &c->blocks[warp / c->job->block_warps];
    if (b->packed)
        lab_job_access_packed(c->job, b->id, w->iteration, w->active, w->homes, &w->access);
    else
        lab_job_access(c->job, b->id, warp % c->job->block_warps, w->iteration, &w->access);
    c->counts.instructions++;
    c->counts.memory++;
    c->counts.lanes += (uint32_t)__builtin_popcount(w->active);
    c->counts.pages += w->access.page_count;
    w->ready = 0;
}

static void issue_memory(struct lab_core *c, uint32_t warp)
{
    struct lab_warp *w = &c->warps[warp];
    const bool first = !(c->waiting & bit(warp));
    if (first)
        find_pages(c, warp);
    const uint32_t missed = lab_mmu_lookup(c, warp, c->now);
    if (first)
        c->counts.page_misses += (uint32_t)__builtin_popcount(missed);
    if (missed != 0 && c->walks_active) {
        c->swapped |= bit(warp);
        lab_mmu_set_waiting(c, warp, true);
        return;
    }
    if (!first)
        lab_mmu_set_waiting(c, warp, false);
    c->memory &= ~bit(warp);
    w->missed = missed;
    w->walking = missed != 0;
    w->ready = c->now + 1;
    if (missed == 0 || c->machine->tlb.overlap)
        lab_l1_queue_add(c, warp, lab_low_bits(w->access.page_count) & ~missed, false, c->now);
    if (missed != 0)
        lab_mmu_start_walks(c, warp, c->now);
}

/* Looks up the pages again for a warp that still waits for the walks of another warp. */
static void retry_lookup(struct lab_core *c, uint32_t warp)
{
    (void)lab_mmu_lookup(c, warp, c->now);
    c->swapped |= bit(warp);
}

static void issue_compute(struct lab_core *c, uint32_t warp)
{
    c->counts.instructions++;
    if (--c->warps[warp].gap > 0)
        return;
    c->compute &= ~bit(warp);
    c->memory |= bit(warp);
}

/* Returns the warps that may issue an instruction with memory as soon as the caches accept one. */
static uint64_t memory_candidates(struct lab_core *c)
{
    uint64_t may = c->memory & ~c->swapped;
    if (c->walks_active && !c->machine->tlb.hits_under_misses)
        return 0;
    if (may != 0 && c->locality)
        may &= lab_locality_may_load(c->locality, c->live, c->now);
    return may;
}

/* Returns the warps of all blocks behind the block of this warp. */
static uint64_t warps_after_block(uint32_t warp, uint32_t of_block)
{
    const uint32_t end = (warp / of_block + 1) * of_block;
    return end < LAB_MAX_WARPS ? ~(uint64_t)0 << end : 0;
}

static uint32_t choose_warp(const struct lab_core *c, uint64_t ready)
{
    if (c->machine->sched.order == LAB_ROUND_ROBIN)
        return lab_sched_next(ready, c->last);
    if (c->machine->sched.order == LAB_GREEDY_OLDEST && (ready & bit(c->last)))
        return c->last;
    /* All warps of a block have the same age. */
    const uint32_t of_block = c->job->block_warps;
    uint32_t oldest = (uint32_t)__builtin_ctzll(ready);
    uint64_t least = c->ages[oldest / of_block];
    for (uint64_t left = ready & warps_after_block(oldest, of_block); left != 0;) {
        const uint32_t warp = (uint32_t)__builtin_ctzll(left);
        const uint64_t age = c->ages[warp / of_block];
        oldest = age < least ? warp : oldest;
        least = age < least ? age : least;
        left &= warps_after_block(warp, of_block);
    }
    return oldest;
}

static void handle_event(struct lab_core *c, const struct lab_event *event)
{
    const uint32_t index = (uint32_t)event->code;
    switch ((enum lab_event_kind)(event->code >> 32)) {
    case LAB_WARP_READY:
        lab_block_end_access(c, index);
        break;
    case LAB_L1_READY:
        c->queue_event = false;
        lab_l1_queue_drain(c);
        break;
    case LAB_LOAD_READY:
        lab_mmu_advance_walk(c, index, event->at);
        break;
    }
}

/* Returns the time at which the caches accept the next instruction with memory, if no line
 * waits. */
static uint64_t caches_free_at(const struct lab_core *c)
{
    return c->lines_free > c->lookups_free ? c->lines_free : c->lookups_free;
}

/* Returns the time of the next change, if no warp can issue now. */
static uint64_t next_change(const struct lab_core *c, uint64_t may)
{
    uint64_t at = c->events.count > 0 ? c->events.heap[0].at : LAB_NEVER;
    if (may != 0 && c->queue_count == 0 && caches_free_at(c) < at)
        at = caches_free_at(c);
    return at;
}

/* Steps that read memory must not run ahead of other cores. These steps are lines, walks, and
 * instructions with memory that do not wait for the walks of another warp. */
void lab_core_run(struct lab_core *c, uint64_t limit)
{
    while (c->live != 0) {
        if (c->events.count > 0 && c->events.heap[0].at <= c->now) {
            c->next = c->events.heap[0].at;
            if (c->next > limit && c->events.heap[0].code >> 32 != LAB_WARP_READY)
                return;
            const struct lab_event event = lab_events_pop(&c->events);
            handle_event(c, &event);
            continue;
        }
        const uint64_t may = memory_candidates(c);
        const bool takes = c->queue_count == 0 && caches_free_at(c) <= c->now;
        const uint64_t ready = c->compute | (takes ? may : 0);
        if (ready == 0) {
            c->next = next_change(c, may);
            if (c->next == LAB_NEVER)
                return;
            c->counts.idle_cycles += c->next - c->now;
            c->now = c->next;
            continue;
        }
        const uint32_t warp = choose_warp(c, ready);
        c->next = c->now;
        if (c->memory & bit(warp)) {
            if (lab_mmu_must_wait(c, warp))
                retry_lookup(c, warp);
            else if (c->now > limit)
                return;
            else
                issue_memory(c, warp);
        } else {
            issue_compute(c, warp);
        }
        if (c->locality)
            lab_locality_issued(c->locality, warp);
        c->last = warp;
        c->now += c->machine->issue_cycles;
    }
    c->next = LAB_NEVER;
}
