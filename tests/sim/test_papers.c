/* test_papers.c: compares the planner with Karnagel et al., Big Data Causing Big (TLB) Problems,
 * DaMoN 2017, section 6.1 and figure 10. The job is random sampling on a K80 and a P100, with
 * scopes of 128 MB and of 2 GB. The fingerprints are derived from the simulated profiles, at depth
 * full.
 *
 * The job needs the cost of testing one position in each pass. The paper implies this cost: with
 * more than 8 passes the gain of 128 MB scopes is gone on the K80. So 8 tests take as long as one
 * access over 8 * 128 MB there. On the P100 a test is faster by the ratio of cores and clocks in
 * table 1: 3584 at 1480 MHz to 2496 at 875 MHz. No other number is set. Positions are computed, and
 * the paper's kernel may run on any SM, so work is not bound to SMs.
 */
#include "base/units.h"
#include "planner/strategy.h"
#include "planner/strategy_cost.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static const double K80_CORE_GHZ = 2496 * 0.875;
static const double P100_CORE_GHZ = 3584 * 1.480;

struct papers {
    struct fingerprint k80;
    struct fingerprint p100;
    double k80_scan_gps;
    double p100_scan_gps;
};

static struct papers papers;

static void begin(const struct fingerprint *fp, uint64_t bytes, double scan_gps,
                  struct job_request *job, struct costing *out)
{
    static struct strategy_answer sizes; /* static because the costing keeps a pointer to it */
    struct reach_limit limit;

    *job = (struct job_request){.bytes = bytes, .scan_gps = scan_gps, .no_sm_binding = true};
    assert_int_equal(reach_limit_read(fp, bytes, "fp", &limit, NULL), STATUS_OK);
    sizes = (struct strategy_answer){
        .layout = layout_single(bytes), .allocations = {{128, 128, BASIS_NONE}}, .item_bytes = 128};
    costing_begin(fp, job, &limit, &sizes, out);
}

/* Returns the gain of scopes of at most `scope` bytes over naive, as a factor. */
static double gain(const struct fingerprint *fp, uint64_t bytes, uint64_t scope, double scan_gps)
{
    struct job_request job;
    struct costing c;
    struct cost naive;
    struct scope_cost scopes;

    begin(fp, bytes, scan_gps, &job, &c);
    naive = cost_naive(&c);
    scopes = cost_scopes(&c, scope, fp->windows.entry_bytes.v);
    assert_true(naive.known && scopes.cost.known);
    return naive.ns / scopes.cost.ns;
}

static double naive_ns(const struct fingerprint *fp, uint64_t bytes)
{
    struct job_request job;
    struct costing c;

    begin(fp, bytes, 0, &job, &c);
    return cost_naive(&c).ns;
}

static int measure(void **state)
{
    struct sim_measure m;

    (void)state;
    assert_int_equal(sim_measure("k80", DEPTH_FULL, NULL, NULL, &m), STATUS_OK);
    papers.k80 = m.fp;
    sim_measure_free(&m);
    assert_int_equal(sim_measure("p100", DEPTH_FULL, NULL, NULL, &m), STATUS_OK);
    papers.p100 = m.fp;
    sim_measure_free(&m);
    papers.k80_scan_gps = 8 / naive_ns(&papers.k80, 8 * 128 * MIB);
    papers.p100_scan_gps = papers.k80_scan_gps * P100_CORE_GHZ / K80_CORE_GHZ;
    return 0;
}

#define SCOPE_128M (128 * MIB)
#define GAIN       1.03

/* Section 2.1 has the slowdowns that scopes should undo: 4.3 on the P100, and 13.3 on the K80. The
 * slowdown of the K80 is relative to 2 GB, because only then can scopes of 2 GB gain a factor of 13
 * (section 6.1).
 */
static void test_slowdowns(void **state)
{
    (void)state;
    assert_in_range(10 * naive_ns(&papers.k80, 11468 * MIB) / naive_ns(&papers.k80, 2 * GIB), 120,
                    145);
    assert_in_range(10 * naive_ns(&papers.p100, 16 * GIB) / naive_ns(&papers.p100, GIB), 39, 47);
}

/* "A minor improvement is seen for data sizes between 130MB and 1GB [...] with more than 8 passes,
 * the speedup disappears [...] For larger data sizes (>2.5GB), there is a small speedup again". */
static void test_k80_128m(void **state)
{
    static const uint64_t better[] = {600, 768, 896, 2560, 3072, 4096, 6144, 8192, 11468};
    static const uint64_t worse[] = {132, 200, 1100, 1280, 1536, 2000, 2100, 2200, 2300};

    (void)state;
    for (size_t i = 0; i < sizeof(better) / sizeof(*better); i++) {
        double g = gain(&papers.k80, better[i] * MIB, SCOPE_128M, papers.k80_scan_gps);
        if (g < GAIN)
            fail_msg("%llu MiB: %.3f", (unsigned long long)better[i], g);
    }
    for (size_t i = 0; i < sizeof(worse) / sizeof(*worse); i++) {
        double g = gain(&papers.k80, worse[i] * MIB, SCOPE_128M, papers.k80_scan_gps);
        if (g > GAIN)
            fail_msg("%llu MiB: %.3f", (unsigned long long)worse[i], g);
    }
    /* Up to 1 GB the gain is small, and scopes never lose more than the tolerance of predictions.
     */
    for (uint64_t mib = 132; mib <= 1024; mib += 4) {
        double g = gain(&papers.k80, mib * MIB, SCOPE_128M, papers.k80_scan_gps);
        assert_true(g > 0.97 && g < 2);
    }
}

/* "2GB scopes only avoid L3 TLB misses [...] The final speedup is 13x." */
static void test_k80_2g(void **state)
{
    const uint64_t scope = 2062 * MIB; /* the reach of L3 less one entry */

    (void)state;
    for (uint64_t mib = 2304; mib <= 11468; mib += 100) {
        double with = gain(&papers.k80, mib * MIB, scope, papers.k80_scan_gps);
        assert_true(with > GAIN);
        assert_true(with > gain(&papers.k80, mib * MIB, SCOPE_128M, papers.k80_scan_gps));
    }
    assert_in_range(10 * gain(&papers.k80, 11468 * MIB, scope, papers.k80_scan_gps), 115, 145);
}

/* "128MB TLB scopes are not beneficial". For scopes of 2 GB, "a speedup of 2x can be achieved for
 * accesses of 16GB". */
static void test_p100(void **state)
{
    const uint64_t scope = 2048 * MIB; /* the reach of L2 less one entry */
    double last;

    (void)state;
    for (uint64_t mib = 132; mib <= 16384; mib += 4)
        assert_true(gain(&papers.p100, mib * MIB, SCOPE_128M, papers.p100_scan_gps) < GAIN);
    for (uint64_t mib = 3072; mib <= 16384; mib += 64)
        assert_true(gain(&papers.p100, mib * MIB, scope, papers.p100_scan_gps) > GAIN);
    last = gain(&papers.p100, 16384 * MIB, scope, papers.p100_scan_gps);
    assert_true(last > 1.7 && last < 3);
}

/* Checks the recommendation of the planner, which does not contain any of these sizes. */
static void expect(const struct fingerprint *fp, uint64_t mib, double scan_gps,
                   enum strategy strategy, uint64_t least, uint64_t most)
{
    static struct strategy_answer a;
    const struct job_request job = {
        .bytes = mib * MIB, .scan_gps = scan_gps, .no_sm_binding = true, .fingerprint_id = "fp"};

    assert_int_equal(strategy_plan(fp, &job, &a, NULL), STATUS_OK);
    if (a.options[0].strategy != strategy)
        fail_msg("%llu MiB: %s", (unsigned long long)mib, a.reason);
    assert_true(a.options[0].scope_bytes >= least * MIB);
    assert_true(a.options[0].scope_bytes <= most * MIB);
}

static void test_choices(void **state)
{
    const double k80 = papers.k80_scan_gps;
    const double p100 = papers.p100_scan_gps;

    (void)state;
    expect(&papers.k80, 64, k80, STRATEGY_NAIVE, 0, 0);
    expect(&papers.k80, 768, k80, STRATEGY_SCOPES, 64, 128);
    expect(&papers.k80, 1536, k80, STRATEGY_NAIVE, 0, 0);
    expect(&papers.k80, 2048, k80, STRATEGY_NAIVE, 0, 0);
    for (uint64_t mib = 2400; mib <= 11468; mib += 100)
        expect(&papers.k80, mib, k80, STRATEGY_SCOPES, 1024, 2062);
    for (uint64_t mib = 64; mib <= 2048; mib += 64)
        expect(&papers.p100, mib, p100, STRATEGY_NAIVE, 0, 0);
    for (uint64_t mib = 3072; mib <= 16384; mib += 256)
        expect(&papers.p100, mib, p100, STRATEGY_SCOPES, 1024, 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slowdowns), cmocka_unit_test(test_k80_128m),
        cmocka_unit_test(test_k80_2g),    cmocka_unit_test(test_p100),
        cmocka_unit_test(test_choices),
    };
    return cmocka_run_group_tests(tests, measure, NULL);
}
