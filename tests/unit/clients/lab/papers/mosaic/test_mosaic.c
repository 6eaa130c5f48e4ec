/* test_mosaic.c: Mosaic's simulated machine. The tests check shared walks, the times of memory, and
 * that each record of a program runs once. */
#include "base/rng.h"
#include "clients/lab/papers/mosaic/mosaic_time.h"
#include "tests/unit/clients/lab/papers/drawn_trace.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the MMU by itself: a host with a list of events ---- */

enum { HOST_EVENTS = 64 };

struct host {
    struct {
        uint32_t what;
        uint64_t at;
    } events[HOST_EVENTS];
    uint32_t count;
    uint64_t resolved_at[8]; /* time at which the translation of each core was resolved */
    uint64_t now;
    struct mosaic_mmu *mmu;
};

static void host_post(void *arg, uint32_t what, uint64_t at)
{
    struct host *h = arg;
    assert_true(h->count < HOST_EVENTS);
    h->events[h->count].what = what;
    h->events[h->count++].at = at;
}

static void host_resolved(void *arg, uint32_t core, uint64_t at)
{
    struct host *h = arg;
    h->resolved_at[core] = at;
}

static void run_events(struct host *h)
{
    while (h->count > 0) {
        uint32_t next = 0;
        for (uint32_t i = 1; i < h->count; i++)
            next = h->events[i].at < h->events[next].at ? i : next;
        const uint32_t what = h->events[next].what;
        const uint64_t at = h->events[next].at;
        h->events[next] = h->events[--h->count];
        h->now = at;
        mosaic_mmu_due(h->mmu, what, at);
    }
}

struct bench {
    struct host host;
    struct frames *frames;
    struct mosaic_memory *memory;
};

static void open_bench(struct bench *b, enum mosaic_design design)
{
    const struct frames_config frames = {.policy =
                                             design == MOSAIC_MOSAIC ? FRAMES_COCOA : FRAMES_BASE,
                                         .frame_count = 8,
                                         .channels = 6,
                                         .pages = 4 * FRAMES_PAGES,
                                         .seed = 1};
    *b = (struct bench){.frames = frames_new(&frames), .memory = mosaic_memory_new(3)};
    assert_true(frames_alloc(b->frames, 0, 2 * FRAMES_PAGES));
    const struct mosaic_mmu_host host = {.arg = &b->host,
                                         .post = host_post,
                                         .resolved = host_resolved,
                                         .frames = b->frames,
                                         .memory = b->memory};
    b->host.mmu = mosaic_mmu_new(design, 3, &host);
    assert_non_null(b->host.mmu);
}

static void close_bench(struct bench *b)
{
    mosaic_mmu_free(b->host.mmu);
    mosaic_memory_free(b->memory);
    frames_free(b->frames);
}

/* A core that waits for the walk of another core hits the second level after the walk. */
static void misses_to_one_page_share_a_walk_and_then_hit(void **state)
{
    struct bench b;
    uint64_t at;
    (void)state;
    open_bench(&b, MOSAIC_BASE);
    for (uint32_t core = 0; core < 3; core++)
        assert_false(mosaic_mmu_translate(b.host.mmu, core, 0, 0, &at));
    run_events(&b.host);
    const struct mosaic_mmu_counts n = mosaic_mmu_count(b.host.mmu);
    assert_int_equal(n.l1_misses, 3);
    assert_int_equal(n.l2_lookups, 3);
    assert_int_equal(n.l2_misses, 1);
    /* After the ten cycles of the second level, a walk makes four loads. */
    assert_true(b.host.resolved_at[0] > 10 + 4 * 10);
    assert_in_range(b.host.resolved_at[1], b.host.resolved_at[0] + 10, b.host.resolved_at[0] + 11);
    assert_true(mosaic_mmu_translate(b.host.mmu, 0, 0, 5000, &at));
    assert_int_equal(at, 5001);
    assert_false(mosaic_mmu_translate(b.host.mmu, 0, 1, 6000, &at));
    close_bench(&b);
}

/* Table 1: misses of the first level are merged before they reach the second level. */
static void a_line_on_its_way_is_waited_for(void **state)
{
    struct mosaic_memory *m = mosaic_memory_new(2);
    (void)state;
    assert_non_null(m);
    const uint64_t first = mosaic_memory_read(m, 0, 7, 0);
    assert_true(first > 85);
    assert_int_equal(mosaic_memory_read(m, 0, 7, 1), first);
    assert_true(mosaic_memory_read(m, 1, 7, 1) >= first);
    assert_int_equal(mosaic_memory_read(m, 0, 7, first + 5), first + 6);
    /* The line is still in transfer after other lines have entered its set. */
    const uint64_t far = mosaic_memory_read(m, 0, 100, 1000);
    for (uint32_t line = 101; line < 164; line++)
        (void)mosaic_memory_read(m, 1, line, 1000);
    assert_int_equal(mosaic_memory_read(m, 0, 100, 1001), far);
    mosaic_memory_free(m);
}

/* Six channels of 32 bits, four times per clock of 1674 MHz, are 160 GB/s. */
static void a_channel_moves_a_line_in_five_cycles(void **state)
{
    struct mosaic_memory *m = mosaic_memory_new(1);
    uint64_t last = 0;
    (void)state;
    assert_non_null(m);
    /* Two of the 12 lines are in the same channel. */
    for (uint32_t i = 0; i < 100; i++) {
        const uint64_t at = mosaic_memory_read(m, 0, i / 2 * 12 + i % 2, 0);
        last = at > last ? at : last;
    }
    assert_in_range(last, 480, 480 + 200);
    mosaic_memory_free(m);
}

static void a_merged_page_takes_one_entry_and_is_looked_up_first(void **state)
{
    struct bench b;
    uint64_t at;
    (void)state;
    open_bench(&b, MOSAIC_MOSAIC);
    assert_false(mosaic_mmu_translate(b.host.mmu, 0, 0, 0, &at));
    run_events(&b.host);
    for (uint32_t page = 0; page < FRAMES_PAGES; page++) {
        assert_true(mosaic_mmu_translate(b.host.mmu, 0, page, 10000 + page, &at));
        assert_int_equal(at, 10001 + page);
    }
    assert_int_equal(mosaic_mmu_count(b.host.mmu).l2_misses, 1);
    close_bench(&b);
}

/* Two cores request the same page. Both cores get a fault, and the page is transferred once. */

/* ---- runs ---- */

enum { GAP = 3, DRAWN_BLOCKS = 400, DRAWN_WARPS = 4 };

static struct trace drawn(uint64_t bytes)
{
    struct rng rng = {7};
    return drawn_trace(&rng, DRAWN_BLOCKS, DRAWN_WARPS, 8, bytes, false);
}

static struct mosaic_run made(const struct trace *t, enum mosaic_design design)
{
    return (struct mosaic_run){.trace = t, .design = design, .gap = GAP, .compact = true};
}

/* Each design runs each record once, and a repeated run has the same result. */
static void each_record_runs_once_on_each_design(void **state)
{
    struct trace t = drawn(64 << 20);
    (void)state;
    for (int d = 0; d < MOSAIC_DESIGNS; d++) {
        const struct mosaic_run run = made(&t, (enum mosaic_design)d);
        struct mosaic_result r;
        struct mosaic_result again;
        assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
        assert_int_equal(r.instructions, t.record_count * (GAP + 1));
        assert_int_equal(mosaic_time_run(&run, &again, NULL), STATUS_OK);
        assert_memory_equal(&again, &r, sizeof again);
    }
    trace_free(&t);
}

/* While a core has a miss, the memory instructions of all its warps wait. A walk has four loads of
 * at least 95 cycles. No core requests another page before its first walk has ended. */
static void a_core_waits_for_one_translation(void **state)
{
    struct trace t = drawn(64 << 20);
    struct mosaic_run run = made(&t, MOSAIC_BASE);
    struct mosaic_result r;
    (void)state;
    run.end = 4 * 95;
    assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
    assert_int_equal(r.mmu.l1_misses, MOSAIC_CORES);
    assert_true(r.instructions > 0);
    trace_free(&t);
}

/* Translation only adds time. Large pages of CoCoA translate the whole program. Frames with foreign
 * data hold no large page, unless compaction frees them. */
static void designs_are_in_the_order_of_the_paper(void **state)
{
    struct trace t = drawn(64 << 20);
    uint64_t cycles[MOSAIC_DESIGNS];
    struct mosaic_result r;
    (void)state;
    for (int d = 0; d < MOSAIC_DESIGNS; d++) {
        const struct mosaic_run run = made(&t, (enum mosaic_design)d);
        assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
        cycles[d] = r.cycles;
    }
    assert_true(cycles[MOSAIC_IDEAL] < cycles[MOSAIC_MOSAIC]);
    assert_true(2 * cycles[MOSAIC_MOSAIC] < cycles[MOSAIC_BASE]);
    for (int compact = 0; compact < 2; compact++) {
        struct mosaic_run run = made(&t, MOSAIC_MOSAIC);
        run.occupancy = 0.1;
        run.compact = compact != 0;
        assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
        assert_int_equal(r.frames.merges > 0, compact);
        assert_int_equal(2 * r.cycles < cycles[MOSAIC_BASE], compact);
    }
    trace_free(&t);
}

static void a_trace_that_does_not_fit_is_refused(void **state)
{
    struct trace t = drawn(64 << 20);
    struct mosaic_run run = made(&t, MOSAIC_MOSAIC);
    struct mosaic_result r;
    struct err err = {0};
    (void)state;
    run.occupancy = 1;
    assert_int_equal(mosaic_time_run(&run, &r, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err.text, "do not fit"));
    t.range_bytes = (uint64_t)128 << 30;
    assert_int_equal(mosaic_time_run(&run, &r, &err), STATUS_NOT_APPLICABLE);
    assert_non_null(strstr(err.text, "127 GiB"));
    trace_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misses_to_one_page_share_a_walk_and_then_hit),
        cmocka_unit_test(a_line_on_its_way_is_waited_for),
        cmocka_unit_test(a_channel_moves_a_line_in_five_cycles),
        cmocka_unit_test(a_merged_page_takes_one_entry_and_is_looked_up_first),
        cmocka_unit_test(each_record_runs_once_on_each_design),
        cmocka_unit_test(a_core_waits_for_one_translation),
        cmocka_unit_test(designs_are_in_the_order_of_the_paper),
        cmocka_unit_test(a_trace_that_does_not_fit_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
