/* test_job_env.c: what a job gets into its environment says what the daemon says, for every size
 * and every question, and what was cut, edited or made up is refused. The seed is printed;
 * TEST_SEED repeats it. */
#include "tests/unit/support/any_fingerprint.h"
#include "tests/unit/support/placement_fixture.h"

#include "base/hash.h"
#include "base/units.h"
#include "planner/explain.h"
#include "planner/job_env.h"
#include "planner/memory_choices.h"
#include "planner/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 300, QUESTIONS = 12 };

static const char ID[] = "fp0123456789abcdef";
static uint32_t advised;         /* answers about memory */
static struct fingerprint whole; /* as the daemon has it */
static struct fingerprint read;  /* as it came through the environment */
static char read_id[FINGERPRINT_ID_BYTES];
static char line[JOB_ENV_LINE_BYTES];
static char again[JOB_ENV_LINE_BYTES];
static char variables[JOB_ENV_BYTES];

static uint64_t first_seed(void)
{
    const char *text = getenv("TEST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);

    printf("# TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

static void through_the_environment(void)
{
    struct err err = {.text = ""};

    if (job_env_line(&whole, ID, line, &err) != STATUS_OK ||
        job_env_read(line, &read, read_id, &err) != STATUS_OK)
        fail_msg("%s\n%s", err.text, line);
    assert_string_equal(read_id, ID);
}

/* ---- the same answers ---- */

static void same_number(struct maybe_f64 a, struct maybe_f64 b)
{
    assert_int_equal(a.known, b.known);
    assert_int_equal(a.reason, b.reason);
    assert_true(a.v == b.v);
}

static void same_windows(const struct placement_answer *a, const struct placement_answer *b)
{
    assert_int_equal(a->advice, b->advice);
    assert_int_equal(a->window_count, b->window_count);
    assert_memory_equal(a->windows, b->windows, a->window_count * sizeof(a->windows[0]));
    assert_int_equal(a->sm_slots, b->sm_slots);
    assert_memory_equal(a->window_of_sm, b->window_of_sm, a->sm_slots * sizeof(int16_t));
    assert_int_equal(a->headroom_bytes, b->headroom_bytes);
    assert_true(a->imbalance == b->imbalance);
    same_number(a->predicted_gbps, b->predicted_gbps);
    same_number(a->naive_gbps, b->naive_gbps);
    assert_string_equal(a->reason, b->reason);
}

/* Asks both; true where both answer, and both refuse with the same sentence where not. */
#define BOTH(call, question, a, b)                                                                 \
    both(call(&whole, &(question), &(a), &why_a), call(&read, &(question), &(b), &why_b), &why_a,  \
         &why_b)
static bool both(enum status a, enum status b, const struct err *why_a, const struct err *why_b)
{
    assert_int_equal(a, b);
    if (a != STATUS_OK)
        assert_string_equal(why_a->text, why_b->text);
    return a == STATUS_OK;
}

static void same_scope_and_placement(struct rng *r, uint64_t bytes)
{
    const struct scope_request scope = {.layout = layout_single(bytes),
                                        .access = (enum access)rng_below(r, ACCESS_COUNT),
                                        .fingerprint_id = ID};
    const struct placement_request request = {.bytes = bytes,
                                              .windows = (uint32_t)rng_below(r, 4),
                                              .granularity_bytes = rng_below(r, 2) * 4096,
                                              .fingerprint_id = ID};
    static struct placement_answer a, b;
    struct scope_answer pass_a, pass_b;
    struct err why_a, why_b;

    if (BOTH(placement_scope, scope, pass_a, pass_b)) {
        assert_int_equal(pass_a.scope_bytes, pass_b.scope_bytes);
        assert_int_equal(pass_a.passes, pass_b.passes);
        same_number(pass_a.predicted_gbps, pass_b.predicted_gbps);
        same_number(pass_a.naive_gbps, pass_b.naive_gbps);
        assert_string_equal(pass_a.reason, pass_b.reason);
    }
    if (BOTH(placement_plan, request, a, b))
        same_windows(&a, &b);
}

static void same_plan(struct rng *r, uint64_t bytes)
{
    static const uint32_t elements[] = {0, 8, 32, 64, 128, 512, 4096};
    const struct job_request job = {.bytes = bytes,
                                    .access = (enum access)rng_below(r, ACCESS_COUNT),
                                    .element_bytes = elements[rng_below(r, 7)],
                                    .accesses = rng_below(r, 2) * 1000000,
                                    .single_pass = rng_below(r, 2),
                                    .input_bytes = (double)rng_below(r, 3) * 8,
                                    .scan_gps = (double)rng_below(r, 3) * 100,
                                    .scattered = (double)rng_below(r, 3) / 2,
                                    .fingerprint_id = ID};
    static struct strategy_answer a, b;
    struct err why_a, why_b;

    if (read.working_set_count != whole.working_set_count) /* they did not fit */
        return;
    if (!BOTH(strategy_plan, job, a, b))
        return;
    assert_int_equal(a.basis, b.basis);
    same_number(a.in_reach_gbps, b.in_reach_gbps);
    assert_string_equal(a.reason, b.reason);
    assert_int_equal(a.scope_bytes, b.scope_bytes);
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        assert_int_equal(a.options[i].strategy, b.options[i].strategy);
        same_number(a.options[i].gbps, b.options[i].gbps);
        same_number(a.options[i].times_naive, b.options[i].times_naive);
        assert_string_equal(a.options[i].why, b.options[i].why);
    }
    assert_int_equal(a.has_placement, b.has_placement);
    if (a.has_placement)
        same_windows(&a.placement, &b.placement);
}

static void same_split_and_explanation(struct rng *r, uint64_t bytes)
{
    const struct split_request jobs = {
        .job_count = 2, .jobs = {{bytes, 1}, {bytes / 2 + 1, 2}}, .fingerprint_id = ID};
    const struct explain_request explain = {.bytes = bytes,
                                            .access = (enum access)rng_below(r, ACCESS_COUNT),
                                            .element_bytes = 32u << rng_below(r, 5),
                                            .observed_gbps = 0.1 + 5000 * rng_unit(r),
                                            .scattered = (double)rng_below(r, 3) / 2,
                                            .fingerprint_id = ID};
    static struct split_answer a, b;
    static struct explain_answer e, f;
    struct err why_a, why_b;

    if (BOTH(split_jobs, jobs, a, b)) {
        assert_string_equal(a.reason, b.reason);
        assert_int_equal(a.window_count, b.window_count);
        assert_memory_equal(a.windows, b.windows, a.window_count * sizeof(a.windows[0]));
        assert_memory_equal(a.job_of_sm, b.job_of_sm, a.sm_slots * sizeof(int16_t));
        assert_memory_equal(a.window_of_sm, b.window_of_sm, a.sm_slots * sizeof(int16_t));
        same_number(a.parts[0].gbps, b.parts[0].gbps);
        same_number(a.parts[1].unsplit_gbps, b.parts[1].unsplit_gbps);
    }
    if (BOTH(explain_loss, explain, e, f)) {
        assert_int_equal(e.bottleneck, f.bottleneck);
        same_number(e.expected_gbps, f.expected_gbps);
        same_number(e.translation_share, f.translation_share);
        assert_string_equal(e.reason, f.reason);
        assert_string_equal(e.checks[0], f.checks[0]);
    }
}

/* Unless the kinds of memory did not fit. */
static void same_advice(struct rng *r, uint64_t bytes)
{
    const struct memory_request request = {.bytes = bytes,
                                           .access = (enum access)rng_below(r, ACCESS_COUNT),
                                           .location =
                                               (enum memory_location)rng_below(r, LOCATION_COUNT),
                                           .element_bytes = 32u << rng_below(r, 5),
                                           .fingerprint_id = ID};
    static struct memory_answer a, b;
    struct err why_a, why_b;

    if (read.memory_count != whole.memory_count) {
        assert_int_equal(read.memory_count, 0);
        return;
    }
    if (!BOTH(memory_choices_rank, request, a, b))
        return;
    assert_int_equal(a.choice_count, b.choice_count);
    for (uint32_t i = 0; i < a.choice_count; i++) {
        assert_int_equal(a.choices[i].kind, b.choices[i].kind);
        assert_string_equal(a.choices[i].peer_uuid, b.choices[i].peer_uuid);
        assert_int_equal(a.choices[i].basis, b.choices[i].basis);
        assert_int_equal(IS_KNOWN(a.choices[i].capacity_bytes),
                         IS_KNOWN(b.choices[i].capacity_bytes));
        assert_true(a.choices[i].capacity_bytes.v == b.choices[i].capacity_bytes.v);
        assert_int_equal(a.choices[i].sms.v, b.choices[i].sms.v);
        assert_int_equal(a.choices[i].window_bytes, b.choices[i].window_bytes);
        same_number(a.choices[i].gbps, b.choices[i].gbps);
        same_number(a.choices[i].probed_gbps, b.choices[i].probed_gbps);
        assert_string_equal(a.choices[i].why, b.choices[i].why);
    }
    assert_int_equal(a.left_out_count, b.left_out_count);
    assert_string_equal(a.reason, b.reason);
    advised++;
}

/* Sizes that a GPU has, so that windows come out of it more often than not. */
static void bring_into_reach(struct rng *r, struct fingerprint *fp)
{
    const uint64_t entry = (uint64_t)1 << (20 + rng_below(r, 6));

    fp->gpu.memory_bytes = (1 + rng_below(r, 1600)) * GIB;
    if (rng_below(r, 8) == 0)
        return;
    fp->windows.entry_bytes = KNOWN_U64(entry);
    fp->windows.reach_bytes = KNOWN_U64(entry * (2 + rng_below(r, 40000)));
    fp->windows.recommended_bytes = KNOWN_U64(fp->windows.reach_bytes.v - entry);
    if (rng_below(r, 8) == 0) {
        fp->windows.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
        fp->windows.recommended_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    }
}

static void test_same_answers(void **state)
{
    struct rng r = {.state = first_seed()};
    uint32_t with_windows = 0;
    struct placement_answer answer;
    struct err err;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        any_fingerprint(&r, &whole);
        bring_into_reach(&r, &whole);
        through_the_environment();
        assert_int_equal(job_env_line(&read, ID, again, &err), STATUS_OK);
        assert_string_equal(line, again);
        for (int q = 0; q < QUESTIONS; q++) {
            const uint64_t bytes =
                rng_below(&r, 4) == 0 ? rng_next(&r) >> 13 : 1 + rng_below(&r, 200 * GIB);
            const struct placement_request request = {.bytes = bytes, .fingerprint_id = ID};
            same_scope_and_placement(&r, bytes);
            same_plan(&r, bytes);
            same_split_and_explanation(&r, bytes);
            same_advice(&r, bytes);
            with_windows += placement_plan(&whole, &request, &answer, &err) == STATUS_OK &&
                            answer.window_count > 1;
        }
    }
    printf("# %u answers with windows, %u about memory\n", with_windows, advised);
    /* Else the above says little. */
    assert_true(with_windows > ROUNDS && advised > ROUNDS / 4);
}

/* SMs 0 to 2 and 3 to 5, 64 GiB of reach. */
static void make_two_groups(void)
{
    static const uint32_t sizes[] = {3, 3};

    placement_make_empty(&whole);
    placement_make_groups(&whole, sizes, 2);
    placement_make_limits(&whole, 64 * GIB, 2 * MIB);
    for (uint32_t sm = 0; sm < 6; sm++)
        whole.topology.partition.group_of_sm[sm] = (uint16_t)(sm / 3);
    whole.gpu.memory_bytes = 100 * GIB;
}

/* ---- the variables ---- */

static const char *value_of(const char *name)
{
    static char value[JOB_ENV_BYTES];
    const size_t n = strlen(name);

    for (const char *at = variables; *at; at = strchr(at, '\n') + 1) {
        if (strncmp(at, name, n) == 0 && at[n] == '=') {
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(at + n + 1, "\n"), at + n + 1);
            return value;
        }
    }
    fail_msg("no %s in %s", name, variables);
    return "";
}

static void test_variables(void **state)
{
    struct err err = {.text = ""};

    (void)state;
    make_two_groups();
    if (job_env_variables(&whole, ID, variables, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_string_equal(value_of("REACH_FINGERPRINT_ID"), ID);
    assert_string_equal(value_of("REACH_GPU_UUID"), whole.gpu.uuid);
    assert_string_equal(value_of("REACH_SCOPE_BYTES"), "68717379584"); /* 64 GiB less 2 MiB */
    assert_string_equal(value_of("REACH_WINDOWS"), "53687091200,53687091200");
    assert_string_equal(value_of("REACH_WINDOW_OF_SM"), "0,0,0,1,1,1");
    assert_int_equal(job_env_read(value_of("REACH_JOB"), &read, read_id, &err), STATUS_OK);
    assert_string_equal(read.gpu.uuid, whole.gpu.uuid);
}

static void test_knows_too_little(void **state)
{
    struct err err = {.text = ""};

    (void)state;
    placement_make_empty(&whole);
    whole.gpu.memory_bytes = GIB;
    assert_int_equal(job_env_variables(&whole, ID, variables, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err_next_step(&err), "reachctl measure --depth full"));
}

/* Every kind of memory and every peer, as much of each as there can be. */
static void fill_memory(struct maybe_f64 longest)
{
    whole.memory_count = FINGERPRINT_MAX_MEMORY;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_MEMORY; i++) {
        struct memory_facts *const m = &whole.memory[i];
        m->kind = i + 1 < MEMORY_PEER ? (enum memory_kind)(i + 1) : MEMORY_PEER;
        if (m->kind == MEMORY_PEER)
            (void)snprintf(m->peer_uuid, sizeof(m->peer_uuid), "GPU-%u", i);
        m->probed_bytes = KNOWN_U64(GIB);
        m->curve_count = FINGERPRINT_MAX_MEMORY_CURVE;
        for (uint32_t k = 0; k < FINGERPRINT_MAX_MEMORY_CURVE; k++)
            m->curve[k] = (struct curve_point){.region_bytes = INT64_MAX - 64 + k,
                                               .naive_gbps = longest,
                                               .by_group_gbps = longest};
    }
}

/* As many of everything as there can be, each as long as it can be. */
static void test_largest_fits(void **state)
{
    const struct maybe_f64 longest = KNOWN_F64(-0.0 + 1.2345678901234567e-300);
    struct throughput *t = &whole.throughput;
    struct err err = {.text = ""};

    (void)state;
    fingerprint_init(&whole);
    memset(whole.gpu.uuid, 'u', sizeof(whole.gpu.uuid) - 1);
    memset(whole.gpu.name, '\n', sizeof(whole.gpu.name) - 1);
    whole.gpu.sm_count = REACH_MAX_SMS;
    whole.gpu.memory_bytes = GIB;
    whole.topology.partition.group_count = REACH_MAX_GROUPS;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        whole.topology.partition.group_of_sm[sm] = (uint16_t)(sm % REACH_MAX_GROUPS);
        whole.topology.groups[sm % REACH_MAX_GROUPS].sm_count = 2;
        whole.topology.groups[sm % REACH_MAX_GROUPS].random_read_gbps = longest;
    }
    t->curve_count = FINGERPRINT_MAX_CURVE;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_CURVE; i++)
        t->curve[i] = (struct curve_point){
            .region_bytes = INT64_MAX - 64 + i, .naive_gbps = longest, .by_group_gbps = longest};
    t->rate_count = FINGERPRINT_MAX_RATES;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_RATES; i++) {
        t->rates[i] = (struct access_rate){.access = ACCESS_ATOMIC,
                                           .transaction_bytes = 1000000000 + i,
                                           .plateau_gbps = longest,
                                           .point_count = FINGERPRINT_MAX_RATE_POINTS};
        for (uint32_t k = 0; k < FINGERPRINT_MAX_RATE_POINTS; k++)
            t->rates[i].points[k] =
                (struct curve_point){.region_bytes = INT64_MAX - 64 + k,
                                     .naive_gbps = longest,
                                     .by_group_gbps = k + 1 == FINGERPRINT_MAX_RATE_POINTS
                                                          ? longest
                                                          : UNKNOWN_F64(REASON_NO_DEVICE_MEMORY)};
    }
    assert_int_equal(fingerprint_check(&whole, &err), STATUS_OK);
    through_the_environment();
    printf("# without kinds of memory the largest line has %zu bytes of %d\n", strlen(line),
           (int)JOB_ENV_LINE_BYTES);
    assert_memory_equal(read.topology.partition.group_of_sm, whole.topology.partition.group_of_sm,
                        sizeof(whole.topology.partition.group_of_sm));
    whole.working_set_count = FINGERPRINT_MAX_WORKING_SETS;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_WORKING_SETS; i++)
        whole.working_sets[i] = (struct working_set){.transaction_bytes = UINT32_MAX,
                                                     .set_bytes = INT64_MAX - 64 + i,
                                                     .same_gbps = longest,
                                                     .own_gbps = longest,
                                                     .near_gbps = longest};
    fill_memory(longest);
    assert_int_equal(fingerprint_check(&whole, &err), STATUS_OK);
    through_the_environment();
    assert_int_equal(read.memory_count, 0); /* and the rest is there */
    assert_int_equal(read.throughput.rate_count, FINGERPRINT_MAX_RATES);
}

/* ---- what is refused ---- */

static enum status read_text(const char *text, struct err *err)
{
    *err = (struct err){.text = ""};
    return job_env_read(text, &read, read_id, err);
}

static void test_cut_and_edited(void **state)
{
    struct rng r = {.state = first_seed()};
    struct err err;
    size_t bytes;

    (void)state;
    any_fingerprint(&r, &whole);
    through_the_environment();
    bytes = strlen(line);
    for (size_t n = 0; n < bytes; n++) {
        memcpy(again, line, n);
        again[n] = '\0';
        if (read_text(again, &err) == STATUS_OK)
            fail_msg("the first %zu bytes of %zu are read", n, bytes);
        assert_true(err.text[0] != '\0');
    }
    for (size_t n = 0; n < bytes; n++) {
        memcpy(again, line, bytes + 1);
        again[n] = (char)(again[n] ^ (1 + (int)rng_below(&r, 127)));
        if (read_text(again, &err) == STATUS_OK)
            fail_msg("read with byte %zu changed: %s", n, again);
    }
}

/* The line with its first `from` replaced and a check that is true again. */
static void rewrite(const char *from, const char *to)
{
    char *end = strstr(line, " check=");
    const char *at = strstr(line, from);

    assert_non_null(end);
    if (!at)
        fail_msg("no \"%s\" in %s", from, line);
    snprintf(again, sizeof(again), "%.*s%s%.*s", (int)(at - line), line, to,
             (int)(end - at - (ptrdiff_t)strlen(from)), at + strlen(from));
    snprintf(again + strlen(again), sizeof(again) - strlen(again), " check=%016" PRIx64,
             hash_bytes(HASH_START, again, strlen(again)));
}

static void two_groups(void)
{
    make_two_groups();
    (void)snprintf(whole.gpu.uuid, sizeof(whole.gpu.uuid), "GPU-1");
    (void)snprintf(whole.gpu.name, sizeof(whole.gpu.name), "A chip");
    whole.throughput.rate_count = 1;
    whole.throughput.rates[0] =
        (struct access_rate){.transaction_bytes = 32, .plateau_gbps = KNOWN_F64(1000)};
    whole.contiguity = (struct fingerprint_contiguity){.frame_bytes = KNOWN_U64(33554432),
                                                       .contiguous_miss_ns = KNOWN_F64(0.25),
                                                       .scattered_miss_ns = KNOWN_F64(0.5)};
    whole.conditions.host_memory_bytes = KNOWN_U64(1000);
    whole.memory_count = MEMORY_PEER - 1;
    for (uint32_t i = 0; i < whole.memory_count; i++)
        whole.memory[i].kind = (enum memory_kind)(i + 1);
    whole.memory[1].probed_bytes = KNOWN_U64(2 * MIB);
    whole.memory[1].curve_count = 2;
    whole.memory[1].curve[0] =
        (struct curve_point){.region_bytes = MIB,
                             .naive_gbps = KNOWN_F64(50),
                             .by_group_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                             .windows = 1};
    whole.memory[1].curve[1] = (struct curve_point){.region_bytes = 2 * MIB,
                                                    .naive_gbps = KNOWN_F64(9),
                                                    .by_group_gbps = KNOWN_F64(48),
                                                    .windows = 24};
    through_the_environment();
    assert_int_equal(read.memory[1].curve[1].windows, 24);
}

static const char *const wrong[][2] = {
    {"gpu=GPU-1", "gpu="},
    {"gpu=GPU-1 ", ""},
    {"gpu=GPU-1", "gpu=%00"},
    {"gpu=GPU-1", "gpu=%4"},
    {"gpu=GPU-1", "GPU=GPU-1"},
    {" name=", "  name="},
    {"mig=0", "mig=2"},
    {"mig=0", "mig=00"},
    {"origin=simulated", "origin=guessed"},
    {"sms=6", "sms=513"},
    {"sms=6", "sms=-6"},
    {"sms=6", "sms="},
    {"sms=6", "sms=5"}, /* fewer than the groups have */
    {"memory=107374182400", "memory=9223372036854775808"},
    {"memory=107374182400", "memory=99999999999999999999999"},
    {"id=fp", "id=xp"},
    {"id=fp0", "id=fpG"},
    {"id=fp0", "id=fp"},
    {"depth=quick", "depth=deep"},
    {"verdict=clean", "verdict=fine"},
    {"reach=68719476736", "reach=1"}, /* below an entry */
    {"reach=68719476736", "reach=64G"},
    {"reach=68719476736", "reach=?"},
    {"reach=68719476736", "reach=!Because"},
    {"levels=", "levels=1"},
    {"levels=", "levels=2:1:all"},
    {"levels=", "levels=2:1:gpu:3"},
    {"levels=", "levels=,"},
    {"groups=0x3,1x3", "groups=1x3,0x3"},
    {"groups=0x3,1x3", "groups=0x3,2x3"},
    {"groups=0x3,1x3", "groups=0x3,1x513"},
    {"groups=0x3,1x3", "groups=0x3,1x"},
    {"groups=0x3,1x3", "groups=0x3,1x3x2"},
    {"groups=0x3,1x3", "groups=0x3,999x3"},
    {"groups=0x3,1x3", "groups=0x3,1x3,-x600"},
    {"group_gbps=?not-measured,", "group_gbps="},
    {"group_gbps=", "group_gbps=1,"},
    {"host=1000", "host="},
    {"kinds=managed-device", "kinds=device"},
    {"kinds=managed-device", "kinds=moon"},
    {"kinds=managed-device:", "kinds=host-pinned:"},
    {"kinds=managed-device::", "kinds=managed-device:GPU-1:"},
    {"/host-pinned::", "/host-pinned:"},
    {"/host-registered-huge", ""},
    {":24,1048576:50:?not-measured", ":24,1048576:50"},
    {":24,1048576:50:?not-measured", ":24,1048576:50:?not-measured:1"},
    {":24,1048576:50:?not-measured", ":-1,1048576:50:?not-measured"},
    {"contiguity=33554432:0.25:0.5", "contiguity=33554432:0.25"},
    {"contiguity=33554432:0.25:0.5", "contiguity=33554432:0.5:0.25"},
    {"contiguity=33554432:0.25:0.5", "contiguity=33554432:0.25:0.5:1"},
    {"contiguity=33554432:0.25:0.5", "contiguity="},
    {"rates=read:32:1000", "rates=read:32:nan"},
    {"rates=read:32:1000", "rates=read:32:inf"},
    {"rates=read:32:1000", "rates=read:32:0x10"},
    {"rates=read:32:1000", "rates=read:32:1e999"},
    {"rates=read:32:1000", "rates=read:32:1,5:6"},
    {"rates=read:32:1000", "rates=read:128:1"}, /* that is the curve's */
    {"rates=read:32:1000", "rates=read:32:1000/read:32:1000"},
    {"rates=read:32:1000", "rates=fetch:32:1000"},
    {"rates=read:32:1000", "rates=read:32"},
    {"rates=read:32:1000", "rates=read:32:1000 more"},
    {"rates=read:32:1000", "rates=read:32:1000 =more"},
};

static void test_made_up(void **state)
{
    struct err err;

    (void)state;
    two_groups();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        rewrite(wrong[i][0], wrong[i][1]);
        if (read_text(again, &err) != STATUS_CORRUPT)
            fail_msg("read: %s", again);
        assert_true(err.text[0] != '\0');
    }
    /* The table above fails for its words, not for its rewriting. */
    rewrite("mig=0", "mig=1");
    assert_int_equal(read_text(again, &err), STATUS_OK);
    assert_true(read.gpu.mig);
    rewrite("rates=read:32:1000", "rates=read:32:1000 colour=blue later=x=y");
    assert_int_equal(read_text(again, &err), STATUS_OK);
    assert_string_equal(read.gpu.name, "A chip");
}

static void test_other_versions(void **state)
{
    struct err err;

    (void)state;
    two_groups();
    line[1] = '2';
    assert_int_equal(read_text(line, &err), STATUS_NOT_SUPPORTED);
    assert_int_equal(read_text("", &err), STATUS_CORRUPT);
    assert_int_equal(read_text("{}", &err), STATUS_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),     cmocka_unit_test(test_variables),
        cmocka_unit_test(test_knows_too_little), cmocka_unit_test(test_largest_fits),
        cmocka_unit_test(test_cut_and_edited),   cmocka_unit_test(test_made_up),
        cmocka_unit_test(test_other_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
