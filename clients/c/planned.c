/* planned.c: converts a plan that the planner made in this process to the structs of reach.h. JSON
 * would take more than the 20 us that a plan may take (tests/bench/bench.py). Numbers are rounded
 * like in the JSON, so that plans from all sources are equal. Arrays and texts belong to the
 * planner's answer, which the content owns. */
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

/* Writes the windows. Their bounds are positions of `layout`. `window_of_sm` is not copied. */
static void set_windows(struct answer_content *answer, const struct layout *layout,
                        const struct placement_answer *from, struct reach_windows *out)
{
    const uint32_t count = from->window_count;
    struct reach_window *copy = answer_alloc(answer, count, sizeof(*copy));
    struct reach_extent *parts =
        answer_alloc(answer, (size_t)count * layout->count, sizeof(*parts));

    if (!copy || !parts)
        return;
    memcpy(copy, from->windows, count * sizeof(*copy));
    for (uint32_t w = 0; w < count; w++) {
        const uint64_t end = copy[w].first_byte + copy[w].length_bytes;
        const struct layout_range whole = layout_parts(layout, copy[w].first_byte, end);
        set_parts(layout, copy[w].first_byte, end, &parts[(size_t)w * layout->count]);
        copy[w].first_byte = whole.first_byte;
        copy[w].length_bytes = whole.length_bytes;
    }
    *out = (struct reach_windows){.window_count = count,
                                  .sm_slots = from->sm_slots,
                                  .window = copy,
                                  .window_of_sm = from->window_of_sm,
                                  .allocation_count = layout->count,
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
        set_windows(answer, &from->layout, &from->placement, &to->windows);
    answer->options = answer_alloc(answer, STRATEGY_COUNT, sizeof(*answer->options));
    for (int i = 0; answer->options && i < STRATEGY_COUNT; i++)
        set_option(answer, &from->options[i], &answer->options[i]);
    to->option_count = answer->count = STRATEGY_COUNT;
}

enum reach_status planned_answer(struct answer_content *answer, const struct snapshot_gpu *gpu,
                                 struct reach_error *error)
{
    set_provenance(answer, gpu);
    set_plan(answer, &answer->call->plan);
    return answer->no_memory
               ? fail_with(error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory")
               : answer_check(answer, error);
}
