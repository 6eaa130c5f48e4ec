/* rlt_read.c: the reader of .rlt files. One chunk is in memory at a time. The check is compared
 * first. Every number is still validated, because a valid check does not prove a valid writer.
 */
#include "clients/lab/trace/rlt_format.h"

#include <stdlib.h>

/* Maximum number of entries per table. A file with more entries is rejected, so that it cannot
 * exhaust memory. */
enum { MAX_TABLE = 1 << 20 };

struct rlt_reader {
    FILE *in;
    uint32_t shift;
    uint64_t offset; /* offset of the chunk in the file */
    uint64_t record_count, chunk_count;
    bool ended;
    struct rlt_tables tables;
    uint32_t run_kernel, run_warp, run_left;
    uint64_t run_block;
    uint64_t previous;
    const uint8_t *at, *end; /* unread part of the chunk of records */
    uint8_t chunk[RLT_CHUNK_BYTES];
};

static bool damaged(const struct rlt_reader *r, struct err *err, const char *what)
{
    (void)err_set(err, STATUS_CORRUPT, "the trace is damaged at byte %llu: %s",
                  (unsigned long long)r->offset, what);
    return false;
}

/* ---- numbers ---- */

struct cursor {
    const uint8_t *at, *end;
};

static bool get_varint(struct cursor *c, uint64_t *out)
{
    uint64_t v = 0;
    for (uint32_t shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        const uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool get_u32(struct cursor *c, uint32_t *out)
{
    uint64_t v = 0;
    const bool good = get_varint(c, &v) && v <= UINT32_MAX;
    *out = (uint32_t)v;
    return good;
}

static bool get_name(struct cursor *c, char *out)
{
    uint32_t length;
    if (!get_u32(c, &length) || length >= RLT_NAME_BYTES || length > (size_t)(c->end - c->at))
        return false;
    memcpy(out, c->at, length);
    out[length] = '\0';
    c->at += length;
    return true;
}

/* ---- tables ---- */

/* Adds a zeroed entry to a table. Returns NULL after an error. */
static void *add_entry(void **table, uint32_t *count, size_t size, struct err *err)
{
    if (*count == MAX_TABLE) {
        (void)err_set(err, STATUS_CORRUPT, "the trace has more than %d kernels or allocations",
                      MAX_TABLE);
        return NULL;
    }
    if ((*count & (*count - 1)) == 0) {
        void *more = realloc(*table, (*count > 0 ? 2 * (size_t)*count : 1) * size);
        if (!more) {
            (void)err_set(err, STATUS_NO_MEMORY,
                          "cannot allocate the tables of the trace: out of memory");
            return NULL;
        }
        *table = more;
    }
    return memset((char *)*table + (*count)++ * size, 0, size);
}

static bool read_app(struct rlt_reader *r, struct cursor *c, struct err *err)
{
    struct rlt_app *a = add_entry((void **)&r->tables.apps, &r->tables.app_count, sizeof *a, err);
    return a &&
           ((get_name(c, a->name) && c->at == c->end) || damaged(r, err, "invalid application"));
}

static bool read_kernel(struct rlt_reader *r, struct cursor *c, struct err *err)
{
    struct rlt_kernel *k =
        add_entry((void **)&r->tables.kernels, &r->tables.kernel_count, sizeof *k, err);
    bool good = k && get_u32(c, &k->app) && k->app < r->tables.app_count;
    if (!k)
        return false;
    for (int i = 0; i < 3; i++)
        good = good && get_u32(c, &k->grid[i]);
    for (int i = 0; i < 3; i++)
        good = good && get_u32(c, &k->block[i]);
    return (good && get_name(c, k->name) && c->at == c->end) || damaged(r, err, "invalid kernel");
}

static bool read_allocation(struct rlt_reader *r, struct cursor *c, struct err *err)
{
    struct rlt_allocation *a =
        add_entry((void **)&r->tables.allocations, &r->tables.allocation_count, sizeof *a, err);
    return a && ((get_u32(c, &a->app) && a->app < r->tables.app_count && get_varint(c, &a->base) &&
                  get_varint(c, &a->bytes) && a->bytes > 0 && a->base <= UINT64_MAX - a->bytes &&
                  get_name(c, a->name) && c->at == c->end) ||
                 damaged(r, err, "invalid allocation"));
}

static bool read_left_out(struct rlt_reader *r, struct cursor *c, struct err *err)
{
    uint64_t *const sums[] = {&r->tables.left_out.copies, &r->tables.left_out.textures,
                              &r->tables.left_out.unknown, &r->tables.left_out.lost};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        uint64_t more;
        if (!get_varint(c, &more) || __builtin_add_overflow(*sums[i], more, sums[i]))
            return damaged(r, err, "invalid numbers of left out accesses");
    }
    return c->at == c->end || damaged(r, err, "invalid numbers of left out accesses");
}

static bool read_end(struct rlt_reader *r, struct cursor *c, struct err *err)
{
    uint64_t chunks;
    uint64_t records;
    if (!get_varint(c, &chunks) || !get_varint(c, &records) || c->at != c->end)
        return damaged(r, err, "invalid trailer");
    if (chunks != r->chunk_count)
        return damaged(r, err, "the trailer has another number of chunks than the file");
    if (records != r->record_count)
        return damaged(r, err, "the trailer has another number of records than the file");
    if (getc(r->in) != EOF)
        return damaged(r, err, "data after the trailer");
    r->ended = true;
    return true;
}

/* ---- chunks ---- */

/* Reads the next chunk. It is a chunk of records, an entry of a table, or the end. */
static bool next_chunk(struct rlt_reader *r, struct err *err)
{
    uint8_t head[RLT_CHUNK_HEAD_BYTES];
    uint32_t bytes;
    struct cursor c;
    bool good = true;
    if (fread(head, 1, sizeof head, r->in) != sizeof head)
        return damaged(r, err, "no trailer: the file may be truncated");
    bytes = rlt_get_u32(head + 4);
    if (bytes > RLT_CHUNK_BYTES)
        return damaged(r, err, "invalid length of a chunk");
    if (fread(r->chunk, 1, bytes, r->in) != bytes)
        return damaged(r, err, "incomplete chunk: the file may be truncated");
    if (rlt_get_u32(head + 8) != rlt_check(head[0], r->chunk, bytes) || head[1] || head[2] ||
        head[3])
        return damaged(r, err, "checksum mismatch");
    c = (struct cursor){r->chunk, r->chunk + bytes};
    switch (head[0]) {
    case RLT_APP:
        good = read_app(r, &c, err);
        break;
    case RLT_KERNEL:
        good = read_kernel(r, &c, err);
        break;
    case RLT_ALLOCATION:
        good = read_allocation(r, &c, err);
        break;
    case RLT_LEFT_OUT:
        good = read_left_out(r, &c, err);
        break;
    case RLT_THE_END:
        return read_end(r, &c, err);
    case RLT_RECORDS:
        r->at = c.at;
        r->end = c.end;
        r->previous = 0;
        break;
    default:
        return damaged(r, err, "unknown type of chunk: a newer reach-lab may read it");
    }
    r->chunk_count++;
    r->offset += sizeof head + bytes;
    return good;
}

/* ---- records ---- */

static bool read_lines(const struct rlt_reader *r, struct cursor *c, uint32_t form,
                       struct rlt_record *out)
{
    const uint64_t last = UINT64_MAX >> r->shift;
    uint64_t difference;
    if (!get_varint(c, &difference))
        return false;
    out->line_count = 1;
    out->lines[0] = r->previous + rlt_unzigzag(difference);
    if (form != RLT_ONE && (!get_u32(c, &out->line_count) || out->line_count < 2 ||
                            out->line_count > RLT_LANES || !get_varint(c, &difference)))
        return false;
    for (uint32_t i = 1; i < out->line_count; i++) {
        if (form == RLT_LIST && i > 1 && !get_varint(c, &difference))
            return false;
        out->lines[i] = out->lines[i - 1] + rlt_unzigzag(difference);
    }
    for (uint32_t i = 0; i < out->line_count; i++) {
        if (out->lines[i] > last)
            return false;
    }
    return true;
}

static bool read_run(struct rlt_reader *r, struct cursor *c, struct err *err)
{
    if (!get_u32(c, &r->run_kernel) || !get_varint(c, &r->run_block) || !get_u32(c, &r->run_warp) ||
        !get_u32(c, &r->run_left) || r->run_left == 0)
        return damaged(r, err, "invalid run header");
    if (r->run_kernel >= r->tables.kernel_count)
        return damaged(r, err, "a record names an unknown kernel");
    return true;
}

static bool read_record(struct rlt_reader *r, struct cursor *c, struct rlt_record *out)
{
    uint32_t head;
    if (!get_u32(c, &out->gap) || c->at == c->end)
        return false;
    head = *c->at++;
    out->kernel = r->run_kernel;
    out->block = r->run_block;
    out->warp = r->run_warp;
    out->mask = RLT_FULL_MASK;
    if ((head & 3) >= RLT_KIND_COUNT || (head >> RLT_FORM_SHIFT & 3) > RLT_LIST ||
        (head >> RLT_WIDTH_SHIFT & 7) > RLT_MAX_WIDTH_LOG2)
        return false;
    out->kind = (enum rlt_kind)(head & 3);
    out->width_log2 = head >> RLT_WIDTH_SHIFT & 7;
    if (head & RLT_HAS_MASK && (!get_u32(c, &out->mask) || out->mask == 0))
        return false;
    return read_lines(r, c, head >> RLT_FORM_SHIFT & 3, out);
}

bool rlt_read(struct rlt_reader *r, struct rlt_record *out, struct err *err)
{
    struct cursor c;
    while (r->at == r->end && !r->ended) {
        if (r->run_left > 0)
            return damaged(r, err, "a run of records exceeds its chunk");
        if (!next_chunk(r, err))
            return false;
    }
    if (r->ended) {
        *err = (struct err){0};
        return false;
    }
    c = (struct cursor){r->at, r->end};
    if (r->run_left == 0 && !read_run(r, &c, err))
        return false;
    if (!read_record(r, &c, out))
        return damaged(r, err, "invalid record");
    r->at = c.at;
    r->previous = out->lines[0];
    r->run_left--;
    r->record_count++;
    return true;
}

/* ---- start and end ---- */

struct rlt_reader *rlt_reader_new(FILE *in, struct err *err)
{
    uint8_t head[RLT_HEADER_BYTES];
    struct rlt_reader *r;
    if (fread(head, 1, sizeof head, in) != sizeof head ||
        memcmp(head, RLT_MAGIC, RLT_MAGIC_BYTES) != 0) {
        (void)err_set(
            err, STATUS_CORRUPT,
            "the file is not an .rlt trace; reach-lab import converts the output of a tracer");
        return NULL;
    }
    if (head[8] < RLT_OLDEST_VERSION || head[8] > RLT_VERSION ||
        rlt_get_u32(head + 12) != rlt_check(0, head, 12) ||
        1u << (head[9] & 31) < RLT_MIN_GRANULE || head[9] > 26 || head[10] || head[11]) {
        (void)err_set(err, STATUS_CORRUPT,
                      "the header of the trace is damaged or has an unsupported version "
                      "(supported: %d to %d)",
                      RLT_OLDEST_VERSION, RLT_VERSION);
        return NULL;
    }
    r = calloc(1, sizeof *r);
    if (!r) {
        (void)err_set(err, STATUS_NO_MEMORY, "cannot read the trace: out of memory");
        return NULL;
    }
    r->in = in;
    r->shift = head[9];
    r->tables.granule_bytes = 1u << r->shift;
    r->offset = sizeof head;
    r->at = r->end = r->chunk;
    return r;
}

void rlt_reader_free(struct rlt_reader *take)
{
    if (!take)
        return;
    free(take->tables.apps);
    free(take->tables.kernels);
    free(take->tables.allocations);
    free(take);
}

const struct rlt_tables *rlt_tables(const struct rlt_reader *r)
{
    return &r->tables;
}
