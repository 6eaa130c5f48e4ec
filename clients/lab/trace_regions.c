/* trace_regions.c: which memory a trace touches, and where it is moved to. The k-th chunk that is
 * touched becomes chunk k, so chunks that are neighbors stay neighbors.
 */
#include "clients/lab/trace_load.h"

#include <stdlib.h>

static uint64_t hash_of(uint64_t key)
{
    key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

static bool set_grow(struct number_set *s)
{
    const uint32_t room = s->room > 0 ? 2 * s->room : 256;
    uint64_t *keys = realloc(s->keys, room * sizeof *keys);
    uint32_t *slots;
    if (!keys)
        return false;
    s->keys = keys;
    slots = calloc(2 * (size_t)room, sizeof *slots);
    if (!slots)
        return false;
    free(s->slots);
    s->slots = slots;
    s->room = room;
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t at = hash_of(keys[i]) & (2 * (uint64_t)room - 1);
        while (slots[at] != 0)
            at = (at + 1) & (2 * (uint64_t)room - 1);
        slots[at] = i + 1;
    }
    return true;
}

uint32_t number_set_add(struct number_set *s, uint64_t key)
{
    uint64_t at;
    if (s->count == s->room && (s->room >= UINT32_MAX / 4 || !set_grow(s)))
        return UINT32_MAX;
    at = hash_of(key) & (2 * (uint64_t)s->room - 1);
    while (s->slots[at] != 0) {
        if (s->keys[s->slots[at] - 1] == key)
            return s->slots[at] - 1;
        at = (at + 1) & (2 * (uint64_t)s->room - 1);
    }
    s->keys[s->count] = key;
    s->slots[at] = ++s->count;
    return s->count - 1;
}

void number_set_free(struct number_set *take)
{
    free(take->keys);
    free(take->slots);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The place of a chunk that is there. */
static uint64_t rank_of(const struct number_set *chunks, uint64_t chunk)
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

/* A run of neighboring chunks is a region; its ends are found later. */
static enum status begin_regions(struct trace *t, const struct number_set *chunks, struct err *err)
{
    t->regions = calloc(chunks->count + (size_t)1, sizeof *t->regions);
    if (!t->regions)
        return err_set(err, STATUS_NO_MEMORY, "no memory for the regions of the trace");
    for (uint32_t i = 0; i < chunks->count; i++) {
        if (i > 0 && chunks->keys[i] == chunks->keys[i - 1] + 1)
            continue;
        t->regions[t->region_count++] =
            (struct trace_region){.base = UINT64_MAX, .at = i * TRACE_CHUNK_BYTES};
    }
    return STATUS_OK;
}

/* The region of a moved address. */
static struct trace_region *region_of(const struct trace *t, uint64_t moved)
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

/* Until end_regions: base is the lowest address, bytes the highest end. */
static void widen(struct trace_region *r, uint64_t base, uint64_t end)
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

/* An allocation of which something is touched counts as a whole. */
static enum status add_allocations(struct number_set *chunks, const struct rlt_allocation *a,
                                   uint32_t count, bool *touched, struct err *err)
{
    qsort(chunks->keys, chunks->count, sizeof *chunks->keys, by_value);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t first = a[i].base / TRACE_CHUNK_BYTES;
        const uint64_t last = (a[i].base + a[i].bytes - 1) / TRACE_CHUNK_BYTES;
        const uint64_t found = chunks->keys[rank_of(chunks, first)];
        touched[i] =
            found >= first && found <= last && last - first < TRACE_MAX_CHUNKS - chunks->count;
    }
    /* From here the keys are no set any more, only a list that is sorted again. */
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t last = (a[i].base + a[i].bytes - 1) / TRACE_CHUNK_BYTES;
        for (uint64_t c = a[i].base / TRACE_CHUNK_BYTES; touched[i] && c <= last; c++) {
            if (chunks->count >= 2 * TRACE_MAX_CHUNKS)
                return err_set(err, STATUS_NOT_APPLICABLE,
                               "the allocations of the trace are more than 16 TiB");
            if (chunks->count == chunks->room) {
                uint64_t *more = realloc(chunks->keys, 2 * (size_t)chunks->room * sizeof *more);
                if (!more)
                    return err_set(err, STATUS_NO_MEMORY, "no memory for the allocations");
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

static uint64_t moved_of(const struct number_set *chunks, uint64_t address)
{
    return rank_of(chunks, address / TRACE_CHUNK_BYTES) * TRACE_CHUNK_BYTES +
           address % TRACE_CHUNK_BYTES;
}

enum status trace_move(struct trace *t, struct number_set *chunks, uint64_t *lines,
                       const struct rlt_allocation *allocations, uint32_t allocation_count,
                       struct err *err)
{
    bool *touched = calloc(allocation_count + 1u, sizeof *touched);
    enum status s = touched ? add_allocations(chunks, allocations, allocation_count, touched, err)
                            : err_set(err, STATUS_NO_MEMORY, "no memory for the allocations");
    if (s == STATUS_OK) {
        sort_chunks(chunks);
        s = begin_regions(t, chunks, err);
    }
    t->units = malloc((t->line_count + 1) * sizeof *t->units);
    if (s == STATUS_OK && !t->units)
        s = err_set(err, STATUS_NO_MEMORY, "no memory for %llu lines",
                    (unsigned long long)t->line_count);
    if (s != STATUS_OK || !touched || !t->units) {
        free(touched);
        return s;
    }
    t->range_bytes = chunks->count * TRACE_CHUNK_BYTES;
    while (t->range_bytes >> t->unit_shift > UINT32_MAX)
        t->unit_shift++;
    for (uint64_t i = 0; i < t->line_count; i++) {
        const uint64_t moved = moved_of(chunks, lines[i]);
        t->units[i] = (uint32_t)(moved >> t->unit_shift);
        widen(region_of(t, moved), lines[i], lines[i] + t->granule_bytes);
    }
    for (uint32_t i = 0; i < allocation_count; i++) {
        const struct rlt_allocation *a = &allocations[i];
        if (touched[i])
            widen(region_of(t, moved_of(chunks, a->base)), a->base, a->base + a->bytes);
    }
    end_regions(t);
    free(touched);
    return STATUS_OK;
}

/* The lowest region may begin above an address that lies in none: that counts as its begin. */
uint64_t trace_position(const struct trace *t, uint64_t moved)
{
    const struct trace_region *r = region_of(t, moved);
    const uint64_t within = moved > r->at ? moved - r->at : 0;
    return r->before + (within < r->bytes ? within : r->bytes - 1);
}
