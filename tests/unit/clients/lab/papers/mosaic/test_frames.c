/* test_frames.c: the allocators of Mosaic, and the allocators that the paper compares Mosaic with.
 * Some tests check single rules of the paper. Others check invariants during random allocations and
 * releases. */
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

enum { FRAMES = 48, CHANNELS = 6, APPS = 3, APP_PAGES = 40 * FRAMES_PAGES, KEEP = 256 };

struct changes {
    uint32_t small, large;
};

static void note(void *arg, uint32_t app, uint32_t page, bool large)
{
    struct changes *c = arg;
    (void)app;
    assert_true(!large || page % FRAMES_PAGES == 0);
    c->small += !large;
    c->large += large;
}

static struct frames *made(enum frames_policy policy, bool compact)
{
    const struct frames_config c = {.policy = policy,
                                    .frame_count = FRAMES,
                                    .channels = CHANNELS,
                                    .app_count = APPS,
                                    .app_pages = APP_PAGES,
                                    .keep_pages = KEEP,
                                    .compact = compact,
                                    .seed = 7};
    struct frames *f = frames_new(&c);
    assert_non_null(f);
    return f;
}

/* ---- invariants ---- */

/* Checks that every page has its own place, and that the pages of a large page fill an aligned
 * frame in order. A frame has one owner unless the policy shares frames. `exact` is false if some
 * frames contain data of other applications. */
static void check(const struct frames *f, bool shared, bool exact)
{
    static uint32_t owner[FRAMES * FRAMES_PAGES];
    uint64_t used = 0;
    uint64_t frames = 0;
    memset(owner, 0xff, sizeof owner);
    for (uint32_t a = 0; a < APPS; a++) {
        for (uint32_t p = 0; p < APP_PAGES; p++) {
            const uint32_t at = frames_page(f, a, p);
            if (at == FRAMES_NONE)
                continue;
            assert_true(at < FRAMES * FRAMES_PAGES);
            assert_int_equal(owner[at], FRAMES_NONE);
            owner[at] = a;
            used++;
            if (frames_is_large(f, a, p))
                assert_int_equal(at % FRAMES_PAGES, p % FRAMES_PAGES);
        }
        for (uint32_t p = 0; p < APP_PAGES; p += FRAMES_PAGES) {
            uint32_t frame = FRAMES_NONE;
            bool large = false;
            for (uint32_t i = 0; i < FRAMES_PAGES; i++) {
                const uint32_t at = frames_page(f, a, p + i);
                if (at == FRAMES_NONE)
                    continue;
                if (frame != FRAMES_NONE && large) {
                    assert_true(frames_is_large(f, a, p + i));
                    assert_int_equal(at / FRAMES_PAGES, frame);
                }
                large = large || frames_is_large(f, a, p + i);
                frame = at / FRAMES_PAGES;
            }
        }
    }
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t of = FRAMES_NONE;
        for (uint32_t j = 0; j < FRAMES_PAGES; j++) {
            const uint32_t a = owner[i * FRAMES_PAGES + j];
            if (a == FRAMES_NONE)
                continue;
            assert_true(shared || of == FRAMES_NONE || of == a);
            of = a;
        }
        frames += of != FRAMES_NONE;
    }
    const struct frames_counts n = frames_count(f);
    assert_int_equal(n.used_pages, used);
    if (exact && !shared)
        assert_int_equal(n.reserved, frames * FRAMES_PAGES - used);
    if (shared)
        assert_int_equal(n.reserved, 0);
}

/* ---- single rules ---- */

static void an_aligned_allocation_is_merged_in_place(void **state)
{
    struct frames *f = made(FRAMES_COCOA, true);
    (void)state;
    assert_true(frames_alloc(f, 0, 0, 3 * FRAMES_PAGES + 100));
    for (uint32_t p = 0; p < 3 * FRAMES_PAGES; p++)
        assert_true(frames_is_large(f, 0, p));
    for (uint32_t p = 3 * FRAMES_PAGES; p < 3 * FRAMES_PAGES + 100; p++)
        assert_false(frames_is_large(f, 0, p));
    assert_int_equal(frames_count(f).merges, 3);
    assert_int_equal(frames_count(f).copied_pages, 0);
    assert_int_equal(frames_count(f).reserved, FRAMES_PAGES - 100);
    check(f, false, true);
    frames_free(f);
}

static void an_allocation_that_begins_between_gets_single_pages_first(void **state)
{
    struct frames *f = made(FRAMES_COCOA, true);
    (void)state;
    assert_true(frames_alloc(f, 1, 500, 12 + FRAMES_PAGES));
    assert_false(frames_is_large(f, 1, 511));
    assert_true(frames_is_large(f, 1, 512));
    assert_int_equal(frames_count(f).merges, 1);
    frames_free(f);
}

static void applications_never_share_a_frame_with_mosaic_and_do_without(void **state)
{
    (void)state;
    for (int policy = FRAMES_BASE; policy <= FRAMES_COCOA; policy++) {
        struct frames *f = made((enum frames_policy)policy, true);
        uint32_t shared = 0;
        for (uint32_t i = 0; i < 4; i++) {
            for (uint32_t a = 0; a < APPS; a++)
                assert_true(frames_alloc(f, a, i * FRAMES_PAGES, 300));
        }
        check(f, policy == FRAMES_BASE, true);
        for (uint32_t p = 0; p < 300; p++)
            shared += frames_page(f, 0, p) / FRAMES_PAGES == frames_page(f, 1, p) / FRAMES_PAGES;
        assert_true(policy == FRAMES_BASE || shared == 0);
        assert_int_equal(frames_count(f).merges, 0);
        frames_free(f);
    }
}

static void only_large_pages_bloat(void **state)
{
    struct frames *f = made(FRAMES_LARGE, false);
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        assert_true(frames_alloc(f, 0, i * FRAMES_PAGES, 128));
    assert_float_equal(frames_bloat(f), 3.0, 1e-12);
    assert_true(frames_is_large(f, 0, 5));
    frames_free(f);
}

static void below_the_threshold_a_large_page_is_splintered_and_its_frame_freed(void **state)
{
    struct frames *f = made(FRAMES_COCOA, true);
    struct changes seen = {0};
    (void)state;
    /* Frame 0 is merged. The remaining pages of frame 0 move to frame 6, which has the same
     * channel. */
    assert_true(frames_alloc(f, 0, 0, 6 * FRAMES_PAGES));
    assert_true(frames_alloc(f, 0, 8 * FRAMES_PAGES, 10));
    frames_on_change(f, note, &seen);
    frames_release(f, 0, 0, FRAMES_PAGES - KEEP);
    assert_true(frames_is_large(f, 0, FRAMES_PAGES - 1));
    assert_int_equal(seen.large, 0);
    frames_release(f, 0, FRAMES_PAGES - KEEP, 1);
    assert_false(frames_is_large(f, 0, FRAMES_PAGES - 1));
    const struct frames_counts n = frames_count(f);
    assert_int_equal(n.splinters, 1);
    assert_int_equal(seen.large, 1);
    assert_int_equal(n.freed_frames, 1);
    assert_int_equal(n.copied_pages, KEEP - 1);
    assert_int_equal(frames_page(f, 0, FRAMES_PAGES - 1) / FRAMES_PAGES % CHANNELS, 0);
    check(f, false, true);
    frames_free(f);
}

static void a_full_memory_splinters_from_the_emergency_list(void **state)
{
    struct frames *f = made(FRAMES_COCOA, true);
    (void)state;
    assert_true(frames_alloc(f, 0, 0, 24 * FRAMES_PAGES));
    assert_true(frames_alloc(f, 1, 0, 24 * FRAMES_PAGES));
    frames_release(f, 0, 10, 50);
    assert_int_equal(frames_count(f).splinters, 0);
    assert_true(frames_alloc(f, 0, 30 * FRAMES_PAGES, 50));
    assert_int_equal(frames_count(f).emergencies, 1);
    assert_false(frames_alloc(f, 0, 32 * FRAMES_PAGES, 1));
    assert_int_equal(frames_count(f).refused_pages, 1);
    check(f, false, true);
    frames_free(f);
}

static void what_returns_to_a_merged_frame_returns_to_its_place(void **state)
{
    struct frames *f = made(FRAMES_COCOA, true);
    (void)state;
    assert_true(frames_alloc(f, 0, 0, FRAMES_PAGES));
    const uint32_t at = frames_page(f, 0, 5);
    frames_release(f, 0, 5, 1);
    assert_true(frames_alloc(f, 0, 5, 1));
    assert_int_equal(frames_page(f, 0, 5), at);
    frames_free(f);
}

static void compaction_frees_frames_of_foreign_data_and_without_it_nothing_merges(void **state)
{
    (void)state;
    for (int compact = 0; compact <= 1; compact++) {
        struct frames *f = made(FRAMES_COCOA, compact);
        frames_fragment(f, 1, 0.5);
        assert_true(frames_alloc(f, 0, 0, 8 * FRAMES_PAGES));
        const struct frames_counts n = frames_count(f);
        assert_int_equal(n.merges, compact ? 8 : 0);
        assert_int_equal(n.copied_pages, compact ? 8 * FRAMES_PAGES / 2 : 0);
        check(f, false, false);
        frames_free(f);
    }
}

static void half_of_the_frames_are_fragmented_by_half(void **state)
{
    struct frames *f = made(FRAMES_COCOA, false);
    (void)state;
    frames_fragment(f, 0.5, 0.5);
    assert_true(frames_alloc(f, 0, 0, FRAMES / 2 * FRAMES_PAGES));
    assert_int_equal(frames_count(f).merges, FRAMES / 2);
    assert_true(frames_alloc(f, 1, 0, FRAMES / 4 * FRAMES_PAGES));
    assert_int_equal(frames_count(f).mixed_frames, FRAMES / 2);
    assert_false(frames_alloc(f, 2, 0, 1));
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
        assert_true(frames_alloc(f, 0, 0, 10));
        assert_int_equal(frames_count(f).most_reserved, FRAMES_PAGES - foreign - 1);
        assert_int_equal(frames_count(f).reserved, FRAMES_PAGES - foreign - 10);
        assert_true(frames_count(f).most_reserved < last);
        assert_true(frames_most_bloat(f) > frames_bloat(f));
        last = frames_count(f).most_reserved;
        frames_free(f);
    }
}

/* ---- random sequences ---- */

static void allocate_what_is_missing(struct frames *f, uint32_t app, uint32_t first, uint32_t count)
{
    for (uint32_t p = first; p < first + count;) {
        uint32_t to = p;
        while (to < first + count && frames_page(f, app, to) == FRAMES_NONE)
            to++;
        if (to > p && !frames_alloc(f, app, p, to - p))
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
    for (uint32_t round = 0; round < test_share(30, 6); round++) {
        const enum frames_policy policy = (enum frames_policy)(round % 3);
        struct frames *f = made(policy, rng_below(&rng, 4) > 0);
        struct changes seen = {0};
        const bool foreign = rng_below(&rng, 2) > 0;
        frames_on_change(f, note, &seen);
        if (foreign)
            frames_fragment(f, rng_unit(&rng), rng_unit(&rng));
        for (uint32_t i = 0; i < 40; i++) {
            const uint32_t app = (uint32_t)rng_below(&rng, APPS);
            uint32_t first = (uint32_t)rng_below(&rng, APP_PAGES);
            first -= rng_below(&rng, 2) ? first % FRAMES_PAGES : 0;
            const uint32_t most = rng_below(&rng, 3) ? 6 * FRAMES_PAGES : 60;
            uint32_t count = 1 + (uint32_t)rng_below(&rng, most);
            count = count < APP_PAGES - first ? count : APP_PAGES - first;
            if (rng_below(&rng, 5) < 2)
                frames_release(f, app, first, count);
            else
                allocate_what_is_missing(f, app, first, count);
            check(f, policy == FRAMES_BASE, !foreign);
        }
        assert_int_equal(seen.large, frames_count(f).splinters);
        for (uint32_t a = 0; a < APPS; a++)
            frames_release(f, a, 0, APP_PAGES);
        assert_int_equal(frames_count(f).used_pages, 0);
        assert_int_equal(frames_count(f).reserved, 0);
        frames_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_aligned_allocation_is_merged_in_place),
        cmocka_unit_test(an_allocation_that_begins_between_gets_single_pages_first),
        cmocka_unit_test(applications_never_share_a_frame_with_mosaic_and_do_without),
        cmocka_unit_test(only_large_pages_bloat),
        cmocka_unit_test(below_the_threshold_a_large_page_is_splintered_and_its_frame_freed),
        cmocka_unit_test(a_full_memory_splinters_from_the_emergency_list),
        cmocka_unit_test(what_returns_to_a_merged_frame_returns_to_its_place),
        cmocka_unit_test(compaction_frees_frames_of_foreign_data_and_without_it_nothing_merges),
        cmocka_unit_test(half_of_the_frames_are_fragmented_by_half),
        cmocka_unit_test(bloat_falls_with_occupancy),
        cmocka_unit_test(any_sequence_keeps_every_page_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
