/* test_mosaic.c: Mosaic's simulated machine. The tests compare TLBs with a plain list. They also
 * check shared walks, faults, applications and workloads of the paper, and that a repeated run has
 * the same result. */
#include "base/rng.h"
#include "clients/lab/papers/mosaic/mosaic_tlb.h"
#include "clients/lab/papers/mosaic/mosaic_workloads.h"
#include "tests/share.h"

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

/* ---- a TLB and a plain list ---- */

enum { MOST = 64 };

struct plain {
    uint32_t keys[MOST];
    uint64_t used[MOST];
    uint64_t now;
};

static bool plain_hit(struct plain *p, uint32_t entries, uint32_t key)
{
    for (uint32_t i = 0; i < entries; i++) {
        if (p->used[i] > 0 && p->keys[i] == key) {
            p->used[i] = ++p->now;
            return true;
        }
    }
    return false;
}

static void plain_fill(struct plain *p, uint32_t entries, uint32_t ways, uint32_t key)
{
    const uint32_t first = key % (entries / ways) * ways;
    uint32_t at = first;
    if (plain_hit(p, entries, key))
        return;
    for (uint32_t i = first; i < first + ways; i++)
        at = p->used[i] < p->used[at] ? i : at;
    p->keys[at] = key;
    p->used[at] = ++p->now;
}

static void a_tlb_does_what_a_list_does(void **state)
{
    static const struct {
        uint32_t entries, ways;
    } shapes[] = {{1, 1}, {16, 16}, {64, 16}, {64, 64}, {48, 8}, {24, 1}};
    const char *given = getenv("TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {seed};
    (void)state;
    print_message("TEST_SEED=%llu\n", (unsigned long long)seed);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        struct plain plain = {0};
        struct mosaic_tlb *t = mosaic_tlb_new(shapes[s].entries, shapes[s].ways);
        assert_non_null(t);
        for (uint32_t i = 0; i < test_share(20000, 4000); i++) {
            const uint32_t key = (uint32_t)rng_below(&rng, 2 * MOST);
            if (rng_below(&rng, 2) > 0) {
                mosaic_tlb_fill(t, key);
                plain_fill(&plain, shapes[s].entries, shapes[s].ways, key);
            } else {
                assert_int_equal(mosaic_tlb_hit(t, key), plain_hit(&plain, shapes[s].entries, key));
            }
        }
        mosaic_tlb_free(t);
    }
}

static void without_entries_nothing_hits(void **state)
{
    struct mosaic_tlb *t = mosaic_tlb_new(0, 16);
    (void)state;
    mosaic_tlb_fill(t, 1);
    assert_false(mosaic_tlb_hit(t, 1));
    mosaic_tlb_free(t);
}

/* ---- the MMU by itself: a host with a list of events ---- */

enum { HOST_EVENTS = 64 };

struct host {
    struct {
        uint32_t what;
        uint64_t at;
    } events[HOST_EVENTS];
    uint32_t count;
    uint64_t resolved_at[8]; /* time at which the translation of each core was resolved */
    uint32_t faulted[8];     /* number of faults of each core */
    uint32_t fault;          /* number of the fault that was reported last */
    uint64_t arrived_at, now;
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

static void host_faulted(void *arg, uint32_t core, uint32_t fault)
{
    struct host *h = arg;
    h->faulted[core]++;
    h->fault = fault;
}

static void host_arrived(void *arg, uint32_t fault)
{
    struct host *h = arg;
    assert_int_equal(fault, h->fault);
    h->arrived_at = h->now;
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

static void open_bench(struct bench *b, enum mosaic_design design, bool lazy)
{
    const struct frames_config frames = {.policy =
                                             design == MOSAIC_MOSAIC ? FRAMES_COCOA : FRAMES_BASE,
                                         .frame_count = 8,
                                         .channels = 6,
                                         .app_count = 1,
                                         .app_pages = 4 * FRAMES_PAGES,
                                         .seed = 1};
    struct mosaic_mmu_desc desc = mosaic_mmu_paper(design, 3);
    *b = (struct bench){.frames = frames_new(&frames), .memory = mosaic_memory_new(3)};
    assert_true(frames_alloc(b->frames, 0, 0, 2 * FRAMES_PAGES));
    const struct mosaic_mmu_host host = {.arg = &b->host,
                                         .post = host_post,
                                         .resolved = host_resolved,
                                         .faulted = host_faulted,
                                         .arrived = host_arrived,
                                         .frames = b->frames,
                                         .memory = b->memory};
    desc.lazy = lazy;
    b->host.mmu = mosaic_mmu_new(&desc, &host);
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
    open_bench(&b, MOSAIC_BASE, false);
    for (uint32_t core = 0; core < 3; core++)
        assert_false(mosaic_mmu_translate(b.host.mmu, core, 0, 0, 0, &at));
    run_events(&b.host);
    const struct mosaic_mmu_counts n = mosaic_mmu_count(b.host.mmu);
    assert_int_equal(n.l1_misses, 3);
    assert_int_equal(n.l2_lookups, 3);
    assert_int_equal(n.l2_misses, 1);
    assert_int_equal(n.walks, 1);
    /* After the ten cycles of the second level, a walk makes four loads. */
    assert_true(b.host.resolved_at[0] > 10 + 4 * 10);
    assert_in_range(b.host.resolved_at[1], b.host.resolved_at[0] + 10, b.host.resolved_at[0] + 11);
    assert_true(mosaic_mmu_translate(b.host.mmu, 0, 0, 0, 5000, &at));
    assert_int_equal(at, 5001);
    assert_false(mosaic_mmu_translate(b.host.mmu, 0, 0, 1, 6000, &at));
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
    open_bench(&b, MOSAIC_MOSAIC, false);
    assert_false(mosaic_mmu_translate(b.host.mmu, 0, 0, 0, 0, &at));
    run_events(&b.host);
    for (uint32_t page = 0; page < FRAMES_PAGES; page++) {
        assert_true(mosaic_mmu_translate(b.host.mmu, 0, 0, page, 10000 + page, &at));
        assert_int_equal(at, 10001 + page);
    }
    assert_int_equal(mosaic_mmu_count(b.host.mmu).walks, 1);
    close_bench(&b);
}

/* Two cores request the same page. Both cores get a fault, and the page is transferred once. */
static void a_fault_takes_what_the_paper_measured(void **state)
{
    struct bench b;
    uint64_t at;
    (void)state;
    for (int large = 0; large <= 1; large++) {
        open_bench(&b, large ? MOSAIC_LARGE : MOSAIC_BASE, true);
        for (uint32_t core = 0; core < 2; core++)
            assert_false(mosaic_mmu_translate(b.host.mmu, core, 0, 0, 0, &at));
        run_events(&b.host);
        const double us = (double)b.host.arrived_at / 1020;
        assert_true(fabs(us - (large ? 318 : 55)) < 1);
        assert_int_equal(mosaic_mmu_count(b.host.mmu).faults, 1);
        for (uint32_t core = 0; core < 2; core++) {
            assert_int_equal(b.host.faulted[core], 1);
            assert_int_equal(b.host.resolved_at[core], 0);
            assert_false(mosaic_mmu_translate(b.host.mmu, core, 0, 0, b.host.now, &at));
        }
        run_events(&b.host);
        for (uint32_t core = 0; core < 2; core++)
            assert_true(b.host.resolved_at[core] > b.host.arrived_at);
        assert_int_equal(mosaic_mmu_count(b.host.mmu).faults, 1);
        close_bench(&b);
    }
}

/* ---- applications and workloads ---- */

static void working_sets_are_those_of_the_paper(void **state)
{
    double sum = 0;
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    (void)state;
    for (uint32_t a = 0; a < GEN_MOSAIC_APPS; a++) {
        struct gen_layout l;
        const uint32_t mb = gen_mosaic_app(a)->mb;
        gen_mosaic_place(gen_mosaic_app(a), 720, 1, &l);
        assert_true(fabs(gen_mosaic_pages(&l) / 256.0 - mb) < 0.3);
        sum += mb;
        least = mb < least ? mb : least;
        most = mb > most ? mb : most;
    }
    assert_int_equal(least, 10);
    assert_int_equal(most, 362);
    assert_float_equal(sum / GEN_MOSAIC_APPS, 81.5, 0.1);
}

/* Each line of an application is in one of its allocations. */
static void applications_stay_in_their_memory(void **state)
{
    (void)state;
    for (uint32_t a = 0; a < GEN_MOSAIC_APPS; a++) {
        const struct mosaic_workload w = {.app_count = 1, .apps = {(uint8_t)a}};
        const struct mosaic_run run = mosaic_workload_run(&w, MOSAIC_BASE);
        struct gen_layout l;
        bool full;
        struct frames *f = mosaic_time_frames(&run, &l, &full);
        assert_non_null(f);
        assert_false(full);
        for (uint32_t id = 0; id < l.warps; id += 97) {
            struct gen_warp warp = {.id = id, .rng = {id}};
            for (uint32_t i = 0; i < test_share(3000, 300); i++) {
                uint32_t lines[GEN_MAX_LINES];
                const uint32_t count = gen_mosaic_next(&l, &warp, lines);
                assert_in_range(count, 1, GEN_MAX_LINES);
                for (uint32_t k = 0; k < count; k++) {
                    assert_true(lines[k] / GEN_PAGE_LINES < l.end_page);
                    assert_int_not_equal(frames_page(f, 0, lines[k] / GEN_PAGE_LINES), FRAMES_NONE);
                }
            }
        }
        frames_free(f);
    }
}

/* Returns the line of an instruction of a warp, for an application of one array and one
 * instruction. */
static uint32_t line_at(enum gen_pattern pattern, uint32_t id, uint32_t iteration)
{
    const struct gen_app app = {
        .mb = 64, .large_arrays = 1, .window_kb = 8, .op_count = 1, .ops = {{pattern, 0, 1}}};
    struct gen_layout l;
    uint32_t lines[GEN_MAX_LINES];
    struct gen_warp w = {.id = id, .step = iteration};
    gen_mosaic_place(&app, 80, 1, &l);
    assert_int_equal(gen_mosaic_next(&l, &w, lines), 1);
    return lines[0];
}

/* Adjacent blocks share pages, unless each has its own piece. */
static void blocks_lie_as_the_pattern_says(void **state)
{
    enum { BLOCK = GEN_BLOCK_WARPS, ROW = 8 * 1024 / GEN_LINE_BYTES };
    (void)state;
    for (uint32_t i = 0; i < 4 * BLOCK; i++)
        assert_int_equal(line_at(GEN_STREAM, i, 0), i);
    assert_int_equal(line_at(GEN_STREAM, 0, 1), 80);
    const uint32_t piece = line_at(GEN_CHUNK, BLOCK, 0);
    assert_true(piece > 100 * GEN_PAGE_LINES);
    assert_int_equal(line_at(GEN_CHUNK, BLOCK + 3, 2), piece + 2 * BLOCK + 3);
    for (uint32_t i = 0; i < BLOCK; i++) {
        assert_int_equal(line_at(GEN_TILE, i, 0), i * ROW);
        assert_int_equal(line_at(GEN_TILE, BLOCK + i, 0), i * ROW + 1);
    }
    /* A grid has ten blocks, and a row has 64: the seventh step ends in the next rows. */
    assert_int_equal(line_at(GEN_TILE, 0, 6), 60);
    assert_int_equal(line_at(GEN_TILE, 4 * BLOCK, 6), BLOCK * ROW);
}

static void the_workloads_are_those_of_the_paper(void **state)
{
    uint32_t applications = 0;
    (void)state;
    assert_int_equal(MOSAIC_WORKLOADS, 235);
    for (uint32_t i = 0; i < MOSAIC_WORKLOADS; i++) {
        const struct mosaic_workload w = mosaic_workload(i);
        const struct mosaic_run run = mosaic_workload_run(&w, MOSAIC_MOSAIC);
        uint32_t cores = 0;
        for (uint32_t a = 0; a < w.app_count; a++) {
            cores += run.cores[a];
            for (uint32_t b = 0; b < a; b++)
                assert_int_equal(w.apps[a] == w.apps[b], i < MOSAIC_HOMOGENEOUS);
        }
        assert_int_equal(cores, MOSAIC_CORES);
        applications += i < MOSAIC_HOMOGENEOUS ? 0 : w.app_count;
    }
    assert_int_equal(applications, 350);
}

/* ---- runs ---- */

static void runs_repeat_whatever_the_threads(void **state)
{
    struct mosaic_case some[4] = {0};
    struct err err = {0};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        const struct mosaic_workload w = mosaic_workload(140 + 20 * i);
        some[i].run = mosaic_workload_run(&w, (enum mosaic_design)i);
        some[i].run.warm = 500;
        some[i].run.end = 3000;
    }
    assert_int_equal(mosaic_run_cases(some, 4, &err), STATUS_OK);
    for (uint32_t i = 0; i < 4; i++) {
        struct mosaic_result again;
        assert_int_equal(mosaic_time_run(&some[i].run, &again, &err), STATUS_OK);
        assert_memory_equal(&again, &some[i].result, sizeof again);
        assert_true(again.instructions[0] > 0);
    }
}

/* The bus transfers pages of all applications in turn. Beside a large application, a small one
 * waits for twice its own data. The large application waits for all data. */
static void the_bus_serves_all_in_turn(void **state)
{
    enum { SMALL, LARGE = GEN_MOSAIC_APPS - 1 };
    double waits[2][2];
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        for (uint32_t a = 0; a < 2; a++) {
            const uint8_t apps[2] = {a > 0 ? LARGE : SMALL, a > 0 ? SMALL : LARGE};
            struct mosaic_case c = {.run = {.app_count = n, .cores = {15, 15}}};
            memcpy(c.run.apps, apps, sizeof apps);
            c.result.instructions[0] = c.result.cycles[0] = 1;
            waits[n - 1][a] = mosaic_whole_cycles(&c, 0, MOSAIC_PAGED, 0) -
                              mosaic_whole_cycles(&c, 0, MOSAIC_NO_TRANSFER, 0);
        }
    }
    const double latency = 54.5e-6 * 1020e6;
    assert_float_equal(waits[1][0] - latency, 2 * (waits[0][0] - latency), 1);
    assert_float_equal(waits[1][1], waits[0][1] + waits[0][0] - latency, 1);
    assert_true(waits[0][0] - latency > 1e6);
}

/* While a core has a miss, the memory instructions of all its warps wait. A walk has four loads of
 * at least 95 cycles. No core requests another page before its first walk has ended. */
static void a_core_waits_for_one_translation(void **state)
{
    const struct mosaic_workload w = mosaic_workload(2);
    struct mosaic_run run = mosaic_workload_run(&w, MOSAIC_BASE);
    struct mosaic_result r;
    (void)state;
    run.warm = 0;
    run.end = 4 * 95;
    assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
    assert_in_range(r.mmu.l1_misses, MOSAIC_CORES, MOSAIC_CORES);
    assert_true(r.instructions[0] > 0);
}

/* Before the first page has arrived, each warp has requested exactly one page. */
static void warps_wait_for_their_own_pages_from_the_bus(void **state)
{
    const struct mosaic_workload w = mosaic_workload(2);
    struct mosaic_run run = mosaic_workload_run(&w, MOSAIC_BASE);
    struct mosaic_result r;
    struct gen_layout l;
    (void)state;
    run.mmu.lazy = true;
    run.warm = 0;
    run.end = 50000;
    assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
    assert_in_range(r.mmu.l1_misses, MOSAIC_CORES * MOSAIC_WARPS, MOSAIC_CORES * MOSAIC_WARPS);
    assert_in_range(r.mmu.faults, MOSAIC_CORES + 1, MOSAIC_CORES * MOSAIC_WARPS);
    /* Each page arrives once, and all warps continue. */
    gen_mosaic_place(gen_mosaic_app(2), run.cores[0] * MOSAIC_WARPS, 16, &l);
    run.shrink = 16;
    run.quota = 100;
    assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
    assert_in_range(r.mmu.faults, MOSAIC_CORES + 1, gen_mosaic_pages(&l));
    assert_int_equal(r.instructions[0], 100ull * l.warps * (gen_mosaic_app(2)->gap + 1u));
}

/* Translation only adds time. So the ideal TLB is the fastest, except for effects of the order of
 * events. */
static void no_design_beats_the_ideal_tlb(void **state)
{
    (void)state;
    for (uint32_t a = 0; a < GEN_MOSAIC_APPS; a += test_share(3, 9)) {
        double ipc[MOSAIC_DESIGNS];
        for (int d = 0; d < MOSAIC_DESIGNS; d++) {
            struct mosaic_result r;
            const struct mosaic_workload w = mosaic_workload(a);
            struct mosaic_run run = mosaic_workload_run(&w, (enum mosaic_design)d);
            run.end = 40000;
            assert_int_equal(mosaic_time_run(&run, &r, NULL), STATUS_OK);
            ipc[d] = mosaic_ipc(&r, 0);
        }
        assert_true(ipc[MOSAIC_BASE] < 1.03 * ipc[MOSAIC_IDEAL]);
        assert_true(ipc[MOSAIC_MOSAIC] < 1.03 * ipc[MOSAIC_IDEAL]);
        assert_true(ipc[MOSAIC_BASE] < 1.03 * ipc[MOSAIC_MOSAIC]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tlb_does_what_a_list_does),
        cmocka_unit_test(without_entries_nothing_hits),
        cmocka_unit_test(misses_to_one_page_share_a_walk_and_then_hit),
        cmocka_unit_test(a_line_on_its_way_is_waited_for),
        cmocka_unit_test(a_channel_moves_a_line_in_five_cycles),
        cmocka_unit_test(a_merged_page_takes_one_entry_and_is_looked_up_first),
        cmocka_unit_test(a_fault_takes_what_the_paper_measured),
        cmocka_unit_test(working_sets_are_those_of_the_paper),
        cmocka_unit_test(applications_stay_in_their_memory),
        cmocka_unit_test(blocks_lie_as_the_pattern_says),
        cmocka_unit_test(the_workloads_are_those_of_the_paper),
        cmocka_unit_test(runs_repeat_whatever_the_threads),
        cmocka_unit_test(the_bus_serves_all_in_turn),
        cmocka_unit_test(a_core_waits_for_one_translation),
        cmocka_unit_test(warps_wait_for_their_own_pages_from_the_bus),
        cmocka_unit_test(no_design_beats_the_ideal_tlb),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
