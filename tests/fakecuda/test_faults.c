/* test_faults.c: for every failure of a driver call, the code of the cuda source returns a status
 * and holds no resource. */
#include "tests/fakecuda/backend.h"

#include "campaign/campaign.h"
#include "tests/share.h"

#include <stdlib.h>

/* The list of GPUs queries the driver in child processes (test_list.c), so the tests make it only
 * once. */
static char small_uuid[64];

static int list_small(void **state)
{
    const int failed = driver_load(state);
    const struct gpu_options options = real();
    struct gpu_identity id;
    uint32_t n = 0;

    if (failed)
        return failed;
    begin(SMALL "|");
    if (gpu_list(&options, &id, 1, &n, NULL) != STATUS_OK)
        return -1;
    memcpy(small_uuid, id.uuid, sizeof small_uuid);
    return 0;
}

/* Opens the GPU, makes one probe of each of the four kinds, and closes the GPU; stops at the first
 * failure. */
static enum status whole_run(bool plain, struct err *err)
{
    struct gpu_options options = real();
    struct gpu_limits limits;
    struct gpu *gpu = NULL;
    options.no_vmm = plain;
    enum status s = gpu_open(&options, small_uuid, &gpu, err);
    if (s == STATUS_OK)
        s = run_probe(gpu, chase_spec(), err);
    if (s == STATUS_OK)
        s = run_probe(gpu, round_spec(), err);
    if (s == STATUS_OK)
        s = run_probe(gpu, pairs_spec(), err);
    if (s == STATUS_OK)
        s = run_probe(gpu, sides_spec(), err);
    if (s == STATUS_OK)
        s = run_probe(gpu, read_spec(), err);
    if (s == STATUS_OK)
        gpu_describe(gpu, NULL, &limits);
    if (s == STATUS_OK && probe_longest_run(&limits) >= 32 * MIB)
        s = run_probe(gpu, runs_spec(32 * MIB), err);
    gpu_close(gpu);
    return s;
}

/* Makes all probes of a plan at depth quick, like a worker does. */
static enum status measure(struct gpu *gpu, struct err *err)
{
    struct observation_set set = {.count = 0};
    struct campaign_step step = {.spec_count = 0};
    enum status s = STATUS_OK;
    gpu_describe(gpu, &set.gpu, &set.limits);
    for (;;) {
        s = campaign_next(&set, DEPTH_QUICK, NULL, &step, err);
        if (s != STATUS_OK || step.spec_count == 0)
            break;
        for (uint32_t i = 0; i < step.spec_count && s == STATUS_OK; i++) {
            struct observation o = {.spec = step.specs[i]};
            s = gpu_run(gpu, &step.specs[i], &o.result, err);
            if (s == STATUS_OK)
                s = observation_set_add(&set, &o, err);
        }
        if (s != STATUS_OK)
            break;
    }
    observation_set_free(&set);
    return s;
}

static enum status quick_run(struct err *err)
{
    struct gpu_options options = real();
    struct gpu *gpu = NULL;
    enum status s = gpu_open(&options, small_uuid, &gpu, err);
    if (s == STATUS_OK)
        s = measure(gpu, err);
    gpu_close(gpu);
    return s;
}

static uint64_t calls_of_clean_run(bool plain)
{
    struct fakecuda_report r;
    struct err err = {0};
    begin(SMALL "|");
    if (whole_run(plain, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    expect_nothing_held("clean");
    driver_report(&r);
    assert_true(r.launches >= 8);
    return r.calls;
}

static void a_clean_run_gives_everything_back(void **state)
{
    struct fakecuda_report r;
    (void)state;
    print_message("%llu driver calls\n", (unsigned long long)calls_of_clean_run(false));
    driver_report(&r);
    assert_in_range(r.most_device_bytes, 512 * MIB, GIB + GIB / 10);
    print_message("%llu driver calls, plain arena\n", (unsigned long long)calls_of_clean_run(true));
}

/* ---- faults ---- */

enum { SANITIZED_STEP = 4, QUICK_STEP = 3 };

static enum status expected_status(int result)
{
    switch (result) {
    case 2:
        return STATUS_GPU_NO_MEMORY;
    case 700:
    case 719:
        return STATUS_GPU_LOST;
    default:
        return STATUS_GPU_FAULT;
    }
}

/* Makes each call of a whole run fail in turn. Some failures have no effect: they hit an optional
 * query, or a release. */
static void fail_each_call(bool plain, int result)
{
    const uint64_t calls = calls_of_clean_run(plain);
    uint32_t harmless = 0;
    uint32_t places = 0;
    for (uint64_t n = 1; n <= calls; n += test_share(1, SANITIZED_STEP), places++) {
        char control[400];
        struct err err = {0};
        (void)snprintf(control, sizeof control, SMALL "|fail=*@%llu=%d", (unsigned long long)n,
                       result);
        begin(control);
        enum status s = whole_run(plain, &err);
        harmless += s == STATUS_OK;
        if (s != STATUS_OK && (s != expected_status(result) || s != err.status || !err.text[0]))
            fail_msg("%s: status %d, \"%s\"", control, (int)s, err.text);
        expect_nothing_held(control);
    }
    print_message("result %d: %u of %llu places, %u without harm\n", result, places,
                  (unsigned long long)calls, harmless);
    assert_true(harmless < places / 2);
}

static void every_call_may_fail(void **state)
{
    (void)state;
    fail_each_call(false, 999);
    fail_each_call(true, 999);
}

static void every_call_may_run_out_of_memory(void **state)
{
    (void)state;
    fail_each_call(false, 2);
}

static void every_call_may_lose_the_context(void **state)
{
    (void)state;
    fail_each_call(false, 700);
    fail_each_call(false, 719);
    fail_each_call(true, 719);
}

static void every_call_of_a_quick_fingerprint_may_fail(void **state)
{
    struct fakecuda_report clean;
    struct err err = {0};
    const uint32_t step = test_part(1, QUICK_STEP, 4 * SANITIZED_STEP);
    uint32_t harmless = 0;
    uint32_t places = 0;
    (void)state;
    begin(SMALL "|");
    if (quick_run(&err) != STATUS_OK)
        fail_msg("%s", err.text);
    expect_nothing_held("quick");
    driver_report(&clean);
    for (uint64_t n = 1; n <= clean.calls; n += step, places++) {
        char control[400];
        (void)snprintf(control, sizeof control, SMALL "|fail=*@%llu=999", (unsigned long long)n);
        begin(control);
        enum status s = quick_run(&err);
        harmless += s == STATUS_OK;
        if (s != STATUS_OK && (s != STATUS_GPU_FAULT || !strstr(err.text, "999")))
            fail_msg("%s: status %d, \"%s\"", control, (int)s, err.text);
        expect_nothing_held(control);
    }
    print_message("%u of %llu places, %u without harm\n", places, (unsigned long long)clean.calls,
                  harmless);
    assert_true(harmless < places / 2);
}

/* Returns the error of opening after one fault, and checks that no resource is held. */
static void expect_open(const char *control, enum status expected, const char *says)
{
    struct err err = {0};
    char text[600];
    (void)snprintf(text, sizeof text, SMALL "|%s", control);
    begin(text);
    enum status s = whole_run(false, &err);
    if (s != expected || !strstr(err.text, says))
        fail_msg("%s: status %d, \"%s\"", control, (int)s, err.text);
    expect_nothing_held(control);
}

static void trouble_has_its_own_status(void **state)
{
    (void)state;
    expect_open("fail=cuInit=100", STATUS_NO_DRIVER, "cuInit");
    expect_open("fail=cuInit=803", STATUS_NO_DRIVER, "803");
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
    expect_open("fail=cuInit=100", STATUS_NO_DRIVER, "CUDA_VISIBLE_DEVICES is \"\"");
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    assert_non_null(strstr(status_info(STATUS_NO_DRIVER)->next_step, "CUDA_VISIBLE_DEVICES"));
    expect_open("driver=10010", STATUS_DRIVER_TOO_OLD, "10.1");
    expect_open("mode=2", STATUS_GPU_BUSY, "prohibited");
    expect_open("fail=cuDevicePrimaryCtxRetain=46", STATUS_GPU_BUSY, "Retain");
    expect_open("fail=cuModuleLoadData=209", STATUS_NOT_SUPPORTED, "cuModuleLoadData");
    expect_open("fail=cuModuleGetFunction@2=500", STATUS_GPU_FAULT, "500");
    expect_open("others=1950M", STATUS_GPU_NO_MEMORY, "");
    expect_open("fail=cuMemCreate@1+=2", STATUS_GPU_NO_MEMORY, "cuMemCreate");
    expect_open("fail=cuStreamQuery@3=719", STATUS_GPU_LOST, "719");
    expect_open("giveup=reach_round@1", STATUS_DEADLINE, "reach_round");
    expect_open("giveup=reach_census@1", STATUS_DEADLINE, "reach_census");
}

static void no_library_is_no_driver(void **state)
{
    (void)state;
    struct gpu_options options = {.libcuda = "/nonexistent/libcuda.so.1"};
    struct gpu_identity id;
    struct err err = {0};
    uint32_t n = 0;
    assert_int_equal(gpu_list(&options, &id, 1, &n, &err), STATUS_NO_DRIVER);
    assert_non_null(strstr(err.text, "libcuda"));
}

/* If the kernel never ends, the caller receives the error within one second after the deadline. */
static void a_hung_kernel_ends_at_the_deadline(void **state)
{
    (void)state;
    begin(SMALL "|hang=reach_chase@1");
    struct gpu_options options = real();
    struct gpu_identity id;
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t n = 0;
    options.deadline_ms = 20;
    assert_int_equal(gpu_list(&options, &id, 1, &n, NULL), STATUS_OK);
    assert_int_equal(gpu_open(&options, id.uuid, &gpu, NULL), STATUS_OK);
    assert_int_equal(run_probe(gpu, chase_spec(), &err), STATUS_DEADLINE);
    assert_non_null(strstr(err.text, "reach_chase"));
    gpu_close(gpu);
    expect_nothing_held("hang");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_run_gives_everything_back),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(every_call_may_run_out_of_memory),
        cmocka_unit_test(every_call_may_lose_the_context),
        cmocka_unit_test(every_call_of_a_quick_fingerprint_may_fail),
        cmocka_unit_test(trouble_has_its_own_status),
        cmocka_unit_test(no_library_is_no_driver),
        cmocka_unit_test(a_hung_kernel_ends_at_the_deadline),
    };
    return cmocka_run_group_tests(tests, list_small, driver_unload);
}
