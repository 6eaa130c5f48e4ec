/* test_jobs.c: the host side of the jobs of the papers (clients/examples/job*.c, element.h), with
 * jobs that run on the CPU in place of a GPU: every strategy that a plan offers, pass by pass and
 * window by window, over the same elements that the kernels compute. */
#include "clients/examples/element.h"
#include "clients/examples/job.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 1 << 16, SAMPLES = 20000, SMS = 12, WINDOWS = 3 };

/* ---- a plan, as libreach would give it ------------------------------------------------------- */

static struct reach_number known(double value)
{
    return (struct reach_number){.known = true, .value = value};
}

static void add_option(struct reach_plan *plan, enum reach_strategy strategy, bool possible,
                       double gbps)
{
    struct reach_option *o = &plan->options[plan->option_count++];

    o->strategy = strategy;
    o->possible = possible;
    o->gbps = known(gbps);
    o->passes = 1;
}

/* Windows of uneven length, SM s in window s % WINDOWS; scopes that do not divide the bytes. */
static void make_plan(uint64_t bytes, struct reach_plan *plan)
{
    uint64_t first = 0;

    memset(plan, 0, sizeof *plan);
    plan->bytes = bytes;
    add_option(plan, REACH_WINDOWS, true, 500);
    add_option(plan, REACH_FILTERED_WINDOWS, true, 490);
    add_option(plan, REACH_SCOPES, true, 400);
    add_option(plan, REACH_PARTITIONED_WINDOWS, true, 300);
    add_option(plan, REACH_NAIVE, true, 100);
    plan->options[2].scope_bytes = bytes / 8 * 3 / 512 * 512;
    plan->options[2].passes = (bytes - 1) / plan->options[2].scope_bytes + 1;
    plan->windows.window_count = WINDOWS;
    for (uint32_t w = 0; w < WINDOWS; w++) {
        plan->windows.window[w].first_byte = first;
        first = w + 1 < WINDOWS ? first + bytes / 512 / (5 - w) * 512 : bytes;
        plan->windows.window[w].length_bytes = first - plan->windows.window[w].first_byte;
        plan->options[1].windows = plan->options[3].windows = WINDOWS;
    }
    plan->windows.sm_slots = SMS;
    for (uint32_t sm = 0; sm < SMS; sm++)
        plan->windows.window_of_sm[sm] = (int16_t)(sm % WINDOWS);
}

/* ---- jobs on the CPU ------------------------------------------------------------------------- */

/* Sampling: what the kernel does, sample by sample; and grouping, value by value. */
struct cpu {
    uint64_t bytes;
    uint32_t seed;
    uint32_t runs;
    uint32_t spoil_run; /* this run of all leaves a sample out; 0: none */
    bool grouping;
    struct element_bucket *table;
};

static const struct job_variant *cpu_variants(const struct job_options *options)
{
    static const struct job_variant all[] = {
        {REACH_NAIVE, 0, "naive", false},
        {REACH_SCOPES, 0, "scopes", false},
        {REACH_SCOPES, 1, "scopes, again", true},
        {REACH_FILTERED_WINDOWS, 0, "filtered windows", false},
        {REACH_PARTITIONED_WINDOWS, 0, "partitioned windows", false},
        {REACH_NAIVE, 0, NULL, false},
    };

    (void)options;
    return all;
}

static void count_value(struct cpu *c, uint64_t key, uint64_t first, uint64_t length)
{
    uint64_t at = element_bucket_of(key, c->bytes / sizeof *c->table);

    while (c->table[at].key != 0 && c->table[at].key != key)
        at = element_next_bucket(at, first, length);
    assert_true(element_inside(at, first, length));
    c->table[at].key = key;
    c->table[at].count++;
}

/* All elements, looked at by the SMs of one window. */
static void do_window(struct cpu *c, const struct reach_window *w, struct job_result *out)
{
    for (uint64_t i = 0; i < SAMPLES; i++) {
        if (c->grouping) {
            const uint32_t value = (uint32_t)element_random(i % 5000, c->seed, 1500);
            const uint64_t key = element_key(value, (uint32_t)(i / 5000));
            const uint64_t size = sizeof *c->table;

            if (element_inside(element_bucket_of(key, c->bytes / size), w->first_byte / size,
                               w->length_bytes / size))
                count_value(c, key, w->first_byte / size, w->length_bytes / size);
        } else {
            const uint64_t at = element_random(i, c->seed, c->bytes / 4);

            if (element_inside(at, w->first_byte / 4, w->length_bytes / 4))
                out->number[0] += element_word(at);
        }
    }
}

static void read_table(const struct cpu *c, struct job_result *out)
{
    for (uint64_t i = 0; i < c->bytes / sizeof *c->table; i++) {
        const struct element_bucket *b = &c->table[i];

        out->number[0] += b->key != 0;
        out->number[1] += b->count;
        out->number[2] += b->key ? element_check(b->key) * b->count : 0;
    }
}

static bool cpu_run(void *state, const struct job_way *way, const struct reach_windows *passes,
                    double *ms, struct job_result *out, char *why)
{
    struct cpu *c = state;

    (void)why;
    if (c->grouping)
        memset(c->table, 0, c->bytes);
    for (uint32_t p = 0; p < way->pass_count; p++) {
        for (uint32_t w = 0; w < passes[p].window_count; w++)
            do_window(c, &passes[p].window[w], out);
    }
    if (c->grouping)
        read_table(c, out);
    *ms = 10.0 * (way->strategy + 1);
    out->number[0] -= ++c->runs == c->spoil_run;
    return true;
}

static void reference(const struct cpu *c, struct job_run *run)
{
    for (uint64_t i = 0; i < SAMPLES; i++) {
        if (c->grouping) {
            const uint32_t value = (uint32_t)element_random(i % 5000, c->seed, 1500);

            run->reference.number[1]++;
            run->reference.number[2] += element_check(element_key(value, (uint32_t)(i / 5000)));
        } else {
            run->reference.number[0] += element_word(element_random(i, c->seed, c->bytes / 4));
        }
    }
    run->reference_known = c->grouping ? 6 : 1;
}

static void measure(struct cpu *c, struct job_run *run)
{
    const struct job job = {.state = c, .variants = cpu_variants, .run = cpu_run};
    char why[JOB_TEXT_BYTES];

    memset(run, 0, sizeof *run);
    run->bytes = c->bytes;
    run->useful_bytes = SAMPLES * 32.0;
    run->repeats = 3;
    make_plan(run->bytes, &run->plan);
    run->way_count = job_ways_make(cpu_variants(NULL), &run->plan, run->ways);
    reference(c, run);
    assert_true(job_measure(&job, run, SMS, why));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_strategy_finds_what_the_cpu_finds(void **state)
{
    struct job_run *run = calloc(1, sizeof *run);
    const char *given = getenv("TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {.state = seed};

    (void)state;
    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    for (int i = 0; i < 20; i++) {
        struct cpu c = {.bytes = (512 + rng_below(&rng, 512)) * 512,
                        .seed = (uint32_t)rng_below(&rng, 1 << 20)};

        c.grouping = i % 2;
        c.table = malloc(c.bytes);
        measure(&c, run);
        assert_int_equal(run->way_count, 5);
        for (uint32_t w = 0; w < run->way_count; w++)
            assert_true(run->ways[w].right);
        free(c.table);
    }
    free(run);
}

/* A check that cannot fail proves nothing: one sample left out of any run is noticed. */
static void a_lost_sample_is_noticed(void **state)
{
    struct job_run *run = calloc(1, sizeof *run);

    (void)state;
    for (uint32_t spoilt = 1; spoilt <= 20; spoilt++) {
        struct cpu c = {.bytes = 512 * 600, .seed = 3, .spoil_run = spoilt};
        uint32_t wrong = 0;

        measure(&c, run);
        assert_int_equal(c.runs, 20); /* 5 ways, a warming round and 3 timed ones */
        for (uint32_t w = 0; w < run->way_count; w++)
            wrong += !run->ways[w].right;
        assert_true(wrong > 0);
    }
    free(run);
}

static void the_best_plan_comes_first(void **state)
{
    struct cpu c = {.bytes = 512 * 600, .seed = 1};
    struct job_run *run = calloc(1, sizeof *run);

    (void)state;
    measure(&c, run);
    assert_string_equal(run->ways[0].label, "filtered windows"); /* plain windows it cannot do */
    assert_string_equal(run->ways[1].label, "scopes");
    assert_string_equal(run->ways[3].label, "naive");
    assert_string_equal(run->ways[4].label, "scopes, again"); /* not planned: last, no number */
    assert_false(run->ways[4].predicted_gbps.known);
    assert_int_equal(run->ways[1].pass_count, 3);
    assert_true(run->ways[0].gbps == SAMPLES * 32.0 / (40 * 1e6));
    assert_string_equal(run->ways[job_best(run)].label, "naive"); /* 10 ms here */
    free(run);
}

static void what_is_impossible_is_no_way(void **state)
{
    struct job_way ways[JOB_MAX_WAYS];
    struct reach_plan *plan = calloc(1, sizeof *plan);

    (void)state;
    make_plan(1 << 20, plan);
    for (uint32_t o = 0; o < 4; o++)
        plan->options[o].possible = false;
    assert_int_equal(job_ways_make(cpu_variants(NULL), plan, ways), 1);
    assert_int_equal(ways[0].strategy, REACH_NAIVE);
    assert_int_equal(ways[0].pass_count, 1);
    free(plan);
}

static void passes_cover_everything_once(void **state)
{
    struct reach_plan *plan = calloc(1, sizeof *plan);
    struct reach_windows *pass = calloc(1, sizeof *pass);
    struct job_way way = {.strategy = REACH_SCOPES};

    (void)state;
    for (uint64_t bytes = 512; bytes < 512 * 300; bytes += 512) {
        uint64_t end = 0;

        way.scope_bytes = 512 * 7;
        way.pass_count = (uint32_t)((bytes - 1) / way.scope_bytes + 1);
        for (uint32_t p = 0; p < way.pass_count; p++) {
            job_way_pass(&way, plan, bytes, SMS, p, pass);
            assert_int_equal(pass->window_count, 1);
            assert_int_equal(pass->window[0].first_byte, end);
            assert_in_range(pass->window[0].length_bytes, 1, way.scope_bytes);
            end += pass->window[0].length_bytes;
        }
        assert_int_equal(end, bytes);
    }
    assert_int_equal(pass->window_of_sm[SMS - 1], 0);
    assert_int_equal(pass->window_of_sm[SMS], REACH_IDLE);
    assert_int_equal(pass->sm_slots, SMS);
    free(plan);
    free(pass);
}

static void medians_are_of_the_middle(void **state)
{
    (void)state;
    assert_true(job_median((const double[]){5}, 1) == 5);
    assert_true(job_median((const double[]){9, 1, 4}, 3) == 4);
    assert_true(job_median((const double[]){9, 1, 4, 2}, 4) == 3);
}

static bool parse(const char *line, struct job_options *out)
{
    static char text[200];
    static const struct job job = {
        .name = "grouping", .unit = "values", .help = "  --input WHERE\n", .default_count = 77};
    char program[] = "grouping", *argv[24] = {program}, why[JOB_TEXT_BYTES] = "";
    int argc = 1;

    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    const bool good = job_options_parse(argc, argv, &job, out, why);

    assert_int_equal(good, why[0] == '\0');
    return good;
}

static void options_are_read(void **state)
{
    static const char *const wrong[] = {
        "--bytes 12X",  "--bytes 1G,", "--bytes ,",   "--bytes 0",    "--bytes 16777216T",
        "--repeats 33", "--repeats 0", "--values -1", "--input disk", "--row-bytes 128",
        "--samples 5",  "16GiB",       "--bytes",     "--seed 1.5",   "--nonsense"};
    struct job_options o;

    (void)state;
    assert_true(parse("", &o));
    assert_int_equal(o.size_count, 1);
    assert_int_equal(o.bytes[0], 0);
    assert_int_equal(o.count, 77);
    assert_true(parse("--bytes 16GiB,80G,largest,512 --values 1M --input host --repeats 2 "
                      "--seed 9 --dry-run --json f --gpu 3 --reachd unix:/x",
                      &o));
    assert_int_equal(o.size_count, 4);
    assert_int_equal(o.bytes[0], 16ull << 30);
    assert_int_equal(o.bytes[1], 80ull << 30);
    assert_int_equal(o.bytes[2], 0);
    assert_int_equal(o.bytes[3], 512);
    assert_int_equal(o.count, 1 << 20);
    assert_true(o.host_input && o.dry_run);
    assert_int_equal(o.repeats, 2);
    assert_int_equal(o.seed, 9);
    assert_string_equal(o.where, "unix:/x");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (parse(wrong[i], &o))
            fail_msg("taken: %s", wrong[i]);
    }
}

/* Published values of Murmur3's finalisers, and what spreads over a range stays in it. */
static void elements_are_what_they_should_be(void **state)
{
    uint64_t seen = 0;

    (void)state;
    assert_true(element_mix(0) == 0);
    assert_true(element_mix(1) == 0xb456bcfc34c2cb2cull);
    assert_true(element_mix32(1) == 0x514e28b7u);
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t at = element_random(i, 1, 37);

        assert_in_range(at, 0, 36);
        seen |= 1ull << at;
    }
    assert_true(seen == (1ull << 37) - 1);
    assert_true(element_next_bucket(9, 5, 5) == 5);
    assert_true(element_next_bucket(8, 5, 5) == 9);
    assert_true(element_inside(5, 5, 5) && element_inside(9, 5, 5));
    assert_false(element_inside(4, 5, 5) || element_inside(10, 5, 5) || element_inside(0, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_finds_what_the_cpu_finds),
        cmocka_unit_test(a_lost_sample_is_noticed),
        cmocka_unit_test(the_best_plan_comes_first),
        cmocka_unit_test(what_is_impossible_is_no_way),
        cmocka_unit_test(passes_cover_everything_once),
        cmocka_unit_test(medians_are_of_the_middle),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(elements_are_what_they_should_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
