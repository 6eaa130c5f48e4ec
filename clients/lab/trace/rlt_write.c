/* rlt_write.c: the writer of .rlt files. A chunk of records is collected in memory. The head of a
 * run (kernel, block, warp, count) is written when the run ends, because the count is known only
 * then. */
#include "base/assert.h"
#include "clients/lab/trace/rlt_format.h"

#include <stdlib.h>

struct rlt_writer {
    FILE *out;
    bool failed;
    uint32_t shift; /* log2 of the granule */
    uint32_t app_count, kernel_count;
    uint64_t record_count, chunk_count;
    uint64_t previous; /* first line of the previous record in this chunk */
    uint32_t run_kernel, run_warp, run_count;
    uint64_t run_block;
    size_t chunk_used, run_used;
    uint8_t chunk[RLT_CHUNK_BYTES];
    uint8_t run[RLT_CHUNK_BYTES];
};

const char *rlt_kind_name(enum rlt_kind kind)
{
    static const char *const names[RLT_KIND_COUNT] = {"load", "store", "atomic"};
    return names[kind];
}

double rlt_left_out_share(const struct rlt_left_out *l, uint64_t records)
{
    const double left = (double)l->copies + (double)l->textures + (double)l->unknown;
    return left > 0 ? left / (left + (double)records) : 0;
}

static void put_bytes(struct rlt_writer *w, const uint8_t *bytes, size_t count)
{
    w->failed = w->failed || fwrite(bytes, 1, count, w->out) != count;
}

static size_t put_varint(uint8_t *at, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        at[n++] = (uint8_t)(v | 0x80);
    at[n++] = (uint8_t)v;
    return n;
}

static size_t put_name(uint8_t *at, const char *name)
{
    const size_t length = strnlen(name, RLT_NAME_BYTES - 1);
    const size_t n = put_varint(at, length);
    memcpy(at + n, name, length);
    return n + length;
}

static void put_chunk(struct rlt_writer *w, uint8_t type, const uint8_t *payload, size_t count)
{
    uint8_t head[RLT_CHUNK_HEAD_BYTES] = {type};
    rlt_put_u32(head + 4, (uint32_t)count);
    rlt_put_u32(head + 8, rlt_check(type, payload, count));
    put_bytes(w, head, sizeof head);
    put_bytes(w, payload, count);
    w->chunk_count++;
}

struct rlt_writer *rlt_writer_new(FILE *out, uint32_t granule_bytes)
{
    uint8_t head[RLT_HEADER_BYTES] = {0};
    REACH_ASSERT(granule_bytes >= RLT_MIN_GRANULE && granule_bytes <= RLT_MAX_GRANULE &&
                 (granule_bytes & (granule_bytes - 1)) == 0);
    struct rlt_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->out = out;
    w->shift = (uint32_t)__builtin_ctz(granule_bytes);
    memcpy(head, RLT_MAGIC, RLT_MAGIC_BYTES);
    head[8] = RLT_VERSION;
    head[9] = (uint8_t)w->shift;
    rlt_put_u32(head + 12, rlt_check(0, head, 12));
    put_bytes(w, head, sizeof head);
    return w;
}

/* ---- runs and chunks of records ---- */

static void end_run(struct rlt_writer *w)
{
    uint8_t *at = w->chunk + w->chunk_used;
    if (w->run_count == 0)
        return;
    at += put_varint(at, w->run_kernel);
    at += put_varint(at, w->run_block);
    at += put_varint(at, w->run_warp);
    at += put_varint(at, w->run_count);
    memcpy(at, w->run, w->run_used);
    w->chunk_used = (size_t)(at - w->chunk) + w->run_used;
    w->run_count = 0;
    w->run_used = 0;
}

static void end_chunk(struct rlt_writer *w)
{
    end_run(w);
    if (w->chunk_used > 0)
        put_chunk(w, RLT_RECORDS, w->chunk, w->chunk_used);
    w->chunk_used = 0;
    w->previous = 0;
}

uint32_t rlt_write_app(struct rlt_writer *w, const char *name)
{
    uint8_t payload[RLT_NAME_BYTES + 16];
    end_chunk(w);
    put_chunk(w, RLT_APP, payload, put_name(payload, name));
    return w->app_count++;
}

uint32_t rlt_write_kernel(struct rlt_writer *w, const struct rlt_kernel *kernel)
{
    uint8_t payload[RLT_NAME_BYTES + 64];
    size_t n = put_varint(payload, kernel->app);
    REACH_ASSERT(kernel->app < w->app_count);
    end_chunk(w);
    for (int i = 0; i < 3; i++)
        n += put_varint(payload + n, kernel->grid[i]);
    for (int i = 0; i < 3; i++)
        n += put_varint(payload + n, kernel->block[i]);
    n += put_name(payload + n, kernel->name);
    put_chunk(w, RLT_KERNEL, payload, n);
    return w->kernel_count++;
}

void rlt_write_allocation(struct rlt_writer *w, const struct rlt_allocation *a)
{
    uint8_t payload[RLT_NAME_BYTES + 64];
    size_t n = put_varint(payload, a->app);
    REACH_ASSERT(a->app < w->app_count && a->bytes > 0 && a->base <= UINT64_MAX - a->bytes);
    end_chunk(w);
    n += put_varint(payload + n, a->base);
    n += put_varint(payload + n, a->bytes);
    n += put_name(payload + n, a->name);
    put_chunk(w, RLT_ALLOCATION, payload, n);
}

void rlt_write_left_out(struct rlt_writer *w, const struct rlt_left_out *l)
{
    uint8_t payload[64];
    size_t n = put_varint(payload, l->copies);
    end_chunk(w);
    n += put_varint(payload + n, l->textures);
    n += put_varint(payload + n, l->unknown);
    n += put_varint(payload + n, l->lost);
    put_chunk(w, RLT_LEFT_OUT, payload, n);
}

/* ---- records ---- */

static bool is_stride(const struct rlt_record *r)
{
    if (r->line_count < 2)
        return false;
    for (uint32_t i = 2; i < r->line_count; i++) {
        if (r->lines[i] - r->lines[i - 1] != r->lines[1] - r->lines[0])
            return false;
    }
    return true;
}

static size_t put_lines(const struct rlt_writer *w, const struct rlt_record *r, uint32_t form,
                        uint8_t *at)
{
    size_t n = put_varint(at, rlt_zigzag(r->lines[0] - w->previous));
    if (form == RLT_ONE)
        return n;
    n += put_varint(at + n, r->line_count);
    if (form == RLT_STRIDE)
        return n + put_varint(at + n, rlt_zigzag(r->lines[1] - r->lines[0]));
    for (uint32_t i = 1; i < r->line_count; i++)
        n += put_varint(at + n, rlt_zigzag(r->lines[i] - r->lines[i - 1]));
    return n;
}

void rlt_write_record(struct rlt_writer *w, const struct rlt_record *r)
{
    const uint32_t form = r->line_count == 1 ? RLT_ONE : is_stride(r) ? RLT_STRIDE : RLT_LIST;
    uint8_t *at;
    REACH_ASSERT(r->kernel < w->kernel_count && r->mask != 0 && r->line_count >= 1 &&
                 r->line_count <= RLT_LANES && r->width_log2 <= RLT_MAX_WIDTH_LOG2);
    if (w->chunk_used + w->run_used + 2 * (size_t)RLT_MAX_RECORD_BYTES > RLT_CHUNK_BYTES)
        end_chunk(w);
    else if (r->kernel != w->run_kernel || r->block != w->run_block || r->warp != w->run_warp)
        end_run(w);
    w->run_kernel = r->kernel;
    w->run_block = r->block;
    w->run_warp = r->warp;
    at = w->run + w->run_used;
    at += put_varint(at, r->gap);
    *at++ = (uint8_t)((uint32_t)r->kind | r->width_log2 << RLT_WIDTH_SHIFT |
                      form << RLT_FORM_SHIFT | (r->mask != RLT_FULL_MASK ? RLT_HAS_MASK : 0));
    if (r->mask != RLT_FULL_MASK)
        at += put_varint(at, r->mask);
    at += put_lines(w, r, form, at);
    w->run_used = (size_t)(at - w->run);
    w->run_count++;
    w->previous = r->lines[0];
    w->record_count++;
}

/* A line is new if its bit in a hashed bitmap is clear. Otherwise it is compared with all lines of
 * the record. */
void rlt_set_lines(const struct rlt_writer *w, const uint64_t addresses[RLT_LANES],
                   struct rlt_record *record)
{
    uint64_t seen = 0;
    uint32_t count = 0;
    for (uint32_t lanes = record->mask; lanes != 0; lanes &= lanes - 1) {
        const uint64_t line = addresses[__builtin_ctz(lanes)] >> w->shift;
        const uint64_t bit = (uint64_t)1 << (line * 0x9e3779b97f4a7c15u >> 58);
        uint32_t i = count;
        if (seen & bit) {
            i = 0;
            while (i < count && record->lines[i] != line)
                i++;
        }
        seen |= bit;
        record->lines[i] = line;
        count += i == count;
    }
    record->line_count = count;
}

uint64_t rlt_writer_records(const struct rlt_writer *w)
{
    return w->record_count;
}

enum status rlt_writer_end(struct rlt_writer *w, struct err *err)
{
    uint8_t payload[32];
    size_t n;
    bool failed;
    end_chunk(w);
    n = put_varint(payload, w->chunk_count);
    n += put_varint(payload + n, w->record_count);
    put_chunk(w, RLT_THE_END, payload, n);
    failed = w->failed;
    if (fflush(w->out) != 0)
        failed = true;
    free(w);
    return failed ? err_set(err, STATUS_IO, "cannot write the trace; the disk may be full")
                  : STATUS_OK;
}

void rlt_writer_abandon(struct rlt_writer *take)
{
    free(take);
}
