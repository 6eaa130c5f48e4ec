/* trace.c: see trace.h. */
#include "clients/lab/trace/trace.h"

#include <stdlib.h>

void trace_free(struct trace *take)
{
    free(take->regions);
    free(take->kernels);
    free(take->blocks);
    free(take->warps);
    free(take->records);
    free(take->units);
    *take = (struct trace){0};
}

struct trace_region *trace_find_region(const struct trace *t, uint64_t moved)
{
    uint32_t low = 0;
    uint32_t high = t->region_count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (t->regions[middle].at <= moved)
            low = middle;
        else
            high = middle - 1;
    }
    return &t->regions[low];
}

uint64_t trace_position(const struct trace *t, uint64_t moved)
{
    const struct trace_region *r = trace_find_region(t, moved);
    const uint64_t within = moved > r->at ? moved - r->at : 0;
    return r->before + (within < r->bytes ? within : r->bytes - 1);
}
