/* test_ranges.c: ranges, their search, and scopes (clients/cuda/reach_ranges.h). TEST_SEED repeats
 * the random cases. */
#include "clients/c/reach.h" /* a job may include both */
#include "clients/cuda/reach_ranges.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

enum { CASES = 2000 };

static struct rng rng;

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Random ascending bounds, some equal; first[0] is 0 more often than not. */
static uint32_t random_bounds(uint64_t *first, uint64_t below)
{
    const uint32_t count = 1 + (uint32_t)rng_below(&rng, REACH_RANGE_MAX);

    for (uint32_t r = 0; r < count; r++)
        first[r] = rng_below(&rng, below);
    qsort(first, count, sizeof *first, compare);
    if (rng_below(&rng, 3))
        first[0] = 0;
    return count;
}

static uint32_t linear(const struct reach_ranges *ranges, uint64_t at)
{
    uint32_t range = 0;

    for (uint32_t r = 1; r < ranges->count; r++)
        range = at >= ranges->first[r] ? r : range;
    return range;
}

static void every_index_is_found_in_its_range(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const uint64_t below = rng_below(&rng, 2) ? 1000 : UINT64_MAX / 2;
        uint64_t bounds[REACH_RANGE_MAX], first[REACH_RANGE_MAX];
        struct reach_ranges ranges;
        const uint32_t count = random_bounds(bounds, below), bits = reach_search_bits(count);

        assert_true(1u << bits >= count && (bits == 0 || 1u << (bits - 1) < count));
        assert_true(reach_ranges_make(&ranges, bounds, count, 1));
        for (uint32_t r = 0; r < REACH_RANGE_MAX; r++)
            first[r] = r < count ? ranges.first[r] : UINT64_MAX;
        for (int k = 0; k < 50; k++) {
            const uint64_t at = k == 0   ? UINT64_MAX
                                : k < 20 ? bounds[rng_below(&rng, count)] - rng_below(&rng, 2)
                                         : rng_below(&rng, below);

            assert_int_equal(reach_range_of(first, bits, count, at), linear(&ranges, at));
        }
    }
}

static void a_row_belongs_where_its_first_byte_lies(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        uint64_t bounds[REACH_RANGE_MAX];
        struct reach_ranges ranges;
        const uint64_t row_bytes = 1 + rng_below(&rng, 300);
        const uint32_t count = random_bounds(bounds, 1ull << 40);

        assert_true(reach_ranges_make(&ranges, bounds, count, row_bytes));
        for (uint32_t r = 1; r < count; r++) {
            assert_true(ranges.first[r] * row_bytes >= bounds[r]);
            assert_true(ranges.first[r] == 0 || (ranges.first[r] - 1) * row_bytes < bounds[r]);
        }
    }
}

static void bounds_that_make_no_sense_are_refused(void **state)
{
    const uint64_t good[] = {0, 5, 5, 9}, descending[] = {0, 5, 4};
    struct reach_ranges ranges;

    (void)state;
    assert_true(reach_ranges_make(&ranges, good, 4, 2));
    assert_true(ranges.first[1] == 3 && ranges.first[3] == 5);
    assert_false(reach_ranges_make(&ranges, descending, 3, 1));
    assert_int_equal(ranges.count, 0);
    assert_false(reach_ranges_make(&ranges, good, 0, 1));
    assert_false(reach_ranges_make(&ranges, good, REACH_RANGE_MAX + 1, 1));
    assert_false(reach_ranges_make(&ranges, good, 4, 0));
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void check_cover(const struct reach_scope_list *scopes, const uint64_t *bytes,
                        uint64_t unit_bytes)
{
    for (uint32_t p = 0; p < scopes->parts; p++) {
        uint64_t end = 0;

        for (uint32_t s = 0; s < scopes->count; s++) {
            const struct reach_pass pass = reach_scope_pass(scopes, s);

            assert_true(pass.index == s && pass.of == scopes->count && pass.parts == scopes->parts);
            assert_true(pass.part[p].first == end && pass.part[p].end >= end);
            assert_true(end % unit_bytes == 0);
            end = pass.part[p].end;
        }
        assert_true(end == bytes[p]);
    }
}

static void scopes_cover_everything_once_and_are_few(void **state)
{
    static struct reach_scope_list scopes;

    (void)state;
    for (int i = 0; i < CASES / 4; i++) {
        const uint32_t parts = 1 + (uint32_t)rng_below(&rng, REACH_PART_MAX);
        const uint64_t unit_bytes = 1ull << rng_below(&rng, 22);
        const uint64_t scope_bytes = (1ull << 30) + rng_below(&rng, 1ull << 36);
        uint64_t bytes[REACH_PART_MAX], all = 0;

        for (uint32_t p = 0; p < parts; p++)
            all += bytes[p] = rng_below(&rng, 20ull << 30);
        const uint64_t fewest = all ? (all - 1) / scope_bytes + 1 : 1;

        assert_true(reach_scopes_cut(&scopes, parts, bytes, scope_bytes, unit_bytes));
        check_cover(&scopes, bytes, unit_bytes);
        assert_true(reach_scopes_longest(&scopes) <= scope_bytes);
        /* Rounding to units can cost scopes, but no more than it lengthens one. */
        assert_true(scopes.count >= fewest);
        assert_true(scopes.count <= (all - (all > 0)) / (scope_bytes - 2 * unit_bytes * parts) + 1);
    }
}

static void items_of_scopes_are_all_items_once(void **state)
{
    static struct reach_scope_list scopes;

    (void)state;
    for (int i = 0; i < CASES / 4; i++) {
        const uint64_t row_bytes = 1 + rng_below(&rng, 600), rows = rng_below(&rng, 1ull << 27);
        const uint64_t bytes = rows * row_bytes;
        uint64_t end = 0;

        assert_true(reach_scopes_cut(&scopes, 1, &bytes, 1 + bytes / (1 + rng_below(&rng, 9)), 1));
        for (uint32_t s = 0; s < scopes.count; s++) {
            const struct reach_pass pass = reach_scope_pass(&scopes, s);
            const struct reach_range items = reach_pass_items(&pass, 0, row_bytes);

            assert_true(items.first == end && items.end >= end);
            end = items.end;
            if (items.first == items.end)
                continue;
            assert_true(reach_in_range(items, items.first));
            assert_true(reach_in_range(items, items.end - 1) && !reach_in_range(items, items.end));
            assert_false(items.first > 0 && reach_in_range(items, items.first - 1));
        }
        assert_true(end == rows);
    }
}

static void impossible_scopes_are_refused(void **state)
{
    static struct reach_scope_list scopes;
    const uint64_t bytes[] = {100ull << 30, 1 << 20};

    (void)state;
    assert_false(reach_scopes_cut(&scopes, 1, bytes, 100 << 20, 1)); /* 1024 scopes */
    assert_int_equal(scopes.count, 0);
    assert_false(reach_scopes_cut(&scopes, 0, bytes, 1ull << 36, 1));
    assert_false(reach_scopes_cut(&scopes, REACH_PART_MAX + 1, bytes, 1ull << 36, 1));
    assert_false(reach_scopes_cut(&scopes, 1, bytes, 1ull << 36, 0));
    assert_true(reach_scopes_cut(&scopes, 2, bytes, 1ull << 36, 2 << 20));
    assert_int_equal(scopes.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_found_in_its_range),
        cmocka_unit_test(a_row_belongs_where_its_first_byte_lies),
        cmocka_unit_test(bounds_that_make_no_sense_are_refused),
        cmocka_unit_test(scopes_cover_everything_once_and_are_few),
        cmocka_unit_test(items_of_scopes_are_all_items_once),
        cmocka_unit_test(impossible_scopes_are_refused),
    };
    const char *given = getenv("TEST_SEED");

    rng.state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
