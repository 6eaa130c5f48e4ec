/* test_sides.c: the sides of the L2 of random simulated GPUs. Each value must be right or not sure,
 * never wrong. A third of the GPUs have one side. Granules have 128 bytes to 64 KiB. Loads from the
 * far side take 20 to 300 cycles more. The latencies of lines of one side differ by up to 120
 * cycles, and loads vary by some cycles. REACH_CASES=n sets the number of GPUs (300, fewer under a
 * sanitizer). REACH_SEED repeats a run. */
#include "analysis/caches/sides.h"
#include "base/rng.h"
#include "base/units.h"
#include "campaign/campaign.h"
#include "gpu/gpu.h"
#include "tests/share.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CASES = 300, SANITIZED_CASES = 60, MOST_PROBES = 40, MOST_SMS = 160, WARM_UP_US = 100 };

struct chip {
    char text[2048];
    uint32_t sms;
    uint64_t granule_bytes; /* 0 means one side */
    uint32_t far_cycles, spread_cycles;
    bool has_neighbor;
    uint16_t side_of[MOST_SMS];
};

static uint32_t right, not_sure;

/* Appends to the description of the chip. */
static void say(struct chip *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct chip *c, const char *format, ...)
{
    const size_t n = strlen(c->text);
    va_list args;

    va_start(args, format);
    vsnprintf(c->text + n, sizeof c->text - n, format, args);
    va_end(args);
}

static void random_chip(struct rng *r, struct chip *out)
{
    static const char *const noises[] = {"none", "gauss:1.5", "gauss:5", "uniform:4"};
    const char *comma = "";

    *out = (struct chip){.sms = 2 + (uint32_t)rng_below(r, MOST_SMS - 2),
                         .far_cycles = 20 + (uint32_t)rng_below(r, 281),
                         .spread_cycles = (uint32_t)rng_below(r, 121),
                         .has_neighbor = rng_below(r, 8) == 0};
    if (rng_below(r, 3))
        out->granule_bytes = (uint64_t)PROBE_LINE_BYTES << rng_below(r, 10);
    say(out,
        "sms=%u memory=8G latency=%u spread=%u noise=%s outliers=%.4f@500 seed=%u "
        "l1=16@2M/2;miss=9",
        out->sms, 150 + (uint32_t)rng_below(r, 200), out->spread_cycles, noises[rng_below(r, 4)],
        rng_below(r, 2) * 0.01, 1 + (uint32_t)rng_below(r, 10000));
    if (out->has_neighbor)
        say(out, " neighbor=%u@500000", 20000 + (uint32_t)rng_below(r, 20000));
    if (out->granule_bytes == 0)
        return;
    say(out, " sides=%llu@%u far_side=", (unsigned long long)out->granule_bytes, out->far_cycles);
    for (uint32_t sm = 1; sm < out->sms; sm++) {
        out->side_of[sm] = sm == 1 || rng_below(r, 2);
        if (out->side_of[sm])
            say(out, "%s%u", comma, sm);
        comma = out->side_of[sm] ? "," : comma;
    }
}

static void ask(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec)
{
    struct err err = {0};

    if (sim_probe(gpu, set, spec, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void measure(const struct chip *chip, struct sides_estimate *out)
{
    const struct probe_spec warm_up = campaign_warm_up(WARM_UP_US, 1);
    struct observation_set set = {.count = 0};
    struct gpu *gpu = NULL;
    struct err err = {0};

    if (sim_open(chip->text, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", chip->text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    ask(gpu, &set, &warm_up);
    for (uint32_t n = 0; n < MOST_PROBES; n++) {
        sides_estimate(&set, out);
        if (!out->asks)
            break;
        ask(gpu, &set, &out->ask);
    }
    if (out->asks && !chip->has_neighbor)
        fail_msg("%s: asks again and again", chip->text);
    observation_set_free(&set);
    gpu_close(gpu);
}

static bool is_true(const struct chip *chip, const struct fingerprint_l2 *l2)
{
    const double apart = l2->atomic_far_cycles.v - l2->atomic_near_cycles.v;

    if (chip->granule_bytes == 0 || l2->granule_bytes.v != chip->granule_bytes)
        return false;
    for (uint32_t sm = 0; sm < chip->sms; sm++)
        if (l2->side_of_sm.group_of_sm[sm] != chip->side_of[sm])
            return false;
    /* Lines of one side are spread evenly, and the medians of some 32 lines of either side are
     * compared. The standard error is 0.125 of the spread, and this limit is five standard
     * errors. */
    return fabs(apart - chip->far_cycles) <= 4 + 0.625 * chip->spread_cycles;
}

static void judge(const struct chip *chip, const struct sides_estimate *e)
{
    const struct fingerprint_l2 *const l2 = &e->found;

    if (!e->asks && IS_KNOWN(l2->sides)) {
        if (!is_true(chip, l2))
            fail_msg("%s: granule %llu, near %.0f, far %.0f", chip->text,
                     (unsigned long long)l2->granule_bytes.v, l2->atomic_near_cycles.v,
                     l2->atomic_far_cycles.v);
        right++;
    } else if (!e->asks && l2->sides.known == MAYBE_NOT_OBSERVABLE && chip->granule_bytes == 0) {
        right++;
    } else if (l2->sides.known == MAYBE_NOT_OBSERVABLE && chip->granule_bytes > 0 &&
               chip->far_cycles > 4 * chip->spread_cycles + 60) {
        fail_msg("%s: sides far apart were not seen", chip->text);
    } else {
        not_sure++;
    }
}

static void random_sides_are_found(void **state)
{
    const char *const given = getenv("REACH_SEED");
    const char *const count = getenv("REACH_CASES");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    const uint32_t cases =
        count ? (uint32_t)strtoul(count, NULL, 0) : (uint32_t)test_share(CASES, SANITIZED_CASES);
    struct rng rng = {.state = seed};

    (void)state;
    printf("# REACH_SEED=%llu REACH_CASES=%u\n", (unsigned long long)seed, cases);
    right = not_sure = 0;
    for (uint32_t i = 0; i < cases; i++) {
        struct chip chip;
        struct sides_estimate found;
        random_chip(&rng, &chip);
        measure(&chip, &found);
        judge(&chip, &found);
    }
    printf("# %u right, %u not sure, 0 wrong\n", right, not_sure);
    assert_true(right > cases / 2);
}

/* Measures a GPU of 8 SMs with this text added. */
static struct fingerprint_l2 sides_with(const char *what)
{
    struct chip chip = {.sms = 8};
    struct sides_estimate e;

    say(&chip, "sms=8 memory=8G spread=40 noise=gauss:1.5 l1=16@2M/2;miss=9 %s", what);
    measure(&chip, &e);
    return e.found;
}

static void one_mode_is_not_observable(void **state)
{
    const struct fingerprint_l2 l2 = sides_with("");

    (void)state;
    assert_int_equal(l2.sides.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(l2.sides.reason, REASON_NO_CONTRAST);
    assert_int_equal(l2.granule_bytes.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(l2.side_of_sm.group_count, 0);
}

/* If no SM is on the other side, near and far lines have no meaning. */
static void modes_that_all_see_alike_are_not_sides(void **state)
{
    const struct fingerprint_l2 l2 = sides_with("sides=4K@195");

    (void)state;
    assert_int_equal(l2.sides.known, MAYBE_UNKNOWN);
    assert_int_equal(l2.sides.reason, REASON_IRREGULAR);
}

/* The side of SM 0 is the first side, whatever its name in the model is. */
static void the_first_sm_is_on_the_first_side(void **state)
{
    const struct fingerprint_l2 l2 = sides_with("sides=8K@195 far_side=0-2,7");

    (void)state;
    assert_int_equal(l2.sides.v, 2);
    assert_int_equal(l2.granule_bytes.v, 8 * KIB);
    for (uint32_t sm = 0; sm < 8; sm++)
        assert_int_equal(l2.side_of_sm.group_of_sm[sm], sm > 2 && sm < 7);
    assert_null(evidence_fault(l2.evidence.sides, true));
    assert_null(evidence_fault(l2.evidence.granule_bytes, true));
    assert_null(evidence_fault(l2.evidence.atomic_near_cycles, true));
    assert_null(evidence_fault(l2.evidence.atomic_far_cycles, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sides_are_found),
        cmocka_unit_test(one_mode_is_not_observable),
        cmocka_unit_test(modes_that_all_see_alike_are_not_sides),
        cmocka_unit_test(the_first_sm_is_on_the_first_side),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
