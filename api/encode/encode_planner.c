/* encode_planner.c: writes the planner's answers without a tree of values. An answer with a number
 * for each of 132 SMs is calculated and written in a few microseconds.
 *
 * An SM without work is null in window_of_sm. The members scope and placement describe how to carry
 * out a strategy. They are present if any strategy that needs them is possible, even if another
 * strategy is better, because a job may try all strategies.
 */
#include "api/encode/encode.h"

#include "base/clock.h"
#include "base/json_writer.h"

/* Estimated lengths of an answer, so that its text seldom grows. */
static const size_t rooms[] = {
    [PLANNER_SCOPE] = 1 << 10,  [PLANNER_PLACEMENT] = 4 << 10, [PLANNER_PLAN] = 8 << 10,
    [PLANNER_SPLIT] = 12 << 10, [PLANNER_EXPLAIN] = 2 << 10,   [PLANNER_FIT] = 4 << 10};

const char *encode_speeds_taken_at(const struct fingerprint *fp, char *out)
{
    out[0] = '\0';
    if (IS_KNOWN(fp->throughput.plateau_gbps))
        clock_rfc3339(fingerprint_part_taken_at(fp, PART_CURVE), out, ENCODE_TIME_BYTES);
    return out;
}

void encode_begin(struct json_writer *t, const struct snapshot_gpu *gpu, size_t room)
{
    const struct gpu_identity *measured = &gpu->fingerprint.gpu;
    char when[ENCODE_TIME_BYTES];

    json_writer_begin(t, room);
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "gpu", measured->uuid);
    json_writer_text(t, "fingerprint_id", gpu->fingerprint_id);
    json_writer_bool(t, "fingerprint_stale", gpu->fingerprint_stale);
    json_writer_text(t, "origin", origin_name(measured->origin));
    json_writer_text_or_null(t, "speeds_taken_at", encode_speeds_taken_at(&gpu->fingerprint, when));
}

/* ---- ranges ---- */

/* Writes the range between two positions of a layout. For several allocations, writes the total
 * range and one range per allocation. */
static void write_range(struct json_writer *t, const struct layout *layout, uint64_t from,
                        uint64_t to)
{
    const struct layout_range whole = layout_parts(layout, from, to);

    json_writer_u64(t, "first_byte", whole.first_byte);
    json_writer_u64(t, "length_bytes", whole.length_bytes);
    if (layout->count == 1)
        return;
    json_writer_open(t, "parts", '[');
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct layout_range part = layout_part(layout, i, from, to);
        json_writer_open(t, NULL, '{');
        json_writer_u64(t, "first_byte", part.first_byte);
        json_writer_u64(t, "length_bytes", part.length_bytes);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

/* Writes the ranges of the passes unless there are too many. */
static void write_scopes(struct json_writer *t, const struct layout *layout, uint64_t step_bytes,
                         uint64_t passes)
{
    const uint64_t bytes = layout_touched_bytes(layout);

    if (passes > ENCODE_MAX_SCOPES) {
        json_writer_null(t, "scopes");
        return;
    }
    json_writer_open(t, "scopes", '[');
    for (uint64_t k = 0; k < passes; k++) {
        json_writer_open(t, NULL, '{');
        write_range(t, layout, k * step_bytes, k + 1 < passes ? (k + 1) * step_bytes : bytes);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

/* The bounds of the windows are positions of `layout`, or bytes if it is NULL. */
static void write_windows(struct json_writer *t, const struct placement_window *windows,
                          uint32_t count, const struct layout *layout)
{
    json_writer_open(t, "windows", '[');
    for (uint32_t w = 0; w < count; w++) {
        const struct placement_window *window = &windows[w];
        const uint64_t end = window->first_byte + window->length_bytes;
        const struct layout bytes = layout_single(end);
        json_writer_open(t, NULL, '{');
        json_writer_u64(t, "index", w);
        write_range(t, layout ? layout : &bytes, window->first_byte, end);
        json_writer_u64(t, "sm_count", window->sm_count);
        json_writer_u64(t, "group_count", window->group_count);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void write_sizes(struct json_writer *t, const struct layout *layout)
{
    if (layout->count == 1)
        return;
    json_writer_open(t, "allocations", '[');
    for (uint32_t i = 0; i < layout->count; i++) {
        json_writer_open(t, NULL, '{');
        json_writer_u64(t, "bytes", layout->of[i].bytes);
        json_writer_u64(t, "granularity_bytes", layout->of[i].row_bytes);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

/* ---- scope and placement ---- */

static void write_scope_answer(struct json_writer *t, const struct scope_call *call)
{
    const struct scope_answer *answer = &call->answer;

    json_writer_u64(t, "bytes", layout_bytes(&answer->layout));
    write_sizes(t, &answer->layout);
    json_writer_text(t, "access", access_name(call->request.access));
    json_writer_text(t, "advice", advice_name(answer->advice));
    json_writer_u64(t, "scope_bytes", answer->scope_bytes);
    json_writer_u64(t, "passes", answer->passes);
    write_scopes(t, &answer->layout, answer->step_bytes, answer->passes);
    json_writer_figure_maybe(t, "predicted_gbps", answer->predicted_gbps);
    json_writer_figure_maybe(t, "naive_gbps", answer->naive_gbps);
    json_writer_text(t, "reason", answer->reason);
}

static void write_placement_answer(struct json_writer *t, const struct placement_call *call)
{
    const struct placement_answer *answer = &call->answer;
    const bool has_limit = answer->advice != ADVICE_NO_LIMIT_SEEN && answer->window_count > 0;

    json_writer_u64(t, "bytes", call->request.bytes);
    json_writer_text(t, "advice", advice_name(answer->advice));
    json_writer_u64(t, "window_count", answer->window_count);
    write_windows(t, answer->windows, answer->window_count, NULL);
    json_writer_i16s(t, "window_of_sm", answer->window_of_sm, answer->sm_slots);
    json_writer_u64_maybe(t, "headroom_bytes",
                          has_limit ? KNOWN_U64(answer->headroom_bytes)
                                    : UNKNOWN_U64(REASON_NOT_APPLICABLE));
    json_writer_figure_maybe(t, "predicted_gbps", answer->predicted_gbps);
    json_writer_figure_maybe(t, "naive_gbps", answer->naive_gbps);
    json_writer_text(t, "reason", answer->reason);
}

/* ---- plan ---- */

static void write_option(struct json_writer *t, const struct strategy_option *option)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "strategy", strategy_name(option->strategy));
    json_writer_bool(t, "possible", option->possible);
    json_writer_figure_maybe(t, "gbps", option->gbps);
    json_writer_figure_maybe(t, "times_naive", option->times_naive);
    json_writer_u64(t, "passes", option->passes);
    json_writer_u64(t, "windows", option->windows);
    json_writer_u64(t, "scope_bytes", option->scope_bytes);
    json_writer_real(t, "extra_bytes_per_access", option->extra_bytes);
    json_writer_f64_maybe(t, "extra_bytes", option->extra_bytes_total);
    json_writer_text(t, "bound", bound_name(option->bound));
    json_writer_text(t, "why", option->why);
    json_writer_close(t, '}');
}

static void write_scope(struct json_writer *t, const struct strategy_answer *answer)
{
    if (answer->passes == 0) {
        json_writer_null(t, "scope");
        return;
    }
    json_writer_open(t, "scope", '{');
    json_writer_u64(t, "scope_bytes", answer->scope_bytes);
    json_writer_u64(t, "passes", answer->passes);
    if (answer->layout.count > 1)
        write_scopes(t, &answer->layout, answer->scope_bytes, answer->passes);
    json_writer_close(t, '}');
}

static void write_placement(struct json_writer *t, const struct strategy_answer *answer)
{
    const struct placement_answer *placement = &answer->placement;

    if (!answer->has_placement) {
        json_writer_null(t, "placement");
        return;
    }
    json_writer_open(t, "placement", '{');
    json_writer_u64(t, "window_count", placement->window_count);
    write_windows(t, placement->windows, placement->window_count, &answer->layout);
    json_writer_i16s(t, "window_of_sm", placement->window_of_sm, placement->sm_slots);
    json_writer_u64(t, "headroom_bytes", placement->headroom_bytes);
    json_writer_close(t, '}');
}

static void write_access_sizes(struct json_writer *t, const struct strategy_allocation *a)
{
    json_writer_u64(t, "element_bytes", a->element_bytes);
    json_writer_u64(t, "transaction_bytes", a->transaction_bytes);
}

/* Writes the sizes of the accesses of an item: of one access, or of a list of allocations. */
static void write_item(struct json_writer *t, const struct job_request *job,
                       const struct strategy_answer *answer)
{
    if (job->allocation_count == 0) {
        write_access_sizes(t, &answer->allocations[0]);
        return;
    }
    json_writer_real(t, "item_bytes", answer->item_bytes);
    json_writer_open(t, "allocations", '[');
    for (uint32_t i = 0; i < answer->layout.count; i++) {
        json_writer_open(t, NULL, '{');
        json_writer_u64(t, "bytes", answer->layout.of[i].bytes);
        json_writer_real(t, "touches", answer->layout.of[i].touches);
        write_access_sizes(t, &answer->allocations[i]);
        json_writer_u64(t, "granularity_bytes", answer->layout.of[i].row_bytes);
        json_writer_text(t, "basis", basis_name(answer->allocations[i].basis));
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void write_plan(struct json_writer *t, const struct plan_call *call)
{
    const struct job_request *job = &call->request;
    const struct strategy_answer *answer = &call->answer;

    json_writer_u64(t, "bytes", layout_bytes(&answer->layout));
    json_writer_text(t, "access", access_name(job->access));
    write_item(t, job, answer);
    json_writer_text(t, "basis", basis_name(answer->basis));
    json_writer_figure_maybe(t, "in_reach_gbps", answer->in_reach_gbps);
    json_writer_figure_maybe(t, "contiguous", KNOWN_F64(1 - job->scattered));
    json_writer_figure_maybe(t, "naive_contiguous_gbps", answer->naive_contiguous_gbps);
    json_writer_figure_maybe(t, "naive_scattered_gbps", answer->naive_scattered_gbps);
    json_writer_text(t, "recommended", strategy_name(answer->options[0].strategy));
    json_writer_text(t, "reason", answer->reason);
    json_writer_open(t, "options", '[');
    for (int i = 0; i < STRATEGY_COUNT; i++)
        write_option(t, &answer->options[i]);
    json_writer_close(t, ']');
    write_scope(t, answer);
    write_placement(t, answer);
}

/* ---- split ---- */

/* Writes the SMs of a job, and the fingerprint's numbers of their groups. */
static void write_members(struct json_writer *t, const struct sm_partition *p, const int16_t *own,
                          uint32_t sm_slots)
{
    bool has[REACH_MAX_GROUPS] = {false};
    int16_t members[REACH_MAX_SMS];
    size_t count = 0;

    for (uint32_t sm = 0; sm < sm_slots; sm++) {
        if (own[sm] < 0)
            continue;
        members[count++] = (int16_t)sm;
        if (p->group_of_sm[sm] < REACH_MAX_GROUPS)
            has[p->group_of_sm[sm]] = true;
    }
    json_writer_i16s(t, "sms", members, count);
    count = 0;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        if (has[g])
            members[count++] = (int16_t)g;
    }
    json_writer_i16s(t, "groups", members, count);
}

static void write_share(struct json_writer *t, const struct sm_partition *partition,
                        const struct split_call *call, uint32_t job)
{
    const struct split_job *of = &call->request.jobs[job];
    const struct split_answer *answer = &call->answer;
    const struct split_part *part = &answer->parts[job];
    int16_t own[REACH_MAX_SMS];

    for (uint32_t sm = 0; sm < answer->sm_slots; sm++)
        own[sm] = answer->job_of_sm[sm] == (int16_t)job ? answer->window_of_sm[sm] : -1;
    json_writer_open(t, NULL, '{');
    json_writer_u64(t, "bytes", of->bytes);
    json_writer_real(t, "weight", of->weight > 0 ? of->weight : 1);
    json_writer_bool(t, "fits", part->fits);
    json_writer_u64(t, "sm_count", part->sm_count);
    json_writer_u64(t, "group_count", part->group_count);
    write_members(t, partition, own, answer->sm_slots);
    json_writer_u64(t, "window_count", part->window_count);
    write_windows(t, &answer->windows[part->first_window], part->window_count, NULL);
    json_writer_i16s(t, "window_of_sm", own, answer->sm_slots);
    json_writer_figure_maybe(t, "gbps", part->gbps);
    json_writer_figure_maybe(t, "unsplit_gbps", part->unsplit_gbps);
    json_writer_text(t, "why", part->why);
    json_writer_close(t, '}');
}

static void write_split(struct json_writer *t, const struct snapshot_gpu *gpu,
                        const struct split_call *call)
{
    json_writer_open(t, "jobs", '[');
    for (uint32_t j = 0; j < call->answer.job_count; j++)
        write_share(t, &gpu->fingerprint.topology.partition, call, j);
    json_writer_close(t, ']');
    json_writer_text(t, "reason", call->answer.reason);
}

/* ---- explain ---- */

static void write_explanation(struct json_writer *t, const struct explain_call *call)
{
    const struct explain_request *request = &call->request;
    const struct explain_answer *answer = &call->answer;

    json_writer_u64(t, "bytes", request->bytes);
    json_writer_text(t, "access", access_name(request->access));
    json_writer_u64(t, "element_bytes", answer->element_bytes);
    json_writer_u64(t, "transaction_bytes", answer->transaction_bytes);
    json_writer_text(t, "basis", basis_name(answer->basis));
    json_writer_real(t, "observed_gbps", request->observed_gbps);
    json_writer_text(t, "verdict", bottleneck_name(answer->bottleneck));
    json_writer_figure_maybe(t, "in_reach_gbps", answer->in_reach_gbps);
    json_writer_figure_maybe(t, "expected_gbps", answer->expected_gbps);
    json_writer_figure_maybe(t, "contiguous", KNOWN_F64(1 - request->scattered));
    json_writer_figure_maybe(t, "naive_contiguous_gbps", answer->naive_contiguous_gbps);
    json_writer_figure_maybe(t, "naive_scattered_gbps", answer->naive_scattered_gbps);
    json_writer_figure_maybe(t, "loss_gbps", answer->loss_gbps);
    json_writer_figure_maybe(t, "translation_share", answer->translation_share);
    json_writer_text(t, "reason", answer->reason);
    json_writer_open(t, "checks", '[');
    for (int i = 0; i < EXPLAIN_CHECKS && answer->checks[i][0] != '\0'; i++)
        json_writer_text(t, NULL, answer->checks[i]);
    json_writer_close(t, ']');
}

char *encode_planner_call(const struct snapshot_gpu *gpu, const struct planner_call *call,
                          size_t *out_bytes)
{
    struct json_writer t;

    encode_begin(&t, gpu, rooms[call->function]);
    switch (call->function) {
    case PLANNER_SCOPE:
        write_scope_answer(&t, &call->scope);
        break;
    case PLANNER_PLACEMENT:
        write_placement_answer(&t, &call->placement);
        break;
    case PLANNER_PLAN:
        write_plan(&t, &call->plan);
        break;
    case PLANNER_SPLIT:
        write_split(&t, gpu, &call->split);
        break;
    case PLANNER_FIT:
        encode_fit(&t, &call->fit);
        break;
    case PLANNER_EXPLAIN:
        write_explanation(&t, &call->explain);
        break;
    case PLANNER_MEMORY: /* encode_memory_choices */
    case PLANNER_NONE:
    case PLANNER_COUNT:
        break;
    }
    json_writer_close(&t, '}');
    return json_writer_end(&t, out_bytes);
}
