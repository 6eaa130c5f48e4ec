/* test_check.c: a stored fingerprint against simulated chips: the one it was made of still holds,
 * whatever its noise; another floor plan does not; and no check is longer than it may be.
 * TEST_SEED chooses the random GPUs. */
#include "analysis/check.h"
#include "analysis/disturbance.h"
#include "gpu/gpu.h"
#include "plan/check_plan.h"
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

enum { TEXT_BYTES = 8192, RANDOM_GPUS = 12 };

static uint64_t seed;

/* Opens the GPU that `text` describes and asks it what the check plan says. */
static struct check check(const struct fingerprint *fp, const char *text, uint32_t *out_probes)
{
    const char *const texts[] = {text, NULL};
    const struct gpu_options options = {.simulated = texts};
    struct plan_step *step = calloc(1, sizeof *step);
    struct observation_set set = {.count = 0};
    struct check result;
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t count = 0;

    assert_non_null(step);
    if (gpu_list(&options, &set.gpu, 1, &count, &err) != STATUS_OK ||
        gpu_open(&options, set.gpu.uuid, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    check_plan(fp, &set.limits, step);
    for (uint32_t i = 0; i < step->spec_count; i++) {
        struct observation o = {.spec = step->specs[i]};
        assert_int_equal(gpu_run(gpu, &o.spec, &o.result, &err), STATUS_OK);
        assert_int_equal(observation_set_add(&set, &o, &err), STATUS_OK);
    }
    *out_probes = step->spec_count;
    check_observations(fp, &set, &result);
    observation_set_free(&set);
    gpu_close(gpu);
    free(step);
    return result;
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
                fail_msg("%s: %s", text, c.sentence);
            assert_true(c.looked_at + 1 == probes); /* and the warm-up */
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

/* Of random GPUs too: never "changed" about the chip itself. */
static void random_gpus_hold_against_themselves(void **state)
{
    const struct random_gpu_class class = {.random_victims = false, .most_levels = 3};
    uint32_t held = 0;
    (void)state;
    for (uint64_t i = 0; i < RANDOM_GPUS; i++) {
        char text[TEXT_BYTES];
        struct sim_measure m;
        uint32_t probes = 0;
        random_gpu(seed + i, &class, text, sizeof text);
        if (sim_measure(text, DEPTH_QUICK, NULL, NULL, &m) == STATUS_OK) {
            const struct check c = check(&m.fp, text, &probes);
            if (c.result == CHECK_CHANGED)
                fail_msg("TEST_SEED=%llu: %s\n%s", (unsigned long long)(seed + i), c.sentence,
                         text);
            held += c.result == CHECK_HOLDS;
        }
        sim_measure_free(&m);
    }
    print_message("# %u of %u hold\n", held, RANDOM_GPUS);
    assert_true(held > 0);
}

/* What knows nothing asks nothing, and holds by who it is. */
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
    assert_string_equal(c.sentence, "");
#define DIFFERS(change, word)                                                                      \
    do {                                                                                           \
        now = then;                                                                                \
        change;                                                                                    \
        check_identity(&then, &now, &c);                                                           \
        assert_int_equal(c.result, CHECK_CHANGED);                                                 \
        assert_non_null(strstr(c.sentence, word));                                                 \
    } while (0)
    DIFFERS(strcpy(now.uuid, "GPU-2"), "GPU-2");
    DIFFERS(strcpy(now.serial, "8"), "serial");
    DIFFERS(strcpy(now.driver_version, "590"), "driver");
    DIFFERS(now.mig = true, "MIG");
    DIFFERS(now.sm_count = 66, "SMs");
    DIFFERS(now.memory_bytes = 500, "memory");
    now = then;
    now.serial[0] = '\0'; /* not told now: not compared */
    check_identity(&then, &now, &c);
    assert_int_equal(c.result, CHECK_HOLDS);
}

static int choose_seed(void **state)
{
    const char *given = getenv("TEST_SEED");
    (void)state;
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_hold_against_themselves),
        cmocka_unit_test(profiles_do_not_hold_against_others),
        cmocka_unit_test(random_gpus_hold_against_themselves),
        cmocka_unit_test(an_empty_fingerprint_asks_nothing),
        cmocka_unit_test(identities_are_compared),
    };
    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
