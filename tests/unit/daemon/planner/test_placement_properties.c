/* test_placement_properties.c: properties of every partition and every plan, on random
 * fingerprints. The seed is printed, and TEST_SEED repeats it. */
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "planner/windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- partition ---- */

static void test_partition_example(void **state)
{
    static const uint32_t sizes[] = {7, 7, 6, 6, 5, 5, 4, 4, 4};
    uint16_t window_of[9];
    uint32_t totals[3];

    (void)state;
    windows_assign(sizes, 9, 3, window_of, totals);
    assert_int_equal(totals[0], 16);
    assert_int_equal(totals[1], 16);
    assert_int_equal(totals[2], 16);
    assert_int_equal(window_of[0], 0);
}

/* Only a bug of the planner can make such a request. The request causes an error, and does not
 * abort the process. */
static void test_partition_out_of_range(void **state)
{
    static const uint32_t sizes[] = {7, 7};
    struct windows_request request = {.bytes = 1, .unit_bytes = 1, .limit_bytes = 1};
    uint16_t window_of[2];
    uint32_t totals[2];
    uint64_t lengths[2];

    (void)state;
    assert_false(windows_assign(sizes, 2, 0, window_of, totals));
    assert_false(windows_assign(sizes, 2, 3, window_of, totals));
    assert_false(windows_cut(&request, lengths).fits);
    request.windows = PLACEMENT_MAX_WINDOWS + 1;
    assert_false(windows_cut(&request, lengths).fits);
}

/* Returns the smallest possible difference between the sums of two parts, found by trying every
 * subset. */
static uint32_t best_split(const uint32_t *sizes, uint32_t count)
{
    uint32_t all = 0;
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++)
        all += sizes[i];
    for (uint32_t set = 1; set + 1 < 1u << count; set++) {
        uint32_t sum = 0;
        uint32_t gap;
        for (uint32_t i = 0; i < count; i++)
            sum += set >> i & 1 ? sizes[i] : 0;
        gap = 2 * sum > all ? 2 * sum - all : all - 2 * sum;
        if (gap < best)
            best = gap;
    }
    return best;
}

/* Chips have groups of two or three sizes. For two sizes, the answer is the best possible
 * partition. */
static void test_partition_against_all_subsets(void **state)
{
    struct rng rng = {.state = 20161};

    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t count = 2 + (uint32_t)rng_below(&rng, 9);
        uint32_t base = 2 + (uint32_t)rng_below(&rng, 17);
        uint32_t sizes[10];
        uint16_t window_of[10];
        uint32_t totals[2];
        uint32_t gap;
        for (uint32_t i = 0; i < count; i++)
            sizes[i] = base + 2 * (uint32_t)rng_below(&rng, 2);
        windows_assign(sizes, count, 2, window_of, totals);
        gap = totals[0] > totals[1] ? totals[0] - totals[1] : totals[1] - totals[0];
        assert_int_equal(gap, best_split(sizes, count));
    }
}

/* ---- properties over random fingerprints ---- */

static void random_fingerprint(struct rng *rng, struct fingerprint *fp)
{
    uint32_t sizes[64];
    uint32_t groups = 1 + (uint32_t)rng_below(rng, 64);
    uint32_t base = 1 + (uint32_t)rng_below(rng, 6);
    uint64_t entry = (uint64_t)1 << (12 + rng_below(rng, 14));

    placement_make_empty(fp);
    for (uint32_t g = 0; g < groups; g++)
        sizes[g] = base + (uint32_t)rng_below(rng, 3);
    placement_make_groups(fp, sizes, groups);
    placement_make_limits(fp, entry * (2 + rng_below(rng, 40000)), entry);
    if (rng_below(rng, 4) == 0) { /* the group of one SM is not certain */
        uint16_t sm = (uint16_t)rng_below(rng, fp->gpu.sm_count);
        uint16_t g = fp->topology.partition.group_of_sm[sm];
        if (fp->topology.groups[g].sm_count > 1) {
            fp->topology.groups[g].sm_count--;
            fp->topology.partition.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
        }
    }
}

static void random_request(struct rng *rng, const struct fingerprint *fp,
                           struct placement_request *r)
{
    uint64_t most = fp->windows.recommended_bytes.v * fp->topology.partition.group_count;

    *r = (struct placement_request){.bytes = 1 + rng_below(rng, most + most / 4)};
    if (rng_below(rng, 3) == 0)
        r->windows = (uint32_t)rng_below(rng, fp->topology.partition.group_count + 2);
    if (rng_below(rng, 3) == 0)
        r->granularity_bytes = 1 + rng_below(rng, 4 * fp->windows.entry_bytes.v);
}

static void check_answer(const struct fingerprint *fp, const struct placement_request *r,
                         const struct placement_answer *a)
{
    uint64_t limit = fp->windows.recommended_bytes.v;
    uint64_t needed = (r->bytes - 1) / limit + 1;

    assert_non_null(strstr(a->reason, a->fingerprint_id));
    assert_true(strlen(a->reason) < sizeof(a->reason) - 1);
    if (a->advice == ADVICE_NOT_ENOUGH_GROUPS) {
        assert_true(needed > fp->topology.partition.group_count);
        return;
    }
    if (r->windows != 0)
        assert_int_equal(a->window_count, r->windows);
    assert_true(a->window_count >= needed);
    if (a->advice == ADVICE_NOTHING_TO_DO) {
        assert_true(r->bytes <= limit);
        placement_check_cover(a, r->bytes);
        return;
    }
    placement_check_windows(fp, a, r->bytes,
                            windows_unit(fp->windows.entry_bytes.v, r->granularity_bytes, limit));
    placement_check_sms(fp, a);
    placement_check_balance(fp, a);
}

static void test_properties(void **state)
{
    static struct fingerprint fp;
    static struct placement_answer a, again;
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {.state = seed};
    int answered = 0;

    (void)state;
    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    for (int round = 0; round < 2000; round++) {
        struct placement_request r;
        struct err err = {.status = STATUS_OK};
        random_fingerprint(&rng, &fp);
        random_request(&rng, &fp, &r);
        if (placement_plan(&fp, &r, &a, &err) != STATUS_OK) {
            assert_int_equal(err.status, STATUS_INVALID_ARGUMENT);
            assert_true(r.windows != 0 || r.granularity_bytes != 0);
            continue;
        }
        answered++;
        check_answer(&fp, &r, &a);
        assert_int_equal(placement_plan(&fp, &r, &again, NULL), STATUS_OK);
        assert_memory_equal(&a, &again, sizeof(a));
    }
    assert_true(answered > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partition_example),
        cmocka_unit_test(test_partition_out_of_range),
        cmocka_unit_test(test_partition_against_all_subsets),
        cmocka_unit_test(test_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
