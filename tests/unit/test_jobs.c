/* test_jobs.c: the host side of the jobs of the papers (clients/examples/job*.c, element.h), with
 * jobs that run on the CPU in place of a GPU: every strategy that a plan offers, pass by pass and
 * window by window, over the same elements that the kernels compute. */
#include "clients/c/answer.h"
#include "clients/examples/element.h"
#include "clients/examples/job.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 1 << 16, SAMPLES = 20000, SMS = 12, WINDOWS = 3 };

/* ---- a plan, as libreach would give it ------------------------------------------------------- */

enum { PLAN_BYTES = 8192 };

/* One option, with a comma behind it unless it is the last. */
static int add_option(char *out, const char *strategy, bool possible, int windows, double gbps,
                      const char *comma)
{
    return sprintf(out,
                   "{\"strategy\":\"%s\",\"possible\":%s,\"gbps\":%.1f,\"passes\":1,"
                   "\"windows\":%d,\"scope_bytes\":0,\"bound\":\"memory\",\"why\":\"\"}%s",
                   strategy, possible ? "true" : "false", gbps, windows, comma);
}

/* Windows of uneven length, SM s in window s % WINDOWS; scopes that do not divide the bytes.
 * `all`: every strategy is possible; else naive alone, which comes first then. */
static struct reach_answer *make_plan(uint64_t bytes, bool all)
{
    const struct answer_origin origin = {
        .kind = ANSWER_PLAN, .http_status = 200, .source = REACH_FROM_FILE};
    const uint64_t scope = bytes / 8 * 3 / 512 * 512;
    const uint64_t passes = (bytes - 1) / scope + 1;
    char *text = malloc(PLAN_BYTES);
    char *at = text;
    struct reach_answer *plan = NULL;
    struct reach_error error;
    uint64_t first = 0;

    assert_non_null(text);
    at += sprintf(at,
                  "{\"gpu\":\"SIM-x\",\"fingerprint_id\":\"fp0\",\"fingerprint_stale\":false,"
                  "\"origin\":\"simulated\",\"bytes\":%llu,\"basis\":\"none\",\"options\":[",
                  (unsigned long long)bytes);
    if (!all)
        at += add_option(at, "naive", true, 0, 100, ",");
    at += add_option(at, "windows", all, 0, 500, ",");
    at += add_option(at, "filtered-windows", all, WINDOWS, 490, ",");
    at += sprintf(at,
                  "{\"strategy\":\"scopes\",\"possible\":%s,\"gbps\":400,\"passes\":%llu,"
                  "\"windows\":0,\"scope_bytes\":%llu,\"bound\":\"memory\",\"why\":\"\"},",
                  all ? "true" : "false", (unsigned long long)passes, (unsigned long long)scope);
    at += add_option(at, "partitioned-windows", all, WINDOWS, 300, all ? "," : "");
    if (all)
        at += add_option(at, "naive", true, 0, 100, "");
    at += sprintf(at,
                  "],\"scope\":{\"scope_bytes\":%llu,\"passes\":%llu},\"placement\":{\"windows\":[",
                  (unsigned long long)scope, (unsigned long long)passes);
    for (uint32_t w = 0; w < WINDOWS; w++) {
        const uint64_t end = w + 1 < WINDOWS ? first + bytes / 512 / (5 - w) * 512 : bytes;
        at += sprintf(at,
                      "%s{\"first_byte\":%llu,\"length_bytes\":%llu,\"sm_count\":%d,"
                      "\"group_count\":1}",
                      w ? "," : "", (unsigned long long)first, (unsigned long long)(end - first),
                      SMS / WINDOWS);
        first = end;
    }
    at += sprintf(at, "],\"window_of_sm\":[");
    for (int sm = 0; sm < SMS; sm++)
        at += sprintf(at, "%s%d", sm ? "," : "", sm % WINDOWS);
    at += sprintf(at, "]}}");
    if (answer_new(&origin, text, (size_t)(at - text), &plan, &error) != REACH_OK)
        fail_msg("%s", error.text);
    return plan;
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

static const struct job_variant cpu_variants[] = {
    {REACH_NAIVE, 0, "naive", false},
    {REACH_SCOPES, 0, "scopes", false},
    {REACH_SCOPES, 1, "scopes, again", true},
    {REACH_FILTERED_WINDOWS, 0, "filtered windows", false},
    {REACH_PARTITIONED_WINDOWS, 0, "partitioned windows", false},
    {REACH_NAIVE, 0, NULL, false},
};

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

static bool cpu_run(void *state, const struct job_way *way, const struct job_pass *passes,
                    double *ms, struct job_result *out, char *why)
{
    struct cpu *c = state;

    (void)why;
    if (c->grouping)
        memset(c->table, 0, c->bytes);
    for (uint32_t p = 0; p < way->pass_count; p++) {
        for (uint32_t w = 0; w < passes[p].windows.window_count; w++)
            do_window(c, &passes[p].windows.window[w], out);
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
    const struct job job = {.state = c, .run = cpu_run};
    char why[JOB_TEXT_BYTES];

    reach_answer_free(run->plan);
    memset(run, 0, sizeof *run);
    run->bytes = c->bytes;
    run->useful_bytes = SAMPLES * 32.0;
    run->repeats = 3;
    run->plan = make_plan(run->bytes, true);
    run->way_count = job_ways_make(cpu_variants, run->plan, run->ways);
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
    reach_answer_free(run->plan);
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
    reach_answer_free(run->plan);
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
    reach_answer_free(run->plan);
    free(run);
}

static void what_is_impossible_is_no_way(void **state)
{
    struct job_way ways[JOB_MAX_WAYS];
    struct reach_answer *plan = make_plan(1 << 20, false);

    (void)state;
    assert_int_equal(job_ways_make(cpu_variants, plan, ways), 1);
    assert_int_equal(ways[0].strategy, REACH_NAIVE);
    assert_int_equal(ways[0].pass_count, 1);
    reach_answer_free(plan);
}

static void passes_cover_everything_once(void **state)
{
    struct job_pass *pass = calloc(1, sizeof *pass);
    const struct reach_windows *in = &pass->windows;
    struct job_way way = {.strategy = REACH_SCOPES};

    (void)state;
    for (uint64_t bytes = 512; bytes < 512 * 300; bytes += 512) {
        uint64_t end = 0;

        way.scope_bytes = 512 * 7;
        way.pass_count = (uint32_t)((bytes - 1) / way.scope_bytes + 1);
        for (uint32_t p = 0; p < way.pass_count; p++) {
            job_way_pass(&way, NULL, bytes, SMS, p, pass);
            assert_int_equal(in->window_count, 1);
            assert_int_equal(in->window[0].first_byte, end);
            assert_in_range(in->window[0].length_bytes, 1, way.scope_bytes);
            end += in->window[0].length_bytes;
        }
        assert_int_equal(end, bytes);
    }
    assert_int_equal(in->window_of_sm[SMS - 1], 0);
    assert_int_equal(in->sm_slots, SMS);
    free(pass);
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
    assert_string_equal(o.uri, "unix:/x");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (parse(wrong[i], &o))
            fail_msg("accepted: %s", wrong[i]);
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
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(elements_are_what_they_should_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
