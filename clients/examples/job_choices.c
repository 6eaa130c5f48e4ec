/* job_choices.c: the choices for a job, from the plan to their measured throughput (job.h). */
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

static struct job_choice make_choice(const struct job_variant *v, const struct reach_option *option)
{
    struct job_choice choice = {
        .strategy = v->strategy,
        .variant = v->variant,
        .label = v->label,
        .pass_count = v->strategy == REACH_SCOPES ? (uint32_t)option->passes : 1,
        .scope_bytes = option->scope_bytes,
        .windows = option->windows,
    };

    if (!v->unplanned)
        choice.predicted_gbps = option->gbps;
    return choice;
}

uint32_t job_choices_make(const struct job_variant *variants, const struct reach_answer *plan,
                          const char *strategy, struct job_choice choices[JOB_MAX_CHOICES])
{
    const struct reach_option *option;
    uint32_t count = 0;

    memset(choices, 0, JOB_MAX_CHOICES * sizeof *choices);
    for (int unplanned = 0; unplanned < 2; unplanned++) {
        for (uint32_t o = 0; (option = reach_answer_option(plan, o)); o++) {
            if (!option->possible ||
                (strategy && strcmp(reach_strategy_name(option->strategy), strategy) != 0))
                continue;
            for (const struct job_variant *v = variants; v->label; v++) {
                if (v->strategy == option->strategy && v->unplanned == unplanned &&
                    count < JOB_MAX_CHOICES)
                    choices[count++] = make_choice(v, option);
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

void job_choice_pass(const struct job_choice *choice, const struct reach_answer *plan,
                     uint64_t bytes, uint32_t sm_slots, uint32_t pass, struct job_pass *out)
{
    const uint64_t first = (uint64_t)pass * choice->scope_bytes;

    switch (choice->strategy) {
    case REACH_SCOPES:
        job_one_window(first,
                       bytes - first < choice->scope_bytes ? bytes - first : choice->scope_bytes,
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

    for (uint32_t i = 1; i < run->choice_count; i++) {
        if (run->choices[i].gbps > run->choices[best].gbps)
            best = i;
    }
    return best;
}

/* Returns whether a result equals the known parts of the reference, and the first choice. */
static bool is_right(const struct job_run *run, const struct job_result *found)
{
    for (uint32_t i = 0; i < JOB_RESULTS; i++) {
        if (run->reference_known >> i & 1 && found->number[i] != run->reference.number[i])
            return false;
    }
    return memcmp(found, &run->choices[0].result, sizeof *found) == 0;
}

/* Returns the windows of all passes of a choice; the caller frees them. */
static struct job_pass *make_passes(const struct job_run *run, const struct job_choice *choice,
                                    uint32_t sm_slots)
{
    struct job_pass *passes = calloc(choice->pass_count, sizeof *passes);

    for (uint32_t p = 0; passes && p < choice->pass_count; p++)
        job_choice_pass(choice, run->plan, run->bytes, sm_slots, p, &passes[p]);
    return passes;
}

static bool run_choice(const struct job *job, struct job_run *run, struct job_choice *choice,
                       uint32_t sm_slots, uint32_t round, char *why)
{
    struct job_pass *passes = make_passes(run, choice, sm_slots);
    struct job_result found = {.number = {0}};
    double milliseconds = 0;

    if (!passes)
        return job_fail(why, "cannot allocate the windows of %u passes: out of memory",
                        choice->pass_count);
    const bool ran = job->run(job->state, choice, passes, &milliseconds, &found, why);

    free(passes);
    if (!ran)
        return false;
    if (round == 0) {
        choice->result = found;
        choice->right = true;
    } else {
        choice->milliseconds[round - 1] = milliseconds;
    }
    choice->right = choice->right && is_right(run, &found);
    return true;
}

bool job_measure(const struct job *job, struct job_run *run, uint32_t sm_slots, char *why)
{
    for (uint32_t round = 0; round <= run->repeats; round++) {
        for (uint32_t i = 0; i < run->choice_count; i++) {
            if (!run_choice(job, run, &run->choices[i], sm_slots, round, why))
                return false;
        }
    }
    for (uint32_t i = 0; i < run->choice_count; i++) {
        struct job_choice *choice = &run->choices[i];

        choice->gbps =
            run->useful_bytes / (stats_median_f64(choice->milliseconds, run->repeats) * 1e6);
    }
    return true;
}
