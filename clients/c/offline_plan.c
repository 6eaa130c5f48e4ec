/* offline_plan.c: the planner's answers, copied from its structs into those of reach.h. */
#include "clients/c/offline_parts.h"

#include "clients/c/answer.h"

#include "placement/strategy.h"

_Static_assert((int)REACH_STRATEGY_COUNT == (int)STRATEGY_COUNT, "strategies");
_Static_assert((int)REACH_NAIVE == (int)STRATEGY_NAIVE &&
                   (int)REACH_SCOPES == (int)STRATEGY_SCOPES &&
                   (int)REACH_WINDOWS == (int)STRATEGY_WINDOWS &&
                   (int)REACH_FILTERED_WINDOWS == (int)STRATEGY_FILTERED_WINDOWS &&
                   (int)REACH_PARTITIONED_WINDOWS == (int)STRATEGY_PARTITIONED_WINDOWS,
               "strategies");

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
    out->gbps = answer_number(o->gbps);
    out->times_naive = answer_number(o->times_naive);
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
