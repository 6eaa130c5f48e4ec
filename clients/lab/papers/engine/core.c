/* core.c: see core.h. In each step the core issues one instruction of a warp that is ready.
 *
 * Without compaction, a warp runs its records in turn. With compaction, the threads of a block wait
 * for each other in each divergent iteration and are packed into new warps (Fung and Aamodt
 * 2011). */
#include "clients/lab/papers/engine/core.h"

#include "clients/lab/papers/engine/l1_queue.h"
#include "clients/lab/papers/engine/mmu.h"

/* ---- records of warps ---- */

static void begin_access(struct lab_core *c, uint32_t warp, uint32_t lanes)
{
    struct lab_warp *w = &c->warps[warp];
    w->active = lanes;
    w->gap = c->job->gap;
    if (w->gap > 0)
        c->compute |= lab_bit(warp);
    else
        c->memory |= lab_bit(warp);
}

static void end_warp(struct lab_core *c, uint32_t warp)
{
    const uint32_t block = warp / c->job->block_warps;
    c->live &= ~lab_bit(warp);
    if (c->locality)
        lab_locality_ended(c->locality, warp);
    if (--c->blocks[block].running == 0)
        lab_core_launch(c, block);
}

static void arrive_at_branch(struct lab_core *c, uint32_t warp);

/* Moves an unpacked warp to its next record, or to a divergent iteration. */
static void advance_warp(struct lab_core *c, uint32_t warp)
{
    struct lab_warp *w = &c->warps[warp];
    const struct lab_job *job = c->job;
    const uint32_t block = c->blocks[warp / job->block_warps].id;
    for (; w->iteration < job->iterations; w->iteration++) {
        if (c->machine->compact.on && lab_job_diverges(job, block, w->iteration)) {
            arrive_at_branch(c, warp);
            return;
        }
        const struct trace_record *r =
            lab_job_record(job, block, warp % job->block_warps, w->iteration);
        if (r) {
            begin_access(c, warp, r->mask);
            return;
        }
    }
    end_warp(c, warp);
}

void lab_core_launch(struct lab_core *c, uint32_t block)
{
    const uint32_t of_block = c->job->block_warps;
    const uint32_t first = block * of_block;
    if (c->blocks_started == c->engine->blocks)
        return;
    c->blocks[block] = (struct lab_block){.running = of_block,
                                          .id = c->id + c->blocks_started++ * c->machine->cores};
    c->ages[block] = ++c->launches;
    for (uint32_t warp = first; warp < first + of_block; warp++)
        c->live |= lab_bit(warp);
    for (uint32_t warp = first; warp < first + of_block; warp++) {
        c->warps[warp] = (struct lab_warp){0};
        advance_warp(c, warp);
    }
}

/* ---- compaction ---- */

struct block_warps {
    const struct lab_core *core;
    uint32_t first; /* the first warp of the block */
};

static bool matrix_agrees(const void *context, uint32_t home, uint32_t members)
{
    const struct block_warps *h = context;
    for (; members != 0; members &= members - 1) {
        if (!lab_matrix_agree(&h->core->matrix, h->first + home,
                              h->first + (uint32_t)__builtin_ctz(members)))
            return false;
    }
    return true;
}

/* Continues all warps of the block with their own threads, behind the branch. */
static void restore_warps(struct lab_core *c, uint32_t block)
{
    struct lab_block *b = &c->blocks[block];
    const uint32_t of_block = c->job->block_warps;
    const uint32_t first = block * of_block;
    b->running = of_block;
    b->waiting = 0;
    b->packed = false;
    for (uint32_t warp = first; warp < first + of_block; warp++)
        c->warps[warp].iteration++;
    for (uint32_t warp = first; warp < first + of_block; warp++)
        advance_warp(c, warp);
}

/* Packs the active threads of a divergent iteration and runs them. */
static void run_packed(struct lab_core *c, uint32_t block, uint32_t iteration)
{
    struct lab_block *b = &c->blocks[block];
    const uint32_t of_block = c->job->block_warps;
    const struct block_warps homes = {c, block * of_block};
    uint32_t lanes[LAB_MAX_BLOCK_WARPS];
    uint32_t packed[LAB_MAX_BLOCK_WARPS][LAB_LANES];
    for (uint32_t i = 0; i < of_block; i++) {
        const struct trace_record *r = lab_job_record(c->job, b->id, i, iteration);
        lanes[i] = r ? r->mask : 0;
    }
    b->packed = true;
    b->waiting = 0;
    b->running = lab_compact_block(
        lanes, of_block, c->machine->compact.bits > 0 ? matrix_agrees : NULL, &homes, packed);
    c->counts.compacted += b->running;
    for (uint32_t i = 0; i < b->running; i++) {
        struct lab_warp *w = &c->warps[homes.first + i];
        uint32_t active = 0;
        for (uint32_t lane = 0; lane < LAB_LANES; lane++) {
            if (packed[i][lane] == LAB_NO_THREAD)
                continue;
            w->homes[lane] = (uint8_t)(packed[i][lane] / LAB_LANES);
            active |= 1u << lane;
        }
        begin_access(c, homes.first + i, active);
    }
}

/* Handles a warp that reached a divergent iteration or its end. The last warp of the block
 * continues. */
static void arrive_at_branch(struct lab_core *c, uint32_t warp)
{
    const uint32_t block = warp / c->job->block_warps;
    struct lab_block *b = &c->blocks[block];
    if (++b->waiting < b->running)
        return;
    if (b->packed)
        restore_warps(c, block);
    else
        run_packed(c, block, c->warps[warp].iteration);
}

static void end_access(struct lab_core *c, uint32_t warp)
{
    if (c->blocks[warp / c->job->block_warps].packed) {
        arrive_at_branch(c, warp);
        return;
    }
    c->warps[warp].iteration++;
    advance_warp(c, warp);
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

/* Marks whether the warp will look up its pages again. */
static void set_waiting(struct lab_core *c, uint32_t warp, bool waits)
{
    c->waiting = waits ? c->waiting | lab_bit(warp) : c->waiting & ~lab_bit(warp);
    c->translated = waits ? c->translated | lab_bit(warp) : c->translated & ~lab_bit(warp);
}

static void issue_memory(struct lab_core *c, uint32_t warp)
{
    struct lab_warp *w = &c->warps[warp];
    const bool first = !(c->waiting & lab_bit(warp));
    if (first)
        find_pages(c, warp);
    const uint32_t missed = lab_mmu_lookup(c, warp, c->now);
    if (first)
        c->counts.page_misses += (uint32_t)__builtin_popcount(missed);
    if (missed != 0 && c->walks_active) {
        c->swapped |= lab_bit(warp);
        set_waiting(c, warp, true);
        return;
    }
    if (!first)
        set_waiting(c, warp, false);
    c->memory &= ~lab_bit(warp);
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
    c->swapped |= lab_bit(warp);
}

static void issue_compute(struct lab_core *c, uint32_t warp)
{
    c->counts.instructions++;
    if (--c->warps[warp].gap > 0)
        return;
    c->compute &= ~lab_bit(warp);
    c->memory |= lab_bit(warp);
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
    if (c->machine->sched.order == LAB_GREEDY_OLDEST && (ready & lab_bit(c->last)))
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
        end_access(c, index);
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
        if (c->memory & lab_bit(warp)) {
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
