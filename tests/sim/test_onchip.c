/* test_onchip.c: shared memory, clusters, and the number of loads that keep memory busy, of the
 * GPUs of Mei 2016 and of random simulated GPUs. Each value must be right or not sure, never wrong.
 * REACH_CASES=n sets the number of GPUs of each kind (300, fewer under a sanitizer). REACH_SEED
 * repeats a run. */
#include "analysis/onchip/banks.h"
#include "analysis/onchip/clusters.h"
#include "analysis/throughput/parallel.h"
#include "base/little.h"
#include "base/rng.h"
#include "base/units.h"
#include "campaign/campaign.h"
#include "fingerprint/fingerprint_check.h"
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

enum { CASES = 300, SANITIZED_CASES = 200, MOST_PROBES = 80, WARM_UP_US = 100, TEXT_BYTES = 4096 };

static uint32_t right, not_sure;

static void ask(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec)
{
    struct err err = {0};

    if (sim_probe(gpu, set, spec, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static uint32_t missing(const struct observation_set *set, struct probe_spec *out)
{
    static const struct structure nothing = {.window_level = -1};

    if (banks_missing(set, out, 1) > 0 || clusters_missing(set, out, 1) > 0)
        return 1;
    return parallel_missing(set, &nothing, out);
}

/* Measures only the properties of these tests. */
static void measure(const char *text, struct fingerprint *out)
{
    static const struct structure nothing = {.window_level = -1};
    const struct probe_spec warm_up = campaign_warm_up(WARM_UP_US, 1);
    struct observation_set set = {.count = 0};
    struct probe_spec *const spec = malloc(sizeof *spec);
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t probes = 0;

    if (!spec || sim_open(text, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    ask(gpu, &set, &warm_up);
    for (; probes < MOST_PROBES && missing(&set, spec) > 0; probes++)
        ask(gpu, &set, spec);
    if (probes == MOST_PROBES)
        fail_msg("%s: asks again and again", text);
    fingerprint_init(out);
    out->gpu = set.gpu;
    banks_derive(&set, out);
    clusters_derive(&set, out);
    parallel_derive(&set, &nothing, out);
    if (fingerprint_check(out, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    observation_set_free(&set);
    gpu_close(gpu);
    free(spec);
}

static struct rng seeded(uint32_t *out_cases)
{
    const char *const given = getenv("REACH_SEED");
    const char *const count = getenv("REACH_CASES");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

    *out_cases =
        count ? (uint32_t)strtoul(count, NULL, 0) : (uint32_t)test_share(CASES, SANITIZED_CASES);
    printf("# REACH_SEED=%llu REACH_CASES=%u\n", (unsigned long long)seed, *out_cases);
    right = not_sure = 0;
    return (struct rng){.state = seed};
}

static void judge(uint32_t cases)
{
    printf("# %u right, %u not sure, 0 wrong\n", right, not_sure);
    assert_true(right > cases / 2);
}

/* ---- the paper ---- */

static void the_papers_shared_memory_is_found(void **state)
{
    static const struct {
        const char *profile;
        double latency, gbps, ghz;
        uint32_t bank_bytes, needed;
    } chips[] = {{"gtx560ti", 50, 34.90, 0.950, 4, 50},
                 {"gtx780", 47, 83.81, 1.006, 8, 94},
                 {"gtx980", 28, 137.41, 1.279, 4, 28}};

    (void)state;
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        struct fingerprint fp;
        measure(chips[i].profile, &fp);
        assert_int_equal(fp.shared.banks.v, 32);
        assert_int_equal(fp.shared.bank_bytes.v, chips[i].bank_bytes);
        assert_true(fabs(fp.shared.widths[0].latency_cycles.v - chips[i].latency) < 0.2);
        assert_true(fabs(fp.shared.widths[0].bytes_per_cycle.v * chips[i].ghz / chips[i].gbps - 1) <
                    0.01);
        assert_int_equal(fp.shared.widths[0].loads_needed.v, chips[i].needed);
        /* No GPU of the paper has clusters. */
        assert_int_equal(fp.clusters.largest.reason, REASON_NOT_SUPPORTED);
    }
}

/* Section 6.1: 47 cycles and two loads of a warp per cycle need 94 warps, and an SM of the GTX780
 * has 64. So one load of each warp is not enough, and two loads are enough. */
static void little_needs_more_warps_than_there_are(void **state)
{
    struct fingerprint fp;

    (void)state;
    measure("gtx780", &fp);
    const double peak = (double)fp.shared.banks.v * fp.shared.bank_bytes.v;
    const double loads = little_loads(fp.shared.widths[0].latency_cycles.v, peak, 128);
    assert_int_equal(lround(little_loads(47, 256, 128)), 94);
    assert_int_equal(lround(loads), 94);
    assert_true(loads > 64 && loads < 128);
}

/* With a stride of two words, half of the 4-byte banks serve two lanes each, and the 8-byte banks
 * serve one lane each. With a stride of 32, one 4-byte bank serves all lanes, or one 8-byte bank
 * serves half of them. */
static void passes_are_those_of_the_paper(void **state)
{
    (void)state;
    for (uint32_t stride = 1; stride <= 64; stride++) {
        uint32_t a = stride;
        uint32_t b = 32;
        while (b > 0) {
            const uint32_t rest = a % b;
            a = b;
            b = rest;
        }
        assert_int_equal(banks_passes(32, 4, 4, stride * 4), a); /* gcd(stride, 32) */
    }
    assert_int_equal(banks_passes(32, 8, 4, 8), 1);
    assert_int_equal(banks_passes(32, 8, 4, 12), 2);
    assert_int_equal(banks_passes(32, 8, 4, 24), 1); /* figure 18 of the paper, for a stride of 6 */
    assert_int_equal(banks_passes(32, 8, 4, 128), 16);
    assert_int_equal(banks_passes(32, 4, 8, 8), 2);
    assert_int_equal(banks_passes(32, 4, 16, 16), 4);
    assert_int_equal(banks_passes(32, 4, 16, 512), 32);
}

/* The latency hides few passes, and the total speed of the banks limits many. The cycles are also
 * near to a line through the passes of 128 banks. */
static void limits_that_hide_each_other_are_not_sure(void **state)
{
    struct fingerprint fp;

    (void)state;
    measure("sms=12 memory=4G l1=16@2M/2 noise=none outliers=0.0000@500 seed=1632 "
            "shared=24,16x8+0.882,21.53,96K/48K",
            &fp);
    assert_int_equal(fp.shared.banks.known, MAYBE_UNKNOWN);
    assert_int_equal(fp.shared.banks.reason, REASON_IRREGULAR);
}

/* ---- random shared memory ---- */

static void random_banks_are_found(void **state)
{
    static const double WARP_BYTES = 128; /* cycles of a load of 4 bytes */
    static const char *const noises[] = {"none", "gauss:1.5", "gauss:5", "uniform:4"};
    static const uint32_t counts[] = {16, 32, 64};
    uint32_t cases;
    struct rng r = seeded(&cases);

    (void)state;
    for (uint32_t i = 0; i < cases; i++) {
        const uint32_t latency = 20 + (uint32_t)rng_below(&r, 100);
        const uint32_t banks = counts[rng_below(&r, 3)];
        const uint32_t length = 4u << rng_below(&r, 3);
        const double conflict = rng_below(&r, 5) == 0 ? 0 : 0.5 + 20 * rng_unit(&r);
        const double speed = 20 + rng_unit(&r) * 300;
        char text[TEXT_BYTES];
        struct fingerprint fp;
        snprintf(text, sizeof text,
                 "sms=%u memory=4G l1=16@2M/2 noise=%s outliers=%.4f@500 seed=%u "
                 "shared=%u,%ux%u+%.3f,%.2f,96K/48K",
                 1 + (uint32_t)rng_below(&r, 40), noises[rng_below(&r, 4)], rng_below(&r, 2) * 0.01,
                 1 + (uint32_t)rng_below(&r, 10000), latency, banks, length, conflict, speed);
        measure(text, &fp);
        const struct fingerprint_shared *const s = &fp.shared;
        if (IS_KNOWN(s->banks)) {
            if (s->banks.v != banks || s->bank_bytes.v != length || !(conflict > 0))
                fail_msg("%s: %u banks of %u bytes", text, s->banks.v, s->bank_bytes.v);
            /* If the total speed of the banks is the limit, a pass of the model takes the time that
             * follows from it. */
            const double slowest = fmax(conflict, WARP_BYTES / speed);
            const double found = s->widths[0].conflict_cycles.v;
            if (IS_KNOWN(s->widths[0].conflict_cycles) &&
                (found < 0.95 * conflict - 0.1 || found > 1.05 * slowest + 0.1))
                fail_msg("%s: %.2f cycles a pass", text, found);
            if (IS_KNOWN(s->widths[0].bytes_per_cycle) &&
                s->widths[0].bytes_per_cycle.v > 1.03 * speed)
                fail_msg("%s: %.2f bytes a cycle", text, s->widths[0].bytes_per_cycle.v);
            right++;
        } else {
            not_sure++;
        }
    }
    judge(cases);
}

/* ---- random clusters ---- */

/* Assigns pairs of SMs to random GPCs, so that each GPC has an even number of SMs. Appends the GPCs
 * to the text. */
static void random_gpcs(struct rng *r, uint32_t sms, uint32_t gpcs, uint16_t *gpc_of, char *text)
{
    char *at = text;

    for (uint32_t sm = 0; sm < sms; sm += 2)
        gpc_of[sm] = gpc_of[sm + 1] =
            sm / 2 < gpcs ? (uint16_t)(sm / 2) : (uint16_t)rng_below(r, gpcs);
    for (uint32_t g = 0; g < gpcs; g++) {
        const char *comma = g > 0 ? ":" : "";
        for (uint32_t sm = 0; sm < sms; sm++) {
            if (gpc_of[sm] != g)
                continue;
            at += sprintf(at, "%s%u", comma, sm);
            comma = ",";
        }
    }
}

static void random_gpcs_are_found(void **state)
{
    uint32_t cases;
    struct rng r = seeded(&cases);

    (void)state;
    for (uint32_t i = 0; i < cases; i++) {
        const uint32_t gpcs = 1 + (uint32_t)rng_below(&r, 8);
        const uint32_t sms = 2 * (gpcs + (uint32_t)rng_below(&r, gpcs * 8 + 1));
        const uint32_t largest = rng_below(&r, 4) ? 16 : 2 + (uint32_t)rng_below(&r, 7);
        const uint32_t latency = 150 + (uint32_t)rng_below(&r, 100);
        uint16_t gpc_of[REACH_MAX_SMS];
        char map[TEXT_BYTES / 2];
        char text[TEXT_BYTES];
        struct fingerprint fp;
        random_gpcs(&r, sms, gpcs, gpc_of, map);
        snprintf(text, sizeof text,
                 "sms=%u memory=4G l1=16@2M/2 noise=gauss:3 seed=%u shared=29,32x4+2,128,96K/48K "
                 "clusters=%u,%u/33,15 gpc=%s",
                 sms, 1 + (uint32_t)rng_below(&r, 10000), largest, latency, map);
        measure(text, &fp);
        const struct fingerprint_clusters *const c = &fp.clusters;
        assert_int_equal(c->largest.v, largest);
        for (uint32_t k = 0; k < c->size_count; k++)
            if (IS_KNOWN(c->sizes[k].latency_cycles) &&
                fabs(c->sizes[k].latency_cycles.v - latency) > 1)
                fail_msg("%s: clusters of %u: %.1f cycles", text, c->sizes[k].sms,
                         c->sizes[k].latency_cycles.v);
        if (!IS_KNOWN(c->gpcs)) {
            not_sure++;
            continue;
        }
        for (uint32_t sm = 0; sm < sms; sm++)
            if (c->gpc_of_sm.group_of_sm[sm] != gpc_of[sm])
                fail_msg("%s: SM %u in GPC %u", text, sm, c->gpc_of_sm.group_of_sm[sm]);
        right++;
    }
    judge(cases);
}

/* ---- random memory ---- */

struct memory {
    uint32_t sms;
    double plateau, sm_gbps, ns;
};

/* Returns the read rate of the model with this number of SMs and of loads in flight. */
static double model_gbps(const struct memory *m, uint32_t sms, double loads)
{
    const double own = fmin(m->sm_gbps, m->plateau / sms);
    const double most = loads * 128 / m->ns;
    return sms * own * most / hypot(own, most);
}

/* Returns whether the probe `enough` reaches 95 % of `plateau`, and the probe `fewer` does not. The
 * tolerance is the noise, one percent. */
static bool is_border(double plateau, double enough, double fewer)
{
    return enough / plateau > 0.94 && fewer / plateau < 0.96;
}

static void random_parallelism_is_found(void **state)
{
    uint32_t cases;
    struct rng r = seeded(&cases);

    (void)state;
    for (uint32_t i = 0; i < cases; i++) {
        struct memory m = {.sms = 2 + (uint32_t)rng_below(&r, 140),
                           .plateau = 500 + 4000 * rng_unit(&r),
                           .ns = 200 + 800 * rng_unit(&r)};
        char text[TEXT_BYTES];
        struct fingerprint fp;
        m.sm_gbps = m.plateau / m.sms * (0.8 + 2 * rng_unit(&r));
        snprintf(text, sizeof text,
                 "sms=%u memory=64G l1=16@16M/sm seed=%u plateau=%.2f sm_gbps=%.3f memory_ns=%.1f "
                 "read_noise=0.003",
                 m.sms, 1 + (uint32_t)rng_below(&r, 10000), m.plateau, m.sm_gbps, m.ns);
        measure(text, &fp);
        const struct fingerprint_parallelism *const p = &fp.parallelism;
        const double plateau = model_gbps(&m, m.sms, 1024);
        double best = 0;
        for (uint32_t k = 0; k < p->by_sms_count; k++)
            best = fmax(best, model_gbps(&m, p->by_sms[k].sms, 1024));
        if (IS_KNOWN(p->loads_enough) &&
            !is_border(plateau, model_gbps(&m, m.sms, p->loads_enough.v),
                       model_gbps(&m, m.sms, p->loads_short.v)))
            fail_msg("%s: %u loads are enough, %u not", text, p->loads_enough.v, p->loads_short.v);
        if (IS_KNOWN(p->sms_enough) && !is_border(best, model_gbps(&m, p->sms_enough.v, 1024),
                                                  model_gbps(&m, p->sms_short.v, 1024)))
            fail_msg("%s: %u SMs are enough, %u not", text, p->sms_enough.v, p->sms_short.v);
        const double alone = 4 * m.sms * 128 / model_gbps(&m, m.sms, 4);
        if (IS_KNOWN(p->latency_ns) && fabs(p->latency_ns.v / alone - 1) > 0.02)
            fail_msg("%s: %.1f ns", text, p->latency_ns.v);
        if (IS_KNOWN(p->loads_enough) && IS_KNOWN(p->sms_enough))
            right++;
        else
            not_sure++;
    }
    judge(cases);
}

/* ---- properties that do not exist ---- */

static void nothing_in_flight_matters_is_not_observable(void **state)
{
    struct fingerprint fp;

    (void)state;
    measure("sms=8 memory=64G l1=16@16M/sm plateau=1000 read_noise=0.001", &fp);
    assert_int_equal(fp.parallelism.loads_enough.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(fp.parallelism.loads_enough.reason, REASON_NO_CONTRAST);
    /* Each SM reads a quarter of its memory. */
    assert_int_equal(fp.parallelism.sms_enough.v, 4);
    assert_int_equal(fp.parallelism.sms_short.v, 3);
    /* This source does not report shared memory or clusters. */
    assert_int_equal(fp.shared.banks.reason, REASON_NOT_MEASURED);
    assert_int_equal(fp.clusters.largest.reason, REASON_NOT_MEASURED);
}

/* If a cluster can only be a pair, the two SMs of a pair are the only SMs that are known to share a
 * GPC. */
static void pairs_do_not_tell_gpcs(void **state)
{
    struct fingerprint fp;

    (void)state;
    measure("sms=8 memory=4G l1=16@2M/2 shared=29,32x4+2,128,96K/48K clusters=2,200/33,15", &fp);
    assert_int_equal(fp.clusters.sizes[0].usable_sms.v, 8);
    assert_int_equal(fp.clusters.gpcs.known, MAYBE_UNKNOWN);
    assert_int_equal(fp.clusters.gpcs.reason, REASON_NO_CONTRAST);
    assert_int_equal(fp.clusters.gpc_of_sm.group_count, 0);
}

static void memory_that_never_saturates_is_not_sure(void **state)
{
    struct fingerprint fp;

    (void)state;
    measure("sms=8 memory=64G l1=16@16M/sm plateau=100000 sm_gbps=20000 memory_ns=1000", &fp);
    assert_int_equal(fp.parallelism.loads_enough.known, MAYBE_UNKNOWN);
    assert_int_equal(fp.parallelism.loads_enough.reason, REASON_TOO_LITTLE_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_papers_shared_memory_is_found),
        cmocka_unit_test(little_needs_more_warps_than_there_are),
        cmocka_unit_test(passes_are_those_of_the_paper),
        cmocka_unit_test(limits_that_hide_each_other_are_not_sure),
        cmocka_unit_test(random_banks_are_found),
        cmocka_unit_test(random_gpcs_are_found),
        cmocka_unit_test(random_parallelism_is_found),
        cmocka_unit_test(nothing_in_flight_matters_is_not_observable),
        cmocka_unit_test(pairs_do_not_tell_gpcs),
        cmocka_unit_test(memory_that_never_saturates_is_not_sure),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
