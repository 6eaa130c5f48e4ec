/* trace_regions.c: see trace_regions.h. The chunk with the k-th lowest number becomes chunk k, so
 * neighboring chunks stay neighbors. */
#include "clients/lab/trace/trace_regions.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the position of a chunk in the sorted list, or of the next higher chunk if it is
 * missing. */
static uint64_t chunk_rank(const struct number_set *chunks, uint64_t chunk)
{
    uint32_t low = 0;
    uint32_t high = chunks->count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (chunks->keys[middle] < chunk)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- regions ---- */

/* Starts a region for each run of neighboring chunks. widen_region sets its ends. */
static enum status begin_regions(struct trace *t, const struct number_set *chunks, struct err *err)
{
    t->regions = calloc(chunks->count + (size_t)1, sizeof *t->regions);
    if (!t->regions)
        return err_set(err, STATUS_NO_MEMORY,
                       "cannot allocate the regions of the trace: out of memory");
    for (uint32_t i = 0; i < chunks->count; i++) {
        if (i > 0 && chunks->keys[i] == chunks->keys[i - 1] + 1)
            continue;
        t->regions[t->region_count++] =
            (struct trace_region){.base = UINT64_MAX, .at = i * TRACE_CHUNK_BYTES};
    }
    return STATUS_OK;
}

/* Includes [base, end) in a region. Until end_regions, `bytes` is the highest end address. */
static void widen_region(struct trace_region *r, uint64_t base, uint64_t end)
{
    r->base = base < r->base ? base : r->base;
    r->bytes = end > r->bytes ? end : r->bytes;
}

static void end_regions(struct trace *t)
{
    for (uint32_t i = 0; i < t->region_count; i++) {
        struct trace_region *r = &t->regions[i];
        r->at += r->base % TRACE_CHUNK_BYTES;
        r->bytes -= r->base;
        r->before = t->bytes;
        t->bytes += r->bytes;
    }
}

/* Adds all chunks of each allocation that has a touched chunk. */
static enum status add_allocations(struct number_set *chunks, const struct rlt_allocation *a,
                                   uint32_t count, bool *touched, struct err *err)
{
    qsort(chunks->keys, chunks->count, sizeof *chunks->keys, by_value);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t first = a[i].base / TRACE_CHUNK_BYTES;
        const uint64_t last = (a[i].base + a[i].bytes - 1) / TRACE_CHUNK_BYTES;
        const uint64_t found = chunks->keys[chunk_rank(chunks, first)];
        touched[i] =
            found >= first && found <= last && last - first < TRACE_MAX_CHUNKS - chunks->count;
    }
    /* From here on, `chunks` is a list with duplicates. sort_chunks removes the duplicates. */
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t last = (a[i].base + a[i].bytes - 1) / TRACE_CHUNK_BYTES;
        for (uint64_t c = a[i].base / TRACE_CHUNK_BYTES; touched[i] && c <= last; c++) {
            if (chunks->count >= 2 * TRACE_MAX_CHUNKS)
                return err_set(err, STATUS_NOT_APPLICABLE,
                               "the allocations of the trace exceed 16 TiB");
            if (chunks->count == chunks->room) {
                uint64_t *more = realloc(chunks->keys, 2 * (size_t)chunks->room * sizeof *more);
                if (!more)
                    return err_set(err, STATUS_NO_MEMORY,
                                   "cannot allocate the list of allocations: out of memory");
                chunks->keys = more;
                chunks->room *= 2;
            }
            chunks->keys[chunks->count++] = c;
        }
    }
    return STATUS_OK;
}

static void sort_chunks(struct number_set *chunks)
{
    uint32_t kept = 0;
    qsort(chunks->keys, chunks->count, sizeof *chunks->keys, by_value);
    for (uint32_t i = 0; i < chunks->count; i++) {
        if (kept == 0 || chunks->keys[kept - 1] != chunks->keys[i])
            chunks->keys[kept++] = chunks->keys[i];
    }
    chunks->count = kept;
}

/* ---- all ---- */

static uint64_t moved_address(const struct number_set *chunks, uint64_t address)
{
    return chunk_rank(chunks, address / TRACE_CHUNK_BYTES) * TRACE_CHUNK_BYTES +
           address % TRACE_CHUNK_BYTES;
}

enum status trace_regions_set(struct trace *t, struct number_set *chunks, const uint64_t *lines,
                              const struct rlt_allocation *allocations, uint32_t allocation_count,
                              struct err *err)
{
    bool *touched = calloc(allocation_count + 1u, sizeof *touched);
    enum status s =
        touched ? add_allocations(chunks, allocations, allocation_count, touched, err)
                : err_set(err, STATUS_NO_MEMORY, "cannot allocate the allocations: out of memory");
    if (s == STATUS_OK) {
        sort_chunks(chunks);
        s = begin_regions(t, chunks, err);
    }
    t->units = malloc((t->line_count + 1) * sizeof *t->units);
    if (s == STATUS_OK && !t->units)
        s = err_set(err, STATUS_NO_MEMORY, "cannot allocate %llu lines: out of memory",
                    (unsigned long long)t->line_count);
    if (s != STATUS_OK || !touched || !t->units) {
        free(touched);
        return s;
    }
    t->range_bytes = chunks->count * TRACE_CHUNK_BYTES;
    while (t->range_bytes >> t->unit_shift > UINT32_MAX)
        t->unit_shift++;
    for (uint64_t i = 0; i < t->line_count; i++) {
        const uint64_t moved = moved_address(chunks, lines[i]);
        t->units[i] = (uint32_t)(moved >> t->unit_shift);
        widen_region(trace_find_region(t, moved), lines[i], lines[i] + t->granule_bytes);
    }
    for (uint32_t i = 0; i < allocation_count; i++) {
        const struct rlt_allocation *a = &allocations[i];
        if (touched[i])
            widen_region(trace_find_region(t, moved_address(chunks, a->base)), a->base,
                         a->base + a->bytes);
    }
    end_regions(t);
    free(touched);
    return STATUS_OK;
}
