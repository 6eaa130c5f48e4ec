/* test_carveouts.c: the L1 size beside other amounts of shared memory, compared with reads of
 * working sets that stayed in the L1 (analysis/caches/cache_carveouts.h). */
#include "analysis/caches/cache_carveouts.h"
#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

enum { SMS = 132 };

static struct fingerprint fp;

/* Random reads of 128 bytes on an H200 (2026-11-24). A row has the size of the working set in KiB,
 * and two throughputs in GB/s. The first is for the same set in all SMs, the second for a set for
 * each SM. 0 means not measured. */
static const double h200[][3] = {{64, 24334, 0},       {96, 24353, 0},       {128, 19563, 0},
                                 {512, 15621, 0},      {1024, 13846, 24331}, {4096, 10732, 24331},
                                 {8192, 10095, 24331}, {12288, 9912, 24330}, {16384, 9805, 20690},
                                 {24576, 9721, 15322}};

static struct maybe_f64 measured(double gbps)
{
    return gbps > 0 ? (struct maybe_f64)KNOWN_F64(gbps)
                    : (struct maybe_f64)UNKNOWN_F64(REASON_NOT_MEASURED);
}

/* Makes a chip with these working sets. The walks found these sizes of L1 beside 64 and 132 KiB of
 * shared memory. */
static void chip_with(uint64_t beside_64, uint64_t beside_132)
{
    struct cache_facts *const l1 = &fp.caches[CACHE_L1];

    memset(&fp, 0, sizeof fp);
    fp.gpu.sm_count = SMS;
    fp.shared.sm_bytes = (struct maybe_u64)KNOWN_U64(228 * KIB);
    for (size_t i = 0; i < sizeof h200 / sizeof h200[0]; i++)
        fp.working_sets[fp.working_set_count++] =
            (struct working_set){.transaction_bytes = 128,
                                 .set_bytes = (uint64_t)h200[i][0] * KIB,
                                 .same_gbps = measured(h200[i][1]),
                                 .own_gbps = measured(h200[i][2])};
    fp.cache_count = CACHE_KIND_COUNT;
    l1->carveout_count = 2;
    l1->carveouts[0] = (struct cache_carveout){.shared_bytes = 64 * KIB,
                                               .size_bytes = UNKNOWN_U64(REASON_IRREGULAR),
                                               .fits_bytes = KNOWN_U64(beside_64)};
    l1->carveouts[1] = (struct cache_carveout){.shared_bytes = 132 * KIB,
                                               .size_bytes = UNKNOWN_U64(REASON_IRREGULAR),
                                               .fits_bytes = KNOWN_U64(beside_132)};
}

static bool is_believed(void)
{
    const struct cache_carveout *const c = fp.caches[CACHE_L1].carveouts;

    cache_carveouts_check(&fp);
    assert_int_equal(IS_KNOWN(c[0].fits_bytes), IS_KNOWN(c[1].fits_bytes));
    assert_int_equal(c[0].shared_bytes, 64 * KIB);
    if (!IS_KNOWN(c[0].fits_bytes))
        assert_int_equal(c[0].fits_bytes.reason, REASON_DISAGREEMENT);
    return IS_KNOWN(c[0].fits_bytes);
}

/* A working set of 96 KiB per SM stays in L1 while the kernel uses 115 KiB of shared memory. */
static void what_reads_kept_must_be_there(void **state)
{
    (void)state;
    chip_with(186 * KIB, 120 * KIB);
    assert_true(is_believed());
    chip_with(108 * KIB,
              18 * KIB); /* sizes of walks on two H200s that got less L1 than requested */
    assert_false(is_believed());
}

/* An L2, not an L1, limits these curves: for shared and for own sets they bend at the same total of
 * bytes. */
static void what_an_l2_kept_says_nothing(void **state)
{
    (void)state;
    chip_with(108 * KIB, 18 * KIB);
    for (uint32_t i = 0; i < fp.working_set_count; i++)
        fp.working_sets[i].same_gbps = fp.working_sets[i].own_gbps;
    assert_true(is_believed());
}

static void what_is_missing_says_nothing(void **state)
{
    (void)state;
    chip_with(108 * KIB, 18 * KIB);
    fp.working_set_count = 0;
    assert_true(is_believed());
    chip_with(108 * KIB, 18 * KIB);
    fp.shared.sm_bytes = (struct maybe_u64)UNKNOWN_U64(REASON_NOT_MEASURED);
    assert_true(is_believed());
    chip_with(108 * KIB, 18 * KIB);
    fp.shared.sm_bytes.v =
        2 * 228 * KIB; /* the SM has more shared memory than the kernel of any set uses */
    assert_true(is_believed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_reads_kept_must_be_there),
        cmocka_unit_test(what_an_l2_kept_says_nothing),
        cmocka_unit_test(what_is_missing_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
