/* stream.c: deals blocks to SMs and sorts accesses in buffers. There is no clock: the SMs take
 * turns, and each turn is one line. A level depends on the order of its own accesses only. The
 * order between SMs of different groups has no effect. The order between SMs of a group has little
 * effect.
 */
#include "clients/lab/whatif/stream.h"

#include "base/rng.h"
#include "gpu/sim/sim_mmu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARP_THREADS = 32, RADIX_BITS = 11, RADIX_PASSES = 2 };

static enum status allocate_stream(struct stream *s, size_t room, struct err *err)
{
    s->units = malloc(room * sizeof *s->units);
    s->sms = malloc(room * sizeof *s->sms);
    s->classes = malloc(room);
    return s->units && s->sms && s->classes
               ? STATUS_OK
               : err_set(err, STATUS_NO_MEMORY,
                         "cannot allocate %zu accesses: out of memory; sample fewer warps", room);
}

enum status stream_new(const struct stream *like, struct stream *out, struct err *err)
{
    *out = (struct stream){.group_count = like->group_count,
                           .unit_shift = like->unit_shift,
                           .range_bytes = like->range_bytes};
    return allocate_stream(out, like->count > 0 ? like->count : 1, err);
}

void stream_free(struct stream *take)
{
    free(take->units);
    free(take->sms);
    free(take->classes);
    *take = (struct stream){0};
}

/* ---- SMs ---- */

/* Returns the number of blocks of all launches that have blocks in the trace, or 0 if a grid is
 * unknown. */
static double launched_blocks(const struct trace *t)
{
    double blocks = 0;
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        const uint32_t *grid = t->kernels[i].grid;
        const double all = (double)grid[0] * grid[1] * grid[2];
        if (t->kernel_blocks[i] == 0)
            continue;
        if (all == 0)
            return 0;
        blocks += all;
    }
    return blocks;
}

static uint32_t largest_group(const uint32_t *sms, uint32_t groups)
{
    uint32_t largest = 0;
    for (uint32_t i = 1; i < groups; i++)
        largest = sms[i] > sms[largest] ? i : largest;
    return largest;
}

uint32_t stream_sms(const struct trace *t, const struct sim_desc *machine,
                    uint16_t out[REACH_MAX_SMS], uint32_t *out_groups)
{
    const struct sim_level *last = &machine->levels[machine->level_count - 1];
    const double launched = launched_blocks(t);
    const double share = launched > 0 ? t->block_count / launched : 1;
    const double groups = fmax(1, round(share * last->instance_count));
    uint32_t sms[REACH_MAX_SMS] = {0};
    bool is_used[REACH_MAX_SMS] = {false};
    uint32_t count = 0;
    *out_groups = groups < last->instance_count ? (uint32_t)groups : last->instance_count;
    for (uint32_t i = 0; i < machine->sm_count; i++)
        sms[last->instance_of_sm[i]]++;
    for (uint32_t i = 0; i < *out_groups; i++) {
        const uint32_t group = largest_group(sms, last->instance_count);
        is_used[group] = true;
        sms[group] = 0;
    }
    for (uint32_t i = 0; i < machine->sm_count; i++) {
        if (is_used[last->instance_of_sm[i]])
            out[count++] = (uint16_t)i;
    }
    return count;
}

/* ---- dealing ---- */

struct running_warp {
    uint32_t warp;
    uint32_t done; /* number of records that were issued */
    uint32_t line; /* number of lines of the next record that were issued */
    uint32_t block;
};

struct dealer {
    const struct trace *t;
    struct stream *out;
    const struct stream_rules *rules;
    struct sim_mmu *data_cache; /* NULL if there is none */
    uint32_t page_shift;        /* log2 of the units per page */
    uint32_t next_block;
    uint32_t *left; /* unfinished warps of each block */
    struct sm {
        uint32_t blocks; /* number of resident blocks */
        uint32_t count, room, turn;
        struct running_warp *warps;
    } sms[REACH_MAX_SMS];
};

static uint64_t block_threads(const struct trace *t, const struct trace_block *b)
{
    const uint32_t *threads = t->kernels[b->kernel].block;
    return (uint64_t)threads[0] * threads[1] * threads[2];
}

static uint32_t resident_blocks(const struct trace *t, uint32_t sm_blocks,
                                const struct trace_block *b)
{
    const uint64_t all = block_threads(t, b);
    uint64_t warps = (all + WARP_THREADS - 1) / WARP_THREADS;
    uint64_t blocks;
    if (sm_blocks > 0)
        return sm_blocks;
    if (all == 0)
        return b->warp_count == 1 ? STREAM_SM_WARPS : STREAM_SM_BLOCKS;
    warps = warps > 0 ? warps : 1;
    blocks = STREAM_SM_WARPS / warps;
    return blocks < 1 ? 1 : blocks > STREAM_SM_BLOCKS ? STREAM_SM_BLOCKS : (uint32_t)blocks;
}

uint32_t stream_sm_warps(const struct trace *t, uint32_t sm_blocks)
{
    const struct trace_block *b = &t->blocks[0];
    const uint64_t threads = block_threads(t, b);
    const uint64_t warps = threads > 0 ? (threads - 1) / WARP_THREADS + 1 : b->warp_count;
    const uint64_t all = warps * resident_blocks(t, sm_blocks, b);
    return all < STREAM_SM_WARPS ? (uint32_t)all : STREAM_SM_WARPS;
}

/* Starts the next block on an SM if a block is left and the SM has room. Returns false if out of
 * memory. */
static bool start_block(struct dealer *d, struct sm *sm, bool *started)
{
    const struct trace_block *b;
    *started = false;
    if (d->next_block == d->t->block_count)
        return true;
    b = &d->t->blocks[d->next_block];
    if (sm->blocks >= resident_blocks(d->t, d->rules->sm_blocks, b))
        return true;
    if (sm->count + b->warp_count > sm->room) {
        const uint32_t room = 2 * (sm->count + b->warp_count);
        struct running_warp *more = realloc(sm->warps, room * sizeof *more);
        if (!more)
            return false;
        sm->warps = more;
        sm->room = room;
    }
    for (uint32_t i = 0; i < b->warp_count; i++)
        sm->warps[sm->count++] = (struct running_warp){b->first_warp + i, 0, 0, d->next_block};
    d->left[d->next_block++] = b->warp_count;
    sm->blocks++;
    *started = true;
    return true;
}

/* Returns whether the page of a line is the page of an earlier line of the record. */
static bool shares_page(const struct dealer *d, const uint32_t *units, uint32_t line)
{
    for (uint32_t i = 0; i < line; i++) {
        if (units[i] >> d->page_shift == units[line] >> d->page_shift)
            return true;
    }
    return false;
}

static void append_line(struct dealer *d, const struct trace_record *r, uint32_t line, uint32_t sm)
{
    const uint32_t *units = d->t->units + r->first_unit;
    const uint32_t class = r->kind * STREAM_KIND_CLASSES + r->sectors - 1u;
    const bool is_cached =
        d->data_cache && r->kind == RLT_LOAD &&
        sim_mmu_access(d->data_cache, sm, (uint64_t)units[line] << d->t->unit_shift) == 0;
    const uint32_t shared = is_cached || shares_page(d, units, line) ? STREAM_SHARED : 0;
    stream_append(d->out, units[line], sm, (uint8_t)(class | shared));
}

/* Issues one line of the SM's next warp. Returns false if out of memory. */
static bool issue_line(struct dealer *d, uint32_t at)
{
    struct sm *sm = &d->sms[at];
    bool started = true;
    if (sm->turn >= sm->count)
        sm->turn = 0;
    struct running_warp *w = &sm->warps[sm->turn];
    const struct trace_record *r = &d->t->records[d->t->warps[w->warp].first_record + w->done];
    append_line(d, r, w->line++, at);
    if (w->line == r->line_count) {
        w->line = 0;
        w->done++;
    }
    if (w->done < d->t->warps[w->warp].record_count) {
        sm->turn++;
        return true;
    }
    if (--d->left[w->block] == 0)
        sm->blocks--;
    *w = sm->warps[--sm->count];
    while (started) {
        if (!start_block(d, sm, &started))
            return false;
    }
    return true;
}

static bool deal_blocks(struct dealer *d, const uint16_t *sms, uint32_t sm_count)
{
    bool any = true;
    bool started;
    while (any) { /* deal one block to each SM in turn until no SM has room */
        any = false;
        for (uint32_t i = 0; i < sm_count; i++) {
            if (!start_block(d, &d->sms[sms[i]], &started))
                return false;
            any = any || started;
        }
    }
    do {
        any = false;
        for (uint32_t i = 0; i < sm_count; i++) {
            if (d->sms[sms[i]].count == 0)
                continue;
            if (!issue_line(d, sms[i]))
                return false;
            any = true;
        }
    } while (any);
    return true;
}

static uint32_t page_unit_shift(uint64_t page_bytes, uint32_t unit_shift)
{
    uint32_t shift = 0;
    while (page_bytes >> (shift + 1 + unit_shift) > 0)
        shift++;
    return shift;
}

enum status stream_deal(const struct trace *t, const struct sim_desc *machine,
                        const struct stream_rules *rules, struct stream *out, struct err *err)
{
    uint16_t sms[REACH_MAX_SMS];
    struct dealer *d = calloc(1, sizeof *d);
    uint32_t *left = calloc(t->block_count, sizeof *left);
    enum status s;
    *out = (struct stream){.unit_shift = t->unit_shift, .range_bytes = t->range_bytes};
    s = allocate_stream(out, t->line_count, err);
    if (!d || !left)
        s = err_set(err, STATUS_NO_MEMORY, "cannot partition the blocks: out of memory");
    if (d && left && s == STATUS_OK) {
        d->t = t;
        d->out = out;
        d->rules = rules;
        d->page_shift = page_unit_shift(rules->page_bytes, t->unit_shift);
        d->left = left;
        d->data_cache = rules->data_cache ? sim_mmu_new(rules->data_cache) : NULL;
        if (rules->data_cache && !d->data_cache)
            s = err_set(err, STATUS_NO_MEMORY, "cannot allocate the data caches: out of memory");
        const uint32_t sm_count = stream_sms(t, machine, sms, &out->group_count);
        if (s == STATUS_OK && !deal_blocks(d, sms, sm_count))
            s = err_set(err, STATUS_NO_MEMORY, "cannot partition the blocks: out of memory");
        for (uint32_t i = 0; i < machine->sm_count; i++)
            free(d->sms[i].warps);
        sim_mmu_free(d->data_cache);
    }
    free(left);
    free(d);
    return s;
}

/* ---- sorting ---- */

/* A stable radix sort by two digits of the page. `order` and `spare` have room for a buffer. */
static void sort_buffer(const uint32_t *units, uint32_t count, uint32_t shift, uint32_t *order,
                        uint32_t *spare)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t pass = 0; pass < RADIX_PASSES; pass++) {
        uint32_t starts[(1 << RADIX_BITS) + 1] = {0};
        const uint32_t low = shift + pass * RADIX_BITS;
        const uint32_t mask = (1 << RADIX_BITS) - 1;
        if (low >= 32)
            return;
        for (uint32_t i = 0; i < count; i++)
            starts[(units[order[i]] >> low & mask) + 1]++;
        for (uint32_t i = 0; i < 1 << RADIX_BITS; i++)
            starts[i + 1] += starts[i];
        for (uint32_t i = 0; i < count; i++)
            spare[starts[units[order[i]] >> low & mask]++] = order[i];
        memcpy(order, spare, count * sizeof *order);
    }
}

/* Pieces are dealt to SMs in random order, like blocks from a queue. In strict rotation a group
 * would get the same pages every few buffers. */
static uint32_t sm_of_piece(uint64_t piece, uint32_t sm_count)
{
    struct rng r = {piece};
    return (uint32_t)rng_below(&r, sm_count);
}

enum status stream_sort(const struct stream *s, uint64_t page_bytes, uint32_t records,
                        uint32_t sm_count, struct stream *out, struct err *err)
{
    uint32_t *order = malloc(2 * (size_t)records * sizeof *order);
    uint32_t shift = page_unit_shift(page_bytes, s->unit_shift);
    enum status status = stream_new(s, out, err);
    out->group_count = 0;
    size_t dealt = 0;
    /* The highest page must fit the two digits, so several small pages may share one key. */
    while (s->range_bytes >> (s->unit_shift + shift) > 1u << RADIX_BITS * RADIX_PASSES)
        shift++;
    if (!order)
        status =
            err_set(err, STATUS_NO_MEMORY, "cannot sort buffers of %u: out of memory", records);
    for (size_t at = 0; order && status == STATUS_OK && at < s->count; at += records) {
        const size_t left = s->count - at;
        const uint32_t count = left < records ? (uint32_t)left : records;
        sort_buffer(s->units + at, count, shift, order, order + records);
        for (uint32_t i = 0; i < count; i++, dealt++)
            stream_append(out, s->units[at + order[i]], sm_of_piece(dealt / STREAM_PIECE, sm_count),
                          s->classes[at + order[i]] & (uint8_t)~STREAM_SHARED);
    }
    free(order);
    return status;
}
