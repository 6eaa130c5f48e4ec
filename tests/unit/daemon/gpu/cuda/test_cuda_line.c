/* test_cuda_line.c: the choice of the one line that all latency probes read. */
#include "gpu/cuda/cuda_probe.h"

#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static uint32_t cycles[CUDA_LINE_LAPS * CUDA_LINES];

/* A load of line `i` takes level[i] cycles, and up to jitter[i] cycles more. */
static void fill(const uint32_t *level, const uint32_t *jitter, uint64_t seed)
{
    struct rng rng = {seed};
    for (uint32_t lap = 0; lap < CUDA_LINE_LAPS; lap++) {
        for (uint32_t i = 0; i < CUDA_LINES; i++)
            cycles[lap * CUDA_LINES + i] = level[i] + (uint32_t)rng_below(&rng, jitter[i] + 1);
    }
}

static void of_equals_the_first(void **state)
{
    uint32_t level[CUDA_LINES], jitter[CUDA_LINES] = {0};
    (void)state;
    for (uint32_t i = 0; i < CUDA_LINES; i++)
        level[i] = 285;
    fill(level, jitter, 1);
    assert_int_equal(cuda_probe_choose_line(cycles), 0);
}

static void the_steadiest_low_one(void **state)
{
    uint32_t level[CUDA_LINES], jitter[CUDA_LINES];
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        const uint32_t best = (uint32_t)(seed * 7 % CUDA_LINES);
        for (uint32_t i = 0; i < CUDA_LINES; i++) {
            level[i] = 285;
            jitter[i] = 30;
        }
        jitter[best] = 3;
        level[(best + 1) % CUDA_LINES] = 330; /* this line has no jitter but is far from the SM */
        jitter[(best + 1) % CUDA_LINES] = 0;
        fill(level, jitter, seed);
        if (cuda_probe_choose_line(cycles) != best)
            fail_msg("seed %llu: line %u, not %u", (unsigned long long)seed,
                     cuda_probe_choose_line(cycles), best);
    }
}

/* A line is still chosen if one load in 32 takes very long. */
static void an_outlier_does_not_count(void **state)
{
    uint32_t level[CUDA_LINES], jitter[CUDA_LINES] = {0};
    (void)state;
    for (uint32_t i = 0; i < CUDA_LINES; i++)
        level[i] = 300;
    level[5] = 280;
    fill(level, jitter, 1);
    cycles[3 * CUDA_LINES + 5] = 5000;
    assert_int_equal(cuda_probe_choose_line(cycles), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_equals_the_first),
        cmocka_unit_test(the_steadiest_low_one),
        cmocka_unit_test(an_outlier_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
