/* trace.c: see trace.h. */
#include "clients/lab/trace/trace.h"

#include <stdlib.h>

void trace_free(struct trace *take)
{
    free(take->regions);
    free(take->kernels);
    free(take->kernel_blocks);
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

void left_out_print(const struct rlt_left_out *l, uint64_t records, FILE *out)
{
    const double share = rlt_left_out_share(l, records);
    if (share > 0)
        (void)fprintf(out,
                      "left out: %.1f %% of the accesses to global memory: %llu bulk copies (TMA), "
                      "%llu to textures or surfaces, %llu without an address\n",
                      100 * share, (unsigned long long)l->copies, (unsigned long long)l->textures,
                      (unsigned long long)l->unknown);
    if (l->lost > 0)
        (void)fprintf(out, "lost: %llu accesses, because the recorder's buffer was full\n",
                      (unsigned long long)l->lost);
}

void left_out_write(struct json_writer *t, const struct rlt_left_out *l, uint64_t records)
{
    json_writer_open(t, "left_out", '{');
    json_writer_real(t, "share", rlt_left_out_share(l, records));
    json_writer_u64(t, "copies", l->copies);
    json_writer_u64(t, "textures", l->textures);
    json_writer_u64(t, "unknown", l->unknown);
    json_writer_u64(t, "lost", l->lost);
    json_writer_close(t, '}');
}
