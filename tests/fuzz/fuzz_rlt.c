/* fuzz_rlt.c: reads any bytes as an .rlt trace, unchanged and with corrected checks. An accepted
 * trace is written and read again, and must be equal. The records of a loaded trace lie at their
 * stated places. */
#include "fuzz.h"

#include "clients/lab/trace/rlt_format.h"
#include "clients/lab/trace/trace_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_bytes(const uint8_t *data, size_t size, char **out_copy)
{
    *out_copy = malloc(size + 1);
    REACH_ASSERT(*out_copy);
    memcpy(*out_copy, data, size);
    FILE *in = size > 0 ? fmemopen(*out_copy, size, "r") : fopen("/dev/null", "re");
    REACH_ASSERT(in);
    return in;
}

static void read_records(const uint8_t *data, size_t size)
{
    char *copy;
    char *written = NULL;
    size_t written_size = 0;
    FILE *in = open_bytes(data, size, &copy);
    FILE *out = open_memstream(&written, &written_size);
    struct err err = {0};
    struct rlt_record r;
    struct rlt_reader *reader = rlt_reader_new(in, &err);
    REACH_ASSERT(out);
    if (reader) {
        struct rlt_writer *w = rlt_writer_new(out, rlt_tables(reader)->granule_bytes);
        uint32_t kernels = 0;
        REACH_ASSERT(w);
        (void)rlt_write_app(w, "");
        while (rlt_read(reader, &r, &err)) {
            REACH_ASSERT(r.line_count >= 1 && r.line_count <= RLT_LANES && r.mask != 0);
            REACH_ASSERT(r.kernel < rlt_tables(reader)->kernel_count);
            for (; kernels < rlt_tables(reader)->kernel_count; kernels++)
                (void)rlt_write_kernel(w, &(struct rlt_kernel){.app = 0});
            rlt_write_record(w, &r);
        }
        const struct rlt_left_out left_out = rlt_tables(reader)->left_out;
        const double share = rlt_left_out_share(&left_out, rlt_writer_records(w));
        REACH_ASSERT(share >= 0 && share <= 1);
        rlt_write_left_out(w, &left_out);
        REACH_ASSERT(rlt_writer_end(w, NULL) == STATUS_OK);
    }
    REACH_ASSERT(reader || err.status != STATUS_OK);
    REACH_ASSERT(err.status == STATUS_OK || err.text[0] != '\0');
    rlt_reader_free(reader);
    fclose(out);
    fclose(in);
    free(written);
    free(copy);
}

static void load(const uint8_t *data, size_t size)
{
    char *copy;
    FILE *in = open_bytes(data, size, &copy);
    struct trace t;
    struct err err = {0};
    if (trace_load(in, &t, &err) == STATUS_OK) {
        for (uint32_t i = 0; i < t.record_count; i++)
            REACH_ASSERT(t.records[i].first_unit + t.records[i].line_count <= t.line_count &&
                         t.records[i].sectors >= 1);
        for (uint64_t i = 0; i < t.line_count; i++) {
            const uint64_t moved = (uint64_t)t.units[i] << t.unit_shift;
            REACH_ASSERT(moved < t.range_bytes && trace_position(&t, moved) < t.bytes);
        }
    } else {
        REACH_ASSERT(err.text[0] != '\0');
    }
    trace_free(&t);
    fclose(in);
    free(copy);
}

/* Corrects the checks, like an attacker. */
static void repair(uint8_t *bytes, size_t size)
{
    if (size < RLT_HEADER_BYTES)
        return;
    memcpy(bytes, RLT_MAGIC, RLT_MAGIC_BYTES);
    rlt_put_u32(bytes + 12, rlt_check(0, bytes, 12));
    for (size_t at = RLT_HEADER_BYTES; size - at >= RLT_CHUNK_HEAD_BYTES;) {
        uint8_t *head = bytes + at;
        const size_t left = size - at - RLT_CHUNK_HEAD_BYTES;
        if (rlt_get_u32(head + 4) > left)
            rlt_put_u32(head + 4, (uint32_t)left);
        const uint32_t count = rlt_get_u32(head + 4);
        rlt_put_u32(head + 8, rlt_check(head[0], head + RLT_CHUNK_HEAD_BYTES, count));
        at += RLT_CHUNK_HEAD_BYTES + count;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    REACH_ASSERT(copy);
    memcpy(copy, data, size);
    read_records(data, size);
    repair(copy, size);
    read_records(copy, size);
    load(copy, size);
    free(copy);
    return 0;
}
