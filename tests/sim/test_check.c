/* test_check.c: compares a stored fingerprint with simulated chips. The fingerprint of a chip holds
 * with any noise. Another floor plan does not match. No check exceeds its limit. TEST_SEED chooses
 * the random GPUs, REACH_COUNT their number. */
#include "analysis/check.h"
#include "analysis/disturbance.h"
#include "gpu/gpu.h"
#include "gpu/sim/sim_profiles.h"
#include "campaign/verify_probes.h"
#include "tests/share.h"
#include "tests/sim/random_gpu.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES = 8192, RANDOM_GPUS = 12, SANITIZED_GPUS = 4, MOST_DRAWS = 1000 };

static uint64_t seed;
static uint32_t gpus;

/* Opens the GPU with this description and makes the probes of the check plan. */
static struct check check_desc(const struct fingerprint *fp, const struct sim_desc *desc,
                               uint32_t *out_probes)
{
    struct campaign_step *step = calloc(1, sizeof *step);
    struct observation_set set = {.count = 0};
    const struct gpu_options options = {.idle_only = false};
    struct gpu_identity identity;
    struct check result;
    struct gpu *gpu = NULL;
    struct err err = {0};

    assert_non_null(step);
    sim_gpu_identity(desc, 0, &identity);
    if (sim_gpu_new(desc, &identity, &options, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", identity.uuid, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    verify_probes(fp, &set.limits, step);
    for (uint32_t i = 0; i < step->spec_count; i++) {
        struct observation o = {.spec = step->specs[i]};
        if (gpu_run(gpu, &o.spec, &o.result, &err) != STATUS_OK)
            fail_msg("%s: %s", identity.uuid, err.text);
        if (i == 0)
            verify_probes_place(fp, &o.result, step);
        assert_int_equal(observation_set_add(&set, &o, &err), STATUS_OK);
    }
    *out_probes = step->spec_count;
    check_observations(fp, &set, &result);
    observation_set_free(&set);
    gpu_close(gpu);
    free(step);
    return result;
}

static struct check check(const struct fingerprint *fp, const char *text, uint32_t *out_probes)
{
    struct sim_desc desc;
    struct err err = {0};

    if (sim_profiles_parse(text, &desc, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    return check_desc(fp, &desc, out_probes);
}

static void profiles_hold_against_themselves(void **state)
{
    static const char *const names[] = {"k80", "p100", "a100-80g", "h100-80g", "h200"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct sim_measure m;
        assert_int_equal(sim_measure(names[i], DEPTH_QUICK, NULL, NULL, &m), STATUS_OK);
        for (unsigned s = 1; s <= 5; s++) {
            char text[64];
            uint32_t probes = 0;
            snprintf(text, sizeof text, "%s seed=%u", names[i], s);
            const struct check c = check(&m.fp, text, &probes);
            if (c.result != CHECK_HOLDS)
                fail_msg("%s: %s", text, c.message);
            assert_true(c.looked_at + 1 == probes); /* one more for the warm-up */
            assert_true(c.looked_at > m.fp.level_count);
        }
        sim_measure_free(&m);
    }
}

static void profiles_do_not_hold_against_others(void **state)
{
    struct sim_measure m;
    uint32_t probes = 0;
    (void)state;
    assert_int_equal(sim_measure("h200", DEPTH_QUICK, NULL, NULL, &m), STATUS_OK);
    assert_int_equal(
        check(&m.fp, "h200 l2=1024@32M/16;miss=400;sets=4x256;hash=xor", &probes).result,
        CHECK_CHANGED);
    assert_int_equal(
        check(&m.fp, "h200 l2=2048@32M/16;miss=400;sets=8x256;hash=xor", &probes).result,
        CHECK_CHANGED);
    assert_int_equal(
        check(&m.fp, "h200 l2=2048@32M/sm;miss=400;sets=8x256;hash=xor", &probes).result,
        CHECK_CHANGED);
    sim_measure_free(&m);
}

/* A chip with this number of measured levels and groups matches itself. */
static void expect_holds(const char *text, uint32_t levels, uint32_t groups)
{
    struct sim_measure m;
    uint32_t probes = 0;

    assert_int_equal(sim_measure(text, DEPTH_QUICK, NULL, NULL, &m), STATUS_OK);
    assert_int_equal(m.fp.level_count, levels);
    assert_int_equal(m.fp.topology.partition.group_count, groups);
    const struct check c = check(&m.fp, text, &probes);
    if (c.result != CHECK_HOLDS)
        fail_msg("%s: %s", check_result_name(c.result), c.message);
    assert_true(c.looked_at > 1);
    sim_measure_free(&m);
}

/* A nearer level whose penalty is too low to be found keeps pages that a farther level has evicted.
 * The check must not conclude that the SMs do not share the farther level any more. */
static void a_level_that_is_not_known_hides_nothing(void **state)
{
    (void)state;
    expect_holds("sms=24 memory=64M latency=242 granule=64K range=1G noise=gauss:2 "
                 "l1=16@1M/sm;miss=2 l2=48@1M/0-11:12-23;miss=136",
                 1, 2);
}

/* A farther level is not found if it is full before all sets of the nearer level overflow. Its
 * misses must not count as more expensive misses of the nearer level. */
static void a_farther_level_that_is_not_known_makes_no_miss_dearer(void **state)
{
    (void)state;
    expect_holds("sms=8 memory=64M latency=171 granule=512K range=1G noise=uniform:0.1 "
                 "l1=44@512K/0-3:4-7;miss=62;sets=4x11 "
                 "l2=220@512K/0-3:4-7;miss=492;sets=2x110 "
                 "l3=256@512K/gpu;miss=282;sets=16x16",
                 2, 2);
}

/* The check of a random GPU never reports "changed" for the same chip. */
static void random_gpus_hold_against_themselves(void **state)
{
    const struct random_gpu_class class = {.random_victims = false, .most_levels = 3};
    uint32_t held = 0;
    uint32_t unsure = 0;
    uint32_t changed = 0;
    uint32_t asked = 0;
    (void)state;
    for (uint64_t i = 0; i < gpus; i++) {
        char text[TEXT_BYTES];
        struct sim_measure m;
        uint32_t probes = 0;
        random_gpu(seed + i, &class, text, sizeof text);
        if (sim_measure(text, DEPTH_QUICK, NULL, NULL, &m) == STATUS_OK) {
            const struct check c = check(&m.fp, text, &probes);
            held += c.result == CHECK_HOLDS;
            unsure += c.result == CHECK_UNSURE;
            changed += c.result == CHECK_CHANGED;
            asked += probes > 0;
            if (c.result != CHECK_HOLDS)
                print_message("# TEST_SEED=%llu: %s: %s\n", (unsigned long long)(seed + i),
                              check_result_name(c.result), c.message);
        }
        sim_measure_free(&m);
    }
    print_message("# of %u asked %u: %u hold, %u cannot say, %u changed\n", gpus, asked, held,
                  unsure, changed);
    assert_int_equal(changed, 0);
    assert_true(held > 0 || gpus < SANITIZED_GPUS);
}

/* Exchanges two SMs of different groups, in all levels. Returns false if the exchange changes no
 * group, or if the check does not include groups. */
static bool swap_sms(const struct fingerprint *fp, const struct gpu_limits *limits,
                     struct sim_desc *desc)
{
    const uint16_t *group_of = fp->topology.partition.group_of_sm;
    struct probe_spec spec;
    uint32_t b = 1;
    if (fp->topology.partition.group_count < 2 ||
        !check_sharing_test(fp, limits, desc->sm_ids[0], &spec))
        return false;
    while (b < desc->sm_count && group_of[desc->sm_ids[b]] == 0)
        b++;
    if (b == desc->sm_count ||
        fp->topology.groups[0].sm_count + fp->topology.groups[group_of[desc->sm_ids[b]]].sm_count <
            3)
        return false;
    for (uint32_t k = 0; k < desc->level_count; k++) {
        uint16_t *instance_of = desc->levels[k].instance_of_sm;
        const uint16_t swap = instance_of[0];
        instance_of[0] = instance_of[b];
        instance_of[b] = swap;
    }
    return true;
}

/* Halves the sets of a level, or the ways of its sets. Returns false if no level of the check can
 * be halved. */
static bool halve_a_level(const struct fingerprint *fp, const struct gpu_limits *limits,
                          struct sim_desc *desc)
{
    for (uint32_t k = 0; k < desc->level_count; k++) {
        struct sim_level *level = &desc->levels[k];
        struct probe_spec spec;
        bool asked = false;
        for (uint32_t i = 0; i < fp->level_count; i++)
            asked = asked || (check_level_test(fp, i, limits, desc->sm_ids[0], &spec) &&
                              fp->levels[i].entries.v == level->entries &&
                              fp->levels[i].entry_bytes.v == level->entry_bytes);
        /* Behind a nearer level of the same size, this level is invisible. */
        const bool hidden =
            k > 0 && desc->levels[k - 1].entries * desc->levels[k - 1].entry_bytes >=
                         level->entries * level->entry_bytes;
        if (!asked || hidden || level->run_count != 1)
            continue;
        if (level->runs[0].count % 2 == 0)
            level->runs[0].count /= 2;
        else if (level->runs[0].ways % 2 == 0)
            level->runs[0].ways /= 2;
        else
            continue;
        level->entries /= 2;
        return true;
    }
    return false;
}

typedef bool (*change_fn)(const struct fingerprint *fp, const struct gpu_limits *limits,
                          struct sim_desc *desc);

/* The fingerprint of a random GPU holds; then the GPU changes, and the check detects it. If noise
 * hides the change, the check may be undecided, but never reports that nothing has changed. */
static void changes_are_found(change_fn change)
{
    const struct random_gpu_class class = {.random_victims = false, .most_levels = 3};
    uint32_t found = 0;
    uint32_t unsure = 0;
    /* Not every GPU has the property that is changed, so the loop continues until a GPU has it. */
    for (uint64_t i = 0; i < gpus || (found == 0 && i < MOST_DRAWS); i++) {
        char text[TEXT_BYTES];
        struct sim_measure m;
        struct sim_desc desc;
        uint32_t probes = 0;
        random_gpu(seed + i, &class, text, sizeof text);
        assert_int_equal(sim_profiles_parse(text, &desc, NULL), STATUS_OK);
        if (sim_measure(text, DEPTH_QUICK, NULL, NULL, &m) == STATUS_OK &&
            change(&m.fp, &m.set.limits, &desc)) {
            const struct check c = check_desc(&m.fp, &desc, &probes);
            if (c.result == CHECK_HOLDS)
                fail_msg("TEST_SEED=%llu: still true\n%s", (unsigned long long)(seed + i), text);
            found += c.result == CHECK_CHANGED;
            unsure += c.result == CHECK_UNSURE;
        }
        sim_measure_free(&m);
    }
    print_message("# of %u changed: %u found, %u cannot say\n", found + unsure, found, unsure);
    assert_true(found > 0);
    assert_true(found >= unsure || gpus < RANDOM_GPUS);
}

static void another_group_map_is_found(void **state)
{
    (void)state;
    changes_are_found(swap_sms);
}

static void fewer_entries_are_found(void **state)
{
    (void)state;
    changes_are_found(halve_a_level);
}

/* An empty fingerprint needs no probe. The fingerprint holds if the identity of the GPU is the
 * same. */
static void an_empty_fingerprint_asks_nothing(void **state)
{
    struct fingerprint fp;
    uint32_t probes = 1;
    (void)state;
    fingerprint_init(&fp);
    const struct check c = check(&fp, "k80", &probes);
    assert_int_equal(probes, 0);
    assert_int_equal(c.result, CHECK_HOLDS);
    assert_int_equal(c.looked_at, 0);
}

static void identities_are_compared(void **state)
{
    const struct gpu_identity then = {.uuid = "GPU-1",
                                      .serial = "7",
                                      .driver_version = "580.1",
                                      .sm_count = 132,
                                      .memory_bytes = 1000};
    struct gpu_identity now;
    struct check c;
    (void)state;
    check_identity(&then, &then, &c);
    assert_int_equal(c.result, CHECK_HOLDS);
    assert_string_equal(c.message, "");
#define DIFFERS(change, word)                                                                      \
    do {                                                                                           \
        now = then;                                                                                \
        change;                                                                                    \
        check_identity(&then, &now, &c);                                                           \
        assert_int_equal(c.result, CHECK_CHANGED);                                                 \
        assert_non_null(strstr(c.message, word));                                                  \
    } while (0)
    DIFFERS(strcpy(now.uuid, "GPU-2"), "GPU-2");
    DIFFERS(strcpy(now.serial, "8"), "serial");
    DIFFERS(strcpy(now.driver_version, "590"), "driver");
    DIFFERS(now.mig = true, "MIG");
    DIFFERS(now.sm_count = 66, "SMs");
    DIFFERS(now.memory_bytes = 500, "memory");
    now = then;
    now.serial[0] = '\0'; /* the GPU reports no serial number now, so it is not compared */
    check_identity(&then, &now, &c);
    assert_int_equal(c.result, CHECK_HOLDS);
}

static int choose_seed(void **state)
{
    const char *given = getenv("TEST_SEED");
    (void)state;
    const char *cases = getenv("REACH_COUNT");
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    gpus = cases ? (uint32_t)strtoul(cases, NULL, 0) : test_share(RANDOM_GPUS, SANITIZED_GPUS);
    print_message("# TEST_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_hold_against_themselves),
        cmocka_unit_test(profiles_do_not_hold_against_others),
        cmocka_unit_test(a_level_that_is_not_known_hides_nothing),
        cmocka_unit_test(a_farther_level_that_is_not_known_makes_no_miss_dearer),
        cmocka_unit_test(random_gpus_hold_against_themselves),
        cmocka_unit_test(another_group_map_is_found),
        cmocka_unit_test(fewer_entries_are_found),
        cmocka_unit_test(an_empty_fingerprint_asks_nothing),
        cmocka_unit_test(identities_are_compared),
    };
    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
