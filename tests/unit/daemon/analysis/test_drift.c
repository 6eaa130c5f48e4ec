/* test_drift.c: what a quick check calls slower, and the limits of it. */
#include "analysis/drift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SMS = 4 };

/* Returns a fingerprint with a clock of 1500 MHz, a reach of 8 GiB and a plateau of 800 GB/s. */
static struct fingerprint *measured(void)
{
    struct fingerprint *const fp = malloc(sizeof *fp);

    assert_non_null(fp);
    fingerprint_init(fp);
    fp->conditions.sm_clock_khz = KNOWN_U32(1500000);
    fp->conditions.pcie_generation_used = KNOWN_U32(5);
    fp->conditions.pcie_lanes = KNOWN_U32(16);
    fp->windows.reach_bytes = KNOWN_U64((uint64_t)8 << 30);
    fp->throughput.plateau_gbps = KNOWN_F64(800);
    fp->throughput.curve_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        fp->throughput.curve[i].region_bytes = (uint64_t)4 << (30 + i);
        fp->throughput.curve[i].naive_gbps = KNOWN_F64(800 - 100 * i);
    }
    return fp;
}

/* Adds an observation of the speed test with this result. A slow one may be disturbed. */
static void add(struct observation_set *set, const struct probe_spec *spec, uint32_t mhz,
                double gbps, enum verdict verdict)
{
    struct observation o = {.spec = *spec};
    struct err err = {0};

    o.result.sm_count = SMS;
    o.result.conditions.sm_clock_khz = mhz ? KNOWN_U32(mhz * 1000) : UNKNOWN_U32(0);
    o.assessment.verdict = verdict;
    o.result.value_count = probe_value_count(spec, SMS);
    o.result.values = calloc(o.result.value_count, sizeof *o.result.values);
    assert_non_null(o.result.values);
    /* Each repeat has nanoseconds, then the accesses of each SM. */
    for (uint32_t r = 0; r < spec->repeats; r++) {
        uint32_t *const row = o.result.values + r * (SMS + 1);

        row[0] = 1000000;
        for (uint32_t sm = 0; sm < SMS; sm++)
            row[1 + sm] = (uint32_t)(gbps * 1e6 / 128 / SMS);
    }
    assert_int_equal(observation_set_add(set, &o, &err), STATUS_OK);
}

static struct drift find(const struct fingerprint *fp, uint32_t mhz, double gbps,
                         enum verdict verdict)
{
    const struct gpu_limits limits = {.range_bytes = (uint64_t)16 << 30,
                                      .backing_bytes = (uint64_t)1 << 30,
                                      .granule_bytes = 2 << 20,
                                      .sm_count = SMS};
    struct observation_set set = {.limits = limits};
    struct probe_spec spec;
    struct drift drift;

    assert_true(drift_speed_test(fp, &limits, &spec));
    assert_int_equal(spec.points[0], (uint64_t)8 << 30); /* the largest region within the reach */
    add(&set, &spec, mhz, gbps, verdict);
    drift_find(fp, &set, &drift);
    observation_set_free(&set);
    return drift;
}

static void a_speed_has_a_limit_of_five_percent(void **state)
{
    struct fingerprint *const fp = measured();
    struct drift d = find(fp, 1500, 800, VERDICT_CLEAN);

    (void)state;
    assert_false(drift_is_any(&d));
    d = find(fp, 1426, 761, VERDICT_CLEAN);
    assert_false(drift_is_any(&d));
    d = find(fp, 2000, 1000, VERDICT_CLEAN); /* faster is no problem */
    assert_false(drift_is_any(&d));
    d = find(fp, 1424, 800, VERDICT_CLEAN);
    assert_string_equal(d.speed, "the SM clock was 1500 MHz and is 1424 MHz");
    d = find(fp, 1500, 759, VERDICT_CLEAN);
    assert_string_equal(d.speed, "random reads of device memory had 800 GB/s and have 759 GB/s");
    assert_string_equal(d.link, "");
    free(fp);
}

/* Hardware that limits its clocks disturbs every probe. Its clock counts, but not its speed. */
static void a_disturbed_probe_has_a_clock_and_no_speed(void **state)
{
    struct fingerprint *const fp = measured();
    struct drift d = find(fp, 1500, 400, VERDICT_DISTURBED);

    (void)state;
    assert_false(drift_is_any(&d));
    d = find(fp, 900, 400, VERDICT_DISTURBED);
    assert_string_equal(d.speed, "the SM clock was 1500 MHz and is 900 MHz");
    free(fp);
}

static void what_is_not_known_does_not_drift(void **state)
{
    struct fingerprint *const fp = measured();
    const struct gpu_limits limits = {.range_bytes = (uint64_t)16 << 30, .sm_count = SMS};
    const struct gpu_limits small = {.range_bytes = (uint64_t)4 << 30, .sm_count = SMS};
    struct probe_spec spec;
    struct drift d = find(fp, 0, 800, VERDICT_CLEAN);

    (void)state;
    assert_false(drift_is_any(&d));
    fp->conditions.sm_clock_khz = UNKNOWN_U32(REASON_NOT_REPORTED);
    d = find(fp, 100, 800, VERDICT_CLEAN);
    assert_false(drift_is_any(&d));
    assert_false(drift_speed_test(fp, &small, &spec));
    fp->throughput.plateau_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    assert_false(drift_speed_test(fp, &limits, &spec));
    free(fp);
}

/* Sets the numbers of a link; 0 means unknown. */
static void set_link(struct observation_set *set, uint32_t generation, uint32_t lanes,
                     uint32_t best_generation, uint32_t best_lanes)
{
    struct observation o = {.result.conditions.pcie_generation = UNKNOWN_U32(0)};

    if (generation)
        o.result.conditions.pcie_generation = KNOWN_U32(generation);
    set->limits.pcie_generation = best_generation ? KNOWN_U32(best_generation) : UNKNOWN_U32(0);
    set->limits.pcie_lanes = lanes ? KNOWN_U32(lanes) : UNKNOWN_U32(0);
    set->limits.pcie_lanes_supported = best_lanes ? KNOWN_U32(best_lanes) : UNKNOWN_U32(0);
    assert_int_equal(observation_set_add(set, &o, NULL), STATUS_OK);
}

static void a_link_is_compared_with_the_best_and_with_the_past(void **state)
{
    static const struct {
        uint32_t generation, lanes, best_generation, best_lanes;
        const char *sentence;
    } links[] = {
        {5, 16, 5, 16, ""},
        {5, 16, 0, 0, ""},
        {0, 0, 5, 16, ""},
        {6, 16, 6, 16, ""},
        {3, 16, 5, 16,
         "the PCIe link is generation 3 x16; the GPU and its slot support generation 5 x16"},
        {5, 4, 5, 16,
         "the PCIe link is generation 5 x4; the GPU and its slot support generation 5 x16"},
        {0, 8, 5, 16, "the PCIe link is x8; the GPU and its slot support x16"},
        {4, 0, 5, 0, "the PCIe link is generation 4; the GPU and its slot support generation 5"},
        {4, 8, 0, 0, "the PCIe link is generation 4 x8; it was generation 5 x16"},
        {5, 8, 5, 8, "the PCIe link is generation 5 x8; it was generation 5 x16"},
    };
    struct fingerprint *const fp = measured();

    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        struct observation_set set = {.count = 0};
        struct drift d;

        set_link(&set, links[i].generation, links[i].lanes, links[i].best_generation,
                 links[i].best_lanes);
        drift_find(fp, &set, &d);
        assert_string_equal(d.link, links[i].sentence);
        assert_string_equal(d.speed, "");
        observation_set_free(&set);
    }
    free(fp);
}

static void one_look_is_not_enough(void **state)
{
    const struct drift none = {.speed = ""};
    const struct drift both = {.speed = "a", .link = "b"};
    const struct drift link = {.link = "b"};
    struct drift d = both;

    (void)state;
    drift_confirm(&none, &d);
    assert_false(drift_is_any(&d));
    d = both;
    drift_confirm(&link, &d);
    assert_string_equal(d.speed, "");
    assert_string_equal(d.link, "b");
    d = none;
    drift_confirm(&both, &d);
    assert_false(drift_is_any(&d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_speed_has_a_limit_of_five_percent),
        cmocka_unit_test(a_disturbed_probe_has_a_clock_and_no_speed),
        cmocka_unit_test(what_is_not_known_does_not_drift),
        cmocka_unit_test(a_link_is_compared_with_the_best_and_with_the_past),
        cmocka_unit_test(one_look_is_not_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
