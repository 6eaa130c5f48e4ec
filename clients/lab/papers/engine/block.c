/* block.c: see block.h. At a branch, each warp runs one side after the other. With compaction, the
 * threads of a block are packed into new warps (Fung and Aamodt 2011). */
#include "clients/lab/papers/engine/block.h"

static uint64_t bit(uint32_t warp)
{
    return (uint64_t)1 << warp;
}

static void set_own_threads(const struct lab_core *c, uint32_t warp, struct lab_warp *w)
{
    const uint32_t of_block = c->work->block_warps;
    const uint32_t first = (c->blocks[warp / of_block].id * of_block + warp % of_block) * LAB_LANES;
    for (uint32_t lane = 0; lane < LAB_LANES; lane++)
        w->threads[lane] = first + lane;
    w->lanes = UINT32_MAX;
    w->packed = false;
}

static uint32_t lanes_of_side(struct lab_core *c, struct lab_warp *w, const struct lab_op *op)
{
    if (op->region == 0 || w->packed)
        return w->lanes;
    if (w->taken_region != op->region) {
        w->taken_region = op->region;
        w->taken = c->work->taken(c->work->context, w->threads, w->lanes, w->iteration, op->region);
    }
    return op->side == 0 ? w->taken : w->lanes & ~w->taken;
}

static void begin_operation(struct lab_core *c, uint32_t warp, uint32_t lanes, uint32_t gap)
{
    struct lab_warp *w = &c->warps[warp];
    w->active = lanes;
    w->gap = gap;
    if (gap > 0)
        c->compute |= bit(warp);
    else
        c->memory |= bit(warp);
}

static void end_warp(struct lab_core *c, uint32_t warp)
{
    const uint32_t block = warp / c->work->block_warps;
    c->live &= ~bit(warp);
    if (c->locality)
        lab_locality_ended(c->locality, warp);
    if (--c->blocks[block].running == 0)
        lab_block_launch(c, block);
}

static void arrive_at_branch(struct lab_core *c, uint32_t warp);

static bool is_divergent(const struct lab_work *work, const struct lab_warp *w)
{
    return !work->diverges || work->diverges(work->context, w->threads[0], w->iteration);
}

/* Moves an unpacked warp to the next operation with an active lane. */
static void advance_warp(struct lab_core *c, uint32_t warp)
{
    struct lab_warp *w = &c->warps[warp];
    const struct lab_work *work = c->work;
    while (w->iteration < work->iterations) {
        for (; w->op < work->op_count; w->op++) {
            const struct lab_op *op = &work->ops[w->op];
            if (op->region != 0 && c->machine->compact.on && is_divergent(work, w)) {
                arrive_at_branch(c, warp);
                return;
            }
            const uint32_t lanes = lanes_of_side(c, w, op);
            if (lanes != 0) {
                begin_operation(c, warp, lanes, op->gap);
                return;
            }
        }
        w->iteration++;
        w->op = 0;
        w->taken_region = 0;
    }
    end_warp(c, warp);
}

void lab_block_launch(struct lab_core *c, uint32_t block)
{
    const uint32_t of_block = c->work->block_warps;
    if (c->blocks_started == c->engine->blocks)
        return;
    c->blocks[block] = (struct lab_block){.running = of_block,
                                          .id = c->id + c->blocks_started++ * c->machine->cores};
    c->ages[block] = ++c->launches;
    for (uint32_t warp = block * of_block; warp < (block + 1) * of_block; warp++)
        c->live |= bit(warp);
    for (uint32_t warp = block * of_block; warp < (block + 1) * of_block; warp++) {
        struct lab_warp *w = &c->warps[warp];
        *w = (struct lab_warp){0};
        set_own_threads(c, warp, w);
        advance_warp(c, warp);
    }
}

/* ---- compaction ---- */

struct block_warps {
    const struct lab_core *core;
    uint32_t first; /* the first warp of the block */
};

static bool matrix_agrees(const void *context, uint32_t home, uint32_t lane, uint32_t members)
{
    const struct block_warps *h = context;
    (void)lane;
    for (; members != 0; members &= members - 1) {
        if (!lab_matrix_agree(&h->core->matrix, h->first + home,
                              h->first + (uint32_t)__builtin_ctz(members)))
            return false;
    }
    return true;
}

/* Returns the first operation of a side of the branch, or LAB_NO_THREAD if the side has no
 * operation. */
static uint32_t first_op(const struct lab_work *work, uint32_t op, uint32_t side)
{
    const uint32_t region = work->ops[op].region;
    for (; op < work->op_count && work->ops[op].region == region; op++) {
        if (work->ops[op].side == side)
            return op;
    }
    return LAB_NO_THREAD;
}

/* Restores the original threads of each warp of the block, behind the branch. */
static void restore_warps(struct lab_core *c, uint32_t block)
{
    struct lab_block *b = &c->blocks[block];
    const uint32_t of_block = c->work->block_warps;
    const uint32_t region = c->work->ops[b->op].region;
    uint32_t op = b->op;
    while (op < c->work->op_count && c->work->ops[op].region == region)
        op++;
    b->running = of_block;
    b->waiting = 0;
    b->packed = false;
    for (uint32_t warp = block * of_block; warp < (block + 1) * of_block; warp++) {
        struct lab_warp *w = &c->warps[warp];
        set_own_threads(c, warp, w);
        w->op = op;
        w->taken_region = 0;
    }
    for (uint32_t warp = block * of_block; warp < (block + 1) * of_block; warp++)
        advance_warp(c, warp);
}

/* Packs the threads of one side and runs them. Returns false if the side has no thread or no
 * operation. */
static bool run_side(struct lab_core *c, uint32_t block, uint32_t side)
{
    struct lab_block *b = &c->blocks[block];
    const uint32_t of_block = c->work->block_warps;
    const uint32_t first = block * of_block;
    const uint32_t op = first_op(c->work, b->op, side);
    const struct block_warps homes = {c, first};
    uint32_t lanes[LAB_MAX_BLOCK_WARPS];
    uint32_t packed[LAB_MAX_BLOCK_WARPS][LAB_LANES];
    if (op == LAB_NO_THREAD)
        return false;
    for (uint32_t i = 0; i < of_block; i++) {
        struct lab_warp own = {.iteration = b->iteration};
        set_own_threads(c, first + i, &own);
        lanes[i] = lanes_of_side(c, &own, &c->work->ops[op]);
    }
    const uint32_t count = lab_compact_block(
        lanes, of_block, c->machine->compact.aware ? matrix_agrees : NULL, &homes, packed);
    b->side = side;
    b->running = count;
    b->waiting = 0;
    c->counts.compacted += count;
    for (uint32_t i = 0; i < count; i++) {
        struct lab_warp *w = &c->warps[first + i];
        w->packed = true;
        w->op = op;
        w->lanes = 0;
        for (uint32_t lane = 0; lane < LAB_LANES; lane++) {
            if (packed[i][lane] == LAB_NO_THREAD)
                continue;
            w->threads[lane] = b->id * of_block * LAB_LANES + packed[i][lane];
            w->lanes |= 1u << lane;
        }
        begin_operation(c, first + i, w->lanes, c->work->ops[op].gap);
    }
    return count > 0;
}

/* Handles a warp that reached the branch or the end of its side. The last warp of the block
 * continues. */
static void arrive_at_branch(struct lab_core *c, uint32_t warp)
{
    const uint32_t block = warp / c->work->block_warps;
    struct lab_block *b = &c->blocks[block];
    if (++b->waiting < b->running)
        return;
    uint32_t side = 0;
    if (b->packed) {
        side = b->side + 1;
    } else {
        b->packed = true;
        b->op = c->warps[warp].op;
        b->iteration = c->warps[warp].iteration;
    }
    for (; side < 2; side++) {
        if (run_side(c, block, side))
            return;
    }
    restore_warps(c, block);
}

void lab_block_end_operation(struct lab_core *c, uint32_t warp)
{
    struct lab_warp *w = &c->warps[warp];
    const struct lab_work *work = c->work;
    const struct lab_op *was = &work->ops[w->op];
    w->op++;
    if (!w->packed) {
        advance_warp(c, warp);
        return;
    }
    const struct lab_op *op = &work->ops[w->op];
    if (w->op < work->op_count && op->region == was->region && op->side == was->side)
        begin_operation(c, warp, w->lanes, op->gap);
    else
        arrive_at_branch(c, warp);
}
