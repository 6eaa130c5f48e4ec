/* test_knee.c: memory and translation of a GPU overlap. If both take nearly the same time, random
 * accesses take as long as the larger of the two times. The test checks this on every fingerprint
 * of docs/measurements. The cost of a miss is taken from the largest region of the curve, so this
 * region is not checked. */
#include "types/access.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_read.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <jansson.h>
#include <math.h>

/* The smaller time is at least this share of the larger one. The sixth root of the sum of their
 * sixth powers is at least 2.7 % above the larger time. */
static const double NEAR = 0.75;
static const double LESS = 0.02, MORE = 0.01;

struct knee {
    uint32_t chips, points;
    double least, most; /* measured time divided by the larger of the two times */
};

static bool load(const char *path, struct fingerprint *out)
{
    struct err err = {0};
    json_t *const json = json_load_file(path, 0, NULL);

    if (!json || fingerprint_from_json(json, out, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    json_decref(json);
    return IS_KNOWN(out->windows.reach_bytes) && out->throughput.curve_count > 0;
}

static double miss_share(const struct fingerprint *fp, uint64_t region_bytes)
{
    return 1 - (double)fp->windows.reach_bytes.v / (double)region_bytes;
}

/* Checks one measured region, read with accesses of `bytes` each. */
static void judge(const struct fingerprint *fp, double miss_ns, uint32_t bytes,
                  struct maybe_f64 plateau_gbps, const struct curve_point *p, struct knee *knee)
{
    const double translation = miss_ns * miss_share(fp, p->region_bytes);

    if (!IS_KNOWN(plateau_gbps) || !IS_KNOWN(p->naive_gbps) || !(translation > 0))
        return;
    const double memory = bytes / plateau_gbps.v;
    const double larger = fmax(memory, translation);
    const double times = bytes / p->naive_gbps.v / larger;
    if (fmin(memory, translation) < NEAR * larger)
        return;
    knee->points++;
    knee->least = fmin(knee->least, times);
    knee->most = fmax(knee->most, times);
}

static void judge_chip(const struct fingerprint *fp, struct knee *knee)
{
    const struct throughput *t = &fp->throughput;
    const struct curve_point *largest = &t->curve[t->curve_count - 1];
    const uint32_t before = knee->points;

    if (!IS_KNOWN(largest->naive_gbps) || !(miss_share(fp, largest->region_bytes) > 0))
        return;
    const double miss_ns =
        FINGERPRINT_CURVE_BYTES / largest->naive_gbps.v / miss_share(fp, largest->region_bytes);
    for (uint32_t i = 0; i + 1 < t->curve_count; i++)
        judge(fp, miss_ns, FINGERPRINT_CURVE_BYTES, t->plateau_gbps, &t->curve[i], knee);
    for (uint32_t r = 0; r < t->rate_count; r++)
        for (uint32_t i = 0; i < t->rates[r].point_count; i++)
            judge(fp, miss_ns, t->rates[r].transaction_bytes, t->rates[r].plateau_gbps,
                  &t->rates[r].points[i], knee);
    knee->chips += knee->points > before;
}

static void the_larger_alone_costs(void **state)
{
    static struct fingerprint fp;
    struct knee knee = {.least = HUGE_VAL};
    glob_t files;

    (void)state;
    assert_int_equal(glob("docs/measurements/nvidia-*/fingerprint-full.json", 0, NULL, &files), 0);
    assert_int_equal(
        glob("docs/measurements/nvidia-*/fingerprint-memory.json", GLOB_APPEND, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        if (load(files.gl_pathv[i], &fp))
            judge_chip(&fp, &knee);
    }
    globfree(&files);
    print_message("%u points of %u chips: %.1f to %+.1f %% of the larger\n", knee.points,
                  knee.chips, 100 * (knee.least - 1), 100 * (knee.most - 1));
    assert_true(knee.points > 0);
    assert_true(knee.least > 1 - LESS);
    assert_true(knee.most < 1 + MORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_larger_alone_costs)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
