/* test_jobs.c: the host side of the jobs (clients/examples/job*.c, host_gather.c, element.h),
 * with jobs that run on the CPU instead of a GPU. Every strategy of a plan runs, pass by pass
 * and window by window, over the elements that the kernels compute. */
#include "clients/c/answer.h"
#include "clients/examples/element.h"
#include "clients/examples/host_gather.h"
#include "clients/examples/job.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 1 << 16, SAMPLES = 20000, SMS = 12, WINDOWS = 3 };

/* ---- a plan in the form of libreach
 * ----------------------------------------------------------- */

enum { PLAN_BYTES = 8192 };

/* Writes one option, followed by a comma unless it is the last option. */
static int add_option(char *out, const char *strategy, bool possible, int windows, double gbps,
                      const char *comma)
{
    return sprintf(out,
                   "{\"strategy\":\"%s\",\"possible\":%s,\"gbps\":%.1f,\"passes\":1,"
                   "\"windows\":%d,\"scope_bytes\":0,\"bound\":\"memory\",\"why\":\"\"}%s",
                   strategy, possible ? "true" : "false", gbps, windows, comma);
}

/* Windows have uneven lengths, and SM s has window s % WINDOWS. Scopes do not divide the number
 * of bytes. With `all` every strategy is possible; otherwise only naive is possible and comes
 * first. */
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

/* A job on the CPU. Sampling works like the kernel, sample by sample; grouping works value by
 * value. */
struct cpu {
    uint64_t bytes;
    uint32_t seed;
    uint32_t runs;
    uint32_t spoil_run; /* number of the run that leaves out a sample; 0 means that no run does */
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

/* Visits all elements that the SMs of one window visit. */
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

static bool cpu_run(void *state, const struct job_choice *choice, const struct job_pass *passes,
                    double *ms, struct job_result *out, char *why)
{
    struct cpu *c = state;

    (void)why;
    if (c->grouping)
        memset(c->table, 0, c->bytes);
    for (uint32_t p = 0; p < choice->pass_count; p++) {
        for (uint32_t w = 0; w < passes[p].windows.window_count; w++)
            do_window(c, &passes[p].windows.window[w], out);
    }
    if (c->grouping)
        read_table(c, out);
    *ms = 10.0 * (choice->strategy + 1);
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
    run->choice_count = job_choices_make(cpu_variants, run->plan, NULL, run->choices);
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
        assert_int_equal(run->choice_count, 5);
        for (uint32_t w = 0; w < run->choice_count; w++)
            assert_true(run->choices[w].right);
        free(c.table);
    }
    reach_answer_free(run->plan);
    free(run);
}

/* If any run leaves out one sample, the check fails. */
static void a_lost_sample_is_noticed(void **state)
{
    struct job_run *run = calloc(1, sizeof *run);

    (void)state;
    for (uint32_t spoilt = 1; spoilt <= 20; spoilt++) {
        struct cpu c = {.bytes = 512 * 600, .seed = 3, .spoil_run = spoilt};
        uint32_t wrong = 0;

        measure(&c, run);
        assert_int_equal(c.runs, 20); /* 5 choices, a warm-up round and 3 timed rounds */
        for (uint32_t w = 0; w < run->choice_count; w++)
            wrong += !run->choices[w].right;
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
    assert_string_equal(run->choices[0].label,
                        "filtered windows"); /* the job cannot use plain windows */
    assert_string_equal(run->choices[1].label, "scopes");
    assert_string_equal(run->choices[3].label, "naive");
    assert_string_equal(run->choices[4].label,
                        "scopes, again"); /* this choice is not in the plan and has no prediction */
    assert_false(run->choices[4].predicted_gbps.known);
    assert_int_equal(run->choices[1].pass_count, 3);
    assert_true(run->choices[0].gbps == SAMPLES * 32.0 / (40 * 1e6));
    assert_string_equal(run->choices[job_best(run)].label,
                        "naive"); /* naive takes 10 ms in this test */
    reach_answer_free(run->plan);
    free(run);
}

static void what_is_impossible_is_no_choice(void **state)
{
    struct job_choice choices[JOB_MAX_CHOICES];
    struct reach_answer *plan = make_plan(1 << 20, false);

    (void)state;
    assert_int_equal(job_choices_make(cpu_variants, plan, NULL, choices), 1);
    assert_int_equal(choices[0].strategy, REACH_NAIVE);
    assert_int_equal(choices[0].pass_count, 1);
    assert_int_equal(job_choices_make(cpu_variants, plan, "scopes", choices), 0);
    reach_answer_free(plan);
}

static void one_strategy_can_be_chosen(void **state)
{
    struct job_choice choices[JOB_MAX_CHOICES];
    struct reach_answer *plan = make_plan(1 << 20, true);

    (void)state;
    assert_int_equal(job_choices_make(cpu_variants, plan, "scopes", choices), 2);
    assert_string_equal(choices[0].label, "scopes");
    assert_string_equal(choices[1].label, "scopes, again");
    reach_answer_free(plan);
}

static void passes_cover_everything_once(void **state)
{
    struct job_pass *pass = calloc(1, sizeof *pass);
    const struct reach_windows *in = &pass->windows;
    struct job_choice choice = {.strategy = REACH_SCOPES};

    (void)state;
    for (uint64_t bytes = 512; bytes < 512 * 300; bytes += 512) {
        uint64_t end = 0;

        choice.scope_bytes = 512 * 7;
        choice.pass_count = (uint32_t)((bytes - 1) / choice.scope_bytes + 1);
        for (uint32_t p = 0; p < choice.pass_count; p++) {
            job_choice_pass(&choice, NULL, bytes, SMS, p, pass);
            assert_int_equal(in->window_count, 1);
            assert_int_equal(in->window[0].first_byte, end);
            assert_in_range(in->window[0].length_bytes, 1, choice.scope_bytes);
            end += in->window[0].length_bytes;
        }
        assert_int_equal(end, bytes);
    }
    assert_int_equal(in->window_of_sm[SMS - 1], 0);
    assert_int_equal(in->sm_slots, SMS);
    free(pass);
}

static char parse_why[JOB_TEXT_BYTES]; /* reason of the last call of the parser */

static bool parse(const char *line, struct job_options *out)
{
    static char text[200];
    static const struct job job = {
        .name = "grouping", .unit = "values", .help = "  --input WHERE\n", .default_count = 77};
    char program[] = "grouping", *argv[24] = {program};
    char *const why = parse_why;
    int argc = 1;

    why[0] = '\0';

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
        "--bytes 12X",       "--bytes 1G,",     "--bytes ,",   "--bytes 0",
        "--bytes 16777216T", "--repeats 33",    "--repeats 0", "--values -1",
        "--input disk",      "--row-bytes 128", "--samples 5", "16GiB",
        "--bytes",           "--seed 1.5",      "--nonsense",  "--strategy fast"};
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
    assert_null(o.strategy);
    assert_int_equal(o.seed, 9);
    assert_string_equal(o.uri, "unix:/x");
    assert_true(parse("--bytes 80GB --strategy naive", &o));
    assert_string_equal(o.strategy, "naive");
    assert_int_equal(o.bytes[0], 80000000000);
    assert_false(parse("--bytes 1e11", &o));
    assert_non_null(strstr(parse_why, "write 100000000000 or 100GB"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (parse(wrong[i], &o))
            fail_msg("accepted: %s", wrong[i]);
    }
}

/* Published values of Murmur3's finalizers. A result that is mapped to a range is inside the
 * range. */
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

/* ---- host_gather ----------------------------------------------------------------------------- */

/* Makes a chip with groups of random size. Some SM ids do not exist. */
static void make_chip(struct rng *rng, int16_t *group_of_sm, struct reach_fingerprint *chip)
{
    *chip = (struct reach_fingerprint){.sm_slots = 1 + (uint32_t)rng_below(rng, REACH_SM_MAX),
                                       .group_count = 1 + (uint32_t)rng_below(rng, 40),
                                       .group_of_sm = group_of_sm};
    for (uint32_t sm = 0; sm < chip->sm_slots; sm++) {
        const bool exists = sm + 1 == chip->sm_slots || rng_below(rng, 8) > 0;

        group_of_sm[sm] = exists ? (int16_t)rng_below(rng, chip->group_count) : REACH_IDLE;
        chip->sm_count += exists;
    }
}

static void check_layout(const struct reach_fingerprint *chip, uint64_t bytes,
                         const struct reach_windows *w)
{
    uint32_t sms[REACH_WINDOW_MAX] = {0};
    uint64_t end = 0;

    for (uint32_t sm = 0; sm < chip->sm_slots; sm++) {
        assert_int_equal(w->window_of_sm[sm], chip->group_of_sm[sm]);
        if (w->window_of_sm[sm] != REACH_IDLE)
            sms[w->window_of_sm[sm]]++;
    }
    for (uint32_t i = 0; i < w->window_count; i++) {
        const double share = (double)bytes * sms[i] / chip->sm_count;

        assert_int_equal(w->window[i].first_byte, end);
        assert_int_equal(w->window[i].length_bytes % LINE_BYTES, 0);
        assert_true((double)w->window[i].length_bytes >= share - 2 * LINE_BYTES);
        assert_true((double)w->window[i].length_bytes <= share + 2 * LINE_BYTES);
        end += w->window[i].length_bytes;
    }
    assert_int_equal(end, bytes);
    assert_int_equal(job_windows_bytes(w), bytes);
}

static void every_group_has_a_window_as_long_as_its_share(void **state)
{
    static struct gather_layout layout;
    int16_t group_of_sm[REACH_SM_MAX];
    struct reach_fingerprint chip;
    struct rng rng = {.state = 20};

    (void)state;
    for (int i = 0; i < 300; i++) {
        const uint64_t bytes = (1 + rng_below(&rng, 1 << 20)) * LINE_BYTES;
        uint32_t active = 0;

        make_chip(&rng, group_of_sm, &chip);
        assert_true(gather_by_group(&chip, bytes, &layout));
        check_layout(&chip, bytes, &layout.windows);
        const uint32_t some = 1 + (uint32_t)rng_below(&rng, chip.sm_count);
        gather_some_sms(&chip, some, bytes, &layout);
        for (uint32_t sm = 0; sm < chip.sm_slots; sm++) {
            active += layout.window_of_sm[sm] == 0;
            assert_true(layout.window_of_sm[sm] == REACH_IDLE || group_of_sm[sm] != REACH_IDLE);
        }
        assert_int_equal(active, some);
    }
    for (uint32_t sm = 0; sm < chip.sm_slots; sm++)
        group_of_sm[sm] = REACH_IDLE;
    assert_false(gather_by_group(&chip, 1 << 20, &layout));
}

static const char advice[] =
    "{\"fingerprint_id\":\"fp1\",\"origin\":\"measured\",\"choices\":["
    "{\"kind\":\"managed-host\",\"strategy\":\"naive\",\"gbps\":45.5,\"why\":\"a\"},"
    "{\"kind\":\"device\",\"strategy\":\"naive\",\"gbps\":4000},"
    "{\"kind\":\"host-pinned\",\"strategy\":\"windows\",\"gbps\":null,\"why\":\"b\"},"
    "{\"kind\":\"host-pinned\",\"strategy\":\"partitioned-windows\",\"gbps\":1},"
    "{\"kind\":\"no-such\",\"strategy\":\"naive\",\"gbps\":1},"
    "{\"kind\":\"host-pinned\",\"strategy\":\"naive\",\"gbps\":5}]}";

static void the_advice_is_read(void **state)
{
    static const char *const nothing[] = {"",
                                          "[]",
                                          "{}",
                                          "{\"choices\":7}",
                                          "{\"choices\":[]}",
                                          "{\"choices\":[{\"kind\":\"device\"}]}"};
    static struct gather_size size;
    char why[JOB_TEXT_BYTES] = "", target[128];

    (void)state;
    gather_target("GPU-1", 1ull << 34, target, sizeof target);
    assert_string_equal(
        target, "/v1/gpus/GPU-1/memory?bytes=17179869184&access=read&location=host&element=128");
    assert_true(gather_read_advice(advice, 1 << 30, &size, why));
    assert_int_equal(size.choice_count, 3);
    assert_string_equal(size.fingerprint_id, "fp1");
    assert_int_equal(size.choices[0].kind, MEMORY_MANAGED_HOST);
    assert_true(size.choices[0].predicted && size.choices[0].predicted_gbps == 45.5);
    assert_int_equal(size.choices[1].strategy, REACH_WINDOWS);
    assert_false(size.choices[1].predicted);
    assert_string_equal(size.choices[1].why, "b");
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        assert_false(gather_read_advice(nothing[i], 1 << 30, &size, why));
        assert_non_null(strstr(why, "depth memory"));
    }
}

/* Because of noise, another choice may be faster than the first one. */
static void the_first_choice_is_compared_with_the_fastest(void **state)
{
    static struct gather_size size;
    char why[JOB_TEXT_BYTES];

    (void)state;
    assert_true(gather_read_advice(advice, 1 << 30, &size, why));
    assert_null(gather_best(&size)); /* no choice was measured yet */
    assert_null(gather_pinned(&size));
    assert_false(gather_first_is_fastest(&size));
    for (uint32_t w = 0; w < size.choice_count; w++) {
        size.choices[w].lines = 1000;
        size.choices[w].milliseconds[0] = size.choices[w].milliseconds[2] = 10 + 2 * w;
        gather_derive(&size.choices[w], 3); /* the middle repeat took 0 ms */
    }
    assert_true(size.choices[0].gbps == 1000.0 * LINE_BYTES / (10 * 1e6));
    assert_ptr_equal(gather_best(&size), &size.choices[0]);
    assert_ptr_equal(gather_pinned(&size), &size.choices[2]);
    assert_true(gather_first_is_fastest(&size));
    size.choices[2].gbps = size.choices[0].gbps * 1.02;
    assert_true(gather_first_is_fastest(&size));
    size.choices[2].gbps = size.choices[0].gbps * 1.2;
    assert_false(gather_first_is_fastest(&size));
    assert_ptr_equal(gather_best(&size), &size.choices[2]);
}

static char *report_of(const struct gather_size *size)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    gather_report(out, size, "GPU-1", true);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void what_was_measured_is_reported(void **state)
{
    static struct gather_size size;
    static const struct gather_counts counts = {
        .kind = MEMORY_MANAGED_HOST, .count = 2, .sms = {1, 2}, .gbps = {20, 40}};
    static const struct job_options options = {.repeats = 2, .seed = 1, .count = 60};
    const json_t *choice;
    char why[JOB_TEXT_BYTES];
    char path[] = "/tmp/reach-gather-XXXXXX";

    (void)state;
    assert_true(gather_read_advice(advice, 1 << 30, &size, why));
    size.choices[0].gbps = 45.5;
    size.choices[2].gbps = 4;
    size.choices[2].mismatches = 7;
    char *const text = report_of(&size);
    assert_non_null(strstr(text, "1.000     11.38  right")); /* ratio of the throughput to the
                                                                prediction, and to pinned memory */
    assert_non_null(strstr(text, "0.800      1.00  WRONG"));
    assert_non_null(strstr(text, "100.0 % of the fastest (managed-host, naive): the fastest"));
    free(text);
    const int file = mkstemp(path);
    assert_true(file >= 0 && close(file) == 0);
    assert_true(gather_write_json(path, "GPU-1", &options, &size, 1, &counts, why));
    json_t *const document = json_load_file(path, 0, NULL);
    choice = json_array_get(
        json_object_get(json_array_get(json_object_get(document, "sizes"), 0), "choices"), 2);
    assert_int_equal(json_integer_value(json_object_get(choice, "mismatches")), 7);
    assert_int_equal(json_array_size(json_object_get(choice, "milliseconds")), 2);
    assert_int_equal(json_array_size(json_object_get(document, "by_sms")), 2);
    json_decref(document);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_finds_what_the_cpu_finds),
        cmocka_unit_test(a_lost_sample_is_noticed),
        cmocka_unit_test(the_best_plan_comes_first),
        cmocka_unit_test(what_is_impossible_is_no_choice),
        cmocka_unit_test(one_strategy_can_be_chosen),
        cmocka_unit_test(passes_cover_everything_once),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(elements_are_what_they_should_be),
        cmocka_unit_test(every_group_has_a_window_as_long_as_its_share),
        cmocka_unit_test(the_advice_is_read),
        cmocka_unit_test(the_first_choice_is_compared_with_the_fastest),
        cmocka_unit_test(what_was_measured_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
