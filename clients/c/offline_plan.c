/* offline_plan.c: plan, split and explain, copied from the planner's structs into those of reach.h.
 */
#include "clients/c/offline_parts.h"

#include "clients/c/answer.h"

#include "placement/explain.h"
#include "placement/split.h"
#include "placement/strategy.h"

_Static_assert((int)REACH_STRATEGY_COUNT == (int)STRATEGY_COUNT, "strategies");
_Static_assert((int)REACH_NAIVE == (int)STRATEGY_NAIVE &&
                   (int)REACH_SCOPES == (int)STRATEGY_SCOPES &&
                   (int)REACH_WINDOWS == (int)STRATEGY_WINDOWS &&
                   (int)REACH_FILTERED_WINDOWS == (int)STRATEGY_FILTERED_WINDOWS &&
                   (int)REACH_PARTITIONED_WINDOWS == (int)STRATEGY_PARTITIONED_WINDOWS,
               "strategies");
_Static_assert((int)REACH_JOB_SLOTS == (int)SPLIT_MAX_JOBS, "jobs of a split");
_Static_assert((int)REACH_CHECK_SLOTS == (int)EXPLAIN_CHECKS, "checks of an explanation");

static struct job_request job_of(const struct reach_job *job, const char *fingerprint_id)
{
    return (struct job_request){.bytes = job->bytes,
                                .access = (enum access)job->access,
                                .element_bytes = job->element_bytes,
                                .transaction_bytes = job->transaction_bytes,
                                .reserve_bytes = job->reserve_bytes,
                                .accesses = job->accesses,
                                .fixed = job->fixed,
                                .once = job->once,
                                .input_bytes = job->input_bytes,
                                .input_gbps = job->input_gbps,
                                .output_bytes = job->output_bytes,
                                .deal_bytes = job->deal_bytes,
                                .look_gps = job->look_gps,
                                .inside_gbps = job->inside_gbps,
                                .windows = job->windows,
                                .granularity_bytes = job->granularity_bytes,
                                .fingerprint_id = fingerprint_id};
}

static void fill_option(const struct strategy_option *o, struct reach_option *out)
{
    out->strategy = (enum reach_strategy)o->strategy;
    out->possible = o->possible;
    out->gbps = answer_figure(o->gbps);
    out->times_naive = answer_figure(o->times_naive);
    out->passes = o->passes;
    out->windows = o->windows;
    out->scope_bytes = o->scope_bytes;
    out->extra_bytes_per_access = o->extra_bytes;
    out->extra_bytes = answer_number(o->extra_bytes_total);
    offline_fill_text(out->bound, sizeof(out->bound), bound_name(o->bound));
    offline_fill_text(out->why, sizeof(out->why), o->why);
}

enum reach_status offline_plan(const struct offline *offline, const void *request, void *out,
                               struct reach_error *error)
{
    const struct reach_job *asked = request;
    const struct job_request job = job_of(asked, offline->id);
    struct reach_plan *plan = out;
    struct strategy_answer answer;
    struct err err;

    if (strategy_plan(&offline->fingerprint, &job, &answer, &err) != STATUS_OK)
        return fail_with_err(error, &err);
    offline_fill_basis(offline, &plan->basis);
    plan->bytes = asked->bytes;
    plan->element_bytes = answer.element_bytes;
    plan->transaction_bytes = answer.transaction_bytes;
    offline_fill_text(plan->price_basis, sizeof(plan->price_basis), basis_name(answer.basis));
    plan->inside_gbps = answer_figure(answer.inside_gbps);
    plan->recommended = (enum reach_strategy)answer.options[0].strategy;
    offline_fill_text(plan->reason, sizeof(plan->reason), answer.reason);
    for (int i = 0; i < STRATEGY_COUNT; i++)
        fill_option(&answer.options[i], &plan->options[i]);
    plan->option_count = STRATEGY_COUNT;
    plan->scope_bytes = answer.scope_bytes;
    plan->passes = answer.passes;
    if (answer.has_placement)
        offline_fill_windows(&answer.placement, &plan->windows);
    return REACH_OK;
}

/* The windows of one part, and the SMs that work in them: all others are idle for this job. */
static void fill_part_windows(const struct split_answer *answer, uint32_t job,
                              struct reach_windows *out)
{
    const struct split_part *part = &answer->parts[job];

    out->window_count = part->window_count;
    for (uint32_t w = 0; w < part->window_count; w++)
        offline_fill_window(&answer->windows[part->first_window + w], &out->window[w]);
    out->sm_slots = answer->sm_slots;
    for (uint32_t sm = 0; sm < answer->sm_slots; sm++)
        out->window_of_sm[sm] =
            answer->job_of_sm[sm] == (int16_t)job && answer->window_of_sm[sm] >= 0
                ? answer->window_of_sm[sm]
                : (int16_t)REACH_IDLE;
}

enum reach_status offline_split(const struct offline *offline, const void *request, void *out,
                                struct reach_error *error)
{
    const struct reach_split_request *asked = request;
    struct split_request question = {.job_count = asked->job_count, .fingerprint_id = offline->id};
    struct reach_split *split = out;
    struct split_answer answer;
    struct err err;

    for (uint32_t j = 0; j < asked->job_count && j < REACH_JOB_SLOTS; j++)
        question.jobs[j] = (struct split_job){asked->jobs[j].bytes, asked->jobs[j].weight};
    if (split_jobs(&offline->fingerprint, &question, &answer, &err) != STATUS_OK)
        return fail_with_err(error, &err);
    offline_fill_basis(offline, &split->basis);
    offline_fill_text(split->reason, sizeof(split->reason), answer.reason);
    split->job_count = answer.job_count;
    for (uint32_t j = 0; j < answer.job_count; j++) {
        const struct split_part *from = &answer.parts[j];
        struct reach_part *part = &split->parts[j];
        part->bytes = asked->jobs[j].bytes;
        part->weight = asked->jobs[j].weight > 0 ? asked->jobs[j].weight : 1;
        part->fits = from->fits;
        part->sm_count = from->sm_count;
        part->group_count = from->group_count;
        fill_part_windows(&answer, j, &part->windows);
        part->gbps = answer_figure(from->gbps);
        part->unsplit_gbps = answer_figure(from->unsplit_gbps);
        offline_fill_text(part->why, sizeof(part->why), from->why);
    }
    return REACH_OK;
}

enum reach_status offline_explain(const struct offline *offline, const void *request, void *out,
                                  struct reach_error *error)
{
    const struct reach_explain_request *asked = request;
    const struct explain_request question = {.bytes = asked->bytes,
                                             .access = (enum access)asked->access,
                                             .element_bytes = asked->element_bytes,
                                             .transaction_bytes = asked->transaction_bytes,
                                             .seen_gbps = asked->seen_gbps,
                                             .fingerprint_id = offline->id};
    struct reach_explanation *e = out;
    struct explain_answer answer;
    struct err err;

    if (explain_loss(&offline->fingerprint, &question, &answer, &err) != STATUS_OK)
        return fail_with_err(error, &err);
    offline_fill_basis(offline, &e->basis);
    e->bytes = asked->bytes;
    e->element_bytes = answer.element_bytes;
    e->transaction_bytes = answer.transaction_bytes;
    offline_fill_text(e->price_basis, sizeof(e->price_basis), basis_name(answer.basis));
    e->seen_gbps = asked->seen_gbps;
    offline_fill_text(e->verdict, sizeof(e->verdict), culprit_name(answer.culprit));
    e->inside_gbps = answer_figure(answer.inside_gbps);
    e->here_gbps = answer_figure(answer.here_gbps);
    e->loss_gbps = answer_figure(answer.loss_gbps);
    e->translation_share = answer_figure(answer.translation_share);
    offline_fill_text(e->reason, sizeof(e->reason), answer.reason);
    for (uint32_t i = 0; i < EXPLAIN_CHECKS && answer.checks[i][0]; i++) {
        offline_fill_text(e->checks[i], sizeof(e->checks[i]), answer.checks[i]);
        e->check_count = i + 1;
    }
    return REACH_OK;
}
