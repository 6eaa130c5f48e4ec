/* test_report.c: the conclusions of a report, from generated traces and the fingerprint of a
 * measured H200. Measured times follow from what-if, so each case is as close to the prediction as
 * it says. */
#include "clients/profile/report.h"
#include "clients/profile/report_text.h"

#include "base/rng.h"
#include "base/units.h"
#include "clients/lab/trace/gen_jobs.h"
#include "clients/lab/trace/trace_load.h"
#include "clients/lab/whatif/whatif.h"
#include "fingerprint/fingerprint_read.h"
#include "tests/share.h"
#include "tests/unit/support/alloc_fail.h"

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
#include <unistd.h>

#define H200 "docs/measurements/nvidia-h200-2ea0ea17-2026-11-22/fingerprint-memory.json"
#define BASE 0x7f0000000000u /* of gen_jobs.c */

enum { ACCESSES = 1 << 18, SAMPLED = 100 }; /* the launch has SAMPLED times the accesses */

/* Working sets were measured on this H200. */
#define H200_SETS "docs/measurements/nvidia-h200-9bb7116f-2026-11-26/fingerprint-full.json"

static struct fingerprint fp;
static struct whatif_shared shared;
static char folder[] = "/tmp/reach-report-XXXXXX";

/* ---- fixtures ---- */

static void load(const char *path)
{
    json_t *const json = json_load_file(path, 0, NULL);
    struct err err = {0};

    assert_non_null(json);
    if (fingerprint_from_json(json, &fp, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    json_decref(json);
}

static FILE *create(const char *name)
{
    char path[128];
    FILE *out;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "we");
    assert_non_null(out);
    return out;
}

static void write_job(const char *name, const char *job, uint64_t bytes, uint64_t count)
{
    const struct gen_job gen = {
        .name = job, .bytes = bytes, .count = count, .row_bytes = 128, .seed = 5};
    struct err err = {0};
    FILE *const out = create(name);
    struct rlt_writer *const w = rlt_writer_new(out, 128);

    if (gen_job(&gen, w, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    assert_int_equal(fclose(out), 0);
}

/* Writes the accesses of one block in `step` of a kernel in which each warp reads `rows` lines in
 * order. The kernel reads `bytes`. If `strided` is set, neighboring rows of a warp are a whole grid
 * apart, otherwise they are adjacent. */
static void write_stream(const char *name, uint64_t bytes, uint32_t blocks, uint32_t step,
                         bool strided)
{
    enum { WARPS = 8 };
    FILE *const out = create(name);
    struct rlt_writer *const w = rlt_writer_new(out, 128);
    const struct rlt_kernel kernel = {.grid = {blocks, 1, 1}, .block = {WARPS * 32, 1, 1}};
    const uint64_t lines = bytes / 128;
    const uint64_t warps = (uint64_t)blocks * WARPS;
    const uint64_t rows = lines / warps;
    struct rlt_record r = {.mask = RLT_FULL_MASK, .width_log2 = 2, .line_count = 1};

    (void)rlt_write_app(w, "stream");
    (void)rlt_write_kernel(w, &kernel);
    for (r.block = 0; r.block < blocks; r.block += step) {
        for (r.warp = 0; r.warp < WARPS; r.warp++) {
            const uint64_t warp = r.block * WARPS + r.warp;
            for (uint64_t row = 0; row < rows; row++) {
                r.lines[0] = BASE / 128 + (strided ? row * warps + warp : warp * rows + row);
                rlt_write_record(w, &r);
            }
        }
    }
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    assert_int_equal(fclose(out), 0);
}

/* Writes `count` reads of `rows` lines that are evenly distributed over the memory. */
static void write_hot(const char *name, uint64_t bytes, uint32_t rows, uint32_t count)
{
    FILE *const out = create(name);
    struct rlt_writer *const w = rlt_writer_new(out, 128);
    const struct rlt_kernel kernel = {.grid = {264, 1, 1}, .block = {32, 1, 1}};
    struct rlt_record r = {.mask = RLT_FULL_MASK, .width_log2 = 2, .line_count = 1};
    struct rng rng = {7};

    (void)rlt_write_app(w, "hot");
    (void)rlt_write_kernel(w, &kernel);
    for (uint32_t i = 0; i < count; i++) {
        r.block = i / (count / 264 + 1);
        r.lines[0] = BASE / 128 + rng_below(&rng, rows) * (bytes / rows / 128);
        rlt_write_record(w, &r);
    }
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    assert_int_equal(fclose(out), 0);
}

/* Writes a sample of an embedding: each block has one warp, which reads the index of its row, reads
 * the row of 128 bytes at random in the table, and writes it in order. The sample has runs of
 * neighboring blocks, like the samples of the injected library. */
static void write_embedding(const char *name, uint64_t table, uint64_t rows)
{
    enum { RUN = 512, EVERY = 64 };
    FILE *const out = create(name);
    struct rlt_writer *const w = rlt_writer_new(out, 128);
    const struct rlt_kernel kernel = {.grid = {(uint32_t)rows, 1, 1}, .block = {32, 1, 1}};
    const struct rlt_record index = {.kind = RLT_LOAD, .width_log2 = 3};
    const struct rlt_record row = {.kind = RLT_LOAD, .width_log2 = 2};
    const struct rlt_record copy = {.kind = RLT_STORE, .width_log2 = 2};
    const struct rlt_record steps[] = {index, row, copy};
    struct rng rng = {11};

    (void)rlt_write_app(w, "embedding");
    (void)rlt_write_kernel(w, &kernel);
    for (uint64_t block = 0; block < rows; block++) {
        if (block / RUN % EVERY != 0)
            continue;
        for (int step = 0; step < 3; step++) {
            struct rlt_record r = steps[step];
            r.block = block;
            r.mask = RLT_FULL_MASK;
            r.line_count = 1;
            r.lines[0] = step == 0   ? (BASE + table + block * 8) / 128
                         : step == 1 ? BASE / 128 + rng_below(&rng, table / 128)
                                     : (BASE + table + rows * 8) / 128 + block;
            rlt_write_record(w, &r);
        }
    }
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    assert_int_equal(fclose(out), 0);
}

enum { BAG_BLOCKS = 256, BAG_WARPS = 8, BAG = 32, BAG_RECORDS = 3 * BAG + 1 };

/* Writes the first `most` records of each warp of a kernel that sums bags of 32 rows of 128 bytes.
 * A warp reads the indices of a bag, then for each row reads it at random in the table and writes
 * the number of the bag, and then writes the sum. */
static void write_bags(const char *name, uint64_t table, uint64_t bags, uint64_t most)
{
    FILE *const out = create(name);
    struct rlt_writer *const w = rlt_writer_new(out, 128);
    const struct rlt_kernel kernel = {.grid = {BAG_BLOCKS, 1, 1}, .block = {32, BAG_WARPS, 1}};
    const uint64_t numbers = BASE + table + bags * BAG * 8;
    const uint64_t sums = numbers + bags * BAG * 8;
    const uint64_t warps = (uint64_t)BAG_BLOCKS * BAG_WARPS;
    const struct rlt_left_out left = {.lost = most < bags / warps * BAG_RECORDS};
    struct rng rng = {11};

    (void)rlt_write_app(w, "bags");
    (void)rlt_write_kernel(w, &kernel);
    for (uint64_t i = 0; i < warps; i++) {
        for (uint64_t k = 0; k < most && k < bags / warps * BAG_RECORDS; k++) {
            const uint64_t bag = k / BAG_RECORDS * warps + i;
            const uint64_t step = k % BAG_RECORDS;
            const uint64_t row = bag * BAG + (step < BAG ? step : (step - BAG) / 2);
            struct rlt_record r = {.block = i / BAG_WARPS,
                                   .warp = (uint32_t)(i % BAG_WARPS),
                                   .mask = RLT_FULL_MASK,
                                   .line_count = 1};
            if (step < BAG) {
                r.width_log2 = 3;
                r.lines[0] = (BASE + table + row * 8) / 128;
            } else if (step == BAG_RECORDS - 1) {
                r.kind = RLT_STORE;
                r.width_log2 = 2;
                r.lines[0] = sums / 128 + bag;
            } else if (step % 2 == 0) {
                r.width_log2 = 2;
                r.lines[0] = BASE / 128 + rng_below(&rng, table / 128);
            } else {
                r.kind = RLT_STORE;
                r.width_log2 = 3;
                r.mask = 1;
                r.lines[0] = (numbers + row * 8) / 128;
            }
            rlt_write_record(w, &r);
        }
    }
    rlt_write_left_out(w, &left);
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    assert_int_equal(fclose(out), 0);
}

/* A process with one kernel that launches once and touches one allocation. */
struct process {
    struct recording recording;
    struct recording_gpu gpu;
    struct recording_allocation allocation;
    struct recording_kernel kernel;
    struct recording_launch launch;
    struct recording_pages pages;
};

static void set_up(struct process *p, const char *trace, uint64_t bytes, double time_ns)
{
    *p = (struct process){
        .gpu = {.name = "H200", .sms = 132},
        .allocation = {.address = BASE, .bytes = bytes},
        .launch = {.grid = {264, 1, 1},
                   .block = {1024, 1, 1},
                   .time_ns = (uint64_t)time_ns,
                   .trace = trace,
                   .warp_accesses = (uint64_t)SAMPLED * ACCESSES,
                   .page_run_count = 1},
        .pages = {BASE >> RECORDING_PAGE_SHIFT, bytes >> RECORDING_PAGE_SHIFT},
        .kernel = {.state = RECORDING_RECORDED,
                   .name = "kernel",
                   .why = "",
                   .operator= "",
                   .launches = 10,
                   .time_ns = 10 * (uint64_t)time_ns,
                   .launch_count = 1},
        .recording = {.command = "test",
                      .problem = "",
                      .pid = 1,
                      .gpu_count = 1,
                      .allocation_count = 1,
                      .kernel_count = 1},
    };
    (void)snprintf(p->gpu.uuid, sizeof(p->gpu.uuid), "%.63s", fp.gpu.uuid);
    p->launch.pages = &p->pages;
    p->kernel.recorded = &p->launch;
    p->recording.gpus = &p->gpu;
    p->recording.allocations = &p->allocation;
    p->recording.kernels = &p->kernel;
}

static const struct fingerprint *find(void *context, const struct recording_gpu *gpu,
                                      const char **why)
{
    const bool known = context && strcmp(gpu->uuid, fp.gpu.uuid) == 0;

    *why = known ? "" : "reachd does not run";
    return known ? &fp : NULL;
}

static struct report report;

/* Makes the report of one process. */
static void make(const struct process *p, bool with_fingerprint)
{
    const struct report_source source = {.recordings = &p->recording,
                                         .count = 1,
                                         .folder = folder,
                                         .find = find,
                                         .context = with_fingerprint ? &fp : NULL,
                                         .shared = &shared};
    struct err err = {0};

    report_free(&report);
    if (report_make(&source, &report, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(report.section_count, 1);
}

/* Makes the report of a process with one kernel, and returns its row. */
static const struct report_row *reported(const struct process *p, bool with_fingerprint)
{
    make(p, with_fingerprint);
    assert_int_equal(report.sections[0].row_count, 1);
    return &report.sections[0].rows[0];
}

/* Computes the times of what-if for the whole launch, in ns: as it is, and in windows. The trace is
 * so long that it fills the TLBs. */
static void compute_times(const char *name, double out[2])
{
    static struct whatif_answer answer;
    const struct whatif_options options = {.contiguous = 1,
                                           .launch_accesses = (uint64_t)SAMPLED * ACCESSES,
                                           .questions = 1u << WHATIF_WINDOWS,
                                           .shared = &shared};
    struct trace trace;
    char path[128];
    FILE *in;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    in = fopen(path, "re");
    assert_int_equal(trace_load(in, &trace, NULL), STATUS_OK);
    assert_int_equal(whatif_ask(&fp, &trace, &options, &answer, NULL), STATUS_OK);
    fclose(in);
    trace_free(&trace);
    out[0] = out[1] = 0;
    for (uint32_t i = 0; i < answer.row_count; i++)
        if (answer.rows[i].known)
            out[answer.rows[i].question == WHATIF_WINDOWS] = answer.rows[i].ns * SAMPLED * ACCESSES;
}

/* Returns the times of what-if for random reads of 110 GiB. They are computed once, for all cases.
 */
static void ask_random110(double out[2])
{
    static double times[2];

    if (times[0] == 0)
        compute_times("random110.rlt", times);
    out[0] = times[0];
    out[1] = times[1];
}

static bool says(const struct report_row *row, const char *text)
{
    char cell[REPORT_CELL_BYTES];

    return strstr(report_text_instead(row, cell), text) != NULL;
}

/* ---- device memory ---- */

static void a_gather_out_of_reach_is_limited(void **state)
{
    struct process p;
    double ns[2];
    const struct report_row *row;

    (void)state;
    ask_random110(ns);
    set_up(&p, "random110.rlt", 110 * GIB, ns[0] * 1.1);
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_LIMITED);
    assert_int_equal(row->touched[PLACE_DEVICE], 110 * GIB);
    assert_int_equal(row->order[PLACE_DEVICE], ORDER_RANDOM);
    assert_float_equal(row->predicted_ns / ns[0], 1, 1e-6);
    assert_float_equal(row->misses, 1 - 64.0 / 110, 0.02); /* the reach of an H200 */
    assert_true(row->costs > 3);
    assert_int_equal(row->options[0].strategy, STRATEGY_WINDOWS);
    assert_int_equal(row->options[0].kind, MEMORY_DEVICE);
    assert_float_equal(row->options[0].factor / (ns[0] / ns[1]), 1, 0.01);
    assert_float_equal(row->gain_ns / (double)p.kernel.time_ns, 1 - ns[1] / ns[0], 0.01);
    assert_true(says(row, "windows") && says(row, "reach.torch.gather_rows"));
    assert_int_equal(report.limited_count, 1);
    assert_float_equal(report.gain_ns, row->gain_ns, 1);
}

/* The factor has the measured time, because the time out of reach does not depend on limits that
 * remain within the reach. With REACH_LONG every time is tried. */
static void the_factor_of_a_limited_kernel_has_its_measured_time(void **state)
{
    const int step = (int)test_part(1, 11, 22);
    char text[REPORT_CELL_BYTES], costs[32];
    struct process p;
    double ns[2];

    (void)state;
    ask_random110(ns);
    for (int slower = 81; slower <= 124; slower += step) {
        set_up(&p, "random110.rlt", 110 * GIB, ns[0] * slower / 100.0 + 1);
        const struct report_row *const row = reported(&p, true);
        assert_int_equal(row->verdict, REPORT_LIMITED);
        assert_float_equal(row->costs / (row->measured_ns / row->in_reach_ns), 1, 1e-9);
        (void)snprintf(costs, sizeof(costs), "%.1fx", row->costs);
        assert_string_equal(report_text_costs(row, text), costs);
        assert_float_equal(row->options[0].factor / (ns[0] / ns[1]), 1, 0.01);
    }
}

/* The indices and the output are in order, and take time of memory only. */
static void an_embedding_is_limited_by_its_table(void **state)
{
    const uint64_t rows = 1 << 23;
    const double plateau = fp.throughput.plateau_gbps.v;
    struct process p;
    const struct report_row *row;
    double ns[2];

    (void)state;
    ask_random110(ns);
    const double expected = ns[0] / ((double)SAMPLED * ACCESSES) * (double)rows;
    write_embedding("embedding.rlt", 110 * GIB, rows);
    set_up(&p, "embedding.rlt", 110 * GIB, expected);
    p.allocation.bytes += 2 * GIB; /* one piece of memory has all tensors */
    p.launch.grid[0] = (uint32_t)rows;
    p.launch.warp_accesses = 3 * rows;
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_LIMITED);
    assert_float_equal(row->misses, 1 - 64.0 / 110, 0.02);
    assert_float_equal(row->predicted_ns / expected, 1, 0.05);
    /* A row is read and written, and sixteen blocks read each line of the indices. */
    assert_float_equal(row->in_reach_ns / ((double)rows * (128 + 128 + 8) / plateau), 1, 0.02);
    assert_true(row->options[0].factor < row->costs * 1.01);
}

/* Traces of any length give the misses and the time of the long trace. */
static void a_short_trace_is_enough(void **state)
{
    struct process p;
    double ns[2];

    (void)state;
    ask_random110(ns);
    for (uint32_t log2 = 10; log2 <= 16; log2 += test_share(2, 6)) {
        write_job("short.rlt", "random", 110 * GIB, 1u << log2);
        set_up(&p, "short.rlt", 110 * GIB, ns[0]);
        const struct report_row *const row = reported(&p, true);
        assert_float_equal(row->misses, 1 - 64.0 / 110, 0.02);
        assert_float_equal(row->predicted_ns / ns[0], 1, 0.05);
        assert_int_equal(row->verdict, REPORT_LIMITED);
    }
}

/* If the buffer was full, the trace has the first accesses only. The first accesses of a warp are
 * those of its first bags, and more of them are to indices. The number of accesses of one kind and
 * width may be unknown. With REACH_LONG there are more random traces. */
static void a_trace_that_has_lost_accesses_is_enough(void **state)
{
    enum { BAGS = 8 * BAG_BLOCKS * BAG_WARPS, ROWS = BAGS * BAG };
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};
    const struct recording_instruction all[] = {{.kind = RLT_LOAD, .bytes = 8, .warps = ROWS},
                                                {.kind = RLT_LOAD, .bytes = 4, .warps = ROWS},
                                                {.kind = RLT_STORE, .bytes = 8, .warps = ROWS},
                                                {.kind = RLT_STORE, .bytes = 4, .warps = BAGS}};
    struct recording_allocation allocations[4];
    double whole_ns = 0, within_ns = 0;

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    for (uint32_t i = 0; i < test_part(8, 4, 3); i++) {
        const uint64_t most = i == 0 ? UINT64_MAX : BAG_RECORDS + rng_below(&rng, 2 * BAG_RECORDS);
        const uint64_t unknown = i == 0 ? 4 : rng_below(&rng, 5); /* 4 means none */
        struct recording_instruction instructions[4];
        uint64_t at = BASE;
        struct process p;
        const struct report_row *row;
        memcpy(instructions, all, sizeof(all));
        if (unknown < 4)
            instructions[unknown] = all[3];
        write_bags("bags.rlt", 110 * GIB, BAGS, most);
        set_up(&p, "bags.rlt", 110 * GIB, 1e6);
        const uint64_t bytes[] = {110 * GIB, (uint64_t)ROWS * 8, (uint64_t)ROWS * 8, BAGS * 128};
        for (int k = 0; k < 4; at += bytes[k++])
            allocations[k] = (struct recording_allocation){.address = at, .bytes = bytes[k]};
        p.recording.allocations = allocations;
        p.recording.allocation_count = 4;
        p.pages.count = ((at - BASE) >> RECORDING_PAGE_SHIFT) + 1;
        p.launch.grid[0] = BAG_BLOCKS;
        p.launch.block[0] = 32 * BAG_WARPS;
        p.launch.warp_accesses = (uint64_t)BAGS * BAG_RECORDS;
        p.launch.instructions = instructions;
        p.launch.instruction_count = unknown < 4 ? 3 : 4;
        row = reported(&p, true);
        whole_ns = i == 0 ? row->predicted_ns : whole_ns;
        within_ns = i == 0 ? row->in_reach_ns : within_ns;
        if (fabs(row->predicted_ns / whole_ns - 1) > 0.02 ||
            fabs(row->in_reach_ns / within_ns - 1) > 0.02)
            fail_msg("%llu records of each warp, instruction %llu is unknown: %.0f ns and %.0f ns, "
                     "not %.0f ns and %.0f ns",
                     (unsigned long long)most, (unsigned long long)unknown, row->predicted_ns,
                     row->in_reach_ns, whole_ns, within_ns);
    }
    /* Rows, indices, numbers and sums are moved once. */
    assert_float_equal(
        within_ns / (ROWS * (128 + 8 + 8 + 128.0 / BAG) / fp.throughput.plateau_gbps.v), 1, 0.02);
}

/* Rows in few entries, which are all over the memory, hit. */
static void hot_rows_of_a_large_table_hit(void **state)
{
    enum { HOT = 1024 };
    struct process p;
    const struct report_row *row;

    (void)state;
    write_hot("hot.rlt", 110 * GIB, HOT, 1 << 14);
    set_up(&p, "hot.rlt", 110 * GIB, 1e6);
    row = reported(&p, true);
    assert_true(row->misses < 0.01);
    assert_int_not_equal(row->verdict, REPORT_LIMITED);
}

static void the_operator_selects_the_function(void **state)
{
    struct process p;
    double ns[2];

    (void)state;
    ask_random110(ns);
    set_up(&p, "random110.rlt", 110 * GIB, ns[0]);
    p.kernel.operator= "aten::_embedding_bag";
    assert_true(says(reported(&p, true), ": reach.torch.embedding_bag"));
    p.kernel.operator= "aten::index_add_";
    assert_true(says(reported(&p, true), ": reach.torch.index_add_"));
    p.kernel.operator= "";
    p.kernel.name = "_ZN2at6native40EmbeddingBag_updateOutputKernel_sum_meanEv";
    assert_true(says(reported(&p, true), ": reach.torch.embedding_bag"));
}

/* The kernel of an operator can have limits that the function which replaces the operator lacks. */
static void a_replaced_operator_is_compared_with_its_measured_time(void **state)
{
    static const char *const operators[] = {"", "aten::embedding_bag",
                                            "aten::embedding_dense_backward"};
    struct process p;
    double ns[2];

    (void)state;
    ask_random110(ns);
    for (int slower = 85; slower <= 115; slower += 15) {
        for (int k = 0; k < 3; k++) {
            const double before = k == 1 ? ns[0] * slower / 100.0 : ns[0];
            set_up(&p, "random110.rlt", 110 * GIB, ns[0] * slower / 100.0);
            p.kernel.operator= operators[k];
            const struct report_row *const row = reported(&p, true);
            assert_int_equal(row->verdict, REPORT_LIMITED);
            assert_float_equal(row->options[0].factor / (before / ns[1]), 1, 0.01);
            assert_float_equal(row->gain_ns / (double)p.kernel.time_ns, 1 - ns[1] / before, 0.01);
        }
    }
    /* Another kind of memory does not replace the kernel. */
    set_up(&p, "random34.rlt", 34 * GIB, 1);
    p.allocation.kind = RECORDING_PINNED;
    p.kernel.operator= "aten::embedding_bag";
    const double predicted_ns = reported(&p, true)->predicted_ns;
    double factors[2] = {0};
    for (int k = 0; k < 2; k++) {
        p.launch.time_ns = (uint64_t)(predicted_ns * (1 + 0.2 * k));
        const struct report_row *const row = reported(&p, true);
        for (uint32_t i = 0; i < row->option_count; i++)
            if (row->options[i].kind == MEMORY_MANAGED_HOST)
                factors[k] = row->options[i].factor;
    }
    assert_true(factors[0] > 1 && factors[0] == factors[1]);
}

static void a_gather_within_the_reach_is_not_limited(void **state)
{
    struct process p;
    double ns[2];
    const struct report_row *row;

    (void)state;
    compute_times("random40.rlt", ns);
    set_up(&p, "random40.rlt", 40 * GIB, ns[0]);
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_IN_REACH);
    assert_true(row->misses < 0.001 && row->costs == 1 && row->gain_ns == 0);
    assert_true(says(row, "within the reach"));
}

/* Whether all blocks or few of them are in the trace, in both orders of rows. */
static void a_stream_is_not_limited(void **state)
{
    static const struct {
        uint32_t blocks, step;
        bool strided;
    } cases[] = {
        {1 << 20, 1024, false}, {1 << 16, 512, true}, {264, 24, true}, {1 << 24, 1 << 14, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint64_t bytes = 110 * GIB / (cases[i].blocks == 264 ? 16 : 1);
        struct process p;
        const struct report_row *row;
        write_stream("stream.rlt", bytes, cases[i].blocks, cases[i].step, cases[i].strided);
        set_up(&p, "stream.rlt", bytes, (double)bytes / fp.throughput.plateau_gbps.v);
        p.launch.grid[0] = cases[i].blocks;
        p.launch.warp_accesses = bytes / 128;
        row = reported(&p, true);
        assert_int_equal(row->verdict, REPORT_IN_ORDER);
        assert_int_equal(row->order[PLACE_DEVICE], ORDER_SEQUENTIAL);
        assert_float_equal(row->predicted_ns / row->measured_ns, 1, 0.01);
        assert_true(says(row, "in order"));
    }
}

static void other_work_hides_translation(void **state)
{
    struct process p;
    double ns[2];
    const struct report_row *row;

    (void)state;
    ask_random110(ns);
    set_up(&p, "random110.rlt", 110 * GIB, 10 * ns[0]);
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_HIDDEN);
    assert_true(row->gain_ns == 0 && row->option_count == 0);
    set_up(&p, "random110.rlt", 110 * GIB, 1.3 * ns[0]);
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_UNEXPLAINED);
    assert_true(row->gain_ns == 0 && says(row, "not explained"));
    set_up(&p, "random110.rlt", 110 * GIB, ns[0] / 1.3);
    assert_int_equal(reported(&p, true)->verdict, REPORT_UNEXPLAINED);
    assert_int_equal(report.limited_count, 0);
}

/* The gain is the predicted time of the recorded launch, and is not a gain of limited kernels. */
static void a_launch_without_a_time_is_untimed(void **state)
{
    struct process p;
    double ns[2];
    const struct report_row *row;
    char text[REPORT_CELL_BYTES], costs[32];

    (void)state;
    ask_random110(ns);
    set_up(&p, "random110.rlt", 110 * GIB, 0);
    p.kernel.launches = 1;
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_UNTIMED);
    assert_float_equal(row->predicted_ns / ns[0], 1, 1e-6);
    assert_float_equal(row->gain_ns / (ns[0] - ns[1]), 1, 0.01);
    (void)snprintf(costs, sizeof(costs), "%.1fx", row->costs);
    (void)snprintf(text, sizeof(text), "launched once, not timed: predicted %s", costs);
    assert_true(row->costs > 3 && says(row, text) && says(row, "; windows"));
    assert_true(says(row, ": reach.torch.gather_rows"));
    assert_string_equal(report_text_costs(row, text), costs);
    assert_string_equal(report_text_time(row, text), "");
    assert_int_equal(report.limited_count, 0);
    assert_int_equal(report.untimed_count, 1);
    assert_true(report.gain_ns == 0 && report.untimed_gain_ns == row->gain_ns);
    assert_non_null(strstr(report_text_sum(&report, text), "1 kernel was not timed"));
    /* Another shape of the kernel was timed. */
    p.kernel.launches = 2;
    p.kernel.time_ns = (uint64_t)(100 * ns[0]);
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_UNTIMED);
    assert_float_equal(row->gain_ns / (ns[0] - ns[1]), 1, 0.01);
    assert_true(says(row, "recorded launches not timed: predicted"));
    /* A prediction without misses needs no measured time. */
    set_up(&p, "random40.rlt", 40 * GIB, 0);
    assert_int_equal(reported(&p, true)->verdict, REPORT_IN_REACH);
    assert_int_equal(report.untimed_count, 0);
}

/* Limited kernels precede untimed kernels of any gain, and these precede all others. */
static void a_partial_recording_is_not_compared_with_the_time_of_its_launch(void **state)
{
    struct process p;
    double ns[2];
    const struct report_row *row;
    char text[REPORT_CELL_BYTES];

    (void)state;
    ask_random110(ns);
    set_up(&p, "random110.rlt", 110 * GIB, (uint64_t)(100 * ns[0]));
    assert_int_equal(reported(&p, true)->verdict, REPORT_HIDDEN);
    p.launch.partial = true;
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_UNTIMED);
    assert_true(row->partial && row->measured_ns == 0);
    assert_true(says(row, "recorded for three seconds, not timed: predicted"));
    assert_true(says(row, "; windows"));
    assert_string_equal(report_text_touches(row, text), "at least 110.0 GiB device, at random");
}

static void untimed_kernels_follow_limited_kernels(void **state)
{
    static const enum report_verdict expected[] = {REPORT_LIMITED, REPORT_UNTIMED, REPORT_UNTIMED,
                                                   REPORT_HIDDEN};
    struct process p[4];
    struct recording_kernel kernels[4];
    const struct report_section *section;
    const struct report_row *row;
    double ns[2];

    (void)state;
    ask_random110(ns);
    const double times[] = {0, 10 * ns[0], 0, ns[0]}; /* untimed, hidden, untimed, limited */
    for (int i = 0; i < 4; i++)
        set_up(&p[i], "random110.rlt", 110 * GIB, times[i]);
    p[2].launch.warp_accesses *= 2;
    p[3].kernel.time_ns = 1000; /* the smallest gain */
    for (int i = 0; i < 4; i++)
        kernels[i] = p[i].kernel;
    p[0].recording.kernels = kernels;
    p[0].recording.kernel_count = 4;
    make(&p[0], true);
    for (int i = 0; i < 4; i++)
        assert_int_equal(report.sections[0].rows[i].verdict, expected[i]);
    assert_float_equal(report.sections[0].rows[1].gain_ns / report.sections[0].rows[2].gain_ns, 2,
                       0.01);
    assert_true(report_first(&report, &section, &row) && row->verdict == REPORT_LIMITED);
    assert_float_equal(report.gain_ns, row->gain_ns, 1e-6);
}

static void a_small_set_stays_in_a_cache(void **state)
{
    struct process p;

    (void)state;
    load(H200_SETS);
    write_job("random16m.rlt", "random", 16 * MIB, ACCESSES);
    set_up(&p, "random16m.rlt", 16 * MIB, 1e6);
    assert_int_equal(reported(&p, true)->verdict, REPORT_IN_CACHE);
    load(H200);
}

/* ---- host memory ---- */

static void a_pinned_table_should_be_managed(void **state)
{
    struct process p;
    const struct report_row *row;
    uint32_t managed = 0;

    (void)state;
    set_up(&p, "random34.rlt", 34 * GIB, 1);
    p.allocation.kind = RECORDING_PINNED;
    p.launch.time_ns = (uint64_t)reported(&p, true)->predicted_ns;
    row = reported(&p, true);
    assert_int_equal(row->verdict, REPORT_LIMITED);
    assert_int_equal(row->touched[PLACE_PINNED], 34 * GIB);
    assert_float_equal(row->misses, 1 - 671088640.0 / (34.0 * GIB), 0.01); /* of the fingerprint */
    while (managed < row->option_count && (row->options[managed].kind != MEMORY_MANAGED_HOST ||
                                           row->options[managed].strategy != STRATEGY_NAIVE))
        managed++;
    assert_true(managed < row->option_count && row->options[managed].factor > 5);
    assert_true(says(row, "managed at the host") && says(row, ": reach.torch.host_from"));
    p.allocation.kind = RECORDING_MANAGED;
    p.allocation.at = RECORDING_AT_HOST;
    p.launch.time_ns = (uint64_t)reported(&p, true)->predicted_ns;
    assert_true(reported(&p, true)->costs < 2); /* it is there already */
}

/* Memory that is reached can be read at less than the plateau, also if no access misses. Rows that
 * are not evenly distributed are compared with the edge of the reach. */
static void the_time_in_reach_is_of_the_plateau(void **state)
{
    struct process p;
    uint32_t at = 0;

    (void)state;
    while (at < fp.memory_count && fp.memory[at].kind != MEMORY_HOST_PINNED)
        at++;
    assert_true(at < fp.memory_count);
    const struct memory_facts *const m = &fp.memory[at];
    const double plateau_ns = 128.0 * SAMPLED * ACCESSES / m->plateau_gbps.v;
    for (uint64_t bytes = 64 * MIB; bytes <= 32 * GIB; bytes *= 8) {
        write_job("random.rlt", "random", bytes, ACCESSES);
        set_up(&p, "random.rlt", bytes, 0);
        p.allocation.kind = RECORDING_PINNED;
        const struct report_row *const row = reported(&p, true);
        assert_float_equal(row->in_reach_ns / plateau_ns, 1, 0.01);
        assert_float_equal(row->costs, row->predicted_ns / row->in_reach_ns, 1e-9);
    }
    write_hot("hot.rlt", 34 * GIB, (uint32_t)(m->reach_bytes.v / m->entry_bytes.v * 5 / 4),
              ACCESSES);
    set_up(&p, "hot.rlt", 34 * GIB, 0);
    p.allocation.kind = RECORDING_PINNED;
    const struct report_row *const row = reported(&p, true);
    assert_true(row->misses > 0.1 && row->misses < 0.3 && row->in_reach_ns > 1.02 * plateau_ns);
}

static void each_kind_of_host_memory_has_a_function(void **state)
{
    const struct report_row row = {0};

    (void)state;
    for (unsigned kind = 0; kind < MEMORY_KIND_COUNT; kind++) {
        const struct report_option o = {(enum memory_kind)kind, STRATEGY_NAIVE, 2};
        assert_non_null(report_text_option(&o));
        assert_int_equal(report_text_call(&row, &o)[0] != '\0',
                         memory_kind_is_host((enum memory_kind)kind));
    }
}

/* Few rows all over the table are used again and again. */
static void hot_rows_of_a_pinned_table_hit(void **state)
{
    struct process p;
    const struct report_row *row;

    (void)state;
    for (uint32_t count = 1 << 14; count <= ACCESSES; count <<= 4) {
        write_hot("hot.rlt", 34 * GIB, 4096, count);
        set_up(&p, "hot.rlt", 34 * GIB, 1e6);
        p.allocation.kind = RECORDING_PINNED;
        row = reported(&p, true);
        assert_true(row->misses == 0 && row->costs < 1.01);
        assert_int_equal(row->verdict, REPORT_IN_REACH);
    }
}

static void managed_memory_without_location_is_unknown(void **state)
{
    struct process p;

    (void)state;
    set_up(&p, "random110.rlt", 110 * GIB, 1e6);
    p.allocation.kind = RECORDING_MANAGED;
    assert_int_equal(reported(&p, true)->verdict, REPORT_UNKNOWN);
    assert_true(says(reported(&p, true), "location"));
}

/* ---- what is missing ---- */

static void without_a_fingerprint_there_are_footprints(void **state)
{
    struct process p;
    const struct report_row *row;
    char text[REPORT_CELL_BYTES];

    (void)state;
    set_up(&p, "random110.rlt", 110 * GIB, 1e6);
    row = reported(&p, false);
    assert_int_equal(row->verdict, REPORT_NO_FINGERPRINT);
    assert_string_equal(report_text_touches(row, text), "110.0 GiB device, at random");
    assert_string_equal(report_text_misses(row, text), "");
    assert_non_null(strstr(report_text_advice(&report.sections[0], text), "reachd does not run"));
}

static void kernels_without_a_trace_say_why(void **state)
{
    static const struct {
        enum recording_state state;
        const char *trace, *text;
        enum report_verdict verdict;
    } cases[] = {{RECORDING_REFUSED, "random110.rlt", "no room", REPORT_REFUSED},
                 {RECORDING_TIMED, "random110.rlt", "not recorded", REPORT_NOT_RECORDED},
                 {RECORDING_RECORDED, "missing.rlt", "missing.rlt", REPORT_UNKNOWN},
                 {RECORDING_RECORDED, "broken.rlt", "position", REPORT_UNKNOWN},
                 {RECORDING_RECORDED, "", "no trace", REPORT_UNKNOWN}};
    struct process p;
    FILE *const out = create("broken.rlt");

    (void)state;
    (void)fputs("no trace", out);
    fclose(out);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct report_row *row;
        set_up(&p, cases[i].trace, 110 * GIB, 1e6);
        p.kernel.state = cases[i].state;
        p.kernel.why = "no room";
        row = reported(&p, true);
        assert_int_equal(row->verdict, cases[i].verdict);
        if (!says(row, cases[i].text) && strcmp(cases[i].trace, "broken.rlt") != 0)
            fail_msg("%s", row->note);
    }
}

/* Damaged traces give a reason and no crash. */
static void damaged_traces_are_refused_or_valid(void **state)
{
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};
    char *whole = NULL;
    size_t bytes = 0;
    char path[128];
    FILE *in;

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    write_job("small.rlt", "sampling", 80 * GIB, 4096);
    (void)snprintf(path, sizeof(path), "%s/small.rlt", folder);
    in = fopen(path, "re");
    whole = malloc(1 << 20);
    bytes = fread(whole, 1, 1 << 20, in);
    fclose(in);
    for (uint32_t i = 0; i < test_share(60, 20); i++) {
        struct process p;
        FILE *const out = create("damaged.rlt");
        char *const text = malloc(bytes);
        memcpy(text, whole, bytes);
        for (uint64_t k = rng_below(&rng, 4); k > 0; k--)
            text[rng_below(&rng, rng_below(&rng, 2) ? 200 : bytes)] = (char)rng_next(&rng);
        fwrite(text, 1, bytes - (rng_below(&rng, 2) ? rng_below(&rng, bytes) : 0), out);
        fclose(out);
        free(text);
        set_up(&p, "damaged.rlt", 80 * GIB, 1e6);
        const struct report_row *const row = reported(&p, true);
        assert_true(row->verdict != REPORT_UNKNOWN || strlen(row->note) > 10);
    }
    free(whole);
}

/* Each allocation fails once, or every eighth in a slow build. The report then fails, or a row has
 * a reason. */
static void allocations_that_fail_are_reported(void **state)
{
    static const enum recording_kind kinds[] = {RECORDING_DEVICE, RECORDING_PINNED};
    const struct report_source source = {
        .count = 1, .folder = folder, .find = find, .context = &fp};
    const uint32_t step = test_share(1, 8);
    struct process p;

    (void)state;
    write_job("small.rlt", "random", 40 * GIB, 1000);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        bool failed = true;
        uint64_t n = 0;
        set_up(&p, "small.rlt", 40 * GIB, 1e6);
        p.allocation.kind = kinds[i];
        while (failed) {
            struct report_source mine = source;
            struct report made;
            struct err err = {0};
            mine.recordings = &p.recording;
            alloc_fail_begin(n += step);
            const enum status s = report_make(&mine, &made, &err);
            alloc_fail.armed = false;
            failed = alloc_fail.failures > 0;
            assert_true(s == STATUS_OK || (s == STATUS_NO_MEMORY && strlen(err.text) > 10));
            if (s == STATUS_OK && failed)
                assert_true(made.sections[0].rows[0].verdict == REPORT_UNKNOWN ||
                            made.sections[0].rows[0].has_times);
            report_free(&made);
        }
        assert_true(n > 10);
    }
}

/* ---- several processes ---- */

static void several_processes_have_a_sum(void **state)
{
    struct process p[3];
    struct recording recordings[3];
    const struct report_source source = {
        .recordings = recordings, .count = 3, .folder = folder, .find = find, .context = &fp};
    const struct report_section *section;
    const struct report_row *row;
    struct err err = {0};
    double ns[2];

    (void)state;
    ask_random110(ns);
    for (int i = 0; i < 3; i++)
        set_up(&p[i], "random110.rlt", 110 * GIB, ns[0]);
    p[1].kernel.time_ns *= 2;
    for (int i = 0; i < 3; i++) {
        recordings[i] = p[i].recording;
        recordings[i].pid = 10 + (uint64_t)i;
    }
    recordings[2].kernel_count = 0;
    recordings[2].problem = "The driver is older than the library.";
    report_free(&report);
    assert_int_equal(report_make(&source, &report, &err), STATUS_OK);
    assert_int_equal(report.section_count, 2);
    assert_int_equal(report.limited_count, 2);
    assert_float_equal(report.time_ns, 3 * (double)p[0].kernel.time_ns, 1);
    assert_float_equal(report.gain_ns,
                       report.sections[0].rows[0].gain_ns + report.sections[1].rows[0].gain_ns, 1);
    assert_true(report_first(&report, &section, &row));
    assert_int_equal(section->recording->pid, 11);
}

static int begin_all(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    load(H200);
    write_job("random110.rlt", "random", 110 * GIB, ACCESSES);
    write_job("random40.rlt", "random", 40 * GIB, ACCESSES);
    write_job("random34.rlt", "random", 34 * GIB, ACCESSES);
    return 0;
}

static int end_all(void **state)
{
    static const char *const names[] = {
        "random110.rlt", "random40.rlt", "random34.rlt", "random16m.rlt", "stream.rlt",
        "hot.rlt",       "broken.rlt",   "small.rlt",    "damaged.rlt",   "short.rlt",
        "embedding.rlt", "bags.rlt",     "random.rlt"};
    char path[128];

    (void)state;
    report_free(&report);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gather_out_of_reach_is_limited),
        cmocka_unit_test(the_factor_of_a_limited_kernel_has_its_measured_time),
        cmocka_unit_test(an_embedding_is_limited_by_its_table),
        cmocka_unit_test(a_short_trace_is_enough),
        cmocka_unit_test(a_trace_that_has_lost_accesses_is_enough),
        cmocka_unit_test(hot_rows_of_a_large_table_hit),
        cmocka_unit_test(the_operator_selects_the_function),
        cmocka_unit_test(a_replaced_operator_is_compared_with_its_measured_time),
        cmocka_unit_test(a_gather_within_the_reach_is_not_limited),
        cmocka_unit_test(a_stream_is_not_limited),
        cmocka_unit_test(other_work_hides_translation),
        cmocka_unit_test(a_launch_without_a_time_is_untimed),
        cmocka_unit_test(a_partial_recording_is_not_compared_with_the_time_of_its_launch),
        cmocka_unit_test(untimed_kernels_follow_limited_kernels),
        cmocka_unit_test(a_small_set_stays_in_a_cache),
        cmocka_unit_test(a_pinned_table_should_be_managed),
        cmocka_unit_test(the_time_in_reach_is_of_the_plateau),
        cmocka_unit_test(each_kind_of_host_memory_has_a_function),
        cmocka_unit_test(hot_rows_of_a_pinned_table_hit),
        cmocka_unit_test(managed_memory_without_location_is_unknown),
        cmocka_unit_test(without_a_fingerprint_there_are_footprints),
        cmocka_unit_test(kernels_without_a_trace_say_why),
        cmocka_unit_test(damaged_traces_are_refused_or_valid),
        cmocka_unit_test(allocations_that_fail_are_reported),
        cmocka_unit_test(several_processes_have_a_sum),
    };

    alloc_fail_install();
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
