/* job_ways.c: from a plan to the ways a job goes, and from a way to the windows of each of its
 * passes (job.h). */
#include "job.h"

#include <string.h>

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
