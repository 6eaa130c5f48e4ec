/* encode_plan.c: plan, split and explain, written without a tree of values as encode_answer.c does.
 * What carries a strategy out (scope, placement) is there wherever such a strategy is possible, not
 * only where it is the best: a job may try them all. */
#include "api/encode/encode_plan.h"

#include "api/encode/encode.h"

enum { PLAN_ROOM = 6144, EXPLAIN_ROOM = 2048, PART_ROOM = 768 };

static void begin(struct json_text *t, const struct snapshot_gpu *gpu, const char *fingerprint_id,
                  size_t room, uint32_t windows, size_t sms)
{
    encode_begin(t, gpu, fingerprint_id,
                 room + (size_t)windows * ENCODE_WINDOW_ROOM + sms * ENCODE_SM_ROOM);
}

/* ---- plan ---- */

static void write_option(struct json_text *t, const struct strategy_option *option)
{
    json_text_open(t, NULL, '{');
    json_text_text(t, "strategy", strategy_name(option->strategy));
    json_text_bool(t, "possible", option->possible);
    json_text_figure_maybe(t, "gbps", option->gbps);
    json_text_figure_maybe(t, "times_naive", option->times_naive);
    json_text_u64(t, "passes", option->passes);
    json_text_u64(t, "windows", option->windows);
    json_text_u64(t, "scope_bytes", option->scope_bytes);
    json_text_real(t, "extra_bytes_per_access", option->extra_bytes);
    json_text_f64_maybe(t, "extra_bytes", option->extra_bytes_total);
    json_text_text(t, "bound", bound_name(option->bound));
    json_text_text(t, "why", option->why);
    json_text_close(t, '}');
}

static void write_scope(struct json_text *t, const struct strategy_answer *answer)
{
    if (answer->passes == 0) {
        json_text_null(t, "scope");
        return;
    }
    json_text_open(t, "scope", '{');
    json_text_u64(t, "scope_bytes", answer->scope_bytes);
    json_text_u64(t, "passes", answer->passes);
    json_text_close(t, '}');
}

static void write_placement(struct json_text *t, const struct strategy_answer *answer)
{
    const struct placement_answer *placement = &answer->placement;

    if (!answer->has_placement) {
        json_text_null(t, "placement");
        return;
    }
    json_text_open(t, "placement", '{');
    json_text_u64(t, "window_count", placement->window_count);
    encode_windows(t, placement->windows, placement->window_count);
    json_text_i16s(t, "window_of_sm", placement->window_of_sm, placement->sm_slots);
    json_text_u64(t, "margin_bytes", placement->margin_bytes);
    json_text_close(t, '}');
}

char *encode_plan(const struct snapshot_gpu *gpu, const struct job_request *job,
                  const struct strategy_answer *answer, size_t *out_bytes)
{
    struct json_text t;

    begin(&t, gpu, answer->fingerprint_id, PLAN_ROOM, answer->placement.window_count,
          answer->placement.sm_slots);
    json_text_u64(&t, "bytes", job->bytes);
    json_text_text(&t, "access", access_name(job->access));
    json_text_u64(&t, "element_bytes", answer->element_bytes);
    json_text_u64(&t, "transaction_bytes", answer->transaction_bytes);
    json_text_text(&t, "basis", basis_name(answer->basis));
    json_text_figure_maybe(&t, "inside_gbps", answer->inside_gbps);
    json_text_text(&t, "recommended", strategy_name(answer->options[0].strategy));
    json_text_text(&t, "reason", answer->reason);
    json_text_open(&t, "options", '[');
    for (int i = 0; i < STRATEGY_COUNT; i++)
        write_option(&t, &answer->options[i]);
    json_text_close(&t, ']');
    write_scope(&t, answer);
    write_placement(&t, answer);
    json_text_close(&t, '}');
    return json_text_end(&t, out_bytes);
}

/* ---- split ---- */

static void write_sms(struct json_text *t, const struct split_answer *answer, uint32_t job)
{
    int16_t sms[REACH_MAX_SMS];
    size_t count = 0;

    for (uint32_t sm = 0; sm < answer->sm_slots; sm++) {
        if (answer->job_of_sm[sm] == (int16_t)job)
            sms[count++] = (int16_t)sm;
    }
    json_text_i16s(t, "sms", sms, count);
}

/* The fingerprint's numbers of the groups that work for a job. */
static void write_groups(struct json_text *t, const struct snapshot_gpu *gpu,
                         const struct split_answer *answer, uint32_t job)
{
    const struct sm_partition *p = &gpu->fingerprint.topology.partition;
    bool has[REACH_MAX_GROUPS] = {false};
    int16_t groups[REACH_MAX_GROUPS];
    size_t count = 0;

    for (uint32_t sm = 0; sm < answer->sm_slots; sm++) {
        if (answer->job_of_sm[sm] == (int16_t)job && p->group_of_sm[sm] < REACH_MAX_GROUPS)
            has[p->group_of_sm[sm]] = true;
    }
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        if (has[g])
            groups[count++] = (int16_t)g;
    }
    json_text_i16s(t, "groups", groups, count);
}

static void write_part(struct json_text *t, const struct snapshot_gpu *gpu,
                       const struct split_request *request, const struct split_answer *answer,
                       uint32_t job)
{
    const struct split_part *part = &answer->parts[job];
    int16_t own[REACH_MAX_SMS];

    for (uint32_t sm = 0; sm < answer->sm_slots; sm++)
        own[sm] = answer->job_of_sm[sm] == (int16_t)job ? answer->window_of_sm[sm] : -1;
    json_text_open(t, NULL, '{');
    json_text_u64(t, "bytes", request->jobs[job].bytes);
    json_text_real(t, "weight", request->jobs[job].weight > 0 ? request->jobs[job].weight : 1);
    json_text_bool(t, "fits", part->fits);
    json_text_u64(t, "sm_count", part->sm_count);
    json_text_u64(t, "group_count", part->group_count);
    write_sms(t, answer, job);
    write_groups(t, gpu, answer, job);
    json_text_u64(t, "window_count", part->window_count);
    encode_windows(t, &answer->windows[part->first_window], part->window_count);
    json_text_i16s(t, "window_of_sm", own, answer->sm_slots);
    json_text_figure_maybe(t, "gbps", part->gbps);
    json_text_figure_maybe(t, "unsplit_gbps", part->unsplit_gbps);
    json_text_text(t, "why", part->why);
    json_text_close(t, '}');
}

char *encode_split(const struct snapshot_gpu *gpu, const struct split_request *request,
                   const struct split_answer *answer, size_t *out_bytes)
{
    struct json_text t;

    begin(&t, gpu, answer->fingerprint_id, (size_t)(answer->job_count + 1) * PART_ROOM,
          answer->window_count, (size_t)answer->sm_slots * (answer->job_count + 1));
    json_text_open(&t, "jobs", '[');
    for (uint32_t j = 0; j < answer->job_count; j++)
        write_part(&t, gpu, request, answer, j);
    json_text_close(&t, ']');
    json_text_text(&t, "reason", answer->reason);
    json_text_close(&t, '}');
    return json_text_end(&t, out_bytes);
}

/* ---- explain ---- */

char *encode_explain(const struct snapshot_gpu *gpu, const struct explain_request *request,
                     const struct explain_answer *answer, size_t *out_bytes)
{
    struct json_text t;

    begin(&t, gpu, answer->fingerprint_id, EXPLAIN_ROOM, 0, 0);
    json_text_u64(&t, "bytes", request->bytes);
    json_text_text(&t, "access", access_name(request->access));
    json_text_u64(&t, "element_bytes", answer->element_bytes);
    json_text_u64(&t, "transaction_bytes", answer->transaction_bytes);
    json_text_text(&t, "basis", basis_name(answer->basis));
    json_text_real(&t, "seen_gbps", request->seen_gbps);
    json_text_text(&t, "verdict", culprit_name(answer->culprit));
    json_text_figure_maybe(&t, "inside_gbps", answer->inside_gbps);
    json_text_figure_maybe(&t, "here_gbps", answer->here_gbps);
    json_text_figure_maybe(&t, "loss_gbps", answer->loss_gbps);
    json_text_figure_maybe(&t, "translation_share", answer->translation_share);
    json_text_text(&t, "reason", answer->reason);
    json_text_open(&t, "checks", '[');
    for (int i = 0; i < EXPLAIN_CHECKS && answer->checks[i][0] != '\0'; i++)
        json_text_text(&t, NULL, answer->checks[i]);
    json_text_close(&t, ']');
    json_text_close(&t, '}');
    return json_text_end(&t, out_bytes);
}
