/* trace_work.c: see trace_work.h. */
#include "clients/lab/papers/programs/trace_work.h"

#include "base/units.h"

#include <stddef.h>

/* The engine has no data below. The offset keeps the alignment of large pages. */
static const uint64_t FIRST_BYTE = 4 * MIB;
static const uint64_t MOST_BYTES = 127 * GIB;

/* Returns the record of warp number `warp` of the job, or NULL if the warp has ended. */
static const struct trace_record *find_record(const struct trace_work *t, uint32_t warp,
                                              uint32_t iteration)
{
    const uint32_t of_block = t->work.block_warps;
    const struct trace_block *b = &t->trace->blocks[warp / of_block];
    if (warp / of_block >= t->trace->block_count || warp % of_block >= b->warp_count)
        return NULL;
    const struct trace_warp *w = &t->trace->warps[b->first_warp + warp % of_block];
    return iteration < w->record_count ? &t->trace->records[w->first_record + iteration] : NULL;
}

static void record_addresses(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                             uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES])
{
    const struct trace_work *t = context;
    (void)op;
    for (; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const struct trace_record *r = find_record(t, threads[lane] / LAB_LANES, iteration);
        if (!r)
            continue; /* threads that have ended are not active */
        const uint32_t rank = (uint32_t)__builtin_popcount(r->mask & ((1u << lane) - 1));
        const uint32_t line = rank * r->line_count / (uint32_t)__builtin_popcount(r->mask);
        out[lane] =
            FIRST_BYTE + ((uint64_t)t->trace->units[r->first_unit + line] << t->trace->unit_shift);
    }
}

static uint32_t record_mask(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                            uint32_t iteration, uint32_t region)
{
    const struct trace_record *r = find_record(context, threads[0] / LAB_LANES, iteration);
    (void)region;
    return r ? r->mask & lanes : 0;
}

static bool block_diverges(const void *context, uint32_t thread, uint32_t iteration)
{
    const struct trace_work *t = context;
    const uint32_t of_block = t->work.block_warps;
    const uint32_t first = thread / LAB_LANES / of_block * of_block;
    for (uint32_t warp = first; warp < first + of_block; warp++) {
        const struct trace_record *r = find_record(t, warp, iteration);
        if (r && r->mask != RLT_FULL_MASK)
            return true;
    }
    return false;
}

enum status trace_work_set(const struct trace *trace, uint32_t gap, struct trace_work *out,
                           struct err *err)
{
    *out = (struct trace_work){.trace = trace, .op = {.gap = (uint8_t)gap, .region = 1}};
    if (trace->range_bytes > MOST_BYTES)
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "the trace touches more than 127 GiB: the machines have 128 GiB");
    out->work = (struct lab_work){.name = "trace",
                                  .ops = &out->op,
                                  .op_count = 1,
                                  .block_warps = 1,
                                  .context = out,
                                  .addresses = record_addresses,
                                  .taken = record_mask,
                                  .diverges = block_diverges};
    for (uint32_t b = 0; b < trace->block_count; b++) {
        if (trace->blocks[b].warp_count > out->work.block_warps)
            out->work.block_warps = trace->blocks[b].warp_count;
    }
    for (uint32_t w = 0; w < trace->warp_count; w++) {
        if (trace->warps[w].record_count > out->work.iterations)
            out->work.iterations = trace->warps[w].record_count;
    }
    return STATUS_OK;
}
