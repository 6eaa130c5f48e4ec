/* test_keys.c: the window of an allocation that a key belongs to (clients/cuda/reach_keys.h).
 * TEST_SEED repeats the random cases. */
#include "clients/cuda/reach_keys.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { CASES = 500, KEYS = 200000, WINDOWS_MOST = 9, ITEM_BYTES_MOST = 300 };

static struct rng rng;

struct layout {
    struct reach_window window[WINDOWS_MOST];
    struct reach_windows windows;
    uint64_t bytes, item_bytes, items;
};

/* Makes adjacent windows of random lengths, each with a few items. A bound can be at any byte. */
static void random_layout(struct layout *out)
{
    memset(out, 0, sizeof *out);
    out->item_bytes = 1 + rng_below(&rng, ITEM_BYTES_MOST);
    out->windows.window = out->window;
    out->windows.allocation_count = 1;
    out->windows.window_count = 1 + (uint32_t)rng_below(&rng, WINDOWS_MOST);
    for (uint32_t w = 0; w < out->windows.window_count; w++) {
        struct reach_window *window = &out->window[w];

        window->first_byte = out->bytes;
        window->length_bytes = out->item_bytes * 2 + rng_below(&rng, 1ull << 36);
        window->sm_count = 1;
        out->bytes += window->length_bytes;
    }
    out->items = out->bytes / out->item_bytes;
}

static struct reach_items items_of(const struct layout *layout, uint32_t w)
{
    return reach_items_between(layout->window[w].first_byte, layout->window[w].length_bytes,
                               layout->item_bytes, layout->items);
}

static void each_hash_belongs_to_one_window(void **state)
{
    struct layout layout;

    (void)state;
    for (int n = 0; n < CASES; n++) {
        uint64_t end = 0;

        random_layout(&layout);
        assert_true(reach_windows_serve_all(&layout.windows, layout.bytes, layout.item_bytes));
        for (uint32_t w = 0; w < layout.windows.window_count; w++) {
            const struct reach_items items = items_of(&layout, w);

            assert_true(items.first == end && items.count > 0);
            assert_true(items.first * layout.item_bytes >= layout.window[w].first_byte);
            end += items.count;
        }
        assert_true(end == layout.items);
        for (int k = 0; k < 100; k++) {
            const uint64_t hash = k == 0 ? 0 : k == 1 ? UINT64_MAX : rng_next(&rng);
            const uint64_t item = reach_item_of_hash(hash, layout.items);
            uint32_t owners = 0;

            for (uint32_t w = 0; w < layout.windows.window_count; w++)
                owners += reach_has_item(items_of(&layout, w), item);
            assert_int_equal(owners, 1);
        }
    }
}

/* The keys are 0, 1, 2 and so on, which are the least random keys. The bound is six standard
 * deviations of a binomial distribution. */
static void windows_get_keys_by_their_lengths(void **state)
{
    struct layout layout;

    (void)state;
    for (int n = 0; n < 20; n++) {
        uint32_t got[WINDOWS_MOST] = {0};
        const uint64_t from = rng_next(&rng);

        random_layout(&layout);
        for (uint64_t key = 0; key < KEYS; key++) {
            const uint64_t item = reach_item_of_hash(reach_mix_key(from + key), layout.items);

            for (uint32_t w = 0; w < layout.windows.window_count; w++)
                got[w] += reach_has_item(items_of(&layout, w), item);
        }
        for (uint32_t w = 0; w < layout.windows.window_count; w++) {
            const double share = (double)items_of(&layout, w).count / (double)layout.items;
            const double expected = KEYS * share;
            const double deviation = sqrt(expected * (1 - share));

            assert_true(fabs((double)got[w] - expected) <= 6 * deviation + 1);
        }
    }
}

/* The place within a window is taken from the high or the low end of the same hash. Both places
 * must be spread over the whole window: each of 64 cells gets its share. */
static void the_place_within_a_window_is_free(void **state)
{
    enum { CELLS = 64, WINDOW_COUNT = 2 };
    const uint64_t items = 1ull << 32, odd = reach_odd_items(items / WINDOW_COUNT);
    const struct reach_items mine = {0, items / WINDOW_COUNT};
    uint32_t high[CELLS] = {0}, low[CELLS] = {0};
    uint32_t count = 0;

    (void)state;
    for (uint64_t key = 0; key < KEYS; key++) {
        const uint64_t hash = reach_mix_key(key);

        if (!reach_has_item(mine, reach_item_of_hash(hash, items)))
            continue;
        count++;
        high[hash >> 58]++;
        low[(hash % odd) * CELLS / odd]++;
    }
    for (uint32_t cell = 0; cell < CELLS; cell++) {
        const double expected = (double)count / CELLS;

        assert_true(fabs(high[cell] - expected) < 6 * sqrt(expected));
        assert_true(fabs(low[cell] - expected) < 6 * sqrt(expected));
    }
}

static void odd_items_are_odd_and_no_more(void **state)
{
    (void)state;
    assert_true(reach_odd_items(1) == 1 && reach_odd_items(2) == 1 && reach_odd_items(3) == 3);
    for (int n = 0; n < CASES; n++) {
        const uint64_t items = 1 + rng_below(&rng, UINT64_MAX - 1);
        const uint64_t odd = reach_odd_items(items);

        assert_true(odd % 2 == 1 && odd <= items && items - odd <= 1);
    }
}

static void the_hash_is_a_bijection_that_mixes(void **state)
{
    (void)state;
    assert_true(reach_mix_key(0) == 0);
    assert_true(reach_mix_key(1) == 0xb456bcfc34c2cb2cull); /* fmix64 of SMHasher */
    for (uint32_t bit = 0; bit < 64; bit++) {
        uint32_t changed = 0;

        for (int n = 0; n < 100; n++) {
            const uint64_t key = rng_next(&rng);

            changed += (uint32_t)__builtin_popcountll(reach_mix_key(key) ^
                                                      reach_mix_key(key ^ 1ull << bit));
        }
        assert_in_range(
            changed, 100 * 24,
            100 * 40); /* 32 of 64 bits are expected; the bounds are 20 standard deviations away */
    }
}

static void windows_that_leave_keys_out_are_refused(void **state)
{
    (void)state;
    for (int n = 0; n < CASES; n++) {
        struct layout good, bad;
        uint32_t w;

        random_layout(&good);
        w = (uint32_t)rng_below(&rng, good.windows.window_count);
        assert_true(reach_windows_serve_all(&good.windows, good.bytes, good.item_bytes));
        assert_false(reach_windows_serve_all(&good.windows, good.bytes + 1, good.item_bytes));
        assert_false(reach_windows_serve_all(&good.windows, good.bytes - 1, good.item_bytes));
        assert_false(reach_windows_serve_all(&good.windows, good.bytes, 0));
        assert_false(reach_windows_serve_all(&good.windows, good.bytes, good.bytes + 1));
        bad = good;
        bad.windows.window = bad.window;
        bad.window[w].sm_count = 0;
        assert_false(reach_windows_serve_all(&bad.windows, bad.bytes, bad.item_bytes));
        bad.window[w].sm_count = 1;
        bad.window[w].first_byte++; /* a gap */
        assert_false(reach_windows_serve_all(&bad.windows, bad.bytes, bad.item_bytes));
        bad.window[w].first_byte--;
        bad.windows.allocation_count = 2;
        assert_false(reach_windows_serve_all(&bad.windows, bad.bytes, bad.item_bytes));
        bad.windows.allocation_count = 1;
        bad.windows.window_count = 0;
        assert_false(reach_windows_serve_all(&bad.windows, bad.bytes, bad.item_bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hash_belongs_to_one_window),
        cmocka_unit_test(windows_get_keys_by_their_lengths),
        cmocka_unit_test(the_place_within_a_window_is_free),
        cmocka_unit_test(odd_items_are_odd_and_no_more),
        cmocka_unit_test(the_hash_is_a_bijection_that_mixes),
        cmocka_unit_test(windows_that_leave_keys_out_are_refused),
    };
    const char *given = getenv("TEST_SEED");

    rng.state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
