/* test_gups.c: the host side of reach-gups (clients/examples/gups.c) and its random sequence.
 * The kernels compile the sequence from the same lines. TEST_SEED repeats the random cases. */
#include "clients/examples/gups.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CASES = 300, LOG2 = 16 };

static struct rng rng;

/* ---- the sequence ---------------------------------------------------------------------------- */

/* Returns the product of two polynomials modulo x^64 + x^2 + x + 1, computed bit by bit. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product = 0;

    for (int bit = 63; bit >= 0; bit--) {
        product = (product << 1) ^ (product >> 63 ? 7u : 0u);
        product ^= b >> bit & 1 ? a : 0;
    }
    return product;
}

static void the_sequence_begins_with_powers_of_x(void **state)
{
    uint64_t number = 1;

    (void)state;
    assert_true(gups_start(0) == 1);
    for (uint32_t n = 0; n < 5000; n++) {
        assert_true(gups_start(n) == number);
        assert_true(n >= 64 || number == 1ull << n);
        number = gups_next(number);
    }
    assert_true(gups_start(64) == 7 && gups_start(127) == (7ull << 63 ^ 7 ^ 14));
}

static void squares_and_jumps_agree_with_products(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const uint64_t a = rng_next(&rng), n = rng_next(&rng) >> 2, k = rng_next(&rng) >> 2;

        assert_true(gups_square(a) == multiply(a, a));
        assert_true(gups_next(a) == multiply(a, 2));
        assert_true(gups_start(n + k) == multiply(gups_start(n), gups_start(k)));
        assert_true(gups_start(n + 1) == gups_next(gups_start(n)));
    }
}

/* ---- updates --------------------------------------------------------------------------------- */

/* Does the work of the kernel in one pass, window by window, piece by piece, lane by lane. */
static void update(uint64_t *table, uint64_t elements, const struct gups_options *options,
                   const struct reach_windows *windows)
{
    for (uint32_t w = 0; w < windows->window_count; w++) {
        const uint64_t first = windows->window[w].first_byte / 8;
        const uint64_t length = windows->window[w].length_bytes / 8;

        for (uint64_t lane = 0; lane < 32ull * gups_pieces(options); lane++) {
            uint64_t number = gups_start(lane * GUPS_STEPS);
            uint32_t left = GUPS_STEPS;

            while (gups_next_inside(&number, &left, elements - 1, first, length))
                table[number & (elements - 1)] ^= number;
        }
    }
}

/* Makes parts with random bounds, which are multiples of a line; some parts are empty. */
static void random_windows(struct reach_window *window, uint32_t count, uint64_t bytes)
{
    uint64_t end = 0;

    for (uint32_t w = 0; w < count; w++) {
        const uint64_t next =
            w + 1 == count ? bytes : end + rng_below(&rng, (bytes - end) / 128 + 1) * 128;

        window[w] = (struct reach_window){.first_byte = end, .length_bytes = next - end};
        end = next;
    }
}

static void windows_make_the_updates_of_the_naive_choice(void **state)
{
    const struct gups_options options = {.log2_elements = LOG2, .accesses = 1, .repeats = 1};
    const uint64_t elements = 1ull << LOG2;
    struct reach_window window[8], all = {.length_bytes = gups_bytes(&options)};
    const struct reach_windows naive = {.window_count = 1, .window = &all};
    uint64_t *expected = calloc(elements, sizeof *expected);
    uint64_t *table = calloc(elements, sizeof *table), changed = 0;

    (void)state;
    assert_true(expected && table);
    update(expected, elements, &options, &naive);
    for (uint64_t i = 0; i < elements; i++)
        changed += expected[i] != 0;
    assert_true(changed >
                elements / 4); /* the share is 0.38, because the sequence begins with sparse bits */
    for (uint32_t count = 1; count <= 8; count++) {
        const struct reach_windows parts = {.window_count = count, .window = window};

        memset(table, 0, elements * sizeof *table);
        random_windows(window, count, gups_bytes(&options));
        update(table, elements, &options, &parts);
        assert_memory_equal(table, expected, elements * sizeof *table);
    }
    free(table);
    free(expected);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool parse(struct gups_options *out, char *why, int count, const char *const *words)
{
    char name[] = "reach-gups", *argv[16] = {name};

    for (int i = 0; i < count; i++)
        argv[i + 1] = strdup(words[i]);
    const bool good = gups_options_parse(count + 1, argv, out, why);

    for (int i = 0; i < count; i++)
        free(argv[i + 1]);
    return good;
}

static void options_are_those_of_the_sample(void **state)
{
    static const char *const words[] = {"-n", "34", "-d", "1", "-t", "1", "-r", "3", "--dry-run"};
    char why[JOB_TEXT_BYTES];
    struct gups_options o;

    (void)state;
    assert_true(parse(&o, why, 0, NULL));
    assert_true(o.log2_elements == 29 && o.accesses == 8 && o.test == GUPS_UPDATE && !o.dry_run);
    assert_true(parse(&o, why, 9, words));
    assert_true(o.log2_elements == 34 && o.device == 1 && o.test == GUPS_READ && o.repeats == 3);
    assert_true(o.accesses == 32 && o.dry_run);
    assert_true(gups_bytes(&o) == 128ull << 30 && gups_accesses(&o) == 32ull << 34);
}

static void wrong_options_are_named(void **state)
{
    static const struct {
        int count;
        const char *words[4];
        const char *named;
    } cases[] = {
        {2, {"-n", "15"}, "15"},  {2, {"-n", "41"}, "41"},   {2, {"-n", "34x"}, "34x"},
        {2, {"-t", "6"}, "-t 6"}, {2, {"-a", "0"}, "-a 0"},  {2, {"-a", "65"}, "65"},
        {2, {"-r", "-1"}, "-1"},  {1, {"-s"}, "-s"},         {1, {"--bytes"}, "--bytes"},
        {1, {"-n"}, "-n"},        {1, {"extra"}, "\"extra"}, {4, {"-n", "40", "-a", "64"}, "2^40"},
    };
    char why[JOB_TEXT_BYTES];
    struct gups_options o;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(parse(&o, why, cases[i].count, cases[i].words));
        if (!strstr(why, cases[i].named))
            fail_msg("%s does not name %s", why, cases[i].named);
    }
}

static void pieces_are_all_accesses(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct gups_options o = {.log2_elements = 16 + (uint32_t)rng_below(&rng, 20),
                                       .accesses = 1 + (uint32_t)rng_below(&rng, 64)};

        assert_true((uint64_t)gups_pieces(&o) * 32 * GUPS_STEPS == gups_accesses(&o));
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

static char *printed(const struct gups_options *options, const struct job_choice *choices,
                     uint32_t count)
{
    static const struct gups_gpu gpu = {2, 32, 132, 2048, 270336};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    gups_print_header(out, options, &gpu);
    for (uint32_t i = 0; i < count; i++)
        gups_print_result(out, options, &choices[i]);
    gups_print_table(out, options, choices, count);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void lines_are_those_of_the_sample(void **state)
{
    const struct job_choice choices[] = {
        {.strategy = REACH_NAIVE, .label = "naive", .pass_count = 1, .milliseconds = {20000}},
        {.strategy = REACH_FILTERED_WINDOWS,
         .label = "windows",
         .pass_count = 1,
         .windows = 3,
         .predicted_gbps = {true, 512, ""},
         .milliseconds = {8000}}};
    const struct gups_options options = {.log2_elements = 34, .accesses = 8, .repeats = 1};
    const struct gups_options one_access = {
        .log2_elements = 34, .accesses = 8, .repeats = 1, .test = GUPS_UPDATE_XOR};
    char *text = printed(&options, choices, 2);

    (void)state;
    assert_non_null(strstr(text, "Using GPU 0 of 2 GPUs.\nWarp size = 32.\n"
                                 "Multi-processor count = 132.\n"
                                 "Max threads per multi-processor = 2048.\n"
                                 "Table size = 17179869184 (137.438953 GB.)\n"
                                 "Total number of threads 270336\n"
                                 "Each thread access 508400 locations.\n"
                                 "Number of iterations = 1\n"));
    assert_non_null(strstr(text, "Strategy: naive\nElapsed time = 20.000000 seconds\n"
                                 "Result Gupdates/s ATOM.CAS.64(loop) = 6.871948\n"));
    assert_non_null(strstr(text, "Strategy: windows, 3\nElapsed time = 8.000000 seconds\n"
                                 "Result Gupdates/s ATOM.CAS.64(loop) = 17.179869\n"));
    /* An update reads and then writes a word. The plan models one access and predicts no
     * throughput. */
    assert_non_null(strstr(text, "17.18            -         2.50\n"));
    free(text);
    text = printed(&one_access, choices, 2);
    assert_non_null(strstr(text, "17.18        16.00         2.50\n"));
    free(text);
}

static void without_reachd_naive_remains_and_the_reason(void **state)
{
    const struct gups_options options = {.log2_elements = 34, .accesses = 8, .dry_run = true};
    struct job_choice choices[JOB_MAX_CHOICES];
    struct reach_answer *plan = NULL;
    struct reach *source = NULL;
    char why[JOB_TEXT_BYTES];

    (void)state;
    assert_int_equal(reach_open("unix:/nonexistent/reachd.sock", &source, NULL), REACH_OK);
    assert_int_equal(gups_plan(source, "0", &options, &plan, choices, why), 1);
    assert_int_equal(choices[0].strategy, REACH_NAIVE);
    assert_int_equal(choices[0].pass_count, 1);
    assert_non_null(strstr(why, "/nonexistent/reachd.sock"));
    reach_answer_free(plan);
    reach_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_begins_with_powers_of_x),
        cmocka_unit_test(squares_and_jumps_agree_with_products),
        cmocka_unit_test(windows_make_the_updates_of_the_naive_choice),
        cmocka_unit_test(options_are_those_of_the_sample),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(pieces_are_all_accesses),
        cmocka_unit_test(lines_are_those_of_the_sample),
        cmocka_unit_test(without_reachd_naive_remains_and_the_reason),
    };
    const char *given = getenv("TEST_SEED");

    rng.state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
