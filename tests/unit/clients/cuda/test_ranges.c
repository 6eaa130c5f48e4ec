/* test_ranges.c: ranges, their search, and passes (clients/cuda/reach_ranges.h). TEST_SEED
 * repeats the random cases. */
#include "clients/c/reach.h" /* a job may include both of these headers */
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

/* Makes random ascending bounds, some of them equal; first[0] is usually 0. */
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

            assert_int_equal(reach_find_range(first, bits, count, at), linear(&ranges, at));
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

/* ---- parts of several allocations --------------------------------------------------------------
 */

enum { PARTS = REACH_SCOPE_MAX * REACH_ALLOCATION_MAX };

/* Cuts allocations of random lengths at random rows into the same number of parts. */
static struct reach_scopes random_scopes(struct reach_extent *part, uint64_t row_bytes,
                                         uint64_t rows[REACH_ALLOCATION_MAX])
{
    const struct reach_scopes scopes = {1 + (uint32_t)rng_below(&rng, REACH_SCOPE_MAX),
                                        1 + (uint32_t)rng_below(&rng, REACH_ALLOCATION_MAX), part};

    for (uint32_t i = 0; i < scopes.allocation_count; i++) {
        uint64_t end = 0;

        rows[i] = rng_below(&rng, 1ull << 40);
        for (uint32_t s = 0; s < scopes.scope_count; s++) {
            const uint64_t all = rows[i] * row_bytes;
            const uint64_t next =
                s + 1 == scopes.scope_count ? all : end + rng_below(&rng, all - end + 1) / 3;

            part[s * scopes.allocation_count + i] = (struct reach_extent){end, next - end};
            end = next;
        }
    }
    return scopes;
}

static void every_row_is_in_one_pass(void **state)
{
    static struct reach_extent part[PARTS];

    (void)state;
    for (int n = 0; n < CASES / 10; n++) {
        const uint64_t row_bytes = 1 + rng_below(&rng, 600);
        uint64_t rows[REACH_ALLOCATION_MAX], end[REACH_ALLOCATION_MAX] = {0};
        const struct reach_scopes scopes = random_scopes(part, row_bytes, rows);

        for (uint32_t s = 0; s < scopes.scope_count; s++) {
            const struct reach_pass pass = reach_scopes_pass(&scopes, s);

            assert_true(pass.index == s && pass.of == scopes.scope_count);
            assert_int_equal(pass.allocation_count, scopes.allocation_count);
            for (uint32_t i = 0; i < pass.allocation_count; i++) {
                const struct reach_items items = reach_pass_items(&pass, i, row_bytes);

                assert_true(items.first == end[i]);
                end[i] += items.count;
                assert_false(reach_has_item(items, end[i]));
                assert_false(reach_has_item(items, items.first - 1));
                assert_true(items.count == 0 || reach_has_item(items, items.first));
                assert_true(items.count == 0 || reach_has_item(items, end[i] - 1));
            }
        }
        assert_memory_equal(end, rows, scopes.allocation_count * sizeof *end);
    }
}

static void ranges_are_those_of_the_passes(void **state)
{
    static struct reach_extent part[PARTS];

    (void)state;
    for (int n = 0; n < CASES / 10; n++) {
        const uint64_t row_bytes = 1 + rng_below(&rng, 600);
        uint64_t rows[REACH_ALLOCATION_MAX];
        const struct reach_scopes scopes = random_scopes(part, row_bytes, rows);
        const struct reach_windows windows = {.window_count = scopes.scope_count,
                                              .allocation_count = scopes.allocation_count,
                                              .part = part};
        const uint32_t i = (uint32_t)rng_below(&rng, scopes.allocation_count);
        struct reach_ranges ranges, same;

        assert_true(reach_ranges_of_scopes(&ranges, &scopes, i, row_bytes));
        assert_true(reach_ranges_of_windows(&same, &windows, i, row_bytes));
        assert_memory_equal(&ranges, &same, sizeof ranges);
        for (uint32_t s = 0; s < scopes.scope_count; s++) {
            const struct reach_pass pass = reach_scopes_pass(&scopes, s);

            assert_true(ranges.first[s] == reach_pass_items(&pass, i, row_bytes).first);
        }
        assert_false(reach_ranges_of_scopes(&ranges, &scopes, scopes.allocation_count, row_bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_found_in_its_range),
        cmocka_unit_test(a_row_belongs_where_its_first_byte_lies),
        cmocka_unit_test(bounds_that_make_no_sense_are_refused),
        cmocka_unit_test(every_row_is_in_one_pass),
        cmocka_unit_test(ranges_are_those_of_the_passes),
    };
    const char *given = getenv("TEST_SEED");

    rng.state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
