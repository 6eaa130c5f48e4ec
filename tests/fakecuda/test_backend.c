/* test_backend.c: the code of the cuda source, run over the stand-in driver, finds the properties
 * of the model. */
#include "tests/fakecuda/backend.h"

#include "base/stats.h"

#include <stdlib.h>

/* Each kind of access has its own kernel, and all kernels read the same table of pages. */
static void every_kind_of_access_has_its_kernel(void **state)
{
    static const struct {
        enum access access;
        uint32_t bytes;
        double cost_bytes; /* bytes that an access costs in the model */
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

/* The mappings of the driver decide what is scattered. If half of the region is in runs of 4 MiB,
 * misses there take twice as long. If that half is in runs of a frame, the time of a miss does not
 * change. */
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

/* Returns how many loads of a lap of `ways` x 256 lines miss in L1 beside this amount of shared
 * memory. */
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

/* Each 32 KiB of shared memory costs L1 one way, and not a second one. This also holds if the
 * driver ignores the preferred size, because the block takes its full amount of shared memory. */
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

/* With windows by group, 64 entries of 2 MiB are enough for 256 MiB in two halves. */
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

/* Under MPS other processes use the TLBs at the same time, and no probe detects these processes.
 * Only NVML reports their number, and NVML is missing here. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_access_has_its_kernel),
        cmocka_unit_test(short_runs_are_scattered),
        cmocka_unit_test(the_division_of_l1_is_the_one_asked_for),
        cmocka_unit_test(the_levels_of_the_model_are_found),
        cmocka_unit_test(the_groups_of_the_model_are_found),
        cmocka_unit_test(windows_of_the_model_help),
        cmocka_unit_test(without_virtual_memory_it_is_plain),
        cmocka_unit_test(little_free_memory_makes_it_small),
        cmocka_unit_test(other_clients_of_mps_are_told),
        cmocka_unit_test(each_gpu_is_opened_by_its_uuid),
    };
    return cmocka_run_group_tests(tests, driver_load, driver_unload);
}
