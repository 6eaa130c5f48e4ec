/* test_writer.c: the recording and the trace of a random launch. */
#include "clients/profile/inject/writer.h"

#include "base/clock.h"
#include "base/rng.h"
#include "clients/profile/recording.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORDS = 1000, PCS = 50, ROUNDS = 20 };

static char folder[] = "/tmp/reach-test-writer-XXXXXX";

/* What a launch has: executions by a warp, of which copies have no records. */
struct sums {
    uint64_t warps, copies;
};

static void add(struct profile_instruction *i, uint32_t kind, uint32_t bytes, uint64_t warps,
                struct sums *sums)
{
    *i = (struct profile_instruction){.pc = i->pc,
                                      .kind_bytes = kind << 8 | bytes,
                                      .warps = warps,
                                      .lanes = warps,
                                      .runs = warps};
    sums->warps += warps;
    sums->copies += bytes == 0 ? warps : 0;
}

/* Makes a launch, whose trace has RECORDS accesses. The writer owns the result. */
static struct recorded *random_launch(struct rng *rng, struct kernel *kernel, struct sums *sums)
{
    struct recorded *const r = calloc(1, sizeof *r);
    const uint64_t most_copies = rng_below(rng, 2) ? 1 : 1 + rng_below(rng, 100000);

    assert_non_null(r);
    *r = (struct recorded){
        .kernel = kernel,
        .grid = {RECORDS, 1, 1},
        .block = {32, 1, 1},
        .counts = {.every = 1,
                   .room = RECORDS * PROFILE_HEAD_WORDS,
                   .used = RECORDS * PROFILE_HEAD_WORDS},
        .pages = calloc(PROFILE_PAGES, sizeof *r->pages),
        .instructions = calloc(PROFILE_COPIES * PROFILE_INSTRUCTIONS, sizeof *r->instructions),
        .words = calloc(RECORDS * PROFILE_HEAD_WORDS, sizeof *r->words)};
    assert_true(r->pages && r->instructions && r->words);
    for (uint32_t i = 0; i < PCS; i++) {
        struct profile_instruction *const n =
            &r->instructions[rng_below(rng, PROFILE_COPIES) * PROFILE_INSTRUCTIONS + i];
        const uint32_t bytes = rng_below(rng, 4) ? 1u << rng_below(rng, 5) : 0;
        n->pc = 1 + i;
        add(n, (uint32_t)rng_below(rng, PROFILE_KINDS), bytes,
            1 + rng_below(rng, bytes ? 100000 : most_copies), sums);
    }
    struct profile_instruction *const others = r->counts.others[0];

    for (uint32_t i = 0; i < PROFILE_KINDS * PROFILE_WIDTHS; i++) {
        const uint32_t width = i % PROFILE_WIDTHS;
        if (rng_below(rng, 3) == 0)
            add(&others[i], i / PROFILE_WIDTHS, width ? 1u << (width - 1) : 0,
                1 + rng_below(rng, width ? 100000 : most_copies), sums);
    }
    for (uint32_t i = 0; i < RECORDS; i++) {
        const struct profile_record record = {
            .block = i, .mask = 1, .kind_bytes = 4, .base = (1ull << 40) + 128 * i};
        memcpy(r->words + (size_t)i * PROFILE_HEAD_WORDS, &record, sizeof record);
    }
    return r;
}

static void check_trace(const char *name, const struct sums *sums, uint64_t seed)
{
    const double share = (double)sums->copies / (double)sums->warps;
    struct rlt_record record;
    struct err err = {0};
    uint64_t records = 0;
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const in = fopen(path, "re");
    assert_non_null(in);
    struct rlt_reader *const reader = rlt_reader_new(in, &err);
    assert_non_null(reader);
    while (rlt_read(reader, &record, &err))
        records++;
    const double found = rlt_left_out_share(&rlt_tables(reader)->left_out, records);
    assert_int_equal(records, RECORDS);
    if (fabs(found - share) > 0.001)
        fail_msg("seed %llu: %g of the accesses are left out, not %g", (unsigned long long)seed,
                 found, share);
    rlt_reader_free(reader);
    (void)fclose(in);
    (void)unlink(path);
}

/* Reads the recording. Without a driver, its list of GPUs is empty, so the function adds one. */
static void read_recording(uint64_t seed, struct recording *out)
{
    static const char empty[] = "\"gpus\":[]";
    static char text[1 << 20], whole[1 << 20];
    struct err err = {0};
    char path[256];

    (void)snprintf(path, sizeof path, "%s/recording-%d.json", folder, (int)getpid());
    FILE *const in = fopen(path, "re");
    assert_non_null(in);
    assert_true(fread(text, 1, sizeof text - 1, in) < sizeof text - 1);
    (void)fclose(in);
    (void)unlink(path);
    char *const at = strstr(text, empty);
    const int before = at ? (int)(at - text) : 0;
    const int bytes = snprintf(whole, sizeof whole, "%.*s%s%s", before, text,
                               at ? "\"gpus\":[{\"uuid\":\"GPU\",\"name\":\"G\",\"sms\":1}]" : "",
                               at ? at + strlen(empty) : text);
    if (recording_parse(whole, (size_t)bytes, out, &err) != STATUS_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
}

static void check_recording(const struct sums all[ROUNDS], uint64_t seed)
{
    struct recording recording;

    read_recording(seed, &recording);
    assert_int_equal(recording.kernel_count, ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(recording.kernels[i].launch_count, 1);
        const struct recording_launch *const l = recording.kernels[i].recorded;
        uint64_t warps = 0;
        for (uint32_t k = 0; k < l->instruction_count; k++)
            warps += l->instructions[k].warps;
        assert_int_equal(warps, all[i].warps);
        assert_int_equal(l->warp_accesses, all[i].warps);
        check_trace(l->trace, &all[i], seed);
    }
    recording_free(&recording);
}

static void every_execution_is_in_the_recording_or_left_out(void **state)
{
    const char *const given = getenv("TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    const uint32_t one[3] = {1, 1, 1};
    struct sums sums[ROUNDS] = {{0, 0}};
    struct rng rng = {seed};
    struct err err = {0};

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)seed);
    assert_non_null(mkdtemp(folder));
    kernels_start(&(struct kernel_limits){.launches = 1, .tool_ns = NSEC_PER_SEC});
    assert_int_equal(writer_start(folder, &err), STATUS_OK);
    for (int i = 0; i < ROUNDS; i++) {
        enum kernel_step step;
        uint32_t shape;
        char name[16];
        (void)snprintf(name, sizeof name, "kernel%d", i);
        struct kernel *const kernel =
            kernels_launch(&sums[i], name, 0, one, one, false, false, &shape, &step);
        assert_non_null(kernel);
        writer_add(random_launch(&rng, kernel, &sums[i]));
    }
    writer_end();
    check_recording(sums, seed);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_execution_is_in_the_recording_or_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
