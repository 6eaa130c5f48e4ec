/* test_other_memory.c: managed, host and peer memory of the cuda source over the stand-in driver.
 * Each kind is allocated, used and released, or its absence is reported with the reason. */
#include "tests/fakecuda/backend.h"

#include "gpu/cuda/host_memory.h"
#include "gpu/cuda/host_nodes.h"
#include "gpu/cuda/host_pieces.h"
#include "tests/share.h"

#include <math.h>

/* The small GPU with each kind of memory. Each kind has a table of its own with a reach of 2 MiB,
 * and is behind a link of 50 GB/s. */
#define KIND "=50/2@900,16K,32+100,128+300,50 "
#define WITH_KINDS                                                                                 \
    SMALL " host_memory=8G managed-device" KIND "host-pinned" KIND "host-virtual" KIND             \
          "managed-host" KIND "host-registered" KIND "host-pageable" KIND "host-file" KIND         \
          "host-gathered" KIND "peer" KIND

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

/* Reads and walks memory of this kind. Returns the reason why the GPU lacks the kind, or
 * REASON_NONE. */
static enum status use_kind(struct gpu *gpu, enum memory_kind kind, enum reason *out,
                            struct err *err)
{
    struct probe_spec spec = memory_spec(kind);
    struct probe_result r;
    enum status s;

    if (kind == MEMORY_HOST_GATHERED)
        spec.point_count = spec.repeats = 1;
    s = gpu_run(gpu, &spec, &r, err);
    *out = REASON_NONE;
    if (s != STATUS_OK)
        return s;
    *out = r.conditions.memory_bytes.reason;
    assert_int_equal(r.value_count > 0, IS_KNOWN(r.conditions.memory_bytes));
    if (*out == REASON_NONE) {
        assert_true(r.conditions.memory_bytes.v >= spec.points[spec.point_count - 1]);
        if (kind == MEMORY_HOST_GATHERED) { /* by the real CPU, not by the model */
            probe_result_free(&r);
            return s;
        }
        assert_true(gbps_at(&spec, &r, 0) > 3 * gbps_at(&spec, &r, 1));
        probe_result_free(&r);
        spec = chase_spec();
        spec.memory = kind;
        spec.stride_bytes =
            128 << 10; /* the walk touches every page, so the region has few pages */
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

/* Each kind of memory has a range and releases it. The measured table of the kind is the table of
 * the model. */
static void each_kind_of_memory_is_made_and_given_back(void **state)
{
    (void)state;
    for (int kind = MEMORY_MANAGED_DEVICE; kind < MEMORY_KIND_COUNT; kind++) {
        struct err err = {0};
        struct gpu *gpu = NULL;
        enum reason reason;

        if (kind == MEMORY_HOST_REGISTERED_HUGE)
            continue; /* huge pages depend on the kernel, not on the driver */
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

/* The GPU waits while host memory is released, so the memory is kept until the GPU is closed. */
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

/* Memory of the GPU or of a peer is not kept. A kept range that is too short for the next request
 * is released. */
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

/* If memory is short, the kept range is released, and the allocation of the new range succeeds. */
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

/* While a call pins memory, other processes wait for the driver. So a call pins one piece at most,
 * and the pieces together are one range. After a failure the earlier pieces are released. */
static void host_memory_is_made_in_pieces(void **state)
{
    static const struct {
        enum memory_kind kind;
        const char *make, *release;
    } cases[] = {{MEMORY_HOST_REGISTERED, "cuMemHostRegister", "cuMemHostUnregister"},
                 {MEMORY_HOST_VIRTUAL, "cuMemCreate", "cuMemRelease"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int fails = 0; fails < 2; fails++) {
            struct probe_spec spec = memory_spec(cases[i].kind);
            char control[3000];
            struct probe_result r;
            struct err err = {0};
            struct gpu *gpu = NULL;

            spec.points[1] = 2 * (uint64_t)HOST_PIECE_BYTES + 32 * MIB;
            assert_int_equal(open_with(WITH_KINDS "|" WITH_KINDS, &gpu, &err), STATUS_OK);
            const uint64_t before = driver_uses(cases[i].make);
            gpu_close(gpu);
            (void)snprintf(control, sizeof control, WITH_KINDS "|" WITH_KINDS "|fail=%s@%llu=2",
                           cases[i].make, (unsigned long long)(fails ? before + 2 : UINT32_MAX));
            assert_int_equal(open_with(control, &gpu, &err), STATUS_OK);
            assert_int_equal(gpu_run(gpu, &spec, &r, &err), STATUS_OK);
            assert_int_equal(driver_uses(cases[i].make), before + (fails ? 2 : 3));
            if (fails)
                assert_int_equal(r.conditions.memory_bytes.reason, REASON_NO_HOST_MEMORY);
            else
                assert_true(r.conditions.memory_bytes.v == spec.points[1] &&
                            gbps_at(&spec, &r, 0) > 3 * gbps_at(&spec, &r, 1));
            probe_result_free(&r);
            gpu_close(gpu);
            assert_true(driver_uses(cases[i].release) >= (fails ? 1 : 3));
            expect_nothing_held(control);
        }
}

/* If the driver refuses memory, the answer has the reason, and the probe does not fail. */
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
        {MEMORY_HOST_PAGEABLE, "fail=cuMemAdvise=801", REASON_NOT_SUPPORTED},
        {MEMORY_HOST_PAGEABLE, "fail=cuMemAdvise@2=801|ats", REASON_NONE},
        {MEMORY_HOST_FILE, "fail=cuMemAdvise@2=801", REASON_NONE},
        {MEMORY_HOST_GATHERED, "fail=cuMemHostAlloc=2", REASON_NO_HOST_MEMORY},
        {MEMORY_HOST_GATHERED, "fail=cuMemHostRegister=801", REASON_NOT_SUPPORTED},
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

/* Pages are on the node that the probe names, and the thread has its CPUs again afterwards. A node
 * that the host does not have is an answer. */
static void memory_is_placed_on_a_node(void **state)
{
    struct probe_spec spec = memory_spec(MEMORY_HOST_REGISTERED);
    struct err err = {0};
    struct gpu *gpu = NULL;
    cpu_set_t before, after;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(open_with(WITH_KINDS "|" WITH_KINDS, &gpu, &err), STATUS_OK);
    for (uint32_t node = 0; node <= PROBE_MAX_NODES; node += PROBE_MAX_NODES / 2) {
        const bool exists = node < PROBE_MAX_NODES && (host_nodes_list() >> node & 1);
        struct probe_result r;
        spec.node = node < PROBE_MAX_NODES ? node + 1 : 0;
        assert_int_equal(gpu_run(gpu, &spec, &r, &err), STATUS_OK);
        if (IS_KNOWN(r.conditions.memory_bytes) != (exists || spec.node == 0))
            fail_msg("node %u: %s", node, reason_slug(r.conditions.memory_bytes.reason));
        if (!IS_KNOWN(r.conditions.memory_bytes))
            assert_int_equal(r.conditions.memory_bytes.reason, REASON_NOT_PERMITTED);
        probe_result_free(&r);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
    gpu_close(gpu);
    expect_nothing_held("memory of a node");
}

/* Without access to pageable memory, the device reads neither pages of the process nor files. */
static void pageable_memory_needs_support(void **state)
{
    struct err err = {0};
    struct gpu *gpu = NULL;
    enum reason reason;

    (void)state;
    assert_int_equal(open_with(SMALL " host_memory=8G managed-host" KIND "|", &gpu, &err),
                     STATUS_OK);
    for (int kind = MEMORY_HOST_PAGEABLE; kind <= MEMORY_HOST_FILE; kind++) {
        assert_int_equal(use_kind(gpu, (enum memory_kind)kind, &reason, &err), STATUS_OK);
        assert_int_equal(reason, REASON_NOT_SUPPORTED);
    }
    assert_int_equal(driver_uses("cuMemAdvise"), 0);
    gpu_close(gpu);
    expect_nothing_held("pageable memory");
}

/* The CPU gathers whole batches for at least the duration, and the rows are divided evenly among
 * the SMs. No SM walks such memory. */
static void the_cpu_gathers_rows(void **state)
{
    struct probe_spec spec = memory_spec(MEMORY_HOST_GATHERED);
    struct probe_spec walk = chase_spec();
    struct err err = {0};
    struct gpu *gpu = NULL;
    cpu_set_t before, after;

    (void)state;
    walk.memory = MEMORY_HOST_GATHERED;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(open_with(WITH_KINDS "|" WITH_KINDS, &gpu, &err), STATUS_OK);
    assert_int_equal(run_probe(gpu, walk, &err), STATUS_INVALID_ARGUMENT);
    for (spec.transaction_bytes = 64; spec.transaction_bytes <= 512; spec.transaction_bytes *= 2) {
        struct probe_result r;
        assert_int_equal(gpu_run(gpu, &spec, &r, &err), STATUS_OK);
        for (uint32_t k = 0; k < spec.point_count * spec.repeats; k++) {
            const uint32_t *const row = r.values + (size_t)k * (1 + r.sm_count);
            uint64_t rows = 0;
            assert_true(row[0] >= spec.duration_us * 1000);
            for (uint32_t i = 1; i <= r.sm_count; i++) {
                rows += row[i];
                assert_true(row[i] <= row[1] + 1 && row[i] + 1 >= row[1]);
            }
            assert_true(rows > 0 && rows % (32 * MIB / spec.transaction_bytes) == 0);
        }
        probe_result_free(&r);
    }
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    gpu_close(gpu);
    expect_nothing_held("gathered memory");
}

/* Rows that are also written are read as fast as others, because the model has no L2 that output
 * fills. The stand-in kernel checks the output, which is memory of the device. */
static void rows_are_also_written(void **state)
{
    static const char *const controls[] = {WITH_KINDS "|" WITH_KINDS,
                                           WITH_KINDS "|" WITH_KINDS "|novmm"};

    (void)state;
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        struct probe_spec spec = memory_spec(MEMORY_HOST_REGISTERED);
        struct err err = {0};
        struct gpu *gpu = NULL;
        double gbps[2];

        assert_int_equal(open_with(controls[i], &gpu, &err), STATUS_OK);
        spec.transaction_bytes = 256;
        for (spec.output = 0; spec.output <= 1; spec.output++) {
            struct probe_result r;
            assert_int_equal(gpu_run(gpu, &spec, &r, &err), STATUS_OK);
            gbps[spec.output] = gbps_at(&spec, &r, 1);
            probe_result_free(&r);
        }
        assert_true(fabs(gbps[1] / gbps[0] - 1) < 0.05);
        gpu_close(gpu);
        expect_nothing_held("the output");
    }
}

/* The memory of the device is memory of the host, and the driver may not report the free memory.
 * Probes leave three quarters of the host's memory, although the device has far more. The bound
 * below is wider, because other processes may free memory meanwhile. */
static void unified_memory_leaves_a_reserve_to_the_host(void **state)
{
#define LARGE                                                                                      \
    "gpu=sms=6 smids=0-3,8-9 memory=2T l1=8@2M/sm;miss=20 noise=gauss:1 plateau=100 "              \
    "host_memory=8G managed-host" KIND "managed-device" KIND
    static const char *const controls[] = {LARGE "|unified", LARGE "|unified|fail=cuMemGetInfo=801",
                                           LARGE "|ats|fail=cuMemGetInfo=801", LARGE "|"};

    (void)state;
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        const uint64_t most = host_memory_available() / 3;
        const bool unified = i < 3;
        struct probe_spec spec = memory_spec(MEMORY_MANAGED_DEVICE);
        struct gpu_limits limits;
        struct fakecuda_report report;
        struct err err = {0};
        struct gpu *gpu = NULL;
        enum reason reason;

        assert_int_equal(open_with(controls[i], &gpu, &err), STATUS_OK);
        gpu_describe(gpu, NULL, &limits);
        assert_true(limits.free_bytes > 0);
        assert_int_equal(limits.free_bytes < most, unified);
        assert_int_equal(use_kind(gpu, MEMORY_MANAGED_DEVICE, &reason, &err), STATUS_OK);
        assert_int_equal(reason, REASON_NONE);
        spec.points[1] = most / (2 * MIB) * (2 * MIB);
        if (unified) {
            struct probe_result r;
            assert_int_equal(gpu_run(gpu, &spec, &r, &err), STATUS_OK);
            assert_int_equal(r.conditions.memory_bytes.reason, REASON_NO_DEVICE_MEMORY);
            driver_report(&report);
            assert_true(report.most_device_bytes < most);
        }
        gpu_close(gpu);
        expect_nothing_held(controls[i]);
    }
}

/* A driver that reports free memory in no way cannot be measured, and the answer says so. */
static void unknown_free_memory_is_an_error(void **state)
{
    struct err err = {0};
    struct gpu *gpu = NULL;

    (void)state;
    assert_int_equal(open_with(SMALL "|fail=cuMemGetInfo=801", &gpu, &err), STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(err.text, "cuMemGetInfo"));
    expect_nothing_held("cuMemGetInfo");
}

static bool has_failed(void)
{
    struct fakecuda_report r;

    driver_report(&r);
    return r.faults > 0;
}

/* Each driver call fails in turn while every kind of memory is probed, and no resource stays
 * held. After a failure in a kind, make check probes two more kinds: the first one releases what
 * the failed kind has left. Later kinds meet the same state as without a failure. */
static void every_call_for_other_memory_may_fail(void **state)
{
    const uint32_t step = test_share(1, 4);
    const int most_after = (int)test_part(MEMORY_KIND_COUNT, 2, 2);
    const struct gpu_options options = real();
    struct gpu_identity id[2];
    uint32_t listed = 0;
    uint64_t calls = 0;
    uint32_t absent = 0;

    (void)state;
    begin(WITH_KINDS "|" WITH_KINDS);
    assert_int_equal(gpu_list(&options, id, 2, &listed, NULL), STATUS_OK);
    for (uint64_t n = 0; n == 0 || n <= calls; n += n == 0 ? 1 : step) {
        char control[3000];
        struct fakecuda_report r;
        struct err err = {0};
        struct gpu *gpu = NULL;
        int after = 0;
        enum status s;

        (void)snprintf(control, sizeof control, WITH_KINDS "|" WITH_KINDS "|fail=*@%llu=2",
                       (unsigned long long)(n == 0 ? UINT32_MAX : n));
        begin(control);
        s = gpu_open(&options, id[0].uuid, &gpu, &err);
        if (has_failed()) /* what a GPU supports is read here, for all kinds */
            after = -MEMORY_KIND_COUNT;
        for (int kind = MEMORY_MANAGED_DEVICE;
             s == STATUS_OK && kind < MEMORY_KIND_COUNT && after <= most_after; kind++) {
            enum reason reason = REASON_NONE;
            if (kind == MEMORY_HOST_REGISTERED_HUGE)
                continue;
            s = use_kind(gpu, (enum memory_kind)kind, &reason, &err);
            after += has_failed();
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
    if (step == 1) /* a sample may miss the calls that only one kind needs */
        assert_true(absent > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_memory_is_made_and_given_back),
        cmocka_unit_test(host_memory_is_released_at_the_end),
        cmocka_unit_test(other_memory_is_released_at_once),
        cmocka_unit_test(what_was_left_makes_room),
        cmocka_unit_test(host_memory_is_made_in_pieces),
        cmocka_unit_test(a_refused_kind_says_why),
        cmocka_unit_test(memory_is_placed_on_a_node),
        cmocka_unit_test(pageable_memory_needs_support),
        cmocka_unit_test(unified_memory_leaves_a_reserve_to_the_host),
        cmocka_unit_test(unknown_free_memory_is_an_error),
        cmocka_unit_test(the_cpu_gathers_rows),
        cmocka_unit_test(rows_are_also_written),
        cmocka_unit_test(every_call_for_other_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, driver_load, driver_unload);
}
