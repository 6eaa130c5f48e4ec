/* test_contiguity.c: the frame of random simulated GPUs, found by search, and the cost of a miss in
 * contiguous and in scattered memory. Each value must be right or not sure, never wrong. Frames
 * have 2 to 64 MiB, and the longest run that can be laid out is 32 MiB. A fifth of the GPUs have no
 * frame. REACH_CASES=n sets the number of GPUs (250, fewer under a sanitizer). REACH_SEED repeats a
 * run. */
#include "analysis/throughput/contiguity.h"
#include "base/rng.h"
#include "base/units.h"
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

enum { CASES = 250, SANITIZED_CASES = 60, MOST_PROBES = 20, LONGEST_MIB = 32 };

/* A prediction has a tolerance of a tenth. */
static const double TOLERANCE = 0.1;

struct chip {
    char text[256];
    uint64_t reach_bytes;
    uint64_t frame_bytes; /* 0: none */
    double factor;
    double miss_ns; /* read rate of the whole GPU */
};

static uint32_t right, not_sure;

static void random_chip(struct rng *r, struct chip *out)
{
    const uint32_t groups = 1 + (uint32_t)rng_below(r, 6);
    const uint64_t entry_mib = 2ULL << rng_below(r, 5);
    const uint32_t entries = 64 + (uint32_t)rng_below(r, 1000);
    const double miss_ns = 2 + 10 * rng_unit(r);
    /* Returns the rate of the walkers at a footprint of 1.25 times the reach, relative to the
     * plateau. */
    const double limited = 0.25 + 0.7 * rng_unit(r);
    char frame[64] = "";

    out->reach_bytes = entries * entry_mib * MIB;
    out->frame_bytes = rng_below(r, 5) ? 2 * MIB << rng_below(r, 6) : 0;
    out->factor = 1.3 + 2 * rng_unit(r);
    out->miss_ns = miss_ns / groups;
    if (out->frame_bytes > 0)
        snprintf(frame, sizeof frame, "frame=%lluM@%.3f",
                 (unsigned long long)(out->frame_bytes / MIB), out->factor);
    snprintf(
        out->text, sizeof out->text,
        "sms=%u memory=%lluM l1=%u@%lluM/4;miss_ns=%.3f plateau=%.1f read_noise=%.4f seed=%u %s",
        4 * groups, (unsigned long long)(out->reach_bytes / MIB * 4), entries,
        (unsigned long long)entry_mib, miss_ns, PROBE_LINE_BYTES / (out->miss_ns * 0.2) / limited,
        0.01 * rng_unit(r), 1 + (unsigned)rng_below(r, 1000), frame);
}

static void ask(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec)
{
    struct observation o = {.spec = *spec};
    struct err err = {0};

    if (probe_check(spec, &set->limits, &err) != STATUS_OK ||
        gpu_run(gpu, &o.spec, &o.result, &err) != STATUS_OK ||
        observation_set_add(set, &o, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

/* Measures the plateau, and then the probes that the search requests. */
static void measure(const struct chip *chip, struct contiguity_estimate *out)
{
    struct probe_spec curve = {.kind = PROBE_READ,
                               .point_count = 1,
                               .points = {chip->reach_bytes},
                               .repeats = 3,
                               .duration_us = 1000,
                               .window_count = 1,
                               .window_sms = REACH_MAX_SMS};
    struct observation_set set = {.count = 0};
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t n = 0;

    if (sim_open(chip->text, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", chip->text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    ask(gpu, &set, &curve);
    for (n = 0;; n++) {
        contiguity_estimate(&set, KNOWN_U64(chip->reach_bytes), out);
        if (!out->asks)
            break;
        assert_true(n < MOST_PROBES);
        ask(gpu, &set, &out->ask);
    }
    observation_set_free(&set);
    gpu_close(gpu);
}

static bool is_near(struct maybe_f64 number, double truth)
{
    return fabs(number.v / truth - 1) < TOLERANCE;
}

/* Known values must be true. A GPU counts as right if all its values are known. */
static void judge(const struct chip *chip, const struct fingerprint_contiguity *found)
{
    const bool matters = chip->frame_bytes > 2 * MIB; /* a frame of one granule is always whole */
    const double factor = matters ? chip->factor : 1;
    bool good = true;

    if (IS_KNOWN(found->frame_bytes))
        good = matters && chip->frame_bytes <= LONGEST_MIB * MIB &&
               found->frame_bytes.v == chip->frame_bytes;
    else if (found->frame_bytes.known == MAYBE_NOT_OBSERVABLE)
        good = !matters;
    if (IS_KNOWN(found->contiguous_miss_ns))
        good = good && is_near(found->contiguous_miss_ns, chip->miss_ns);
    if (IS_KNOWN(found->scattered_miss_ns))
        good = good && is_near(found->scattered_miss_ns, chip->miss_ns * factor);
    if (!good)
        fail_msg("%s: frame %llu (%s), contiguous %.4f of %.4f ns, scattered %.4f of %.4f",
                 chip->text, (unsigned long long)found->frame_bytes.v,
                 reason_slug(found->frame_bytes.reason), found->contiguous_miss_ns.v, chip->miss_ns,
                 found->scattered_miss_ns.v, chip->miss_ns * factor);
    if (IS_KNOWN(found->scattered_miss_ns))
        right++;
    else
        not_sure++;
}

static void random_frames_are_found(void **state)
{
    const char *const given = getenv("REACH_SEED");
    const char *const count = getenv("REACH_CASES");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    const uint32_t cases =
        count ? (uint32_t)strtoul(count, NULL, 0) : (uint32_t)test_share(CASES, SANITIZED_CASES);
    struct rng rng = {.state = seed};

    (void)state;
    printf("# REACH_SEED=%llu REACH_CASES=%u\n", (unsigned long long)seed, cases);
    for (uint32_t i = 0; i < cases; i++) {
        struct contiguity_estimate estimate;
        struct chip chip;
        random_chip(&rng, &chip);
        measure(&chip, &estimate);
        judge(&chip, &estimate.found);
    }
    printf("# %u right, %u not sure, 0 wrong\n", right, not_sure);
    assert_true(right > cases / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_frames_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
