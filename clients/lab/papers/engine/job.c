/* job.c: see job.h. */
#include "clients/lab/papers/engine/job.h"

#include "base/units.h"
#include "clients/lab/papers/engine/shared_memory_system.h"

/* The engine has no data below. The offset keeps the alignment of large pages. */
static const uint64_t FIRST_BYTE = 4 * MIB;
static const uint64_t MOST_BYTES = 127 * GIB;

enum status lab_job_set(const struct trace *trace, uint32_t gap, struct lab_job *out,
                        struct err *err)
{
    *out = (struct lab_job){.trace = trace, .gap = gap, .block_warps = 1};
    if (trace->range_bytes > MOST_BYTES)
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "the trace touches more than 127 GiB: the machines have 128 GiB");
    for (uint32_t b = 0; b < trace->block_count; b++) {
        if (trace->blocks[b].warp_count > out->block_warps)
            out->block_warps = trace->blocks[b].warp_count;
    }
    for (uint32_t w = 0; w < trace->warp_count; w++) {
        if (trace->warps[w].record_count > out->iterations)
            out->iterations = trace->warps[w].record_count;
    }
    return STATUS_OK;
}

bool lab_job_diverges(const struct lab_job *j, uint32_t block, uint32_t iteration)
{
    for (uint32_t warp = 0; warp < j->block_warps; warp++) {
        const struct trace_record *r = lab_job_record(j, block, warp, iteration);
        if (r && r->mask != RLT_FULL_MASK)
            return true;
    }
    return false;
}

/* Returns line number `index` of a record. */
static uint32_t record_line(const struct trace *t, const struct trace_record *r, uint32_t index)
{
    const uint64_t at = (uint64_t)t->units[r->first_unit + index] << t->unit_shift;
    return (uint32_t)((FIRST_BYTE + at) >> LAB_LINE_SHIFT);
}

void lab_job_access(const struct lab_job *j, uint32_t block, uint32_t warp, uint32_t iteration,
                    struct lab_access *out)
{
    const struct trace_record *r = lab_job_record(j, block, warp, iteration);
    const uint32_t active = (uint32_t)__builtin_popcount(r->mask);
    const uint32_t count = r->line_count < active ? r->line_count : active;
    uint32_t lines[LAB_LANES];
    uint8_t homes[LAB_LANES];
    for (uint32_t i = 0; i < count; i++) {
        lines[i] = record_line(j->trace, r, i * r->line_count / count);
        homes[i] = (uint8_t)warp;
    }
    lab_coalesce(lines, homes, count, out);
}

void lab_job_access_packed(const struct lab_job *j, uint32_t block, uint32_t iteration,
                           uint32_t lanes, const uint8_t homes[LAB_LANES], struct lab_access *out)
{
    uint32_t lines[LAB_LANES];
    uint8_t homes_of_lines[LAB_LANES];
    uint32_t count = 0;
    for (; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const struct trace_record *r = lab_job_record(j, block, homes[lane], iteration);
        const uint32_t rank = (uint32_t)__builtin_popcount(r->mask & ((1u << lane) - 1));
        const uint32_t active = (uint32_t)__builtin_popcount(r->mask);
        lines[count] = record_line(j->trace, r, rank * r->line_count / active);
        homes_of_lines[count++] = homes[lane];
    }
    lab_coalesce(lines, homes_of_lines, count, out);
}
