/* test_rlt.c: a written trace can be read back, and writing it again gives the same bytes. A
 * damaged trace is rejected with a reason. */
#include "base/rng.h"
#include "clients/lab/trace/rlt.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORDS = 5000 };

static uint64_t seed(void)
{
    const char *given = getenv("TEST_SEED");
    const uint64_t s = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%llu\n", (unsigned long long)s);
    return s;
}

/* Makes records of every form: one line, strides forward and back, random lists, masks, runs and
 * gaps.
 */
static struct rlt_record any_record(struct rng *rng, uint32_t kernels, uint32_t shift)
{
    struct rlt_record r = {.kernel = (uint32_t)rng_below(rng, kernels),
                           .block = rng_below(rng, 4) ? rng_below(rng, 3) : rng_next(rng),
                           .warp = (uint32_t)rng_below(rng, 3),
                           .gap = rng_below(rng, 2) ? 0 : (uint32_t)rng_next(rng),
                           .mask = rng_below(rng, 2) ? RLT_FULL_MASK : (uint32_t)rng_next(rng) | 1,
                           .kind = (enum rlt_kind)rng_below(rng, RLT_KIND_COUNT),
                           .width_log2 = (uint32_t)rng_below(rng, RLT_MAX_WIDTH_LOG2 + 1),
                           .line_count = 1 + (uint32_t)rng_below(rng, RLT_LANES)};
    const uint64_t last = UINT64_MAX >> shift;
    const uint64_t step = rng_below(rng, 1 << 20);
    const bool stride = rng_below(rng, 2);
    r.lines[0] = rng_next(rng) & last;
    for (uint32_t i = 1; i < r.line_count; i++) {
        r.lines[i] = stride ? r.lines[i - 1] + step : rng_next(rng) & last;
        if (r.lines[i] > last)
            r.line_count = i;
    }
    return r;
}

static void write_header(struct rlt_writer *w)
{
    const struct rlt_allocation a = {.base = 0x7f0000000000, .bytes = 1 << 20, .name = "memory"};
    struct rlt_kernel k = {.grid = {7, 8, 9}, .block = {256, 1, 1}};
    memset(k.name, 'x', sizeof k.name - 1);
    assert_int_equal(rlt_write_app(w, "a job"), 0);
    rlt_write_allocation(w, &a);
    assert_int_equal(rlt_write_kernel(w, &k), 0);
    assert_int_equal(rlt_write_kernel(w, &(struct rlt_kernel){.name = "second"}), 1);
}

static char *write_all(const struct rlt_record *records, uint32_t count, uint32_t granule,
                       size_t *out_size)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, out_size);
    struct rlt_writer *w = rlt_writer_new(out, granule);
    assert_non_null(w);
    write_header(w);
    for (uint32_t i = 0; i < count; i++)
        rlt_write_record(w, &records[i]);
    assert_int_equal(rlt_writer_records(w), count);
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    fclose(out);
    return bytes;
}

static void assert_same(const struct rlt_record *a, const struct rlt_record *b)
{
    assert_int_equal(a->kernel, b->kernel);
    assert_int_equal(a->block, b->block);
    assert_int_equal(a->warp, b->warp);
    assert_int_equal(a->gap, b->gap);
    assert_int_equal(a->mask, b->mask);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->width_log2, b->width_log2);
    assert_int_equal(a->line_count, b->line_count);
    assert_memory_equal(a->lines, b->lines, a->line_count * sizeof a->lines[0]);
}

static void what_is_written_is_read(void **state)
{
    static struct rlt_record records[RECORDS];
    struct rng rng = {seed()};
    (void)state;
    for (uint32_t granule = RLT_MIN_GRANULE; granule <= RLT_MAX_GRANULE; granule *= 8) {
        struct rlt_record r;
        struct err err;
        size_t size;
        size_t again_size;
        char *bytes;
        char *again;
        for (uint32_t i = 0; i < RECORDS; i++)
            records[i] = any_record(&rng, 2, (uint32_t)__builtin_ctz(granule));
        bytes = write_all(records, RECORDS, granule, &size);
        again = write_all(records, RECORDS, granule, &again_size);
        assert_int_equal(size, again_size);
        assert_memory_equal(bytes, again, size);
        FILE *in = fmemopen(bytes, size, "r");
        struct rlt_reader *reader = rlt_reader_new(in, &err);
        assert_non_null(reader);
        assert_int_equal(rlt_tables(reader)->granule_bytes, granule);
        for (uint32_t i = 0; i < RECORDS; i++) {
            if (!rlt_read(reader, &r, &err))
                fail_msg("record %u: %s", i, err.text);
            assert_same(&r, &records[i]);
        }
        assert_false(rlt_read(reader, &r, &err));
        assert_int_equal(err.status, STATUS_OK);
        const struct rlt_tables *t = rlt_tables(reader);
        assert_int_equal(t->app_count, 1);
        assert_string_equal(t->apps[0].name, "a job");
        assert_int_equal(t->kernel_count, 2);
        assert_int_equal(t->kernels[0].grid[2], 9);
        assert_string_equal(t->kernels[1].name, "second");
        assert_int_equal(t->allocation_count, 1);
        assert_int_equal(t->allocations[0].base, 0x7f0000000000);
        rlt_reader_free(reader);
        fclose(in);
        free(bytes);
        free(again);
    }
}

/* Returns true if the whole file is read. Asserts that a rejected file has a reason. */
static bool is_read(char *bytes, size_t size)
{
    struct err err = {0};
    struct rlt_record r;
    FILE *in = size > 0 ? fmemopen(bytes, size, "r") : fopen("/dev/null", "r");
    struct rlt_reader *reader = rlt_reader_new(in, &err);
    while (reader && rlt_read(reader, &r, &err))
        ;
    rlt_reader_free(reader);
    fclose(in);
    if (err.status != STATUS_OK) {
        assert_int_equal(err.status, STATUS_CORRUPT);
        assert_true(strlen(err.text) > 20);
    }
    return err.status == STATUS_OK;
}

static void every_damaged_byte_is_found(void **state)
{
    struct rlt_record records[20];
    struct rng rng = {seed()};
    size_t size;
    char *bytes;
    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        records[i] = any_record(&rng, 2, 7);
    bytes = write_all(records, 20, 128, &size);
    assert_true(is_read(bytes, size));
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (char)(1 << i % 8);
        if (is_read(bytes, size))
            fail_msg("byte %zu of %zu was changed without an error", i, size);
        bytes[i] ^= (char)(1 << i % 8);
        if (is_read(bytes, i))
            fail_msg("cut off after %zu of %zu bytes without an error", i, size);
    }
    free(bytes);
}

/* The checksums of the chunks are valid even if a whole chunk is missing or duplicated. */
static void a_lost_chunk_is_found(void **state)
{
    struct rlt_record records[4] = {{.mask = 1, .line_count = 1}};
    size_t size;
    size_t at = 16;
    char *bytes;
    char *cut = malloc(1 << 16);
    (void)state;
    for (uint32_t i = 1; i < 4; i++)
        records[i] = records[0];
    bytes = write_all(records, 4, 128, &size);
    while (bytes[at] != 'E') {
        const size_t length = 12 + (uint8_t)bytes[at + 4] + 256u * (uint8_t)bytes[at + 5];
        memcpy(cut, bytes, at);
        memcpy(cut + at, bytes + at + length, size - at - length);
        assert_false(is_read(cut, size - length));
        memcpy(cut, bytes, at + length);
        memcpy(cut + at + length, bytes + at, size - at);
        assert_false(is_read(cut, size + length));
        at += length;
    }
    free(bytes);
    free(cut);
}

/* The numbers of left-out accesses add up, and damage to these numbers is detected. */
static void what_is_left_out_is_read(void **state)
{
    const struct rlt_left_out parts[] = {{1, 2, 3, 4}, {.copies = UINT64_MAX / 2}};
    struct rlt_record r = {.mask = 1, .line_count = 1};
    struct err err = {0};
    size_t size;
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, &size);
    struct rlt_writer *w = rlt_writer_new(out, 128);
    (void)state;
    write_header(w);
    rlt_write_left_out(w, &parts[0]);
    rlt_write_record(w, &r);
    rlt_write_left_out(w, &parts[1]);
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    fclose(out);
    FILE *in = fmemopen(bytes, size, "r");
    struct rlt_reader *reader = rlt_reader_new(in, &err);
    assert_true(rlt_read(reader, &r, &err));
    assert_false(rlt_read(reader, &r, &err));
    assert_int_equal(err.status, STATUS_OK);
    const struct rlt_left_out sum = rlt_tables(reader)->left_out;
    assert_true(sum.copies == UINT64_MAX / 2 + 1);
    assert_int_equal(sum.textures, 2);
    assert_int_equal(sum.unknown, 3);
    assert_int_equal(sum.lost, 4);
    rlt_reader_free(reader);
    fclose(in);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 1;
        assert_false(is_read(bytes, size));
        bytes[i] ^= 1;
    }
    free(bytes);
    assert_true(rlt_left_out_share(&(struct rlt_left_out){0}, 0) == 0);
    assert_true(rlt_left_out_share(&(struct rlt_left_out){.lost = 9}, 1) == 0);
    assert_true(rlt_left_out_share(&(struct rlt_left_out){1, 1, 1, 0}, 1) == 0.75);
}

/* A trace file of version 1 of the format. */
static void version_1_is_read(void **state)
{
    static const char *const stored[] = {"gather", "grouping", "imported",
                                         "pages",  "random",   "sampling"};
    (void)state;
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        char path[128], bytes[4096];
        (void)snprintf(path, sizeof path, "tests/fuzz/corpus/rlt/%s", stored[i]);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        const size_t size = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        assert_int_equal(bytes[8], 1);
        assert_true(is_read(bytes, size));
        bytes[8] = 3;
        assert_false(is_read(bytes, size));
    }
}

static void lanes_become_distinct_lines(void **state)
{
    struct rlt_record r = {.mask = 0x8000000f};
    uint64_t addresses[RLT_LANES] = {128, 255, 0x7f0000000080, 1280, [31] = 1281};
    size_t size;
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, &size);
    struct rlt_writer *w = rlt_writer_new(out, 128);
    (void)state;
    rlt_set_lines(w, addresses, &r);
    assert_int_equal(r.line_count, 3);
    assert_int_equal(r.lines[0], 1);
    assert_int_equal(r.lines[1], 0x7f0000000080 / 128);
    assert_int_equal(r.lines[2], 10);
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    fclose(out);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read), cmocka_unit_test(every_damaged_byte_is_found),
        cmocka_unit_test(a_lost_chunk_is_found),   cmocka_unit_test(what_is_left_out_is_read),
        cmocka_unit_test(version_1_is_read),       cmocka_unit_test(lanes_become_distinct_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
