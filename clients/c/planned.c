/* planned.c: converts the planner's answer in this process to the structs of reach.h, without JSON.
 * Numbers are rounded like in the JSON, so that answers from all sources are equal. Arrays and
 * texts belong to the planner's answer, which the content owns. */
#include "clients/c/answer.h"

#include "api/encode/encode.h"
#include "base/maybe.h"
#include "base/format_number.h"

#include <stdio.h>
#include <string.h>

static struct reach_number number(struct answer_content *answer, struct maybe_f64 m)
{
    struct reach_number n = {.known = IS_KNOWN(m), .value = m.v, .reason = ""};
    char *reason;

    if (n.known)
        return n;
    n.value = 0;
    reason = answer_alloc(answer, 1, REASON_TEXT_BYTES);
    n.reason = reason ? reason_text(m.known, m.reason, reason) : "";
    return n;
}

static struct reach_number figure(struct answer_content *answer, struct maybe_f64 m)
{
    m.v = round_six_digits(m.v);
    return number(answer, m);
}

enum reach_verdict answer_verdict(unsigned bottleneck)
{
    return bottleneck == BOTTLENECK_CANNOT_SAY ? REACH_VERDICT_CANNOT_SAY
                                               : (enum reach_verdict)bottleneck;
}

_Static_assert(sizeof(struct reach_window) == sizeof(struct placement_window) &&
                   offsetof(struct reach_window, group_count) ==
                       offsetof(struct placement_window, group_count),
               "a window of the planner is one of reach.h");

_Static_assert(sizeof(struct reach_extent) == sizeof(struct layout_range), "ranges");

/* Writes the part of each allocation between two positions to `out`. */
static void set_parts(const struct layout *layout, uint64_t from, uint64_t to,
                      struct reach_extent *out)
{
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct layout_range part = layout_part(layout, i, from, to);
        out[i] = (struct reach_extent){part.first_byte, part.length_bytes};
    }
}

/* Writes the windows. Their bounds are positions of `layout`, or bytes if `layout` is NULL.
 * `window_of_sm` is not copied. */
static void set_windows(struct answer_content *answer, const struct layout *layout,
                        const struct placement_window *windows, uint32_t count,
                        const int16_t *window_of_sm, uint32_t sm_slots, struct reach_windows *out)
{
    const uint32_t allocations = layout ? layout->count : 1;
    struct reach_window *copy = answer_alloc(answer, count, sizeof(*copy));
    struct reach_extent *parts = answer_alloc(answer, (size_t)count * allocations, sizeof(*parts));

    if (!copy || !parts)
        return;
    memcpy(copy, windows, count * sizeof(*copy));
    for (uint32_t w = 0; w < count; w++) {
        const uint64_t end = copy[w].first_byte + copy[w].length_bytes;
        const struct layout bytes = layout_single(end);
        const struct layout_range whole =
            layout_parts(layout ? layout : &bytes, copy[w].first_byte, end);
        set_parts(layout ? layout : &bytes, copy[w].first_byte, end,
                  &parts[(size_t)w * allocations]);
        copy[w].first_byte = whole.first_byte;
        copy[w].length_bytes = whole.length_bytes;
    }
    *out = (struct reach_windows){.window_count = count,
                                  .sm_slots = sm_slots,
                                  .window = copy,
                                  .window_of_sm = window_of_sm,
                                  .allocation_count = allocations,
                                  .part = parts};
}

_Static_assert((int)REACH_SCOPE_MAX == (int)ENCODE_MAX_SCOPES &&
                   (int)REACH_ALLOCATION_MAX == (int)LAYOUT_MAX,
               "lists of the API are those of reach.h");

/* Pass k begins at position k * step_bytes. */
static void set_scopes(struct answer_content *answer, const struct layout *layout,
                       uint64_t step_bytes, uint64_t passes, struct reach_scopes *out)
{
    const uint64_t bytes = layout_touched_bytes(layout);
    struct reach_extent *ranges;

    *out = (struct reach_scopes){.allocation_count = layout->count};
    if (passes == 0 || passes > REACH_SCOPE_MAX ||
        !(ranges = answer_alloc(answer, (size_t)passes * layout->count, sizeof(*ranges))))
        return;
    for (uint64_t k = 0; k < passes; k++)
        set_parts(layout, k * step_bytes, k + 1 < passes ? (k + 1) * step_bytes : bytes,
                  &ranges[k * layout->count]);
    out->scope_count = (uint32_t)passes;
    out->range = ranges;
}

void answer_set_scopes(struct answer_content *answer, struct reach_plan *plan)
{
    const struct layout layout = layout_single(plan->bytes);

    set_scopes(answer, &layout, plan->scope_bytes, plan->passes, &plan->scopes);
}

static void set_provenance(struct answer_content *answer, const struct snapshot_gpu *gpu)
{
    struct {
        char gpu_uuid[REACH_UUID_BYTES];
        char fingerprint_id[FINGERPRINT_ID_BYTES];
        char speeds_taken_at[ENCODE_TIME_BYTES];
    } *texts = answer_alloc(answer, 1, sizeof(*texts));

    if (!texts)
        return;
    snprintf(texts->gpu_uuid, sizeof(texts->gpu_uuid), "%s", gpu->fingerprint.gpu.uuid);
    snprintf(texts->fingerprint_id, sizeof(texts->fingerprint_id), "%s", gpu->fingerprint_id);
    encode_speeds_taken_at(&gpu->fingerprint, texts->speeds_taken_at);
    answer->rests_on_fingerprint = true;
    answer->provenance =
        (struct reach_provenance){.gpu_uuid = texts->gpu_uuid,
                                  .fingerprint_id = texts->fingerprint_id,
                                  .origin = (enum reach_origin)(gpu->fingerprint.gpu.origin + 1),
                                  .stale = gpu->fingerprint_stale,
                                  .speeds_taken_at = texts->speeds_taken_at};
}

static void set_scope(struct answer_content *answer, const struct scope_call *call)
{
    const struct scope_answer *from = &call->answer;

    answer->scope = (struct reach_scope){.bytes = layout_bytes(&from->layout),
                                         .advice = (enum reach_advice)(from->advice + 1),
                                         .scope_bytes = from->scope_bytes,
                                         .passes = from->passes,
                                         .predicted_gbps = figure(answer, from->predicted_gbps),
                                         .naive_gbps = figure(answer, from->naive_gbps),
                                         .reason = from->reason};
    set_scopes(answer, &from->layout, from->step_bytes, from->passes, &answer->scope.scopes);
}

static void set_placement(struct answer_content *answer, const struct placement_call *call)
{
    const struct placement_answer *from = &call->answer;
    const struct maybe_u64 headroom = encode_headroom(from);
    const struct maybe_f64 headroom_bytes = {headroom.known, headroom.reason, (double)headroom.v};
    struct reach_placement *to = &answer->placement;

    to->bytes = call->request.bytes;
    to->advice = (enum reach_advice)(from->advice + 1);
    set_windows(answer, NULL, from->windows, from->window_count, from->window_of_sm, from->sm_slots,
                &to->windows);
    to->headroom_bytes = number(answer, headroom_bytes);
    to->predicted_gbps = figure(answer, from->predicted_gbps);
    to->naive_gbps = figure(answer, from->naive_gbps);
    to->reason = from->reason;
}

static void set_option(struct answer_content *answer, const struct strategy_option *from,
                       struct reach_option *to)
{
    *to = (struct reach_option){.strategy = (enum reach_strategy)from->strategy,
                                .possible = from->possible,
                                .gbps = figure(answer, from->gbps),
                                .times_naive = figure(answer, from->times_naive),
                                .passes = from->passes,
                                .windows = from->windows,
                                .scope_bytes = from->scope_bytes,
                                .extra_bytes_per_access = from->extra_bytes,
                                .extra_bytes = number(answer, from->extra_bytes_total),
                                .bound = (enum reach_bound)(from->bound + 1),
                                .why = from->why};
}

/* Writes the accesses of an item: one access of the only allocation, or a list. */
static void set_item(struct answer_content *answer, const struct plan_call *call,
                     struct reach_plan *to)
{
    const struct strategy_answer *from = &call->answer;
    const uint32_t count = call->request.allocation_count;
    struct reach_allocation *list = answer_alloc(answer, count, sizeof(*list));

    to->item_bytes = from->item_bytes;
    if (count == 0) {
        to->element_bytes = from->allocations[0].element_bytes;
        to->transaction_bytes = from->allocations[0].transaction_bytes;
    }
    for (uint32_t i = 0; list && i < count; i++)
        list[i] =
            (struct reach_allocation){.bytes = from->layout.of[i].bytes,
                                      .granularity_bytes = from->layout.of[i].row_bytes,
                                      .touches = from->layout.of[i].touches,
                                      .element_bytes = from->allocations[i].element_bytes,
                                      .transaction_bytes = from->allocations[i].transaction_bytes};
    to->allocation_count = count;
    to->allocation = list;
}

static void set_plan(struct answer_content *answer, const struct plan_call *call)
{
    const struct strategy_answer *from = &call->answer;
    const struct placement_answer *placement = &from->placement;
    struct reach_plan *to = &answer->plan;

    to->bytes = layout_bytes(&from->layout);
    set_item(answer, call, to);
    to->price = (enum reach_price)(from->basis + 1);
    to->in_reach_gbps = figure(answer, from->in_reach_gbps);
    to->contiguous = figure(answer, KNOWN_F64(1 - call->request.scattered));
    to->naive_contiguous_gbps = figure(answer, from->naive_contiguous_gbps);
    to->naive_scattered_gbps = figure(answer, from->naive_scattered_gbps);
    to->recommended = (enum reach_strategy)from->options[0].strategy;
    to->reason = from->reason;
    to->scope_bytes = from->scope_bytes;
    to->passes = from->passes;
    to->windows.allocation_count = from->layout.count;
    set_scopes(answer, &from->layout, from->scope_bytes, from->passes, &to->scopes);
    if (from->has_placement)
        set_windows(answer, &from->layout, placement->windows, placement->window_count,
                    placement->window_of_sm, placement->sm_slots, &to->windows);
    answer->options = answer_alloc(answer, STRATEGY_COUNT, sizeof(*answer->options));
    for (int i = 0; answer->options && i < STRATEGY_COUNT; i++)
        set_option(answer, &from->options[i], &answer->options[i]);
    to->option_count = answer->count = STRATEGY_COUNT;
}

static void set_share(struct answer_content *answer, const struct split_call *call, uint32_t job,
                      struct reach_share *to)
{
    const struct split_answer *from = &call->answer;
    const struct split_part *part = &from->parts[job];
    const double weight = call->request.jobs[job].weight;
    int16_t *own = answer_alloc(answer, from->sm_slots, sizeof(*own));

    if (!own)
        return;
    encode_share_table(from, job, own);
    to->bytes = call->request.jobs[job].bytes;
    to->weight = weight > 0 ? weight : 1;
    to->fits = part->fits;
    to->sm_count = part->sm_count;
    to->group_count = part->group_count;
    set_windows(answer, NULL, &from->windows[part->first_window], part->window_count, own,
                from->sm_slots, &to->windows);
    to->gbps = figure(answer, part->gbps);
    to->unsplit_gbps = figure(answer, part->unsplit_gbps);
    to->why = part->why;
}

static void set_split(struct answer_content *answer, const struct split_call *call)
{
    const uint32_t count = call->answer.job_count;

    answer->shares = answer_alloc(answer, count, sizeof(*answer->shares));
    for (uint32_t j = 0; answer->shares && j < count; j++)
        set_share(answer, call, j, &answer->shares[j]);
    answer->count = count;
    answer->split = (struct reach_split){.job_count = count, .reason = call->answer.reason};
}

static void set_explanation(struct answer_content *answer, const struct explain_call *call)
{
    const struct explain_answer *from = &call->answer;
    struct reach_explanation *to = &answer->explanation;
    const char **checks = answer_alloc(answer, EXPLAIN_CHECKS, sizeof(*checks));

    to->bytes = call->request.bytes;
    to->element_bytes = from->element_bytes;
    to->transaction_bytes = from->transaction_bytes;
    to->price = (enum reach_price)(from->basis + 1);
    to->observed_gbps = call->request.observed_gbps;
    to->verdict = answer_verdict(from->bottleneck);
    to->in_reach_gbps = figure(answer, from->in_reach_gbps);
    to->expected_gbps = figure(answer, from->expected_gbps);
    to->contiguous = figure(answer, KNOWN_F64(1 - call->request.scattered));
    to->naive_contiguous_gbps = figure(answer, from->naive_contiguous_gbps);
    to->naive_scattered_gbps = figure(answer, from->naive_scattered_gbps);
    to->loss_gbps = figure(answer, from->loss_gbps);
    to->translation_share = figure(answer, from->translation_share);
    to->reason = from->reason;
    to->checks = checks;
    for (; checks && to->check_count < EXPLAIN_CHECKS && *from->checks[to->check_count];
         to->check_count++)
        checks[to->check_count] = from->checks[to->check_count];
}

enum reach_status planned_answer(struct answer_content *answer, const struct snapshot_gpu *gpu,
                                 struct reach_error *error)
{
    const struct planner_call *call = answer->call;

    set_provenance(answer, gpu);
    if (call->function == PLANNER_SCOPE)
        set_scope(answer, &call->scope);
    else if (call->function == PLANNER_PLACEMENT)
        set_placement(answer, &call->placement);
    else if (call->function == PLANNER_PLAN)
        set_plan(answer, &call->plan);
    else if (call->function == PLANNER_SPLIT)
        set_split(answer, &call->split);
    else
        set_explanation(answer, &call->explain);
    return answer->no_memory
               ? fail_with(error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory")
               : answer_check(answer, error);
}
