/* test_job_env.c: the text in the environment of a job gives the answers of the daemon, byte for
 * byte. A text that was truncated, changed or invented is refused. The seed is printed, and
 * TEST_SEED repeats it. */
#include "tests/share.h"
#include "tests/unit/support/any_fingerprint.h"
#include "tests/unit/support/placement_fixture.h"

#include "api/handlers/handlers.h"
#include "base/hash.h"
#include "base/units.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_read.h"
#include "planner/job_env.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FINGERPRINTS = 300, SANITIZED_FINGERPRINTS = 60, QUESTIONS = 24, TARGET_BYTES = 256 };

static const char ID[] = "fp0123456789abcdef";
static struct snapshot *whole; /* the GPU in the form of the daemon */
static struct snapshot *read;  /* the same GPU, read from the environment */
static struct fingerprint *fp; /* of `whole` */
static char read_id[FINGERPRINT_ID_BYTES];
static struct err err;
static struct rng rng;

static int set_up(void **state)
{
    const char *const seed = getenv("TEST_SEED");

    (void)state;
    rng.state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("# TEST_SEED=%" PRIu64 "\n", rng.state);
    whole = snapshot_draft(1);
    read = snapshot_draft(1);
    whole->gpu_count = read->gpu_count = 1;
    fp = &whole->gpus[0].fingerprint;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    snapshot_discard(whole);
    snapshot_discard(read);
    return 0;
}

static void set_ready(struct snapshot_gpu *gpu)
{
    gpu->identity = gpu->fingerprint.gpu;
    gpu->has_fingerprint = true;
    gpu->state = GPU_STATE_READY;
    strcpy(gpu->fingerprint_id, ID);
}

static char *write_text(void)
{
    char *const text = job_env_text(fp, ID, &err);

    if (!text)
        fail_msg("%s", err.text);
    return text;
}

static enum status read_text(const char *text)
{
    err = (struct err){.text = ""};
    return job_env_read(text, &read->gpus[0].fingerprint, read_id, &err);
}

/* Returns the length of the text. */
static size_t send_through_the_environment(void)
{
    char *const text = write_text();
    char *again;
    const size_t bytes = strlen(text);

    if (read_text(text) != STATUS_OK)
        fail_msg("%s\n%s", err.text, text);
    assert_string_equal(read_id, ID);
    again = job_env_text(&read->gpus[0].fingerprint, ID, &err);
    assert_string_equal(text, again);
    free(text);
    free(again);
    set_ready(&whole->gpus[0]);
    set_ready(&read->gpus[0]);
    return bytes;
}

/* ---- the same answers ---- */

enum { ROUTES = PLANNER_COUNT - 1, PARAMETERS = 8 };

/* In each function, the parameter `bytes` comes first, and some of the others follow. */
static const struct {
    const char *name;
    const char *parameters[PARAMETERS];
} routes[ROUTES] = {
    {"scope", {"&access=write", "&granularity=4096"}},
    {"placement", {"&windows=3", "&granularity=2M"}},
    {"plan",
     {"&access=atomic", "&element=512", "&accesses=1000000", "&single_pass=true", "&input_bytes=16",
      "&scan_gps=100", "&contiguous=0.5", "&windows=2"}},
    {"split", {",20G", ",1G"}},
    {"explain", {"&gbps=412.5", "&access=write", "&element=512", "&contiguous=0"}},
    {"memory", {"&access=write", "&element=512", "&location=host"}},
    {"fit", {"&shared_bytes=65536", "&blocks_per_sm=2", "&reuse=own", "&element=512"}},
};
static uint32_t answered[ROUTES];

static void draw_target(uint32_t route, char *out)
{
    const uint64_t bytes =
        rng_below(&rng, 4) == 0 ? rng_next(&rng) >> 14 : 1 + rng_below(&rng, 200 * GIB);
    int n = snprintf(out, TARGET_BYTES, "/v1/gpus/0/%s?bytes=%" PRIu64, routes[route].name, bytes);

    for (uint32_t i = 0; i < PARAMETERS && routes[route].parameters[i]; i++)
        if (rng_below(&rng, 2))
            n += snprintf(out + n, TARGET_BYTES - (size_t)n, "%s", routes[route].parameters[i]);
}

static char *ask(const struct snapshot *s, const char *target, unsigned *out_status)
{
    struct handlers_context c = {.snapshot = s, .daemon_version = ""};
    struct request request = {.method = "GET"};
    struct reply reply = {.http_status = 0};
    char *body;

    assert_int_equal(request_parse(&request, target, &err), STATUS_OK);
    routes_dispatch(&c, &request, &reply);
    *out_status = reply.http_status;
    body = strndup(reply.document->text, reply.document->bytes);
    reply_clear(&reply);
    request_clear(&request);
    return body;
}

static void compare_answers(const char *what)
{
    for (uint32_t q = 0; q < QUESTIONS; q++) {
        const uint32_t route = q % ROUTES;
        char target[TARGET_BYTES];
        unsigned wanted;
        unsigned got;

        draw_target(route, target);
        char *const a = ask(whole, target, &wanted);
        char *const b = ask(read, target, &got);
        if (wanted != got || strcmp(a, b) != 0)
            fail_msg("%s, %s:\n%s\n%s", what, target, a, b);
        answered[route] += got == 200;
        free(a);
        free(b);
    }
}

/* Sets realistic sizes, so that most plans contain windows. */
static void bring_into_reach(void)
{
    const uint64_t entry = (uint64_t)1 << (20 + rng_below(&rng, 6));

    fp->gpu.memory_bytes = (1 + rng_below(&rng, 1600)) * GIB;
    if (rng_below(&rng, 8) == 0)
        return;
    fp->windows.entry_bytes = KNOWN_U64(entry);
    fp->windows.reach_bytes = KNOWN_U64(entry * (2 + rng_below(&rng, 40000)));
    fp->windows.recommended_bytes = KNOWN_U64(fp->windows.reach_bytes.v - entry);
    if (rng_below(&rng, 8) == 0) {
        fp->windows.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
        fp->windows.recommended_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    }
}

static void test_random(void **state)
{
    const uint32_t count = test_share(FINGERPRINTS, SANITIZED_FINGERPRINTS);

    (void)state;
    memset(answered, 0, sizeof answered);
    for (uint32_t i = 0; i < count; i++) {
        any_fingerprint(&rng, fp);
        bring_into_reach();
        (void)send_through_the_environment();
        compare_answers("random");
    }
    /* Each function must have enough answers, because otherwise the comparison proves little. */
    for (uint32_t i = 0; i < ROUTES; i++) {
        printf("# %s: %u answers\n", routes[i].name, answered[i]);
        assert_true(answered[i] > count / 8);
    }
}

static void test_recorded(void **state)
{
    size_t largest = 0;
    glob_t files;

    (void)state;
    assert_int_equal(glob("tests/replay/golden/*.json", 0, NULL, &files), 0);
    assert_true(files.gl_pathc >= 20);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        json_t *const json = json_load_file(files.gl_pathv[i], 0, NULL);
        if (fingerprint_from_json(json, fp, &err) != STATUS_OK)
            fail_msg("%s: %s", files.gl_pathv[i], err.text);
        json_decref(json);
        const size_t bytes = send_through_the_environment();
        largest = bytes > largest ? bytes : largest;
        compare_answers(files.gl_pathv[i]);
    }
    printf("# %zu recorded fingerprints, the longest text has %zu bytes\n", files.gl_pathc,
           largest);
    globfree(&files);
}

/* ---- the variables ---- */

/* SMs 0 to 2 and 3 to 5 are two groups, and the reach is 64 GiB. */
static void make_two_groups(void)
{
    static const uint32_t sizes[] = {3, 3};

    placement_make_empty(fp);
    placement_make_groups(fp, sizes, 2);
    placement_make_limits(fp, 64 * GIB, 2 * MIB);
    for (uint32_t sm = 0; sm < 6; sm++)
        fp->topology.partition.group_of_sm[sm] = (uint16_t)(sm / 3);
    fp->gpu.memory_bytes = 100 * GIB;
}

static void test_variables(void **state)
{
    static const char expected[] = "REACH_FINGERPRINT_ID=fp0123456789abcdef\n"
                                   "REACH_GPU_UUID=GPU-1\n"
                                   "REACH_SCOPE_BYTES=68717379584\n" /* 64 GiB less 2 MiB */
                                   "REACH_WINDOWS=53687091200,53687091200\n"
                                   "REACH_WINDOW_OF_SM=0,0,0,1,1,1\n"
                                   "REACH_JOB=";
    char *variables;
    char *text;

    (void)state;
    make_two_groups();
    strcpy(fp->gpu.uuid, "GPU-1");
    strcpy(fp->gpu.name, "A \"chip\\\n\x7f\xc3\xa9");
    variables = job_env_variables(fp, ID, &err);
    text = write_text();
    assert_memory_equal(variables, expected, strlen(expected));
    assert_memory_equal(variables + strlen(expected), text, strlen(text));
    assert_string_equal(variables + strlen(expected) + strlen(text), "\n");
    assert_int_equal(read_text(text), STATUS_OK);
    assert_string_equal(read->gpus[0].fingerprint.gpu.name, "A \"chip\\\n???");
    free(variables);
    free(text);
    placement_make_empty(fp);
    fp->gpu.memory_bytes = GIB;
    assert_null(job_env_variables(fp, ID, &err));
    assert_int_equal(err.status, STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err_next_step(&err), "reachctl measure --depth full"));
}

/* ---- the length ---- */

static void fill_curve(struct curve_point *curve, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        curve[i].region_bytes = INT64_MAX - 64 + i;
        curve[i].naive_gbps = curve[i].by_group_gbps = NOT_OBSERVABLE_F64(REASON_NO_DEVICE_MEMORY);
        curve[i].windows = UINT32_MAX;
    }
}

static void fill_topology(void)
{
    struct topology *const t = &fp->topology;

    fp->gpu.sm_count = REACH_MAX_SMS;
    t->partition.group_count = REACH_MAX_GROUPS;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const uint16_t g = (uint16_t)(sm % REACH_MAX_GROUPS);
        t->partition.group_of_sm[sm] = g;
        t->groups[g].sm_count = REACH_MAX_SMS / REACH_MAX_GROUPS;
        t->groups[g].random_read_gbps = NOT_OBSERVABLE_F64(REASON_NO_DEVICE_MEMORY);
        fp->l2.side_of_sm.group_of_sm[sm] = (uint16_t)(sm % 2);
    }
    fp->l2.side_of_sm.group_count = 2;
    fp->l2.sides = KNOWN_U32(2);
    fp->l2.granule_bytes = KNOWN_U64(INT64_MAX);
    fp->l2.atomic_near_cycles = KNOWN_F64(1.23456e-300);
    fp->l2.atomic_far_cycles = KNOWN_F64(1.23457e-300);
}

static void fill_throughput(struct throughput *t)
{
    t->curve_count = FINGERPRINT_MAX_CURVE;
    fill_curve(t->curve, FINGERPRINT_MAX_CURVE);
    t->rate_count = FINGERPRINT_MAX_RATES;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_RATES; i++) {
        t->rates[i].access = ACCESS_ATOMIC;
        t->rates[i].transaction_bytes = 1000000000 + i;
        t->rates[i].point_count = FINGERPRINT_MAX_RATE_POINTS;
        fill_curve(t->rates[i].points, FINGERPRINT_MAX_RATE_POINTS);
    }
    fp->working_set_count = FINGERPRINT_MAX_WORKING_SETS;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_WORKING_SETS; i++) {
        struct working_set *const w = &fp->working_sets[i];
        w->transaction_bytes = UINT32_MAX;
        w->set_bytes = INT64_MAX - 64 + i;
        w->same_gbps = w->own_gbps = w->near_gbps = NOT_OBSERVABLE_F64(REASON_NO_DEVICE_MEMORY);
    }
}

/* The largest fingerprint: 512 SMs in 256 groups, every kind of memory, every peer. An absent
 * number with the longest reason is longer than any known number. */
static void test_largest(void **state)
{
    size_t bytes;

    (void)state;
    fingerprint_init(fp);
    memset(fp->gpu.uuid, 'u', sizeof fp->gpu.uuid - 1);
    fill_topology();
    fill_throughput(&fp->throughput);
    fp->memory_count = FINGERPRINT_MAX_MEMORY;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_MEMORY; i++) {
        struct memory_facts *const m = &fp->memory[i];
        m->kind = i + 1 < MEMORY_PEER ? (enum memory_kind)(i + 1) : MEMORY_PEER;
        memset(m->peer_uuid, 'u', m->kind == MEMORY_PEER ? sizeof m->peer_uuid - 1 : 0);
        m->probed_bytes = KNOWN_U64(INT64_MAX);
        m->peer_memory_bytes = m->reach_bytes = m->windows_reach_bytes =
            NOT_OBSERVABLE_U64(REASON_NO_DEVICE_MEMORY);
        m->plateau_gbps = m->write_gbps = m->atomic_gbps =
            NOT_OBSERVABLE_F64(REASON_NO_DEVICE_MEMORY);
        m->curve_count = FINGERPRINT_MAX_MEMORY_CURVE;
        fill_curve(m->curve, FINGERPRINT_MAX_MEMORY_CURVE);
    }
    if (fingerprint_check(fp, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    bytes = send_through_the_environment();
    printf("# the longest text has %zu bytes\n", bytes);
    assert_true(bytes < JOB_ENV_TEXT_BYTES - 8192); /* leaves room for future fields */
}

/* ---- refused texts ---- */

static void refuse(const char *text, enum status wanted)
{
    if (read_text(text) != wanted || !err.text[0])
        fail_msg("%s: %s", err.text, text);
}

static void test_truncated_and_changed(void **state)
{
    char *text;
    char *whole_text;
    size_t bytes;

    (void)state;
    any_fingerprint(&rng, fp);
    whole_text = write_text();
    text = strdup(whole_text);
    bytes = strlen(text);
    for (size_t n = bytes; n-- > 0;) {
        text[n] = (char)(text[n] ^ (1 + (int)rng_below(&rng, 127)));
        if (read_text(text) == STATUS_OK || !err.text[0])
            fail_msg("read with byte %zu changed: %s", n, text);
        text[n] = '\0';
        refuse(text, STATUS_CORRUPT);
    }
    free(text);
    text = calloc(1, 2 * JOB_ENV_TEXT_BYTES);
    memset(text, 'x', 2 * JOB_ENV_TEXT_BYTES - 1);
    memcpy(text, whole_text, bytes);
    refuse(text, STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "must have fewer than"));
    free(text);
    free(whole_text);
}

/* Replaces the first occurrence of `from` in a text by `to`, and corrects the checksum. */
static char *rewrite(const char *text, const char *from, const char *to)
{
    const char *const at = strstr(text, from);
    const char *const check = strstr(text, ",\"check\"");
    const size_t room = strlen(text) + strlen(to) + 1;
    char *const out = malloc(room);
    size_t bytes;

    if (!at)
        fail_msg("no %s in %s", from, text);
    bytes = (size_t)snprintf(out, room, "%.*s%s%.*s", (int)(at - text), text, to,
                             (int)(check - at - (ptrdiff_t)strlen(from)), at + strlen(from));
    (void)snprintf(out + bytes, room - bytes, ",\"check\":\"%016" PRIx64 "\"}",
                   hash_bytes(HASH_START, out, bytes));
    return out;
}

static const char *const wrong[][2] = {
    {"\"id\":\"fp0", "\"id\":\"xp0"},
    {"\"id\":\"fp0", "\"id\":\"fp"},
    {"\"id\":\"fp0", "\"id\":\"fpG"},
    {"\"gpu\":{", "\"gpu\":["},
    {"\"gpu\":{", "\"other\":{"},
    {"\"depth\":", "\"gpu\":{},\"depth\":"},
    {"\"uuid\":\"GPU-1\"", "\"uuid\":\"\""},
    {"\"origin\":\"simulated\"", "\"origin\":\"guessed\""},
    {"\"sm_count\":6", "\"sm_count\":513"},
    {"\"sm_count\":6", "\"sm_count\":5"}, /* fewer SMs than the groups have */
    {"\"verdict\":\"clean\"", "\"verdict\":\"fine\""},
    {"\"reach_bytes\":68719476736", "\"reach_bytes\":1"}, /* the reach is shorter than an entry */
    {"\"reach_bytes\":68719476736", "\"reach_bytes\":\"64G\""},
    {"\"reach_bytes\":68719476736", "\"reach_bytes\":9223372036854775808"},
    {"\"sms\":[[0,1,2],[3,4,5]]", "\"sms\":[[3,4,5],[0,1,2]]"},
    {"\"sms\":[[0,1,2],[3,4,5]]", "\"sms\":[[0,1,2],[2,3]]"},
    {"\"sms\":[[0,1,2],[3,4,5]]", "\"sms\":[[0,1,2],[]]"},
    {"\"sms\":[[0,1,2],[3,4,5]]", "\"sms\":5"},
    {"\"transaction_bytes\":[32]", "\"transaction_bytes\":[128]"}, /* the curve's */
    {"\"plateau_gbps\":[1000.0]", "\"plateau_gbps\":[nan]"},
    {"\"plateau_gbps\":[1000.0]", "\"plateau_gbps\":[-1]"},
    {"\"plateau_gbps\":[1000.0]", "\"plateau_gbps\":[1000,1,1,1,1,1,1,1,1]"},
};

static void test_made_up(void **state)
{
    char *text;
    char *again;

    (void)state;
    make_two_groups();
    strcpy(fp->gpu.uuid, "GPU-1");
    fp->throughput.rate_count = 1;
    fp->throughput.rates[0] =
        (struct access_rate){.transaction_bytes = 32, .plateau_gbps = KNOWN_F64(1000)};
    text = write_text();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        again = rewrite(text, wrong[i][0], wrong[i][1]);
        refuse(again, STATUS_CORRUPT);
        free(again);
    }
    /* A rewritten text with an additional field is accepted, like the text of a newer release. So
     * the texts of the table are refused because of their fields, and not because they were
     * rewritten. */
    again = rewrite(text, "\"mig\":false", "\"mig\":true,\"later\":[{\"x\":1}]");
    assert_int_equal(read_text(again), STATUS_OK);
    assert_true(read->gpus[0].fingerprint.gpu.mig);
    free(again);
    again = rewrite(text, "\"version\":1", "\"version\":2");
    refuse(again, STATUS_NOT_SUPPORTED);
    free(again);
    free(text);
    refuse("{\"version\":10,", STATUS_NOT_SUPPORTED);
    refuse("{\"version\":1,", STATUS_CORRUPT);
    refuse("v1 gpu=GPU-1", STATUS_CORRUPT);
    refuse("{}", STATUS_CORRUPT);
    refuse("", STATUS_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_truncated_and_changed),
        cmocka_unit_test(test_made_up),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
