/* trace_load.c: reads a trace and sorts its records by block, then by warp. The records of a warp
 * keep their order. The order between warps is discarded, because it depends on the GPU and on the
 * resident blocks of an SM. What-if deals the blocks again for each question.
 *
 * The chunk of addresses with the k-th lowest number becomes chunk k, so neighboring chunks stay
 * neighbors.
 */
#include "clients/lab/trace/trace_load.h"

#include "clients/lab/trace/number_set.h"

#include <stdlib.h>
#include <string.h>

struct loader {
    struct trace *t;
    struct number_set warps, blocks, chunks;
    uint32_t *block_of_warp; /* block of each warp; warps are in the order of their first records */
    uint32_t *warp_of_record;
    uint64_t *lines; /* addresses */
    uint64_t line_room, record_room, warp_room, block_room;
    uint64_t last_key[3]; /* kernel, block and warp of the last record */
    uint32_t last_warp;
};

static enum status no_memory(struct err *err)
{
    return err_set(err, STATUS_NO_MEMORY,
                   "cannot allocate the trace: out of memory; sample fewer warps");
}

/* Makes room for `needed` elements. Returns false if out of memory. */
static bool reserve_room(void **array, uint64_t *room, uint64_t needed, size_t size)
{
    void *more;
    uint64_t wanted = *room > 0 ? *room : 1024;
    if (needed <= *room)
        return true;
    while (wanted < needed)
        wanted *= 2;
    more = realloc(*array, wanted * size);
    if (!more)
        return false;
    *array = more;
    *room = wanted;
    return true;
}

/* Returns one hash of two numbers. */
static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    a = (a ^ a >> 31) * 0x9e3779b97f4a7c15u;
    return (a ^ a >> 29 ^ b) * 0xbf58476d1ce4e5b9u;
}

/* Returns the number of the record's warp, or UINT32_MAX if out of memory. */
static uint32_t add_warp(struct loader *l, const struct rlt_record *r)
{
    const uint64_t key[3] = {r->kernel, r->block, r->warp};
    const uint64_t block_key = hash_pair(hash_pair(r->kernel + 1, r->block), 1);
    const uint32_t warps = l->warps.count;
    const uint32_t blocks = l->blocks.count;
    uint32_t block;
    uint32_t warp;
    if (l->t->record_count > 0 && memcmp(key, l->last_key, sizeof key) == 0)
        return l->last_warp;
    block = number_set_add(&l->blocks, block_key);
    warp = number_set_add(&l->warps, hash_pair(block_key, r->warp));
    if (block == UINT32_MAX || warp == UINT32_MAX ||
        !reserve_room((void **)&l->t->blocks, &l->block_room, block + 1, sizeof *l->t->blocks) ||
        !reserve_room((void **)&l->block_of_warp, &l->warp_room, warp + 1,
                      sizeof *l->block_of_warp))
        return UINT32_MAX;
    if (block == blocks)
        l->t->blocks[block] = (struct trace_block){.kernel = r->kernel};
    if (warp == warps)
        l->block_of_warp[warp] = block;
    memcpy(l->last_key, key, sizeof key);
    l->last_warp = warp;
    return warp;
}

/* Returns the sectors that memory moves per line if the lanes are spread evenly over the lines. */
static uint8_t line_sectors(const struct rlt_record *r, uint32_t granule_bytes)
{
    const uint32_t bytes = (uint32_t)__builtin_popcount(r->mask) << r->width_log2;
    const uint32_t each = (bytes + r->line_count - 1) / r->line_count;
    const uint32_t sectors = (each + TRACE_SECTOR_BYTES - 1) / TRACE_SECTOR_BYTES;
    const uint32_t most = granule_bytes / TRACE_SECTOR_BYTES;
    return (uint8_t)(sectors < most ? sectors : most);
}

static enum status add_record(struct loader *l, const struct rlt_record *r, struct err *err)
{
    struct trace *t = l->t;
    const uint32_t warp = add_warp(l, r);
    uint64_t room = l->record_room;
    struct trace_record *to;
    if (t->record_count == UINT32_MAX / 2 || t->line_count + r->line_count > UINT32_MAX)
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "the trace has more than 2^32 lines: sample fewer warps");
    if (warp == UINT32_MAX ||
        !reserve_room((void **)&t->records, &room, t->record_count + 1, sizeof *t->records) ||
        !reserve_room((void **)&l->warp_of_record, &l->record_room, t->record_count + 1,
                      sizeof *l->warp_of_record) ||
        !reserve_room((void **)&l->lines, &l->line_room, t->line_count + r->line_count,
                      sizeof *l->lines))
        return no_memory(err);
    l->warp_of_record[t->record_count] = warp;
    to = &t->records[t->record_count++];
    *to = (struct trace_record){.first_unit = (uint32_t)t->line_count,
                                .mask = r->mask,
                                .line_count = (uint8_t)r->line_count,
                                .kind = (uint8_t)r->kind,
                                .sectors = line_sectors(r, t->granule_bytes)};
    for (uint32_t i = 0; i < r->line_count; i++) {
        const uint64_t address = r->lines[i] * t->granule_bytes;
        if ((t->line_count == 0 ||
             address / TRACE_CHUNK_BYTES != l->lines[t->line_count - 1] / TRACE_CHUNK_BYTES) &&
            number_set_add(&l->chunks, address / TRACE_CHUNK_BYTES) == UINT32_MAX)
            return no_memory(err);
        l->lines[t->line_count++] = address;
    }
    if (l->chunks.count > TRACE_MAX_CHUNKS)
        return err_set(err, STATUS_NOT_APPLICABLE, "the trace touches more than 16 TiB");
    t->moved_bytes += (uint64_t)r->line_count * to->sectors * TRACE_SECTOR_BYTES;
    t->kinds[r->kind]++;
    t->gaps += r->gap;
    return STATUS_OK;
}

/* ---- by block and warp ---- */

/* Numbers the warps block by block and writes the new numbers to new_of[]. */
static void number_warps(struct loader *l, uint32_t *new_of)
{
    struct trace *t = l->t;
    uint32_t first = 0;
    for (uint32_t w = 0; w < t->warp_count; w++)
        t->blocks[l->block_of_warp[w]].warp_count++;
    for (uint32_t b = 0; b < t->block_count; b++) {
        t->blocks[b].first_warp = first;
        first += t->blocks[b].warp_count;
        t->blocks[b].warp_count = 0;
    }
    for (uint32_t w = 0; w < t->warp_count; w++) {
        struct trace_block *b = &t->blocks[l->block_of_warp[w]];
        new_of[w] = b->first_warp + b->warp_count++;
    }
}

static enum status sort_records(struct loader *l, struct err *err)
{
    struct trace *t = l->t;
    uint32_t *new_of;
    struct trace_record *sorted;
    uint32_t first = 0;
    t->warp_count = l->warps.count;
    t->block_count = l->blocks.count;
    new_of = malloc((t->warp_count + (size_t)1) * sizeof *new_of);
    sorted = malloc((t->record_count + (size_t)1) * sizeof *sorted);
    t->warps = calloc(t->warp_count + (size_t)1, sizeof *t->warps);
    if (!new_of || !sorted || !t->warps || !l->warp_of_record) {
        free(new_of);
        free(sorted);
        return no_memory(err);
    }
    number_warps(l, new_of);
    for (uint32_t i = 0; i < t->record_count; i++)
        t->warps[new_of[l->warp_of_record[i]]].record_count++;
    for (uint32_t w = 0; w < t->warp_count; w++) {
        t->warps[w].first_record = first;
        first += t->warps[w].record_count;
        t->warps[w].record_count = 0;
    }
    for (uint32_t i = 0; i < t->record_count; i++) {
        struct trace_warp *w = &t->warps[new_of[l->warp_of_record[i]]];
        sorted[w->first_record + w->record_count++] = t->records[i];
    }
    free(t->records);
    t->records = sorted;
    free(new_of);
    return STATUS_OK;
}

/* ---- regions ---- */

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

static uint64_t moved_address(const struct number_set *chunks, uint64_t address)
{
    return chunk_rank(chunks, address / TRACE_CHUNK_BYTES) * TRACE_CHUNK_BYTES +
           address % TRACE_CHUNK_BYTES;
}

/* Sets the units, the range and the regions of `t`. `lines` contains addresses. `chunks` contains
 * the number of every chunk that a line touches; it is changed. */
static enum status set_regions(struct trace *t, struct number_set *chunks, const uint64_t *lines,
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

/* ---- all ---- */

static enum status copy_kernels(struct trace *t, const struct rlt_reader *r, struct err *err)
{
    t->kernel_count = rlt_tables(r)->kernel_count;
    t->kernels = malloc((t->kernel_count + (size_t)1) * sizeof *t->kernels);
    t->kernel_blocks = calloc(t->kernel_count + (size_t)1, sizeof *t->kernel_blocks);
    if (!t->kernels || !t->kernel_blocks)
        return no_memory(err);
    memcpy(t->kernels, rlt_tables(r)->kernels, t->kernel_count * sizeof *t->kernels);
    for (uint32_t b = 0; b < t->block_count; b++)
        t->kernel_blocks[t->blocks[b].kernel]++;
    return STATUS_OK;
}

static enum status load_all(struct loader *l, struct rlt_reader *r, struct err *err)
{
    struct rlt_record record;
    const struct rlt_tables *const tables = rlt_tables(r);
    enum status s = STATUS_OK;
    struct err own = {0};
    l->t->granule_bytes = tables->granule_bytes;
    l->t->unit_shift = 7;
    while (s == STATUS_OK && rlt_read(r, &record, &own))
        s = add_record(l, &record, &own);
    if (own.status == STATUS_OK && (!l->chunks.keys || !l->lines))
        return err_set(err, STATUS_NOT_APPLICABLE, "the trace has no access to memory");
    if (own.status == STATUS_OK)
        s = sort_records(l, &own);
    if (own.status == STATUS_OK)
        s = copy_kernels(l->t, r, &own);
    l->t->left_out = tables->left_out;
    if (own.status == STATUS_OK)
        s = set_regions(l->t, &l->chunks, l->lines, tables->allocations, tables->allocation_count,
                        &own);
    return own.status == STATUS_OK ? s : err_set(err, own.status, "%s", own.text);
}

enum status trace_load(FILE *in, struct trace *out, struct err *err)
{
    struct loader l = {.t = out};
    struct rlt_reader *r;
    enum status s;
    *out = (struct trace){0};
    r = rlt_reader_new(in, err);
    if (!r)
        return err ? err->status : STATUS_CORRUPT;
    s = load_all(&l, r, err);
    rlt_reader_free(r);
    number_set_free(&l.warps);
    number_set_free(&l.blocks);
    number_set_free(&l.chunks);
    free(l.block_of_warp);
    free(l.warp_of_record);
    free(l.lines);
    return s;
}
