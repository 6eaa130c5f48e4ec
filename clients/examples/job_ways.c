/* job_ways.c: the ways to do a job, from the plan to their measured throughput (job.h). */
#include "element.h"
#include "job.h"

#include "base/stats.h"

#include <stdlib.h>
#include <string.h>

const struct job_variant job_strategies[] = {
    {REACH_NAIVE, 0, "naive", false},
    {REACH_SCOPES, 0, "scopes", false},
    {REACH_FILTERED_WINDOWS, 0, "filtered windows", false},
    {REACH_PARTITIONED_WINDOWS, 0, "partitioned windows", false},
    {REACH_NAIVE, 0, NULL, false},
};

static struct job_way make_way(const struct job_variant *v, const struct reach_option *option)
{
    struct job_way way = {
        .strategy = v->strategy,
        .variant = v->variant,
        .label = v->label,
        .pass_count = v->strategy == REACH_SCOPES ? (uint32_t)option->passes : 1,
        .scope_bytes = option->scope_bytes,
        .windows = option->windows,
    };

    if (!v->unplanned)
        way.predicted_gbps = option->gbps;
    return way;
}

uint32_t job_ways_make(const struct job_variant *variants, const struct reach_answer *plan,
                       struct job_way ways[JOB_MAX_WAYS])
{
    const struct reach_option *option;
    uint32_t count = 0;

    memset(ways, 0, JOB_MAX_WAYS * sizeof *ways);
    for (int unplanned = 0; unplanned < 2; unplanned++) {
        for (uint32_t o = 0; (option = reach_answer_option(plan, o)); o++) {
            for (const struct job_variant *v = variants; v->label && option->possible; v++) {
                if (v->strategy == option->strategy && v->unplanned == unplanned &&
                    count < JOB_MAX_WAYS)
                    ways[count++] = make_way(v, option);
            }
        }
    }
    return count;
}

void job_one_window(uint64_t first_byte, uint64_t length_bytes, uint32_t sm_slots,
                    struct job_pass *out)
{
    memset(out, 0, sizeof *out); /* every SM in window 0 */
    out->one.first_byte = first_byte;
    out->one.length_bytes = length_bytes;
    out->one.sm_count = sm_slots;
    out->windows.window_count = 1;
    out->windows.window = &out->one;
    out->windows.sm_slots = sm_slots;
    out->windows.window_of_sm = out->window_of_sm;
}

void job_way_pass(const struct job_way *way, const struct reach_answer *plan, uint64_t bytes,
                  uint32_t sm_slots, uint32_t pass, struct job_pass *out)
{
    const uint64_t first = (uint64_t)pass * way->scope_bytes;

    switch (way->strategy) {
    case REACH_SCOPES:
        job_one_window(first, bytes - first < way->scope_bytes ? bytes - first : way->scope_bytes,
                       sm_slots, out);
        return;
    case REACH_NAIVE:
        job_one_window(0, bytes, sm_slots, out);
        return;
    default:
        out->windows = reach_answer_plan(plan)->windows;
    }
}

void job_windows_divide(struct reach_window *window, uint32_t count, uint64_t bytes)
{
    uint64_t end = 0, sms = 0, before = 0;

    for (uint32_t w = 0; w < count; w++)
        sms += window[w].sm_count;
    for (uint32_t w = 0; w < count; w++) {
        before += window[w].sm_count;
        const uint64_t bound = bytes / LINE_BYTES * before / sms * LINE_BYTES;

        window[w].first_byte = end;
        window[w].length_bytes = bound - end;
        end = bound;
    }
}

uint64_t job_windows_bytes(const struct reach_windows *windows)
{
    uint64_t bytes = 0;

    for (uint32_t w = 0; w < windows->window_count; w++)
        bytes += windows->window[w].length_bytes;
    return bytes;
}

/* ---- measurement ---- */

uint32_t job_best(const struct job_run *run)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < run->way_count; i++) {
        if (run->ways[i].gbps > run->ways[best].gbps)
            best = i;
    }
    return best;
}

/* The same as the reference, as far as that is known, and as the first way. */
static bool is_right(const struct job_run *run, const struct job_result *found)
{
    for (uint32_t i = 0; i < JOB_RESULTS; i++) {
        if (run->reference_known >> i & 1 && found->number[i] != run->reference.number[i])
            return false;
    }
    return memcmp(found, &run->ways[0].result, sizeof *found) == 0;
}

/* The windows of all passes of a way; the caller frees them. */
static struct job_pass *make_passes(const struct job_run *run, const struct job_way *way,
                                    uint32_t sm_slots)
{
    struct job_pass *passes = calloc(way->pass_count, sizeof *passes);

    for (uint32_t p = 0; passes && p < way->pass_count; p++)
        job_way_pass(way, run->plan, run->bytes, sm_slots, p, &passes[p]);
    return passes;
}

static bool run_way(const struct job *job, struct job_run *run, struct job_way *way,
                    uint32_t sm_slots, uint32_t round, char *why)
{
    struct job_pass *passes = make_passes(run, way, sm_slots);
    struct job_result found = {.number = {0}};
    double milliseconds = 0;

    if (!passes)
        return job_fail(why, "out of memory for the windows of %u passes", way->pass_count);
    const bool ran = job->run(job->state, way, passes, &milliseconds, &found, why);

    free(passes);
    if (!ran)
        return false;
    if (round == 0) {
        way->result = found;
        way->right = true;
    } else {
        way->milliseconds[round - 1] = milliseconds;
    }
    way->right = way->right && is_right(run, &found);
    return true;
}

bool job_measure(const struct job *job, struct job_run *run, uint32_t sm_slots, char *why)
{
    for (uint32_t round = 0; round <= run->repeats; round++) {
        for (uint32_t i = 0; i < run->way_count; i++) {
            if (!run_way(job, run, &run->ways[i], sm_slots, round, why))
                return false;
        }
    }
    for (uint32_t i = 0; i < run->way_count; i++) {
        struct job_way *way = &run->ways[i];

        way->gbps = run->useful_bytes / (stats_median_f64(way->milliseconds, run->repeats) * 1e6);
    }
    return true;
}
