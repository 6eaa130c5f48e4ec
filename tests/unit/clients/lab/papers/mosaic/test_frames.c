/* test_frames.c: the allocators of Mosaic, and the allocators that the paper compares Mosaic with.
 * Some tests check single rules of the paper. Others check invariants during random allocations. */
#include "base/rng.h"
#include "clients/lab/papers/mosaic/frames.h"
#include "tests/share.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FRAMES = 48, CHANNELS = 6, PAGES = 40 * FRAMES_PAGES };

static struct frames *made(enum frames_policy policy, bool compact)
{
    const struct frames_config c = {.policy = policy,
                                    .frame_count = FRAMES,
                                    .channels = CHANNELS,
                                    .pages = PAGES,
                                    .compact = compact,
                                    .seed = 7};
    struct frames *f = frames_new(&c);
    assert_non_null(f);
    return f;
}

/* ---- invariants ---- */

/* Checks that every page has its own place, and that the pages of a large page fill an aligned
 * frame in order. `exact` is false if some frames contain foreign data. */
static void check(const struct frames *f, enum frames_policy policy, bool exact)
{
    static bool used[FRAMES * FRAMES_PAGES];
    bool used_frames[FRAMES] = {false};
    const struct frames_counts n = frames_count(f);
    uint64_t pages = 0;
    uint64_t frames = 0;
    memset(used, 0, sizeof used);
    for (uint32_t p = 0; p < PAGES; p++) {
        const uint32_t at = frames_page(f, p);
        if (at == FRAMES_NONE)
            continue;
        assert_true(at < FRAMES * FRAMES_PAGES);
        assert_false(used[at]);
        used[at] = true;
        pages++;
        frames += !used_frames[at / FRAMES_PAGES];
        used_frames[at / FRAMES_PAGES] = true;
        if (!frames_is_large(f, p))
            continue;
        assert_int_equal(at % FRAMES_PAGES, p % FRAMES_PAGES);
        for (uint32_t i = p - p % FRAMES_PAGES; i < p; i++) {
            const uint32_t other = frames_page(f, i);
            assert_true(other == FRAMES_NONE || other / FRAMES_PAGES == at / FRAMES_PAGES);
        }
    }
    assert_int_equal(n.used_pages, pages);
    if (policy == FRAMES_BASE)
        assert_int_equal(n.reserved, 0);
    else if (exact)
        assert_int_equal(n.reserved, frames * FRAMES_PAGES - pages);
}

/* ---- single rules ---- */

static void an_aligned_allocation_is_merged_in_place(void **state)
{
    struct frames *f = made(FRAMES_COCOA, true);
    (void)state;
    assert_true(frames_alloc(f, 0, 3 * FRAMES_PAGES + 100));
    for (uint32_t p = 0; p < 3 * FRAMES_PAGES; p++)
        assert_true(frames_is_large(f, p));
    for (uint32_t p = 3 * FRAMES_PAGES; p < 3 * FRAMES_PAGES + 100; p++)
        assert_false(frames_is_large(f, p));
    assert_int_equal(frames_count(f).merges, 3);
    assert_int_equal(frames_count(f).copied_pages, 0);
    assert_int_equal(frames_count(f).reserved, FRAMES_PAGES - 100);
    check(f, FRAMES_COCOA, true);
    frames_free(f);
}

static void an_allocation_that_begins_between_gets_single_pages_first(void **state)
{
    struct frames *f = made(FRAMES_COCOA, true);
    (void)state;
    assert_true(frames_alloc(f, 500, 12 + FRAMES_PAGES));
    assert_false(frames_is_large(f, 511));
    assert_true(frames_is_large(f, 512));
    assert_int_equal(frames_count(f).merges, 1);
    frames_free(f);
}

static void only_large_pages_bloat(void **state)
{
    struct frames *f = made(FRAMES_LARGE, false);
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        assert_true(frames_alloc(f, i * FRAMES_PAGES, 128));
    assert_int_equal(frames_count(f).used_pages, 4 * 128);
    assert_int_equal(frames_count(f).reserved, 4 * (FRAMES_PAGES - 128));
    assert_true(frames_is_large(f, 5));
    frames_free(f);
}

static void a_full_memory_refuses_pages(void **state)
{
    (void)state;
    for (int policy = FRAMES_BASE; policy <= FRAMES_COCOA; policy++) {
        const struct frames_config c = {.policy = (enum frames_policy)policy,
                                        .frame_count = 2,
                                        .channels = 2,
                                        .pages = 4 * FRAMES_PAGES,
                                        .compact = true};
        struct frames *f = frames_new(&c);
        assert_non_null(f);
        assert_false(frames_alloc(f, 100, 2 * FRAMES_PAGES + 50));
        assert_int_equal(frames_count(f).refused_pages, policy == FRAMES_LARGE ? 150 : 50);
        frames_free(f);
    }
}

static void compaction_frees_frames_of_foreign_data_and_without_it_nothing_merges(void **state)
{
    (void)state;
    for (int compact = 0; compact <= 1; compact++) {
        struct frames *f = made(FRAMES_COCOA, compact);
        frames_fragment(f, 1, 0.5);
        assert_true(frames_alloc(f, 0, 8 * FRAMES_PAGES));
        const struct frames_counts n = frames_count(f);
        assert_int_equal(n.merges, compact ? 8 : 0);
        assert_int_equal(n.copied_pages, compact ? 8 * FRAMES_PAGES / 2 : 0);
        check(f, FRAMES_COCOA, false);
        frames_free(f);
    }
}

static void half_of_the_frames_are_fragmented_by_half(void **state)
{
    struct frames *f = made(FRAMES_COCOA, false);
    (void)state;
    frames_fragment(f, 0.5, 0.5);
    assert_true(frames_alloc(f, 0, FRAMES / 2 * FRAMES_PAGES));
    assert_int_equal(frames_count(f).merges, FRAMES / 2);
    assert_true(frames_alloc(f, FRAMES / 2 * FRAMES_PAGES, FRAMES / 4 * FRAMES_PAGES));
    assert_int_equal(frames_count(f).mixed_frames, FRAMES / 2);
    assert_false(frames_alloc(f, FRAMES * 3 / 4 * FRAMES_PAGES, 1));
    frames_free(f);
}

/* The order follows table 2 of the paper: fragmented frames that are fuller reserve fewer pages. */
static void bloat_falls_with_occupancy(void **state)
{
    static const double occupancy[] = {0.01, 0.1, 0.25, 0.35, 0.5, 0.75};
    uint64_t last = FRAMES_PAGES;
    (void)state;
    for (size_t i = 0; i < sizeof occupancy / sizeof occupancy[0]; i++) {
        const uint32_t foreign = (uint32_t)(occupancy[i] * FRAMES_PAGES + 0.5);
        struct frames *f = made(FRAMES_COCOA, true);
        frames_fragment(f, 1, occupancy[i]);
        assert_true(frames_alloc(f, 0, 10));
        assert_int_equal(frames_count(f).most_reserved, FRAMES_PAGES - foreign - 1);
        assert_int_equal(frames_count(f).reserved, FRAMES_PAGES - foreign - 10);
        assert_true(frames_count(f).most_reserved < last);
        last = frames_count(f).most_reserved;
        frames_free(f);
    }
}

/* ---- random sequences ---- */

static void allocate_what_is_missing(struct frames *f, uint32_t first, uint32_t count)
{
    for (uint32_t p = first; p < first + count;) {
        uint32_t to = p;
        while (to < first + count && frames_page(f, to) == FRAMES_NONE)
            to++;
        if (to > p && !frames_alloc(f, p, to - p))
            return;
        p = to + 1;
    }
}

static void any_sequence_keeps_every_page_once(void **state)
{
    const char *given = getenv("TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {seed};
    (void)state;
    print_message("TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint32_t round = 0; round < test_share(60, 12); round++) {
        const enum frames_policy policy = (enum frames_policy)(round % 3);
        struct frames *f = made(policy, rng_below(&rng, 4) > 0);
        const bool foreign = policy == FRAMES_COCOA && rng_below(&rng, 2) > 0;
        if (foreign)
            frames_fragment(f, rng_unit(&rng), rng_unit(&rng));
        for (uint32_t i = 0; i < 20; i++) {
            uint32_t first = (uint32_t)rng_below(&rng, PAGES);
            first -= rng_below(&rng, 2) ? first % FRAMES_PAGES : 0;
            const uint32_t most = rng_below(&rng, 3) ? 6 * FRAMES_PAGES : 60;
            uint32_t count = 1 + (uint32_t)rng_below(&rng, most);
            count = count < PAGES - first ? count : PAGES - first;
            allocate_what_is_missing(f, first, count);
            check(f, policy, !foreign);
        }
        frames_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_aligned_allocation_is_merged_in_place),
        cmocka_unit_test(an_allocation_that_begins_between_gets_single_pages_first),
        cmocka_unit_test(only_large_pages_bloat),
        cmocka_unit_test(a_full_memory_refuses_pages),
        cmocka_unit_test(compaction_frees_frames_of_foreign_data_and_without_it_nothing_merges),
        cmocka_unit_test(half_of_the_frames_are_fragmented_by_half),
        cmocka_unit_test(bloat_falls_with_occupancy),
        cmocka_unit_test(any_sequence_keeps_every_page_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
