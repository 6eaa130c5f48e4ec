/* encode_plan.c: plan, split and explain. What carries a strategy out (scope, placement) is there
 * wherever such a strategy is possible, not only where it is the best: a job may try them all. */
#include "api/encode_plan.h"

#include "api/encode.h"
#include "base/json_out.h"

/* ---- plan ---- */

static json_t *option_to_json(const struct strategy_option *option)
{
    struct json_out o;

    json_out_begin(&o);
    json_out_text(&o, "strategy", strategy_name(option->strategy));
    json_out_bool(&o, "possible", option->possible);
    json_out_f64_maybe(&o, "gbps", option->gbps);
    json_out_f64_maybe(&o, "times_naive", option->times_naive);
    json_out_u64(&o, "passes", option->passes);
    json_out_u64(&o, "windows", option->windows);
    json_out_u64(&o, "scope_bytes", option->scope_bytes);
    json_out_real(&o, "extra_bytes_per_access", option->extra_bytes);
    json_out_f64_maybe(&o, "extra_bytes", option->extra_bytes_total);
    json_out_text(&o, "bound", bound_name(option->bound));
    json_out_text(&o, "why", option->why);
    return json_out_end(&o);
}

static json_t *options_to_json(const struct strategy_answer *answer)
{
    json_t *array = json_array();

    for (int i = 0; i < STRATEGY_COUNT; i++) {
        if (!json_out_append(&array, option_to_json(&answer->options[i])))
            break;
    }
    return array;
}

static json_t *scope_to_json(const struct strategy_answer *answer)
{
    struct json_out o;

    if (answer->passes == 0)
        return json_null();
    json_out_begin(&o);
    json_out_u64(&o, "scope_bytes", answer->scope_bytes);
    json_out_u64(&o, "passes", answer->passes);
    return json_out_end(&o);
}

static json_t *placement_to_json(const struct strategy_answer *answer)
{
    const struct placement_answer *placement = &answer->placement;
    struct json_out o;

    if (!answer->has_placement)
        return json_null();
    json_out_begin(&o);
    json_out_u64(&o, "window_count", placement->window_count);
    json_out_value(&o, "windows", encode_windows(placement->windows, placement->window_count));
    json_out_value(&o, "window_of_sm", encode_by_sm(placement->window_of_sm, placement->sm_slots));
    json_out_u64(&o, "margin_bytes", placement->margin_bytes);
    return json_out_end(&o);
}

json_t *encode_plan(const struct snapshot_gpu *gpu, const struct job_request *job,
                    const struct strategy_answer *answer)
{
    struct json_out o;

    encode_begin(&o, gpu, answer->fingerprint_id);
    json_out_u64(&o, "bytes", job->bytes);
    json_out_text(&o, "access", access_name(job->access));
    json_out_u64(&o, "element_bytes", answer->element_bytes);
    json_out_u64(&o, "transaction_bytes", answer->transaction_bytes);
    json_out_text(&o, "basis", basis_name(answer->basis));
    json_out_f64_maybe(&o, "inside_gbps", answer->inside_gbps);
    json_out_text(&o, "recommended", strategy_name(answer->options[0].strategy));
    json_out_text(&o, "reason", answer->reason);
    json_out_value(&o, "options", options_to_json(answer));
    json_out_value(&o, "scope", scope_to_json(answer));
    json_out_value(&o, "placement", placement_to_json(answer));
    return json_out_end(&o);
}

/* ---- split ---- */

static json_t *sms_to_json(const struct split_answer *answer, uint32_t job)
{
    json_t *array = json_array();

    for (uint32_t sm = 0; sm < answer->sm_slots; sm++) {
        if (answer->job_of_sm[sm] == (int16_t)job && !json_out_append(&array, json_integer(sm)))
            break;
    }
    return array;
}

/* The fingerprint's numbers of the groups that work for a job. */
static json_t *groups_to_json(const struct snapshot_gpu *gpu, const struct split_answer *answer,
                              uint32_t job)
{
    const struct sm_partition *p = &gpu->fingerprint.topology.partition;
    bool has[REACH_MAX_GROUPS] = {false};
    json_t *array = json_array();

    for (uint32_t sm = 0; sm < answer->sm_slots; sm++) {
        if (answer->job_of_sm[sm] == (int16_t)job && p->group_of_sm[sm] < REACH_MAX_GROUPS)
            has[p->group_of_sm[sm]] = true;
    }
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        if (has[g] && !json_out_append(&array, json_integer(g)))
            break;
    }
    return array;
}

static json_t *part_to_json(const struct snapshot_gpu *gpu, const struct split_request *request,
                            const struct split_answer *answer, uint32_t job)
{
    const struct split_part *part = &answer->parts[job];
    int16_t own[REACH_MAX_SMS];
    struct json_out o;

    for (uint32_t sm = 0; sm < answer->sm_slots; sm++)
        own[sm] = answer->job_of_sm[sm] == (int16_t)job ? answer->window_of_sm[sm] : -1;
    json_out_begin(&o);
    json_out_u64(&o, "bytes", request->jobs[job].bytes);
    json_out_real(&o, "weight", request->jobs[job].weight > 0 ? request->jobs[job].weight : 1);
    json_out_bool(&o, "fits", part->fits);
    json_out_u64(&o, "sm_count", part->sm_count);
    json_out_u64(&o, "group_count", part->group_count);
    json_out_value(&o, "sms", sms_to_json(answer, job));
    json_out_value(&o, "groups", groups_to_json(gpu, answer, job));
    json_out_u64(&o, "window_count", part->window_count);
    json_out_value(&o, "windows",
                   encode_windows(&answer->windows[part->first_window], part->window_count));
    json_out_value(&o, "window_of_sm", encode_by_sm(own, answer->sm_slots));
    json_out_f64_maybe(&o, "gbps", part->gbps);
    json_out_f64_maybe(&o, "unsplit_gbps", part->unsplit_gbps);
    json_out_text(&o, "why", part->why);
    return json_out_end(&o);
}

json_t *encode_split(const struct snapshot_gpu *gpu, const struct split_request *request,
                     const struct split_answer *answer)
{
    json_t *jobs = json_array();
    struct json_out o;

    for (uint32_t j = 0; j < answer->job_count; j++) {
        if (!json_out_append(&jobs, part_to_json(gpu, request, answer, j)))
            break;
    }
    encode_begin(&o, gpu, answer->fingerprint_id);
    json_out_value(&o, "jobs", jobs);
    json_out_text(&o, "reason", answer->reason);
    return json_out_end(&o);
}

/* ---- explain ---- */

json_t *encode_explain(const struct snapshot_gpu *gpu, const struct explain_request *request,
                       const struct explain_answer *answer)
{
    json_t *checks = json_array();
    struct json_out o;

    for (int i = 0; i < EXPLAIN_CHECKS && answer->checks[i][0] != '\0'; i++) {
        if (!json_out_append(&checks, json_out_new_text(answer->checks[i])))
            break;
    }
    encode_begin(&o, gpu, answer->fingerprint_id);
    json_out_u64(&o, "bytes", request->bytes);
    json_out_text(&o, "access", access_name(request->access));
    json_out_u64(&o, "element_bytes", answer->element_bytes);
    json_out_u64(&o, "transaction_bytes", answer->transaction_bytes);
    json_out_text(&o, "basis", basis_name(answer->basis));
    json_out_real(&o, "seen_gbps", request->seen_gbps);
    json_out_text(&o, "verdict", culprit_name(answer->culprit));
    json_out_f64_maybe(&o, "inside_gbps", answer->inside_gbps);
    json_out_f64_maybe(&o, "here_gbps", answer->here_gbps);
    json_out_f64_maybe(&o, "loss_gbps", answer->loss_gbps);
    json_out_f64_maybe(&o, "translation_share", answer->translation_share);
    json_out_text(&o, "reason", answer->reason);
    json_out_value(&o, "checks", checks);
    return json_out_end(&o);
}
