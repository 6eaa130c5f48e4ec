/* test_lab_engine.c: the timed engine. The engine gives the three exact results of Pichai, Hsu and
 * Bhattacharjee 2014 (figures 8 and 19, section 8.2). Tags are compared with the counting model,
 * and the cycles of small machines are counted by hand. */
#include "base/rng.h"
#include "clients/lab/papers/engine/compact.h"
#include "clients/lab/papers/engine/engine.h"
#include "clients/lab/papers/engine/walk.h"
#include "clients/lab/papers/exact.h"
#include "clients/lab/papers/pichai/pichai_machines.h"
#include "gpu/sim/sim_tlb.h"
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

static uint64_t seed(void)
{
    const char *given = getenv("TEST_SEED");
    const uint64_t s = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%llu\n", (unsigned long long)s);
    return s;
}

/* ---- the examples of the paper ---- */

static void figures_8_and_19_and_section_8_2_are_exact(void **state)
{
    (void)state;
    struct pichai_exact e;
    assert_true(pichai_exact(&e));
    assert_int_equal(e.serial_loads, 12);
    assert_int_equal(e.scheduled_loads, 7);
    assert_int_equal(e.stack_fetches, 6);
    assert_int_equal(e.packed_fetches, 3);
    assert_int_equal(e.packed_misses[0], 2);
    assert_int_equal(e.packed_misses[1], 3);
    assert_int_equal(e.packed_misses[2], 2);
    assert_int_equal(e.aware_misses, 2);
    assert_int_equal(e.matrix_bits, 48 * 47 * 3);
    assert_int_equal((e.matrix_bits / 8 + 50) / 100,
                     8); /* sizes are in units of 100 bytes, so 8 means 0.8 KB */
}

static uint64_t page_of(uint64_t l4, uint64_t l3, uint64_t l2, uint64_t l1)
{
    return ((l4 << 9 | l3) << 9 | l2) << 9 | l1;
}

static void the_loads_of_figure_8_are_those_of_the_figure(void **state)
{
    (void)state;
    const uint64_t pages[] = {page_of(0xb9, 0x0c, 0xac, 0x03), page_of(0xb9, 0x0c, 0xac, 0x04),
                              page_of(0xb9, 0x0c, 0xad, 0x05)};
    const uint32_t of_level[] = {1, 1, 2, 3};
    struct lab_walk_load loads[3 * LAB_LEVELS];
    uint32_t count[LAB_LEVELS] = {0};
    const uint32_t n = lab_walk_scheduled(pages, 3, loads);
    assert_int_equal(n, 7);
    for (uint32_t i = 0; i < n; i++)
        count[loads[i].level]++;
    assert_memory_equal(count, of_level, sizeof count);
    /* Loads 3 and 4 of the figure share a line, and so do loads 5 and 6. Load 7 is not on the
     * line of load 6. */
    assert_int_equal(loads[2].entry >> 4, loads[3].entry >> 4);
    assert_int_equal(loads[4].entry >> 4, loads[5].entry >> 4);
    assert_int_not_equal(loads[5].entry >> 4, loads[6].entry >> 4);
}

static void a_schedule_has_each_entry_once_and_levels_in_order(void **state)
{
    (void)state;
    struct rng rng = {seed()};
    for (uint32_t round = 0; round < 1000; round++) {
        uint64_t pages[LAB_MAX_WALKS];
        struct lab_walk_load serial[LAB_MAX_WALKS * LAB_LEVELS];
        struct lab_walk_load scheduled[LAB_MAX_WALKS * LAB_LEVELS];
        const uint32_t count = 1 + (uint32_t)rng_below(&rng, LAB_MAX_WALKS);
        for (uint32_t i = 0; i < count; i++)
            pages[i] = rng_below(&rng, 1 + rng_below(&rng, (uint64_t)1 << 36));
        const uint32_t all = lab_walk_serial(pages, count, serial);
        const uint32_t n = lab_walk_scheduled(pages, count, scheduled);
        for (uint32_t i = 0; i < all; i++) {
            uint32_t times = 0;
            for (uint32_t k = 0; k < n; k++)
                times +=
                    scheduled[k].level == serial[i].level && scheduled[k].entry == serial[i].entry;
            assert_int_equal(times, 1);
        }
        for (uint32_t i = 1; i < n; i++)
            assert_true(scheduled[i].level >= scheduled[i - 1].level);
    }
}

/* ---- tags ---- */

static void tags_do_what_the_counting_model_does(void **state)
{
    (void)state;
    struct rng rng = {seed()};
    const uint32_t ways[] = {1, 3, 4, 8, 128};
    for (uint32_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const uint32_t sets = 16;
        const struct sim_level level = {.entry_bytes = 4096,
                                        .entries = sets * ways[i],
                                        .walkers = 1,
                                        .sectors = 1,
                                        .run_count = 1,
                                        .runs = {{ways[i], sets}},
                                        .instance_count = 1};
        struct sim_tlb *model = sim_tlb_new(&level, 1);
        struct lab_cache *tags = lab_cache_new(sets, ways[i]);
        assert_non_null(model);
        assert_non_null(tags);
        for (uint32_t n = 0; n < 20000; n++) {
            const uint32_t page = 1 + (uint32_t)rng_below(&rng, (uint64_t)sets * ways[i] * 3 / 2);
            const uint32_t slot = lab_cache_find(tags, page);
            uint32_t evicted;
            assert_int_equal(sim_tlb_touch(model, 0, (uint64_t)page * 4096), slot != LAB_NO_SLOT);
            if (slot != LAB_NO_SLOT)
                lab_cache_use(tags, slot);
            else
                (void)lab_cache_fill(tags, page, &evicted);
            assert_int_equal(lab_cache_depth(tags, lab_cache_find(tags, page)), 0);
        }
        lab_cache_free(tags);
        sim_tlb_free(model);
    }
}

static void lines_and_pages_of_a_warp_are_distinct_and_complete(void **state)
{
    (void)state;
    struct rng rng = {seed()};
    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t given[LAB_LANES];
        uint8_t homes[LAB_LANES];
        struct lab_access a;
        const uint32_t count = 1 + (uint32_t)rng_below(&rng, LAB_LANES);
        const uint64_t span = 1 + rng_below(&rng, (uint64_t)1 << (1 + round % 22));
        for (uint32_t i = 0; i < count; i++) {
            given[i] = (1 << 13) + (uint32_t)rng_below(&rng, span);
            homes[i] = (uint8_t)i;
        }
        lab_coalesce(given, homes, count, &a);
        uint32_t lines = 0;
        uint32_t pages = 0;
        for (uint32_t i = 0; i < count; i++) {
            bool new_line = true;
            bool new_page = true;
            for (uint32_t k = 0; k < i; k++) {
                new_line = new_line && given[k] != given[i];
                new_page = new_page && given[k] >> 5 != given[i] >> 5;
            }
            if (new_line)
                assert_int_equal(a.lines[lines], given[i]);
            if (new_page)
                assert_int_equal(a.home_of_page[pages], i);
            lines += new_line;
            pages += new_page;
        }
        assert_int_equal(a.line_count, lines);
        assert_int_equal(a.page_count, pages);
        for (uint32_t i = 0; i < a.line_count; i++)
            assert_int_equal(a.pages[a.page_of_line[i]], a.lines[i] >> 5);
    }
}

/* ---- small machines ---- */

enum { BEFORE = 3, ROUNDS = 10 };

static struct lab_machine small(void)
{
    return (struct lab_machine){
        .cores = 1,
        .warps = 1,
        .issue_cycles = 4,
        .l1_bytes = 32768,
        .l1_ways = 8,
        .l1_cycles = 1,
        .l1_busy = 1,
        .memory = {.cache_bytes = 1 << 20,
                   .cache_ways = 8,
                   .cache_cycles = 60,
                   .cache_busy = 4,
                   .channels = 8,
                   .dram_cycles = 65,
                   .dram_busy = 13,
                   .cores_per_port = 1,
                   .port_busy = 8,
                   .entry_busy = 2},
    };
}

/* One warp reads one line of each of its pages in each iteration. */
static struct lab_result run_job(const struct lab_machine *m, uint32_t pages, uint32_t iterations)
{
    uint32_t units[LAB_LANES];
    struct trace_record records[ROUNDS];
    struct trace_warp warp = {0, iterations};
    struct trace_block block = {0, 0, 1};
    const struct trace trace = {.unit_shift = LAB_LINE_SHIFT,
                                .block_count = 1,
                                .warp_count = 1,
                                .record_count = iterations,
                                .blocks = &block,
                                .warps = &warp,
                                .records = records,
                                .units = units};
    struct lab_job job;
    struct lab_result r;
    struct err err = {0};
    for (uint32_t i = 0; i < pages; i++)
        units[i] = i << (LAB_PAGE_SHIFT - LAB_LINE_SHIFT);
    for (uint32_t i = 0; i < iterations; i++)
        records[i] = (struct trace_record){.mask = UINT32_MAX, .line_count = (uint8_t)pages};
    assert_int_equal(lab_job_set(&trace, BEFORE, &job, &err), STATUS_OK);
    assert_int_equal(lab_engine_run(m, &job, &r, &err), STATUS_OK);
    return r;
}

static void one_load_takes_the_cycles_of_its_parts(void **state)
{
    (void)state;
    struct lab_machine m = small();
    /* Three instructions come before the load. The load takes the time of the first level, the
     * second level and memory. */
    struct lab_result r = run_job(&m, 1, 1);
    const uint64_t load = 1 + 60 + 65;
    assert_int_equal(r.cycles, BEFORE * 4 + load);
    assert_int_equal(r.all.idle_cycles, load - 4);
    assert_int_equal(r.all.instructions, BEFORE + 1);
    /* Loads of later iterations hit the first level. */
    r = run_job(&m, 1, ROUNDS);
    assert_int_equal(r.cycles, BEFORE * 4 + load + (ROUNDS - 1) * (BEFORE * 4 + 4));
    assert_int_equal(r.all.line_misses, 1);

    /* A walk of four loads comes first, and each entry comes from memory. */
    m.tlb = (struct lab_tlb_desc){.entries = 4, .ways = 4, .ports = 1, .walkers = 1};
    r = run_job(&m, 1, 1);
    assert_int_equal(r.cycles, BEFORE * 4 + 4 * (60 + 65) + load);
    assert_int_equal(r.all.walk_loads, 4);
    assert_int_equal(r.all.walk_hits, 0);
    assert_int_equal(r.all.miss_cycles, 4 * (60 + 65));
}

static void a_shared_line_brings_its_neighbor(void **state)
{
    (void)state;
    struct lab_memory_desc desc = small().memory;
    desc.cache_line_shift = 1;
    struct lab_memory *m = lab_memory_new(&desc);
    bool hit;
    assert_non_null(m);
    assert_int_equal(m->cache->sets * m->cache->ways, (1 << 20) / 256);
    const uint64_t there = lab_memory_read(m, 0, 1000, 0, &hit);
    assert_false(hit);
    assert_int_equal(there, 60 + 65);
    assert_int_equal(lab_memory_read(m, 0, 1001, 10, &hit), there); /* the line is in transfer */
    assert_true(hit);
    (void)lab_memory_read(m, 0, 1002, 10, &hit);
    assert_false(hit);
    assert_int_equal(m->dram_lines, 2);
    /* A line occupies the port for 8 cycles, and an entry occupies it for 2 cycles. */
    assert_int_equal(m->port_free[0], 10 + 2 * 8);
    (void)lab_memory_read_entry(m, 0, 1003, 100, &hit);
    assert_true(hit);
    assert_int_equal(m->port_free[0], 102);
    lab_memory_free(m);
}

static void a_miss_takes_from_when_it_waits(void **state)
{
    (void)state;
    enum { LINES = 8 };
    struct lab_machine m = small();
    m.memory.cache_busy = m.memory.port_busy = m.memory.dram_busy = 0;
    /* The data cache accepts one line after another. */
    const struct lab_result r = run_job(&m, LINES, 1);
    assert_int_equal(r.all.line_misses, LINES);
    assert_int_equal(r.all.line_cycles, LINES * (1 + 60 + 65) + LINES * (LINES - 1) / 2);
}

static void without_overlap_lines_wait_for_all_lookups(void **state)
{
    (void)state;
    enum { PAGES = 8 };
    struct lab_machine m = small();
    m.tlb = (struct lab_tlb_desc){.entries = 64, .ways = 4, .ports = PAGES, .walkers = 1};
    const struct lab_result all_at_once = run_job(&m, PAGES, ROUNDS);
    m.tlb.ports = 1;
    const struct lab_result one_by_one = run_job(&m, PAGES, ROUNDS);
    assert_int_equal(one_by_one.all.page_misses, PAGES);
    assert_int_equal(one_by_one.cycles - all_at_once.cycles, (ROUNDS - 1) * (PAGES - 1));
    /* With overlap, a line waits for its own page only. */
    m.tlb.overlap = true;
    const struct lab_result overlapped = run_job(&m, PAGES, ROUNDS);
    assert_int_equal(overlapped.cycles, all_at_once.cycles);
}

static void walkers_share_misses_and_a_schedule_needs_fewer_loads(void **state)
{
    (void)state;
    struct lab_machine m = small();
    m.tlb = (struct lab_tlb_desc){.entries = 64, .ways = 4, .ports = 4, .walkers = 1};
    const struct lab_result serial = run_job(&m, 8, 1);
    m.tlb.walkers = 8;
    const struct lab_result several = run_job(&m, 8, 1);
    m.tlb.walkers = 1;
    m.tlb.scheduled_walks = true;
    const struct lab_result scheduled = run_job(&m, 8, 1);
    assert_int_equal(serial.all.page_misses, 8);
    assert_int_equal(serial.all.walk_loads, 32);
    assert_int_equal(several.all.walk_loads, 32);
    assert_int_equal(scheduled.all.walk_loads, 3 + 8);
    assert_true(several.cycles < serial.cycles);
    assert_true(scheduled.cycles < serial.cycles);
}

static uint64_t active_lanes(const struct trace *t)
{
    uint64_t lanes = 0;
    for (uint32_t i = 0; i < t->record_count; i++)
        lanes += (uint32_t)__builtin_popcount(t->records[i].mask);
    return lanes;
}

/* Programs with and without branches run on all machines. */
static void all_machines_do_the_same_work(void **state)
{
    struct rng rng = {seed()};
    (void)state;
    for (uint32_t which = 0; which < 4; which++) {
        struct trace trace = drawn_trace(&rng, 6, 4 << which % 2, 20, 1 << 24, which > 1);
        struct lab_job job;
        struct lab_machine m = small();
        struct lab_result none;
        struct lab_result r;
        assert_int_equal(lab_job_set(&trace, BEFORE, &job, NULL), STATUS_OK);
        m.cores = 2;
        m.warps = 16;
        assert_int_equal(lab_engine_run(&m, &job, &none, NULL), STATUS_OK);
        assert_int_equal(none.all.memory, trace.record_count);
        assert_int_equal(none.all.instructions, trace.record_count * (BEFORE + 1));
        assert_int_equal(none.all.lanes, active_lanes(&trace));
        /* In every cycle, a core is idle or issues an instruction. Lines do not arrive faster than
         * the memory channels allow. */
        assert_int_equal(none.all.idle_cycles + m.issue_cycles * none.all.instructions,
                         none.all.core_cycles);
        assert_true(none.all.line_misses <= none.all.lines);
        assert_true(none.all.line_cycles >=
                    none.all.line_misses * (m.l1_busy + m.memory.cache_cycles));
        for (uint32_t variant = 0; variant < 6; variant++) {
            m.tlb = (struct lab_tlb_desc){.entries = 64,
                                          .ways = 4,
                                          .ports = 3,
                                          .walkers = 2,
                                          .hits_under_misses = variant > 0,
                                          .overlap = variant > 1,
                                          .scheduled_walks = variant > 2};
            m.sched.order = variant % 2 ? LAB_GREEDY_OLDEST : LAB_ROUND_ROBIN;
            m.sched.locality = variant < 4 ? LAB_NO_LOCALITY : LAB_OF_LINES + (variant - 4);
            m.sched.miss_weight = 4;
            m.sched.depth_weights[0] = 1;
            assert_int_equal(lab_engine_run(&m, &job, &r, NULL), STATUS_OK);
            assert_int_equal(r.all.instructions, none.all.instructions);
            assert_int_equal(r.all.memory, none.all.memory);
            assert_int_equal(r.all.lanes, none.all.lanes);
            assert_int_equal(r.all.pages, none.all.pages);
            assert_int_equal(r.all.page_misses <= r.all.pages, 1);
            struct lab_result again;
            assert_int_equal(lab_engine_run(&m, &job, &again, NULL), STATUS_OK);
            assert_memory_equal(&r, &again, sizeof r);
        }
        /* Compaction changes the warps, but not the work of the threads. */
        m.sched = (struct lab_sched_desc){.order = LAB_GREEDY_OLDEST};
        for (uint32_t bits = 0; bits <= 3; bits++) {
            m.compact = (struct lab_compact_desc){true, bits};
            assert_int_equal(lab_engine_run(&m, &job, &r, NULL), STATUS_OK);
            assert_int_equal(r.all.lanes, none.all.lanes);
            /* Only divergent blocks are packed into other warps. */
            assert_int_equal(r.all.compacted > 0, which > 1);
        }
        trace_free(&trace);
    }
}

static void locality_and_compaction_go_by_age_and_all_else_in_turn(void **state)
{
    (void)state;
    for (enum pichai_machine which = 0; which < PICHAI_MACHINES; which++) {
        struct lab_machine m;
        pichai_machine(which, &m);
        assert_int_equal(m.sched.order, m.compact.on                          ? LAB_OLDEST
                                        : m.sched.locality != LAB_NO_LOCALITY ? LAB_GREEDY_OLDEST
                                                                              : LAB_ROUND_ROBIN);
    }
}

static void a_machine_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct lab_machine m = small();
    const struct lab_job job = {.block_warps = 16};
    struct lab_result r;
    struct err err = {0};
    assert_int_equal(lab_engine_run(&m, &job, &r, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "blocks of 16 warps do not fit 1 cores of 1 warps"));
    m.warps = 64;
    m.compact = (struct lab_compact_desc){true, 3};
    assert_int_equal(lab_engine_run(&m, &job, &r, &err), STATUS_INVALID_ARGUMENT);
    m.warps = 48;
    m.tlb = (struct lab_tlb_desc){.entries = 128, .ways = 4, .ports = 3, .walkers = 9};
    assert_int_equal(lab_engine_run(&m, &job, &r, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "9 walkers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_8_and_19_and_section_8_2_are_exact),
        cmocka_unit_test(the_loads_of_figure_8_are_those_of_the_figure),
        cmocka_unit_test(a_schedule_has_each_entry_once_and_levels_in_order),
        cmocka_unit_test(tags_do_what_the_counting_model_does),
        cmocka_unit_test(lines_and_pages_of_a_warp_are_distinct_and_complete),
        cmocka_unit_test(one_load_takes_the_cycles_of_its_parts),
        cmocka_unit_test(a_miss_takes_from_when_it_waits),
        cmocka_unit_test(a_shared_line_brings_its_neighbor),
        cmocka_unit_test(without_overlap_lines_wait_for_all_lookups),
        cmocka_unit_test(walkers_share_misses_and_a_schedule_needs_fewer_loads),
        cmocka_unit_test(all_machines_do_the_same_work),
        cmocka_unit_test(locality_and_compaction_go_by_age_and_all_else_in_turn),
        cmocka_unit_test(a_machine_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("lab_engine", tests, NULL, NULL);
}
