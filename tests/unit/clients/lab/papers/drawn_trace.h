/* drawn_trace.h: a small trace with random accesses, for tests of simulated machines. */
#pragma once

#include "base/rng.h"
#include "clients/lab/trace/trace.h"

#include <stdlib.h>

enum { DRAWN_MOST_LINES = 8 };

/* Each warp has 1 to `records` records of 1 to DRAWN_MOST_LINES lines below `bytes`. A share of the
 * records has inactive lanes if `diverges` is set. Free the trace with trace_free. */
static inline struct trace drawn_trace(struct rng *rng, uint32_t blocks, uint32_t warps,
                                       uint32_t records, uint64_t bytes, bool diverges)
{
    const uint32_t most = blocks * warps * records;
    struct trace t = {.granule_bytes = 128,
                      .range_bytes = bytes,
                      .bytes = bytes,
                      .unit_shift = 7,
                      .region_count = 1,
                      .block_count = blocks,
                      .warp_count = blocks * warps,
                      .regions = calloc(1, sizeof *t.regions),
                      .blocks = calloc(blocks, sizeof *t.blocks),
                      .warps = calloc(blocks * warps, sizeof *t.warps),
                      .records = calloc(most, sizeof *t.records),
                      .units = calloc((size_t)most * DRAWN_MOST_LINES, sizeof *t.units)};
    *t.regions = (struct trace_region){.bytes = bytes};
    for (uint32_t w = 0; w < blocks * warps; w++) {
        t.blocks[w / warps] = (struct trace_block){0, w / warps * warps, warps};
        t.warps[w] = (struct trace_warp){t.record_count, 1 + (uint32_t)rng_below(rng, records)};
        for (uint32_t i = 0; i < t.warps[w].record_count; i++) {
            const uint32_t lines = 1 + (uint32_t)rng_below(rng, DRAWN_MOST_LINES);
            const uint32_t mask = (uint32_t)rng_next(rng) | 0xff; /* a lane for each line */
            t.records[t.record_count++] =
                (struct trace_record){.first_unit = (uint32_t)t.line_count,
                                      .mask = diverges && rng_below(rng, 2) ? mask : UINT32_MAX,
                                      .line_count = (uint8_t)lines,
                                      .sectors = 1};
            for (uint32_t k = 0; k < lines; k++)
                t.units[t.line_count++] = (uint32_t)rng_below(rng, bytes >> t.unit_shift);
        }
    }
    return t;
}
