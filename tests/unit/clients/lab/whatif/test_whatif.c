/* test_whatif.c: compares what-if with the planner on random traces and fingerprints of measured
 * chips, and checks properties that hold for any trace. */
#include "clients/lab/trace/gen_jobs.h"
#include "clients/lab/whatif/whatif.h"

#include "base/rng.h"
#include "base/units.h"
#include "fingerprint/fingerprint_read.h"
#include "planner/strategy.h"
#include "tests/share.h"
#include "tests/unit/support/written_trace.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEASURED   "docs/measurements/nvidia-"
#define H200       MEASURED "h200-3232f831-2026-11-21/fingerprint-full.json"
#define OTHER_H200 MEASURED "h200-2ea0ea17-2026-11-22/fingerprint-memory.json"

/* The largest difference between what-if and plan on random traces. */
static const double AGREE = 0.03;

/* Returns the number of accesses of a random trace. A quarter of this number is enough for
 * AGREE. */
static uint64_t random_accesses(void)
{
    return test_part(1 << 20, 1 << 18, 1 << 18);
}

static struct fingerprint fp;

static void load(const char *path)
{
    struct err err;
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    if (fingerprint_from_json(json, &fp, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    json_decref(json);
}

static struct trace traced_job(const struct gen_job *job)
{
    struct written_trace written;
    struct err err = {0};
    written_trace_begin(&written);
    if (gen_job(job, written.w, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return written_trace_load(&written);
}

static struct trace traced(const char *name, uint64_t bytes, uint64_t count)
{
    return traced_job(&(struct gen_job){
        .name = name, .bytes = bytes, .count = count, .row_bytes = 128, .seed = 5});
}

static struct whatif_shared shared;

static struct whatif_answer *asked(const struct trace *t, const struct whatif_options *o)
{
    static struct whatif_answer answer;
    struct whatif_options options = *o;
    struct err err = {0};
    options.shared = &shared;
    if (whatif_ask(&fp, t, &options, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return &answer;
}

/* Returns the row of a question and value, or NULL if no row has a number. */
static const struct whatif_row *row_of(const struct whatif_answer *a, enum whatif_question q,
                                       double value)
{
    for (uint32_t i = 0; i < a->row_count; i++) {
        const struct whatif_row *r = &a->rows[i];
        if (r->known && r->question == q && (value < 0 || r->value == value))
            return r;
    }
    return NULL;
}

static const struct strategy_option *option_of(const struct strategy_answer *plan, enum strategy s)
{
    const struct strategy_option *o = plan->options;
    while (o->strategy != s)
        o++;
    return o;
}

static double worst_off;

static void compare(const char *path, uint64_t bytes, const char *what,
                    const struct whatif_row *row, struct maybe_f64 plan_gbps)
{
    double off;
    if (!row || !IS_KNOWN(plan_gbps)) {
        if (row || IS_KNOWN(plan_gbps))
            fail_msg("%s: one of the two has no number for %s", path, what);
        return;
    }
    off = row->gbps / plan_gbps.v - 1;
    worst_off = fmax(worst_off, fabs(off));
    if (fabs(off) > AGREE)
        fail_msg("%s: %s over %.1f GiB: what-if %.1f GB/s, plan %.1f (%+.1f %%)", path, what,
                 (double)bytes / GIB, row->gbps, plan_gbps.v, 100 * off);
}

static void compare_size(const char *path, uint64_t bytes)
{
    static struct strategy_answer plan;
    const struct job_request job = {.bytes = bytes};
    const struct whatif_options contiguous = {
        .contiguous = 1, .questions = 1 << WHATIF_SCOPES | 1 << WHATIF_WINDOWS};
    struct err err = {0};
    struct trace t = traced("random", bytes, random_accesses());
    const struct whatif_answer *a = asked(&t, &contiguous);
    if (strategy_plan(&fp, &job, &plan, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(a->bytes, bytes);
    compare(path, bytes, "naive", row_of(a, WHATIF_AS_IT_IS, -1),
            option_of(&plan, STRATEGY_NAIVE)->gbps);
    compare(path, bytes, "scopes", row_of(a, WHATIF_SCOPES, -1),
            option_of(&plan, STRATEGY_SCOPES)->gbps);
    compare(path, bytes, "windows", row_of(a, WHATIF_WINDOWS, -1),
            option_of(&plan, STRATEGY_WINDOWS)->gbps);
    trace_free(&t);
}

static void agrees_with_the_planner(void **state)
{
    static const char *const chips[] = {
        H200, MEASURED "h100-80gb-hbm3-dcda818d-2026-11-21/fingerprint-full.json",
        MEASURED "h200-b76f831d-2026-11-21/fingerprint-full.json", OTHER_H200};
    static const double shares[] = {0.3, 0.7, 0.97};
    (void)state;
    for (uint32_t c = 0; c < test_part(sizeof chips / sizeof chips[0], 2, 1); c++) {
        load(chips[c]);
        for (uint32_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
            const double bytes = shares[s] * (double)fp.gpu.memory_bytes;
            compare_size(chips[c], (uint64_t)bytes / (32 * MIB) * (32 * MIB));
        }
    }
    print_message("the worst is %.2f %% off\n", 100 * worst_off);
}

static void scattered_agrees_too(void **state)
{
    static struct strategy_answer plan;
    const struct job_request job = {.bytes = 128 * GIB};
    const struct whatif_options unknown = {.contiguous = -1, .questions = 1};
    const struct whatif_options half = {.contiguous = 0.5, .questions = 1};
    const struct whatif_row *r;
    double range[2];
    struct err err = {0};
    (void)state;
    load(OTHER_H200);
    struct trace t = traced("random", 128 * GIB, random_accesses());
    assert_int_equal(strategy_plan(&fp, &job, &plan, &err), STATUS_OK);
    r = row_of(asked(&t, &unknown), WHATIF_AS_IT_IS, -1);
    range[0] = r->ns;
    range[1] = r->ns_at_worst;
    assert_true(fabs(r->gbps / plan.naive_contiguous_gbps.v - 1) < AGREE);
    assert_true(fabs(r->gbps * r->ns / r->ns_at_worst / plan.naive_scattered_gbps.v - 1) < AGREE);
    r = row_of(asked(&t, &half), WHATIF_AS_IT_IS, -1);
    assert_true(r->ns == r->ns_at_worst);
    assert_true(fabs(r->ns - (range[0] + range[1]) / 2) < 1e-9);
    trace_free(&t);
}

/* The job has inputs that each pass reads again, outputs that several threads add to, and a
 * reserve. */
static void what_a_job_states_costs_the_same(void **state)
{
    static struct strategy_answer plan;
    const struct job_request job = {
        .bytes = 128 * GIB, .input_bytes = 4, .output_bytes = 2, .reserve_bytes = 64 * MIB};
    const struct whatif_options o = {.contiguous = 1,
                                     .input_bytes = 4,
                                     .output_bytes = 2,
                                     .reserve_bytes = 64 * MIB,
                                     .questions = 1 << WHATIF_SCOPES | 1 << WHATIF_WINDOWS};
    struct err err = {0};
    const struct whatif_answer *a;
    (void)state;
    load(H200);
    struct trace t = traced("random", 128 * GIB, random_accesses());
    a = asked(&t, &o);
    assert_int_equal(strategy_plan(&fp, &job, &plan, &err), STATUS_OK);
    compare(H200, job.bytes, "scopes", row_of(a, WHATIF_SCOPES, (double)plan.passes),
            option_of(&plan, STRATEGY_SCOPES)->gbps);
    compare(H200, job.bytes, "windows", row_of(a, WHATIF_WINDOWS, plan.placement.window_count),
            option_of(&plan, STRATEGY_FILTERED_WINDOWS)->gbps);
    assert_true(
        row_of(a, WHATIF_SCOPES, 3)->gbps <
        row_of(a, WHATIF_WINDOWS, 3)->gbps); /* inputs and outputs add a cost to each pass */
    trace_free(&t);
}

/* ---- properties of any trace ---- */

/* A pass is a launch, and each launch needs the entries of its scope again. With windows, the
 * kernel resets its queues and waits. The cost of the unchanged job stays the same. */
static void launches_cost_what_they_cost_in_a_plan(void **state)
{
    static struct strategy_answer plan;
    const uint64_t bytes = 128 * GIB;
    struct whatif_options o = {.contiguous = 1,
                               .questions = 1 << WHATIF_SCOPES | 1 << WHATIF_WINDOWS};
    struct err err = {0};

    (void)state;
    load(H200);
    struct trace t = traced("random", bytes, random_accesses());
    const struct whatif_answer *a = asked(&t, &o);
    const double naive = row_of(a, WHATIF_AS_IT_IS, -1)->ns;
    const double windows = row_of(a, WHATIF_WINDOWS, -1)->ns;
    const struct whatif_row scopes = *row_of(a, WHATIF_SCOPES, -1);
    for (o.launch_accesses = 1 << 20; o.launch_accesses <= 1 << 26; o.launch_accesses <<= 6) {
        const struct job_request job = {.bytes = bytes, .accesses = o.launch_accesses};
        const double launch = STRATEGY_LAUNCH_US * 1e3 / (double)o.launch_accesses;
        if (strategy_plan(&fp, &job, &plan, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        a = asked(&t, &o);
        const double more = row_of(a, WHATIF_SCOPES, scopes.value)->ns - scopes.ns;
        assert_float_equal(row_of(a, WHATIF_AS_IT_IS, -1)->ns, naive, 1e-9);
        assert_float_equal(row_of(a, WHATIF_WINDOWS, -1)->ns, windows + 2 * launch, 1e-9);
        assert_true(more > (scopes.value - 1) * launch); /* the TLBs are also cold */
        assert_float_equal(more, option_of(&plan, STRATEGY_SCOPES)->launch_ns - launch, 1e-9);
    }
    trace_free(&t);
}

static void entries_that_cover_all_never_walk(void **state)
{
    const struct whatif_options o = {.contiguous = 1};
    const struct whatif_answer *a;
    double before = 1;
    (void)state;
    load(H200);
    struct trace t = traced("sampling", 128 * GIB, test_part(1 << 19, 1 << 18, 1 << 18));
    a = asked(&t, &o);
    for (uint64_t size = 65536; size <= 134217728; size *= 2) {
        const struct whatif_row *r = row_of(a, WHATIF_ENTRY, (double)size);
        if (!r)
            continue;
        assert_true(r->walk_share <= before);
        before = r->walk_share;
    }
    assert_true(row_of(a, WHATIF_ENTRY, 134217728)->walk_share < 1e-9);
    assert_true(row_of(a, WHATIF_ENTRY, 65536)->walk_share > 0.99);
    assert_true(row_of(a, WHATIF_WINDOWS, -1)->walk_share < 0.001);
    assert_true(row_of(a, WHATIF_ORDER, 1 << 18)->walk_share <
                row_of(a, WHATIF_ORDER, 1 << 10)->walk_share / 10);
    for (uint32_t i = 1; i < a->row_count; i++)
        assert_true(!a->rows[i].known || a->rows[i].ns >= a->rows[i - 1].ns);
    trace_free(&t);
}

static void within_the_reach_nothing_helps(void **state)
{
    const struct whatif_options o = {.contiguous = -1};
    const struct whatif_row *r;
    const struct whatif_answer *a;
    (void)state;
    load(H200);
    struct trace t = traced("gather", 32 * GIB, 1 << 18);
    a = asked(&t, &o);
    r = row_of(a, WHATIF_AS_IT_IS, -1);
    assert_true(r->walk_share < 1e-9);
    assert_int_equal(r->bound, BOUND_MEMORY);
    assert_true(r->ns == r->ns_at_worst);
    assert_null(row_of(a, WHATIF_WINDOWS, -1));
    assert_null(row_of(a, WHATIF_SCOPES, -1));
    trace_free(&t);
}

/* Returns the number of misses of the trace if the TLBs are empty at its start. */
static uint64_t cold_walks(const struct trace *t)
{
    const struct whatif_options o = {.contiguous = 1, .cold = true, .questions = 1};
    return (uint64_t)lround(row_of(asked(t, &o), WHATIF_AS_IT_IS, -1)->walk_share *
                            (double)t->line_count);
}

/* Each entry of each group misses once. If the fingerprint has the latency of a miss, some entries
 * miss again while their first miss is in flight. */
static void cold_counts_the_first_touches(void **state)
{
    (void)state;
    load(H200);
    const uint64_t once = 512 * fp.topology.partition.group_count;
    struct trace t = traced("random", 16 * GIB, 1 << 20);
    const uint64_t walks = cold_walks(&t);
    assert_in_range(walks, once + 1, once * 5 / 4);
    for (uint32_t g = 0; g < fp.topology.partition.group_count; g++)
        fp.topology.groups[g].beyond_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    assert_int_equal(cold_walks(&t), once);
    trace_free(&t);
}

/* After sorting, most entries serve several lanes, but the next lane often comes before the walk
 * has ended. So small buffers save fewer misses than they would if a walk took no time. */
static void neighbors_in_flight_are_walked_again(void **state)
{
    const struct whatif_options o = {.contiguous = 1, .questions = 1 << WHATIF_ORDER};
    double share[2];
    (void)state;
    load(H200);
    struct trace t = traced("gather", 128 * GIB, test_part(1 << 19, 1 << 18, 1 << 18));
    share[0] = row_of(asked(&t, &o), WHATIF_ORDER, 1 << 12)->walk_share;
    for (uint32_t g = 0; g < fp.topology.partition.group_count; g++)
        fp.topology.groups[g].miss_penalty_cycles.v =
            1; /* a walk is so fast that no miss is in flight */
    share[1] = row_of(asked(&t, &o), WHATIF_ORDER, 1 << 12)->walk_share;
    assert_true(share[0] > 1.3 * share[1]);
    trace_free(&t);
}

/* Lanes that read the same page share a translation. */
static void lanes_share_translations(void **state)
{
    const struct whatif_options o = {.contiguous = 1, .questions = 1};
    struct gen_job job = {.name = "gather", .bytes = 128 * GIB, .count = 1 << 18, .seed = 5};
    double walks[2];
    (void)state;
    load(H200);
    for (int i = 0; i < 2; i++) {
        job.row_bytes = i == 0 ? 128 : 512;
        struct trace t = traced_job(&job);
        walks[i] = row_of(asked(&t, &o), WHATIF_AS_IT_IS, -1)->walk_share * (double)t.line_count;
        trace_free(&t);
    }
    assert_true(fabs(walks[1] / walks[0] - 1) < 0.02);
}

/* A job reads a large table at random, and for each row two lines of a list that is `list_bytes`
 * long. */
static struct trace table_and_list(uint64_t list_bytes, bool list)
{
    enum { LINE = 128, RECORDS = 1 << 16 };
    const uint64_t table = 100 * GIB / LINE, list_lines = list_bytes / LINE;
    const struct rlt_allocation allocations[] = {{.base = GIB, .bytes = 100 * GIB},
                                                 {.base = 200 * GIB, .bytes = list_bytes}};
    const struct rlt_kernel kernel = {.grid = {RECORDS / 4, 1, 1}, .block = {128, 1, 1}};
    struct rlt_record r = {.mask = RLT_FULL_MASK, .width_log2 = 2, .line_count = 1};
    struct rng rng = {7};
    struct written_trace written;

    written_trace_begin(&written);
    struct rlt_writer *const w = written.w;
    (void)rlt_write_app(w, "lists");
    for (int i = 0; i < 2; i++)
        rlt_write_allocation(w, &allocations[i]);
    (void)rlt_write_kernel(w, &kernel);
    for (uint64_t i = 0; i < RECORDS; i++) {
        r.block = i / 4;
        r.warp = (uint32_t)(i % 4);
        r.lines[0] = GIB / LINE + rng_below(&rng, table);
        rlt_write_record(w, &r);
        for (int k = 0; k < 2 && list; k++) {
            r.lines[0] = 200 * GIB / LINE + rng_below(&rng, list_lines);
            rlt_write_record(w, &r);
        }
    }
    return written_trace_load(&written);
}

/* All SMs read a short list, so it makes no window slower. A long list does, because it is in one
 * window. */
static void short_lists_crowd_no_window(void **state)
{
    const struct whatif_options o = {.contiguous = 1, .questions = 1 << WHATIF_WINDOWS};
    double ns[3];
    (void)state;
    load(H200);
    for (int i = 0; i < 3; i++) {
        struct trace t = table_and_list(i == 2 ? 4 * GIB : GIB / 4, i > 0);
        const struct whatif_answer *const a = asked(&t, &o);
        ns[i] = row_of(a, WHATIF_WINDOWS, -1)->ns / a->memory_ns;
        trace_free(&t);
    }
    assert_true(fabs(ns[1] / ns[0] - 1) < 0.02);
    assert_true(ns[2] / ns[0] > 1.2);
}

/* Returns the share of accesses that miss. */
static double walk_share(const struct trace *t)
{
    const struct whatif_options o = {.contiguous = 1, .questions = 1};
    return row_of(asked(t, &o), WHATIF_AS_IT_IS, -1)->walk_share;
}

/* A short trace of a long launch fills only one group of SMs, whose TLB then evicts entries like in
 * the launch. If the trace is the whole launch, its pages fit into the TLBs of all groups. */
static void a_sample_misses_like_its_launch(void **state)
{
    (void)state;
    load(H200);
    struct trace t = traced("random", 128 * GIB, 1 << 19);
    const double all = walk_share(&t);
    trace_free(&t);
    t = traced("random", 128 * GIB, 1 << 15);
    assert_true(walk_share(&t) < all / 2);
    t.kernels[0].grid[0] *= 24;
    assert_float_equal(walk_share(&t), all, all / 20);
    trace_free(&t);
}

/* A load that a warp repeats at once finds its line in the data cache and needs no translation. An
 * atomic does not use this cache. */
static void repeated_loads_use_the_data_cache(void **state)
{
    double share[3];
    (void)state;
    load(H200);
    struct trace t = traced("grouping", 128 * GIB, 1 << 18);
    for (uint32_t i = 0; i < 3; i++) {
        struct cache_facts *l1 = &fp.caches[CACHE_L1];
        l1->line_bytes = KNOWN_U64(128);
        l1->fits_bytes = i < 2 ? KNOWN_U64(MIB) : UNKNOWN_U64(REASON_NOT_MEASURED);
        for (uint32_t k = 0; k < t.record_count; k++)
            t.records[k].kind = i > 0 ? RLT_LOAD : RLT_ATOMIC;
        share[i] = walk_share(&t);
    }
    assert_true(share[1] < 0.7 * share[0]);
    assert_float_equal(share[2], share[0], share[0] / 20);
    trace_free(&t);
}

/* The first answer shares no counts. The others share counts, first of another fingerprint. */
static void the_same_twice(void **state)
{
    const struct whatif_options o = {.contiguous = -1};
    static struct whatif_answer first;
    struct err err = {0};
    (void)state;
    load(H200);
    struct trace t = traced("grouping", 96 * GIB, 1 << 17);
    if (whatif_ask(&fp, &t, &o, &first, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    load(OTHER_H200);
    (void)walk_share(&t);
    load(H200);
    const double share = walk_share(&t);
    trace_free(&t);
    t = traced("grouping", 96 * GIB, 1 << 17);
    const struct whatif_answer *second = asked(&t, &o);
    assert_true(row_of(second, WHATIF_AS_IT_IS, -1)->walk_share == share);
    assert_int_equal(first.row_count, second->row_count);
    for (uint32_t i = 0; i < first.row_count; i++) {
        assert_int_equal(first.rows[i].question, second->rows[i].question);
        assert_memory_equal(&first.rows[i].ns, &second->rows[i].ns, sizeof(double));
        assert_memory_equal(&first.rows[i].walk_share, &second->rows[i].walk_share, sizeof(double));
    }
    trace_free(&t);
}

static void wrong_questions_are_refused(void **state)
{
    const struct whatif_options wrong[] = {
        {.contiguous = 2}, {.in_reach_gbps = -1}, {.sm_blocks = 1000}, {.contiguous = 0.5}};
    static struct whatif_answer answer;
    (void)state;
    load(H200);
    fp.contiguity.scattered_miss_ns = UNKNOWN_F64(REASON_NOT_MEASURED);
    struct trace t = traced("random", GIB, 1000);
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct err err = {0};
        assert_int_not_equal(whatif_ask(&fp, &t, &wrong[i], &answer, &err), STATUS_OK);
        assert_true(strlen(err.text) > 20);
    }
    trace_free(&t);
}

/* If the left-out share of a trace is small, the answer reports the share. If the share is larger,
 * the trace is refused. */
static void a_trace_that_lacks_much_is_not_answered(void **state)
{
    const struct whatif_options o = {.contiguous = -1};
    (void)state;
    load(H200);
    struct trace t = traced("random", 96 * GIB, 1000);
    const uint64_t limit = (uint64_t)(t.record_count * WHATIF_MOST_LEFT_OUT);
    t.left_out.copies = limit;
    t.left_out.lost = 1000 * t.record_count; /* lost accesses do not count for the share */
    const struct whatif_answer *a = asked(&t, &o);
    assert_false(a->refused);
    assert_int_equal(a->left_out.copies, limit);
    assert_non_null(row_of(a, WHATIF_AS_IT_IS, -1));
    for (int kind = 0; kind < 3; kind++) {
        t.left_out = (struct rlt_left_out){0};
        *(kind == 0   ? &t.left_out.copies
          : kind == 1 ? &t.left_out.textures
                      : &t.left_out.unknown) = 2 * limit;
        a = asked(&t, &o);
        assert_true(a->refused);
        assert_int_equal(a->row_count, WHATIF_QUESTION_COUNT);
        for (uint32_t i = 0; i < a->row_count; i++) {
            assert_false(a->rows[i].known);
            assert_non_null(strstr(a->rows[i].note, "are not in the trace"));
        }
    }
    trace_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_planner),
        cmocka_unit_test(scattered_agrees_too),
        cmocka_unit_test(what_a_job_states_costs_the_same),
        cmocka_unit_test(launches_cost_what_they_cost_in_a_plan),
        cmocka_unit_test(entries_that_cover_all_never_walk),
        cmocka_unit_test(within_the_reach_nothing_helps),
        cmocka_unit_test(cold_counts_the_first_touches),
        cmocka_unit_test(neighbors_in_flight_are_walked_again),
        cmocka_unit_test(lanes_share_translations),
        cmocka_unit_test(short_lists_crowd_no_window),
        cmocka_unit_test(a_sample_misses_like_its_launch),
        cmocka_unit_test(repeated_loads_use_the_data_cache),
        cmocka_unit_test(the_same_twice),
        cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(a_trace_that_lacks_much_is_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
