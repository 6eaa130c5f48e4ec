/* test_caches.c: the data caches of simulated GPUs. What tables 2 to 6 of Mei and Chu 2016 say of
 * the GTX560Ti, GTX780 and GTX980 is found without being told; of random hierarchies, what is
 * reported is right or not reported.
 *
 * REACH_CASES=n: GPUs (300, fewer under a sanitizer). REACH_SEED repeats a run. REACH_SHOW=1 prints
 * what was found.
 */
#include "analysis/caches/hierarchy.h"
#include "analysis/disturbance.h"
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

enum { CASES = 300, SANITIZED_CASES = 20, MOST_PROBES = 200, WARM_UP_US = 100 };

/* As the daemon does: what is disturbed is made again. */
static void ask(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec)
{
    struct observation o = {.spec = *spec};
    struct err err = {0};

    if (probe_check(spec, &set->limits, &err) != STATUS_OK ||
        gpu_run(gpu, &o.spec, &o.result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    disturbance_classify(&o, &o.assessment);
    if (observation_set_add(set, &o, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void show(const struct hierarchy_estimate *e)
{
    if (!getenv("REACH_SHOW"))
        return;
    for (uint32_t k = 0; k < CACHE_KIND_COUNT; k++) {
        const struct cache_facts *const c = &e->caches[k];
        printf("# %-9s size %llu (%s) line %llu sector %llu fill %llu sets %u (%s) ways %u %s "
               "latency %.0f, miss %.0f, as L1: %s %s\n",
               cache_kind_name(c->kind), (unsigned long long)c->size_bytes.v,
               reason_slug(c->size_bytes.reason), (unsigned long long)c->line_bytes.v,
               (unsigned long long)c->sector_bytes.v, (unsigned long long)c->fill_bytes.v,
               c->sets.v, reason_slug(c->sets.reason), c->ways.v, replacement_name(c->replacement),
               c->latency_cycles.v, c->miss_latency_cycles.v, finding_name(c->same_as_l1),
               c->trace);
        for (uint32_t i = 0; i < c->carveout_count; i++)
            printf("#   with %llu of shared memory: %llu\n",
                   (unsigned long long)c->carveouts[i].shared_bytes,
                   (unsigned long long)c->carveouts[i].size_bytes.v);
    }
    printf("# memory: P1 %.0f P4 %.0f P5 %.0f near %.0f far %.0f tail %.0f of %.3f\n",
           e->latency.p1_cycles.v, e->latency.p4_cycles.v, e->latency.p5_cycles.v,
           e->latency.near_cycles.v, e->latency.far_cycles.v, e->latency.tail_cycles.v,
           e->latency.tail_share.v);
}

static void measure(const char *text, struct hierarchy_estimate *out)
{
    const struct probe_spec warm_up = campaign_warm_up(WARM_UP_US, 1);
    struct observation_set set = {.count = 0};
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t probes = 0;
    size_t values = 0;

    if (sim_open(text, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    ask(gpu, &set, &warm_up);
    for (hierarchy_estimate(&set, out); out->walks.ask_count > 0 && probes < MOST_PROBES;
         hierarchy_estimate(&set, out)) {
        for (uint32_t i = 0; i < out->walks.ask_count; i++, probes++)
            ask(gpu, &set, &out->walks.asks[i]);
    }
    for (size_t i = 0; i < set.count; i++)
        values += set.items[i].result.value_count;
    if (getenv("REACH_SHOW"))
        printf("# %.160s\n# %u probes, %zu values\n", text, probes, values);
    show(out);
    if (out->walks.ask_count > 0)
        fail_msg("%s: asks again and again", text);
    observation_set_free(&set);
    gpu_close(gpu);
}

static void expect(const struct cache_facts *c, uint64_t size, uint64_t line, uint64_t sector,
                   uint32_t sets, uint32_t ways, enum replacement replacement)
{
    assert_true(IS_KNOWN(c->size_bytes) && IS_KNOWN(c->sets));
    assert_int_equal(c->size_bytes.v, size);
    assert_int_equal(c->line_bytes.v, line);
    assert_int_equal(c->sector_bytes.v, sector);
    assert_int_equal(c->sets.v, sets);
    assert_int_equal(c->ways.v, ways);
    assert_int_equal(c->replacement, replacement);
}

static void expect_l2(const struct cache_facts *c, uint64_t size)
{
    assert_int_equal(c->size_bytes.v, size);
    assert_int_equal(c->fill_bytes.v, 32);
}

static void gtx560ti(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure("gtx560ti", &e);
    expect(&e.caches[CACHE_L1], 16 * KIB, 128, 128, 32, 4, REPLACEMENT_NOT_LRU);
    assert_non_null(strchr(e.caches[CACHE_L1].trace, 'H'));
    assert_non_null(strchr(e.caches[CACHE_L1].trace, 'M'));
    expect(&e.caches[CACHE_READ_ONLY], 12 * KIB, 32, 32, 4, 96, REPLACEMENT_LRU);
    assert_int_equal(e.caches[CACHE_READ_ONLY].same_as_l1, FINDING_NO);
    expect_l2(&e.caches[CACHE_L2], 512 * KIB);
}

static void gtx780(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure("gtx780", &e);
    assert_int_equal(e.caches[CACHE_L1].size_bytes.known, MAYBE_NOT_OBSERVABLE);
    expect(&e.caches[CACHE_READ_ONLY], 12 * KIB, 32, 32, 4, 96, REPLACEMENT_LRU);
    expect_l2(&e.caches[CACHE_L2], 1536 * KIB);
}

static void gtx980(void **state)
{
    struct hierarchy_estimate e;

    (void)state;
    measure("gtx980", &e);
    expect(&e.caches[CACHE_L1], 24 * KIB, 32, 32, 4, 192, REPLACEMENT_LRU);
    expect(&e.caches[CACHE_READ_ONLY], 24 * KIB, 32, 32, 4, 192, REPLACEMENT_LRU);
    assert_int_equal(e.caches[CACHE_READ_ONLY].same_as_l1, FINDING_YES);
    expect_l2(&e.caches[CACHE_L2], 2048 * KIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gtx560ti),
        cmocka_unit_test(gtx780),
        cmocka_unit_test(gtx980),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
