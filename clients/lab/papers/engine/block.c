/* block.c: see block.h. Without compaction, a warp runs its records in turn. With compaction, the
 * threads of a block wait for each other in each divergent iteration and are packed into new warps
 * (Fung and Aamodt 2011). */
#include "clients/lab/papers/engine/block.h"

#include <string.h>

static uint64_t bit(uint32_t warp)
{
    return (uint64_t)1 << warp;
}

static void begin_access(struct lab_core *c, uint32_t warp, uint32_t lanes)
{
    struct lab_warp *w = &c->warps[warp];
    w->active = lanes;
    w->gap = c->job->gap;
    if (w->gap > 0)
        c->compute |= bit(warp);
    else
        c->memory |= bit(warp);
}

static void end_warp(struct lab_core *c, uint32_t warp)
{
    const uint32_t block = warp / c->job->block_warps;
    c->live &= ~bit(warp);
    if (c->locality)
        lab_locality_ended(c->locality, warp);
    if (--c->blocks[block].running == 0)
        lab_block_launch(c, block);
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

void lab_block_launch(struct lab_core *c, uint32_t block)
{
    const uint32_t of_block = c->job->block_warps;
    const uint32_t first = block * of_block;
    if (c->blocks_started == c->engine->blocks)
        return;
    c->blocks[block] = (struct lab_block){.running = of_block,
                                          .id = c->id + c->blocks_started++ * c->machine->cores};
    c->ages[block] = ++c->launches;
    for (uint32_t warp = first; warp < first + of_block; warp++)
        c->live |= bit(warp);
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

void lab_block_end_access(struct lab_core *c, uint32_t warp)
{
    if (c->blocks[warp / c->job->block_warps].packed) {
        arrive_at_branch(c, warp);
        return;
    }
    c->warps[warp].iteration++;
    advance_warp(c, warp);
}
