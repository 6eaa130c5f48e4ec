/* test_import.c: the files of the public TLB benchmark, good and bad. The folder k80 beside this
 * file has the published set of one K80, with its license. Mutations of the files are random, and
 * REACH_SEED repeats a run. */
#include "tests/unit/support/as_json.h"
#include "tests/unit/support/bench_files.h"
#include "tests/unit/support/paper_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/units.h"
#include "fingerprint/fingerprint_check.h"

static const struct import_options options = {.imported_at = 1700000000};

/* ---- the K80 of the paper ---- */

static const char *const k80_names[] = {
    "TLB-Test-1-5-64-256.csv", "TLB-Test-48-300-1024-4096.csv", "TLB-Test-1500-5000-1024-4096.csv",
    "TLBsharing-128-16.txt",   "TLBsharing-2048-65.txt",        "TLBsharing-2048-1032.txt",
};
enum { K80_FILES = sizeof k80_names / sizeof k80_names[0] };

static void read_k80(const char *name, struct import_file *out)
{
    char path[512];

    snprintf(path, sizeof path, "tests/unit/daemon/import/k80/%s", name);
    FILE *const file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    char *const text = malloc(1 << 20);
    assert_non_null(text);
    *out = (struct import_file){.name = name, .text = text, .bytes = fread(text, 1, 1 << 20, file)};
    (void)fclose(file);
}

static void free_text(struct import_file *take)
{
    char *text;
    memcpy(&text, &take->text, sizeof text);
    free(text);
}

static void with_k80(struct import_file *files)
{
    for (int i = 0; i < K80_FILES; i++)
        read_k80(k80_names[i], &files[i]);
}

static void assert_level(const struct tlb_level *l, uint64_t entry, uint32_t entries,
                         uint64_t saturation)
{
    assert_int_equal(l->entry_bytes.v, entry);
    assert_int_equal(l->entries.v, entries);
    assert_int_equal(l->reach_bytes.v, entries * entry);
    assert_int_equal(l->onset_bytes.v, (entries + 1) * entry);
    assert_int_equal(l->saturation_bytes.v, saturation);
    assert_int_equal(l->evidence.entry_bytes.method, EVIDENCE_MEAN_CURVES);
    assert_int_equal(l->evidence.entry_bytes.repeats, 3); /* strides */
    assert_int_equal(l->evidence.shared_by.method, EVIDENCE_MEAN_PAIRS);
    assert_true(l->evidence.reach_bytes.margin > 0.7);
}

/* The values are from Karnagel 2017, table 2 and figure 5, except for the second capacity; see
 * docs/import.md. */
static void k80_is_as_published(void **state)
{
    static const uint16_t groups[13] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 2, 3, 4};
    struct import_file files[K80_FILES];
    struct observation_set set;
    struct err err = {0};

    (void)state;
    with_k80(files);
    struct fingerprint *const fp = calloc(1, sizeof *fp);
    assert_non_null(fp);
    if (import_derive(files, K80_FILES, &options, &set, fp, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(fp->gpu.origin, ORIGIN_IMPORTED);
    assert_string_equal(fp->gpu.name, "Tesla K80");
    assert_int_equal(fp->gpu.compute_major * 10 + fp->gpu.compute_minor, 37);
    assert_int_equal(strncmp(fp->gpu.uuid, "IMPORTED-", 9), 0);
    assert_int_equal(fp->gpu.sm_count, 13);
    assert_int_equal(fp->level_count, 3);
    assert_level(&fp->levels[0], 128 * KIB, 16, 17 * 128 * KIB);
    assert_level(&fp->levels[1], 2 * MIB, 71, 144 * MIB);
    assert_level(&fp->levels[2], 2 * MIB, 1032, 2318 * MIB);
    assert_true(fp->levels[0].miss_penalty_cycles.v >= 8 &&
                fp->levels[0].miss_penalty_cycles.v <= 10);
    assert_true(fp->levels[1].miss_penalty_cycles.v >= 54 &&
                fp->levels[1].miss_penalty_cycles.v <= 56);
    assert_true(fp->levels[2].miss_penalty_cycles.v >= 175 &&
                fp->levels[2].miss_penalty_cycles.v <= 179);
    assert_int_equal(fp->levels[0].shared_by, SHARED_SM);
    assert_int_equal(fp->levels[1].shared_by, SHARED_GROUP);
    assert_int_equal(fp->levels[2].shared_by, SHARED_GPU);
    assert_int_equal(fp->topology.partition.group_count, 5);
    assert_memory_equal(fp->topology.partition.group_of_sm, groups, sizeof groups);
    assert_string_equal(fp->topology.disabled.signature,
                        "5x3/10,11"); /* the SMs in figure 7 of the paper */
    assert_int_equal(fp->windows.recommended_bytes.v, 140 * MIB);
    observation_set_free(&set);
    for (int i = 0; i < K80_FILES; i++)
        free_text(&files[i]);
    free(fp);
}

/* Without the curves there is no conclusion about sharing, because the import does not read the
 * marks of the sharing files. */
static void marks_are_not_input(void **state)
{
    struct import_file files[K80_FILES];
    struct observation_set set;

    (void)state;
    with_k80(files);
    struct fingerprint *const fp = calloc(1, sizeof *fp);
    assert_non_null(fp);
    assert_int_equal(import_derive(files + 3, 3, &options, &set, fp, NULL), STATUS_OK);
    assert_int_equal(fp->level_count, 0);
    assert_int_equal(fp->topology.partition.group_count, 0);
    assert_int_equal(fp->gpu.sm_count, 13);
    observation_set_free(&set);
    for (int i = 0; i < K80_FILES; i++)
        free_text(&files[i]);
    free(fp);
}

/* ---- accepted files ---- */

#define HEAD "#Some GPU: cuda 8.0, reduction mode: avg\n"

static enum status read_one(const char *name, const char *text, size_t bytes,
                            struct observation_set *out, struct err *err)
{
    /* Makes a copy of exact length, so that a sanitizer detects a read beyond the end. */
    char *const copy = malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const struct import_file file = {name, copy, bytes};
    const enum status s = import_read(&file, 1, &options, out, err);
    free(copy);
    return s;
}

static void a_curve_becomes_observations(void **state)
{
    static const char text[] = HEAD "#,64,128,\r\n1,241,242,\r\n1.0625,240.5,,\n\n1.125,241,243,";
    struct observation_set set;
    struct err err = {0};

    (void)state;
    if (read_one("a.csv", text, sizeof text - 1, &set, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(set.count, 2);
    assert_int_equal(set.items[0].spec.kind, PROBE_MEANS);
    assert_int_equal(set.items[0].spec.stride_bytes, 64 * KIB);
    assert_int_equal(set.items[0].spec.point_count, 3);
    assert_int_equal(set.items[0].spec.points[1], 17);
    assert_int_equal(set.items[0].result.values[1], 240500);
    assert_int_equal(set.items[1].spec.points[1], 9);
    assert_int_equal(set.limits.range_bytes, 17 * 64 * KIB + PROBE_LINE_BYTES);
    assert_int_equal(set.gpu.origin, ORIGIN_IMPORTED);
    observation_set_free(&set);
}

static void a_matrix_becomes_an_observation(void **state)
{
    static const char text[] = "#Some GPU: cuda 8.0\n, reduction mode: avg\n#--- values ---\n"
                               "#   000 002 \n000 284 276 \n002 279 287 \n#--- shared ---\n.X\n";
    struct observation_set set;
    struct err err = {0};

    (void)state;
    if (read_one("x/TLBsharing-128-16.txt", text, sizeof text - 1, &set, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(set.count, 1);
    assert_int_equal(set.items[0].spec.kind, PROBE_MEAN_PAIRS);
    assert_int_equal(set.items[0].spec.stride_bytes, 128 * KIB);
    assert_int_equal(set.items[0].spec.thrash_pages, 16);
    assert_int_equal(set.items[0].result.sm_ids[1], 2);
    assert_int_equal(set.items[0].result.values[2], 279000);
    assert_int_equal(set.gpu.sm_count, 2);
    observation_set_free(&set);
}

/* Imported data is converted to JSON and back like any other observation. */
static void it_travels(void **state)
{
    static const char text[] = HEAD "#,64,\n1,241,\n";
    struct observation_set set;
    struct observation again;

    (void)state;
    assert_int_equal(read_one("a.csv", text, sizeof text - 1, &set, NULL), STATUS_OK);
    json_t *const json = AS_JSON(observation_write, &set.items[0]);
    assert_non_null(json);
    assert_int_equal(observation_from_json(json, &again, NULL), STATUS_OK);
    assert_memory_equal(&again.spec, &set.items[0].spec, sizeof again.spec);
    assert_int_equal(again.result.values[0], 241000);
    json_decref(json);
    observation_free(&again);
    observation_set_free(&set);
}

/* ---- refused files ---- */

struct bad {
    const char *name;
    const char *text;
    const char *says; /* a part of the error message */
};

static void bad_files_are_refused(void **state)
{
    static const struct bad all[] = {
        {"a.csv", "", "line 1: the file is empty"},
        {"a.csv", "size,64\n", "line 1: does not begin"},
        {"a.csv", "#: cuda 8.0\n", "line 1: the GPU's name has 0 bytes"},
        {"a.csv", "#GPU: cuda eight\n", "line 1: has no compute capability"},
        {"a.csv", "#GPU: cuda 8.0, reduction mode: max\n", "neither avg nor min"},
        {"a.csv", HEAD, "line 1: ends before any number"},
        {"a.csv", HEAD "1,2,3\n", "line 2: is neither the head"},
        {"a.csv", HEAD "#,\n", "line 2: has no strides"},
        {"a.csv", HEAD "#,64,32,\n", "line 2: the strides do not ascend"},
        {"a.csv", HEAD "#,64,-1,\n", "line 2: the stride '-1'"},
        {"a.csv", HEAD "#,99999999999999999999,\n", "line 2: the stride"},
        {"a.csv", HEAD "#,64,\n", "line 2: has no rows"},
        {"a.csv", HEAD "#,64,\n0,241,\n", "line 3: '0' is not a footprint"},
        {"a.csv", HEAD "#,64,\n-1,241,\n", "line 3: '-1' is not a footprint"},
        {"a.csv", HEAD "#,64,\nnan,241,\n", "line 3: 'nan' is not a footprint"},
        {"a.csv", HEAD "#,64,\n1e9,241,\n", "line 3: '1e9' is not a footprint"},
        {"a.csv", HEAD "#,64,\n1,NaN,\n", "line 3: 'NaN' is not a number of cycles"},
        {"a.csv", HEAD "#,64,\n1,-241,\n", "line 3: '-241' is not a number of cycles"},
        {"a.csv", HEAD "#,64,\n1,0,\n", "line 3: '0' is not a number of cycles"},
        {"a.csv", HEAD "#,64,\n1,99999999,\n", "is not a number of cycles"},
        {"a.csv", HEAD "#,64,\n1,241\n", "line 3: has fewer than the 1 columns"},
        {"a.csv", HEAD "#,64,\n1,241,242,\n", "line 3: has more than the 1 columns"},
        {"a.csv", HEAD "#,64,\n1,241,\n1,241,\n", "line 4: the footprints do not ascend"},
        {"a.csv", HEAD "#,64,\n1.01,241,\n", "line 3: the footprint is not a multiple"},
        {"a.csv", HEAD "#,64\n1,24", "does not end: cut short?"},
        {"a.csv", HEAD "#,1,\n12345.6,241,\n", "six digits do not determine"},
        {"TLBsharing.txt", HEAD "#  000\n000 1 \n", "the file's name must end"},
        {"s-0-1.txt", HEAD "#  000\n000 1 \n", "the file's name must end"},
        {"s-64-1.txt", "#G: cuda 8.0, reduction mode: min\n#  000\n000 1 \n", "reduction mode min"},
        {"s-64-1.txt", HEAD "#  \n", "line 2: has no SMs"},
        {"s-64-1.txt", HEAD "#  001 000\n", "line 2: the SMs do not ascend"},
        {"s-64-1.txt", HEAD "#  000 512\n", "line 2: '512' is not an SM id"},
        {"s-64-1.txt", HEAD "#  000 001\n000 1 2 \n", "line 3: ends after 1 rows"},
        {"s-64-1.txt", HEAD "#  000 001\n001 1 2 \n", "line 3: is the row of SM 1"},
        {"s-64-1.txt", HEAD "#  000 001\n000 1 \n", "line 3: has 1 whole columns of 2"},
        {"s-64-1.txt", HEAD "#  000 001\n000 1 2 3 \n", "line 3: has more than the 2 columns"},
        {"s-64-1.txt", HEAD "#  000\n000 28", "line 3: has 0 whole columns of 1"},
        {"s-64-1.txt", HEAD "#  000\n000 x \n", "line 3: 'x' is not a number of cycles"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct observation_set set;
        struct err err = {0};
        assert_int_equal(read_one(all[i].name, all[i].text, strlen(all[i].text), &set, &err),
                         STATUS_INVALID_ARGUMENT);
        if (!strstr(err.text, all[i].says) || !strstr(err.text, all[i].name))
            fail_msg("'%s' says: %s", all[i].says, err.text);
        assert_null(set.items);
        assert_int_equal(set.count, 0);
    }
}

static void odd_bytes_and_long_lines_are_refused(void **state)
{
    static const char with_nul[] = HEAD "#,64,\n1,2\0"
                                        "1,\n";
    const size_t bytes = IMPORT_MAX_LINE_BYTES + 100;
    char *const text = malloc(bytes);
    struct observation_set set;
    struct err err = {0};

    (void)state;
    assert_non_null(text);
    assert_int_equal(read_one("a.csv", with_nul, sizeof with_nul - 1, &set, &err),
                     STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "line 3: contains bytes that are not text"));
    memset(text, '1', bytes);
    memcpy(text, HEAD, sizeof HEAD - 1);
    assert_int_equal(read_one("a.csv", text, bytes, &set, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "line 2: has"));
    free(text);
}

static void files_of_two_gpus_are_refused(void **state)
{
    static const char a[] = "#A: cuda 8.0\n#,64,\n1,241,\n";
    static const char b[] = "#B: cuda 8.0\n#,64,\n1,241,\n";
    static const char x[] = "#A: cuda 8.0\n#  000\n000 1 \n";
    static const char y[] = "#A: cuda 8.0\n#  001\n001 1 \n";
    const struct import_file two[] = {{"a.csv", a, sizeof a - 1}, {"b.csv", b, sizeof b - 1}};
    const struct import_file sms[] = {{"x-64-1", x, sizeof x - 1}, {"y-64-1", y, sizeof y - 1}};
    struct observation_set set;
    struct err err = {0};

    (void)state;
    assert_int_equal(import_read(two, 2, &options, &set, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "b.csv"));
    assert_int_equal(import_read(sms, 2, &options, &set, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "must be of one GPU"));
    assert_int_equal(import_read(two, 0, &options, &set, &err), STATUS_INVALID_ARGUMENT);
    assert_int_equal(import_read(two, IMPORT_MAX_FILES + 1, &options, &set, &err),
                     STATUS_INVALID_ARGUMENT);
}

static void a_name_makes_the_uuid(void **state)
{
    static const char a[] = "#A: cuda 8.0\n#,64,\n1,241,\n";
    static const struct import_file file = {"a.csv", a, sizeof a - 1};
    static const struct import_options named = {.gpu_name = "left one"};
    static const struct import_options empty = {.gpu_name = ""};
    static const struct import_options bell = {.gpu_name = "a\a"};
    struct observation_set one, two;
    struct err err = {0};

    (void)state;
    assert_int_equal(import_read(&file, 1, &options, &one, &err), STATUS_OK);
    assert_int_equal(import_read(&file, 1, &named, &two, &err), STATUS_OK);
    assert_string_equal(two.gpu.name, "left one");
    assert_string_not_equal(one.gpu.uuid, two.gpu.uuid);
    observation_set_free(&one);
    observation_set_free(&two);
    assert_int_equal(import_read(&file, 1, &empty, &one, &err), STATUS_INVALID_ARGUMENT);
    assert_int_equal(import_read(&file, 1, &bell, &one, &err), STATUS_INVALID_ARGUMENT);
}

/* ---- random damage ---- */

static size_t damage(struct rng *rng, char *text, size_t bytes, size_t room)
{
    static const char likely[] = "0123456789.,,,\n\r #-+eNa\0\xff";

    for (uint64_t n = 1 + rng_below(rng, 6); n > 0 && bytes > 0; n--) {
        const size_t at = rng_below(rng, bytes);
        const size_t some = 1 + rng_below(rng, bytes - at < 40 ? bytes - at : 40);
        switch (rng_below(rng, 5)) {
        case 0:
            text[at] = likely[rng_below(rng, sizeof likely)];
            break;
        case 1:
            text[at] = (char)rng_next(rng);
            break;
        case 2: /* cut out */
            memmove(text + at, text + at + some, bytes - at - some);
            bytes -= some;
            break;
        case 3: /* double */
            if (bytes + some > room)
                break;
            memmove(text + at + some, text + at, bytes - at);
            bytes += some;
            break;
        default:
            bytes = rng_below(rng, 4) == 0 ? at : bytes; /* cut off */
        }
    }
    return bytes;
}

/* Any input gives an error message, or a fingerprint that holds its invariants. No input causes a
 * crash. */
static void damaged_files_do_no_harm(void **state)
{
    enum { ROUNDS = 1500, ROOM = 1 << 16 };
    struct rng rng = {.state = paper_seed("damaged files", 20170613)};
    struct bench_gpu gpu;
    struct bench_files files = {0};
    struct fingerprint *const fp = calloc(1, sizeof *fp);
    char *const text = malloc(ROOM);
    uint32_t read = 0;

    (void)state;
    assert_true(fp && text);
    bench_gpu_random(&rng, &gpu);
    bench_curves(&gpu, 1, 4, 64, 256, &files);
    bench_sharing(&gpu, 128, 16, &files);
    for (int round = 0; round < ROUNDS; round++) {
        const struct import_file *const from = &files.files[rng_below(&rng, files.count)];
        struct observation_set set;
        struct err err = {0};
        assert_true(from->bytes < ROOM);
        memcpy(text, from->text, from->bytes);
        const size_t bytes = damage(&rng, text, from->bytes, ROOM);
        const enum status s = read_one(from->name, text, bytes, &set, &err);
        if (s == STATUS_OK) {
            read += 1;
            assert_int_equal(analysis_derive(&set, DEPTH_QUICK, fp, &err), STATUS_OK);
            if (fingerprint_check(fp, &err) != STATUS_OK)
                fail_msg("round %d: %s", round, err.text);
            observation_set_free(&set);
            continue;
        }
        assert_int_equal(s, STATUS_INVALID_ARGUMENT);
        assert_true(strstr(err.text, ", line ") && strlen(err.text) > 20);
    }
    print_message("# %u of %d were read all the same\n", read, ROUNDS);
    assert_true(read > 0 && read < ROUNDS);
    bench_files_free(&files);
    free(text);
    free(fp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(k80_is_as_published),
        cmocka_unit_test(marks_are_not_input),
        cmocka_unit_test(a_curve_becomes_observations),
        cmocka_unit_test(a_matrix_becomes_an_observation),
        cmocka_unit_test(it_travels),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(odd_bytes_and_long_lines_are_refused),
        cmocka_unit_test(files_of_two_gpus_are_refused),
        cmocka_unit_test(a_name_makes_the_uuid),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
