/* test_faults.c: the cuda source's own code over the stand-in driver: it finds what the model has,
 * gives everything back, and ends every failure of any driver call with a status and with nothing
 * held. */
#include "base/stats.h"
#include "base/units.h"
#include "gpu/gpu.h"
#include "observe/observe.h"
#include "campaign/campaign.h"
#include "tests/share.h"
#include "tests/fakecuda/driver_library.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The build may have no device code; the stand-in does not look at it. */
extern const unsigned char reach_fatbin_start[];
extern const unsigned char reach_fatbin_end[];
const unsigned char reach_fatbin_start[16] = {0};
const unsigned char reach_fatbin_end[1] = {0};

/* A small GPU: few calls in a whole run, and everything there is to find. */
#define SMALL                                                                                      \
    "gpu=cc=9.0 sms=6 smids=0-3,8-9 memory=2G l1=8@2M/sm;miss=20 "                                 \
    "l2=64@2M/0,1,8:2,3,9;miss=100;miss_ns=20 noise=gauss:1 plateau=100 frame=8M@2"

static void begin(const char *control)
{
    if (driver_start(control) != 0)
        fail_msg("%s", control);
}

static struct gpu_options real(void)
{
    return (struct gpu_options){.libcuda = driver_library};
}

/* The first GPU of `control`. */
static struct gpu *open_first(const char *control, struct gpu_identity *id)
{
    const struct gpu_options options = real();
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t n = 0;

    begin(control);
    if (gpu_list(&options, id, 1, &n, &err) != STATUS_OK ||
        gpu_open(&options, id->uuid, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", control, err.text);
    return gpu;
}

static void expect_nothing_held(const char *control)
{
    struct fakecuda_report r;
    driver_report(&r);
    if (r.misuses > 0)
        fail_msg("%s: misused %u times: %s", control, r.misuses, r.first_misuse);
    uint32_t held = r.contexts + r.modules + r.streams + r.allocations + r.handles +
                    r.reservations + r.mappings;
    if (held > 0 || r.device_bytes > 0)
        fail_msg("%s: still held: %u contexts, %u modules, %u streams, %u allocations, %u handles, "
                 "%u reservations, %u mappings, %llu bytes",
                 control, r.contexts, r.modules, r.streams, r.allocations, r.handles,
                 r.reservations, r.mappings, (unsigned long long)r.device_bytes);
}

/* ---- one whole run ---- */

static struct probe_spec chase_spec(void)
{
    return (struct probe_spec){
        .kind = PROBE_CHASE,
        .stride_bytes = 2 * MIB,
        .point_count = 3,
        .points = {8, 40, 80},
        .samples = 200,
        .warm_laps = 2,
        .sm_count = 1,
        .sms = {8},
    };
}

static struct probe_spec round_spec(void)
{
    return (struct probe_spec){
        .kind = PROBE_ROUND,
        .stride_bytes = 2 * MIB,
        .slice_pages = 5,
        .thrash_pages = 100,
        .warm_laps = 1,
        .repeats = 2,
        .sm_count = 1,
        .sms = {9},
    };
}

static struct probe_spec pairs_spec(void)
{
    struct probe_spec spec = round_spec();
    spec.kind = PROBE_PAIRS;
    spec.slice_pages = 16;
    spec.sm_count = 2;
    spec.sms[0] = 0;
    spec.sms[1] = 3;
    return spec;
}

static struct probe_spec sides_spec(void)
{
    return (struct probe_spec){
        .kind = PROBE_SIDES,
        .stride_bytes = 4 * KIB,
        .base_bytes = 64 * MIB,
        .samples = 64,
        .warm_laps = 1,
        .repeats = 3,
        .sm_count = 3,
        .sms = {0, 3, 9},
    };
}

static struct probe_spec read_spec(void)
{
    struct probe_spec spec = {
        .kind = PROBE_READ,
        .point_count = 2,
        .points = {64 * MIB, 768 * MIB},
        .repeats = 2,
        .duration_us = 500,
        .window_count = 2,
        .window_sms = 10,
    };
    spec.window_of_sm[2] = spec.window_of_sm[3] = spec.window_of_sm[9] = 1;
    return spec;
}

/* The first half of the region in short runs. */
static struct probe_spec runs_spec(uint64_t run_bytes)
{
    struct probe_spec spec = read_spec();
    spec.point_count = 1;
    spec.points[0] = GIB;
    spec.window_count = 1;
    memset(spec.window_of_sm, 0, sizeof spec.window_of_sm);
    spec.run_bytes = run_bytes;
    spec.scattered_bytes = 512 * MIB;
    return spec;
}

static enum status run_probe(struct gpu *gpu, struct probe_spec spec, struct err *err)
{
    struct probe_result r;
    enum status s = gpu_run(gpu, &spec, &r, err);
    if (s == STATUS_OK)
        probe_result_free(&r);
    return s;
}

/* Accesses of all SMs per unit of time, in the first repeat of the first point of a READ. */
static double access_rate(struct gpu *gpu, const struct probe_spec *spec)
{
    struct probe_result r;
    struct err err = {0};
    double accesses = 0;

    if (gpu_run(gpu, spec, &r, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (uint32_t sm = 0; sm < r.sm_count; sm++)
        accesses += r.values[1 + sm];
    accesses /= r.values[0];
    probe_result_free(&r);
    return accesses;
}

/* Each has a kernel of its own, and all go by the same table. */
static void every_kind_of_access_has_its_kernel(void **state)
{
    static const struct {
        enum access access;
        uint32_t bytes;
        double cost_bytes; /* as the model has it */
    } kinds[] = {{ACCESS_READ, 0, 128},
                 {ACCESS_READ, 32, 100},
                 {ACCESS_READ, 512, 512},
                 {ACCESS_ATOMIC, 32, 270},
                 {ACCESS_WRITE, 32, 270}};
    struct gpu_identity id;
    struct gpu *gpu;
    double first = 0;

    (void)state;
    gpu = open_first(SMALL "|", &id);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct probe_spec spec = read_spec();
        spec.point_count = 1;
        spec.access = kinds[i].access;
        spec.transaction_bytes = kinds[i].bytes;
        const double accesses = access_rate(gpu, &spec) * kinds[i].cost_bytes;
        first = i == 0 ? accesses : first;
        assert_true(accesses > 0.95 * first && accesses < 1.05 * first);
    }
    gpu_close(gpu);
    expect_nothing_held("kinds of access");
}

/* The driver's mappings decide what is scattered: misses in half of the region take twice as long
 * in runs of 4 MiB, and as long as ever in runs of a frame. */
static void short_runs_are_scattered(void **state)
{
    static const uint64_t runs[] = {32 * MIB, 8 * MIB, 4 * MIB, 2 * MIB};
    struct gpu_identity id;
    struct gpu *gpu;
    double first = 0;

    (void)state;
    gpu = open_first(SMALL "|", &id);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        const struct probe_spec spec = runs_spec(runs[i]);
        const double accesses = access_rate(gpu, &spec) * (runs[i] < 8 * MIB ? 1.5 : 1);
        first = i == 0 ? accesses : first;
        assert_true(accesses > 0.93 * first && accesses < 1.07 * first);
    }
    gpu_close(gpu);
    expect_nothing_held("runs");
}

/* How many loads of a lap of `ways` x 256 lines miss beside so much shared memory. */
static uint32_t misses_beside(struct gpu *gpu, uint64_t shared_bytes, uint64_t ways)
{
    const struct probe_spec spec = {.kind = PROBE_CACHE,
                                    .stride_bytes = 128,
                                    .point_count = 1,
                                    .points = {ways * 256},
                                    .samples = (uint32_t)ways * 256,
                                    .warm_laps = 1,
                                    .path = PATH_L1,
                                    .warm_path = PATH_L1,
                                    .shared_bytes = shared_bytes,
                                    .sm_count = 1};
    struct probe_result result = {.sm_count = 0};
    struct err err = {0};
    uint32_t slow = 0;

    assert_int_equal(gpu_run(gpu, &spec, &result, &err), STATUS_OK);
    for (size_t i = 0; i < result.value_count; i++)
        slow += result.values[i] > 200;
    probe_result_free(&result);
    return slow;
}

/* Each 32 KiB of shared memory cost L1 one way, and no second one: also if the driver does not heed
 * what is preferred, since the block takes what it asks for. */
static void the_division_of_l1_is_the_one_asked_for(void **state)
{
    static const char *const hints[] = {"", "nohints"};
    struct gpu_identity id;
    struct gpu *gpu;

    (void)state;
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        char control[200];
        (void)snprintf(control, sizeof control,
                       "gpu=sms=4 memory=1G latency=300 l1=64@2M/2;miss=9 "
                       "l1d=2048@128;miss=200;sets=8x256 array=256K|%s",
                       hints[i]);
        gpu = open_first(control, &id);
        assert_int_equal(misses_beside(gpu, 32 * KIB, 7), 0);
        assert_true(misses_beside(gpu, 32 * KIB, 8) > 0);
        assert_int_equal(misses_beside(gpu, 64 * KIB, 6), 0);
        assert_true(misses_beside(gpu, 64 * KIB, 7) > 0);
        assert_int_equal(misses_beside(gpu, 196 * KIB, 1), 0);
        assert_true(misses_beside(gpu, 196 * KIB, 2) > 0);
        gpu_close(gpu);
    }
    expect_nothing_held("division");
}

/* List, open, all four probes, close; stops at the first failure. */
static enum status whole_run(bool plain, struct err *err)
{
    struct gpu_options options = real();
    struct gpu_limits limits;
    struct gpu_identity id;
    struct gpu *gpu = NULL;
    uint32_t n = 0;
    options.no_vmm = plain;
    enum status s = gpu_list(&options, &id, 1, &n, err);
    if (s == STATUS_OK)
        s = gpu_open(&options, id.uuid, &gpu, err);
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

/* All that a plan asks for at depth quick, as a worker would run it. */
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
    struct gpu_identity id;
    struct gpu *gpu = NULL;
    uint32_t n = 0;
    enum status s = gpu_list(&options, &id, 1, &n, err);
    if (s == STATUS_OK)
        s = gpu_open(&options, id.uuid, &gpu, err);
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

/* Any call failing, at every place of a whole run. Some failures cost nothing: an optional
 * question, or a thing given back. */
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

/* What opening says to one fault, with a clean end. */
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

/* The kernel never ends: the caller is told within the deadline and a second. */
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

/* ---- what is found ---- */

static void the_levels_of_the_model_are_found(void **state)
{
    (void)state;
    struct gpu_identity id;
    struct gpu *gpu = open_first(SMALL "|", &id);
    struct probe_spec spec = chase_spec();
    struct probe_result r;
    assert_int_equal(gpu_run(gpu, &spec, &r, NULL), STATUS_OK);
    assert_int_equal(stats_median_u32(r.values, 200), 300);
    assert_int_equal(stats_median_u32(r.values + 200, 200), 320);
    assert_int_equal(stats_median_u32(r.values + 400, 200), 420);
    static const uint16_t ids[] = {0, 1, 2, 3, 8, 9};
    assert_int_equal(r.sm_count, 6);
    assert_memory_equal(r.sm_ids, ids, sizeof ids);
    assert_int_equal(r.conditions.arena, ARENA_ALIAS);
    probe_result_free(&r);
    gpu_close(gpu);
}

static void the_groups_of_the_model_are_found(void **state)
{
    static const int group_of[] = {0, 0, 1, 1, 0, 1};
    (void)state;
    struct gpu_identity id;
    struct gpu *gpu = open_first(SMALL "|", &id);
    struct probe_spec spec = round_spec();
    struct probe_result r;
    assert_int_equal(gpu_run(gpu, &spec, &r, NULL), STATUS_OK);
    for (uint32_t sm = 0; sm < 6; sm++) {
        uint32_t *control = r.values + sm * spec.slice_pages;
        double rise = stats_median_u32(control + 6 * spec.slice_pages, spec.slice_pages) -
                      stats_median_u32(control, spec.slice_pages);
        assert_int_equal(rise > 50, group_of[sm] == 1);
    }
    probe_result_free(&r);
    gpu_close(gpu);
    expect_nothing_held("rounds");
}

/* Windows by group keep 64 entries of 2 MiB enough for 256 MiB in two halves. */
static void windows_of_the_model_help(void **state)
{
    (void)state;
    struct gpu_identity id;
    struct gpu *gpu = open_first(SMALL "|", &id);
    struct probe_spec spec = read_spec();
    double gbps[2];
    spec.point_count = 1;
    spec.points[0] = 256 * MIB;
    for (int by_group = 0; by_group < 2; by_group++) {
        struct probe_result r;
        uint64_t lines = 0;
        if (!by_group) {
            memset(spec.window_of_sm, 0, sizeof spec.window_of_sm);
            spec.window_count = 1;
        } else {
            spec = read_spec();
            spec.point_count = 1;
            spec.points[0] = 256 * MIB;
        }
        assert_int_equal(gpu_run(gpu, &spec, &r, NULL), STATUS_OK);
        for (uint32_t sm = 0; sm < r.sm_count; sm++)
            lines += r.values[1 + sm];
        gbps[by_group] = (double)lines * PROBE_LINE_BYTES / r.values[0];
        probe_result_free(&r);
    }
    gpu_close(gpu);
    assert_true(gbps[1] > 98 && gbps[1] < 102);
    assert_true(gbps[0] < 0.7 * gbps[1]);
}

static void without_virtual_memory_it_is_plain(void **state)
{
    (void)state;
    struct gpu_identity id;
    struct gpu_limits limits;
    struct gpu *gpu = open_first(SMALL "|novmm", &id);
    gpu_describe(gpu, NULL, &limits);
    assert_int_equal(limits.arena, ARENA_PLAIN);
    assert_true(limits.range_bytes <= GIB);
    gpu_close(gpu);
    expect_nothing_held("novmm");
}

static void little_free_memory_makes_it_small(void **state)
{
    (void)state;
    struct gpu_identity id;
    struct gpu_limits limits;
    struct gpu *gpu = open_first(SMALL "|others=1800M", &id);
    gpu_describe(gpu, NULL, &limits);
    assert_int_equal(limits.arena, ARENA_ALIAS);
    assert_true(limits.device_memory_bytes <= 248 * MIB);
    assert_true(limits.range_bytes >= 4 * GIB);
    gpu_close(gpu);
    expect_nothing_held("others");
}

/* Under MPS others use the TLBs at the same time, and no probe tells. How many there are only NVML
 * knows, which is not here. */
static void other_clients_of_mps_are_told(void **state)
{
    (void)state;
    for (int mps = 0; mps < 2; mps++) {
        struct gpu_identity id;
        struct probe_spec spec = {.kind = PROBE_CHASE,
                                  .stride_bytes = 2 * MIB,
                                  .point_count = 1,
                                  .points = {8},
                                  .samples = 16,
                                  .warm_laps = 1,
                                  .sm_count = 1};
        struct probe_result result = {.value_count = 0};
        struct gpu *gpu = open_first(mps ? SMALL "|mps=3" : SMALL "|mps=0", &id);
        const struct maybe_u32 *const others = &result.conditions.concurrent_processes;

        assert_int_equal(gpu_run(gpu, &spec, &result, NULL), STATUS_OK);
        assert_int_equal(IS_KNOWN(*others), !mps);
        assert_int_equal(others->v, 0);
        probe_result_free(&result);
        gpu_close(gpu);
    }
    expect_nothing_held("mps");
}

static void each_gpu_is_opened_by_its_uuid(void **state)
{
    (void)state;
    struct gpu_options options = real();
    struct gpu_identity id[4], opened;
    uint32_t n = 0;
    begin("gpu=k80,gpu=h200,gpu=h200");
    assert_int_equal(gpu_list(&options, id, 4, &n, NULL), STATUS_OK);
    assert_int_equal(n, 3);
    assert_string_not_equal(id[1].uuid, id[2].uuid);
    assert_int_equal(strncmp(id[0].uuid, "GPU-", 4), 0);
    for (uint32_t i = 0; i < n; i++) {
        struct gpu *gpu = NULL;
        assert_int_equal(gpu_open(&options, id[i].uuid, &gpu, NULL), STATUS_OK);
        gpu_describe(gpu, &opened, NULL);
        assert_string_equal(opened.uuid, id[i].uuid);
        assert_int_equal(opened.sm_count, i == 0 ? 13 : 132);
        gpu_close(gpu);
        expect_nothing_held("by UUID");
    }
    begin("gpu=h200,mig");
    assert_int_equal(gpu_list(&options, id, 4, &n, NULL), STATUS_OK);
    assert_true(id[0].mig);
    assert_int_equal(strncmp(id[0].uuid, "MIG-", 4), 0);
}

/* ---- other kinds of memory ---- */

/* The small GPU with each kind. All reach 2 MiB in tables of their own, behind a link of 50 GB/s.
 */
#define KIND "=50/2@900,16K,32+100,128+300,50 "
#define WITH_KINDS                                                                                 \
    SMALL " host_memory=8G managed-device" KIND "host-pinned" KIND "host-virtual" KIND             \
          "managed-host" KIND "host-registered" KIND "peer" KIND

static struct probe_spec memory_spec(enum memory_kind kind)
{
    struct probe_spec spec = read_spec();
    spec.memory = kind;
    spec.window_count = 1;
    memset(spec.window_of_sm, 0, sizeof spec.window_of_sm);
    spec.point_count = 2;
    spec.points[0] = MIB;
    spec.points[1] = 16 * MIB;
    return spec;
}

static double gbps_at(const struct probe_spec *spec, const struct probe_result *r, uint32_t point)
{
    const struct observation o = {.spec = *spec, .result = *r};
    return observation_read_gbps(&o, point, 0);
}

/* Reads and walks memory of this kind; the reason why there is none, or REASON_NONE. */
static enum status use_kind(struct gpu *gpu, enum memory_kind kind, enum reason *out,
                            struct err *err)
{
    struct probe_spec spec = memory_spec(kind);
    struct probe_result r;
    enum status s = gpu_run(gpu, &spec, &r, err);

    *out = REASON_NONE;
    if (s != STATUS_OK)
        return s;
    *out = r.conditions.memory_bytes.reason;
    assert_int_equal(r.value_count > 0, IS_KNOWN(r.conditions.memory_bytes));
    if (*out == REASON_NONE) {
        assert_true(r.conditions.memory_bytes.v >= 16 * MIB);
        assert_true(gbps_at(&spec, &r, 0) > 3 * gbps_at(&spec, &r, 1));
        probe_result_free(&r);
        spec = chase_spec();
        spec.memory = kind;
        spec.stride_bytes = 128 << 10; /* each page of registered memory is touched: few of them */
        s = run_probe(gpu, spec, err);
    }
    return s;
}

static enum status open_with(const char *control, struct gpu **out, struct err *err)
{
    const struct gpu_options options = real();
    struct gpu_identity id[2];
    uint32_t n = 0;

    begin(control);
    const enum status s = gpu_list(&options, id, 2, &n, err);
    return s == STATUS_OK ? gpu_open(&options, id[0].uuid, out, err) : s;
}

/* Each kind has its range and gives it back; the tables are those of the model. */
static void each_kind_of_memory_is_made_and_given_back(void **state)
{
    (void)state;
    for (int kind = MEMORY_MANAGED_DEVICE; kind < MEMORY_KIND_COUNT; kind++) {
        struct err err = {0};
        struct gpu *gpu = NULL;
        enum reason reason;

        if (kind == MEMORY_HOST_REGISTERED_HUGE)
            continue; /* whether the kernel has huge pages is not up to the driver */
        assert_int_equal(open_with(WITH_KINDS "|" WITH_KINDS, &gpu, &err), STATUS_OK);
        if (use_kind(gpu, (enum memory_kind)kind, &reason, &err) != STATUS_OK ||
            reason != REASON_NONE)
            fail_msg("%s: %s %s", memory_kind_name((enum memory_kind)kind), reason_slug(reason),
                     err.text);
        assert_int_equal(run_probe(gpu, read_spec(), &err), STATUS_OK);
        gpu_close(gpu);
        expect_nothing_held(memory_kind_name((enum memory_kind)kind));
    }
}

/* The GPU waits while host memory is released. So it is left as it is until the GPU is closed. */
static void host_memory_is_released_at_the_end(void **state)
{
    struct err err = {0};
    struct gpu *gpu = NULL;
    enum reason reason;

    (void)state;
    assert_int_equal(open_with(WITH_KINDS "|" WITH_KINDS, &gpu, &err), STATUS_OK);
    assert_int_equal(use_kind(gpu, MEMORY_HOST_PINNED, &reason, &err), STATUS_OK);
    assert_int_equal(reason, REASON_NONE);
    assert_int_equal(use_kind(gpu, MEMORY_HOST_REGISTERED, &reason, &err), STATUS_OK);
    assert_int_equal(reason, REASON_NONE);
    assert_int_equal(run_probe(gpu, read_spec(), &err), STATUS_OK);
    assert_int_equal(driver_uses("cuMemFreeHost"), 0);
    assert_int_equal(driver_uses("cuMemHostUnregister"), 0);
    gpu_close(gpu);
    assert_int_equal(driver_uses("cuMemFreeHost"), 1);
    assert_int_equal(driver_uses("cuMemHostUnregister"), 1);
    expect_nothing_held("host memory that was left");
}

/* Memory of the GPU or of a peer is not left, nor is a range that has become too short. */
static void other_memory_is_released_at_once(void **state)
{
    struct probe_spec longer = memory_spec(MEMORY_HOST_PINNED);
    struct err err = {0};
    struct gpu *gpu = NULL;
    enum reason reason;

    (void)state;
    longer.points[1] = 64 * MIB;
    assert_int_equal(open_with(WITH_KINDS "|" WITH_KINDS, &gpu, &err), STATUS_OK);
    assert_int_equal(use_kind(gpu, MEMORY_MANAGED_DEVICE, &reason, &err), STATUS_OK);
    const uint64_t freed = driver_uses("cuMemFree");
    assert_int_equal(use_kind(gpu, MEMORY_HOST_PINNED, &reason, &err), STATUS_OK);
    assert_int_equal(driver_uses("cuMemFree"), freed + 1);
    assert_int_equal(run_probe(gpu, longer, &err), STATUS_OK);
    assert_int_equal(driver_uses("cuMemFreeHost"), 1);
    gpu_close(gpu);
    expect_nothing_held("memory that is not left");
}

/* If memory is short, what was left is released, and the range can be had after all. */
static void what_was_left_makes_room(void **state)
{
    struct err err = {0};
    struct gpu *gpu = NULL;
    enum reason reason;

    (void)state;
    assert_int_equal(open_with(WITH_KINDS "|" WITH_KINDS "|fail=cuMemHostRegister@1=2", &gpu, &err),
                     STATUS_OK);
    assert_int_equal(use_kind(gpu, MEMORY_HOST_PINNED, &reason, &err), STATUS_OK);
    assert_int_equal(use_kind(gpu, MEMORY_HOST_REGISTERED, &reason, &err), STATUS_OK);
    assert_int_equal(reason, REASON_NONE);
    assert_int_equal(driver_uses("cuMemFreeHost"), 1);
    gpu_close(gpu);
    expect_nothing_held("memory that was short");
}

/* What the driver refuses is an answer with its reason, and no failure. */
static void a_refused_kind_says_why(void **state)
{
    static const struct {
        enum memory_kind kind;
        const char *control;
        enum reason reason;
    } cases[] = {
        {MEMORY_HOST_PINNED, "fail=cuMemHostAlloc=2", REASON_NO_HOST_MEMORY},
        {MEMORY_HOST_PINNED, "fail=cuMemHostAlloc=800", REASON_NOT_PERMITTED},
        {MEMORY_HOST_PINNED, "fail=cuMemHostGetDevicePointer=801", REASON_NOT_SUPPORTED},
        {MEMORY_HOST_REGISTERED, "fail=cuMemHostRegister=304", REASON_NOT_PERMITTED},
        {MEMORY_HOST_REGISTERED, "fail=cuMemHostRegister=801", REASON_NOT_SUPPORTED},
        {MEMORY_MANAGED_HOST, "fail=cuMemAllocManaged=2", REASON_NO_HOST_MEMORY},
        {MEMORY_MANAGED_HOST, "fail=cuMemAdvise=801", REASON_NOT_SUPPORTED},
        {MEMORY_MANAGED_DEVICE, "fail=cuMemPrefetchAsync=2", REASON_NO_DEVICE_MEMORY},
        {MEMORY_HOST_VIRTUAL, "fail=cuMemCreate@3=800", REASON_NOT_PERMITTED},
        {MEMORY_HOST_VIRTUAL, "novmm", REASON_NOT_SUPPORTED},
        {MEMORY_PEER, "fail=cuDeviceCanAccessPeer=801", REASON_NOT_SUPPORTED},
        {MEMORY_PEER, "fail=cuMemCreate@3=2", REASON_NO_DEVICE_MEMORY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char control[3000];
        struct err err = {0};
        struct gpu *gpu = NULL;
        enum reason reason;

        (void)snprintf(control, sizeof control, WITH_KINDS "|" WITH_KINDS "|%s", cases[i].control);
        assert_int_equal(open_with(control, &gpu, &err), STATUS_OK);
        assert_int_equal(use_kind(gpu, cases[i].kind, &reason, &err), STATUS_OK);
        if (reason != cases[i].reason)
            fail_msg("%s of %s: %s", cases[i].control, memory_kind_name(cases[i].kind),
                     reason_slug(reason));
        assert_int_equal(run_probe(gpu, read_spec(), &err), STATUS_OK);
        gpu_close(gpu);
        expect_nothing_held(cases[i].control);
    }
    begin(SMALL "|");
}

/* Each driver call failing in turn while every kind is probed: nothing stays held. */
static void every_call_for_other_memory_may_fail(void **state)
{
    const uint32_t step = test_share(1, SANITIZED_STEP);
    uint64_t calls = 0;
    uint32_t absent = 0;

    (void)state;
    for (uint64_t n = 0; n == 0 || n <= calls; n += n == 0 ? 1 : step) {
        char control[3000];
        struct fakecuda_report r;
        struct err err = {0};
        struct gpu *gpu = NULL;
        enum status s;

        (void)snprintf(control, sizeof control, WITH_KINDS "|" WITH_KINDS "|fail=*@%llu=2",
                       (unsigned long long)(n == 0 ? UINT32_MAX : n));
        s = open_with(control, &gpu, &err);
        for (int kind = MEMORY_MANAGED_DEVICE; s == STATUS_OK && kind < MEMORY_KIND_COUNT; kind++) {
            enum reason reason = REASON_NONE;
            if (kind != MEMORY_HOST_REGISTERED_HUGE)
                s = use_kind(gpu, (enum memory_kind)kind, &reason, &err);
            absent += reason != REASON_NONE;
        }
        gpu_close(gpu);
        driver_report(&r);
        calls = n == 0 ? r.calls : calls;
        assert_int_equal(r.faults, n > 0 ? 1 : 0);
        assert_true(n > 0 || (s == STATUS_OK && absent == 0));
        expect_nothing_held(control);
    }
    print_message("%llu calls, %u kinds absent\n", (unsigned long long)calls, absent);
    if (step == 1) /* a sample need not hit the calls that only one kind needs */
        assert_true(absent > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_run_gives_everything_back),
        cmocka_unit_test(short_runs_are_scattered),
        cmocka_unit_test(the_division_of_l1_is_the_one_asked_for),
        cmocka_unit_test(every_kind_of_access_has_its_kernel),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(every_call_may_run_out_of_memory),
        cmocka_unit_test(every_call_may_lose_the_context),
        cmocka_unit_test(every_call_of_a_quick_fingerprint_may_fail),
        cmocka_unit_test(trouble_has_its_own_status),
        cmocka_unit_test(no_library_is_no_driver),
        cmocka_unit_test(a_hung_kernel_ends_at_the_deadline),
        cmocka_unit_test(the_levels_of_the_model_are_found),
        cmocka_unit_test(the_groups_of_the_model_are_found),
        cmocka_unit_test(windows_of_the_model_help),
        cmocka_unit_test(without_virtual_memory_it_is_plain),
        cmocka_unit_test(little_free_memory_makes_it_small),
        cmocka_unit_test(other_clients_of_mps_are_told),
        cmocka_unit_test(each_gpu_is_opened_by_its_uuid),
        cmocka_unit_test(each_kind_of_memory_is_made_and_given_back),
        cmocka_unit_test(host_memory_is_released_at_the_end),
        cmocka_unit_test(other_memory_is_released_at_once),
        cmocka_unit_test(what_was_left_makes_room),
        cmocka_unit_test(a_refused_kind_says_why),
        cmocka_unit_test(every_call_for_other_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, driver_load, driver_unload);
}
