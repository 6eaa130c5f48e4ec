/* encode_answer.c: scope and placement, written without a tree of values: an answer with a number
 * for each of 132 SMs is worked out and written in a few microseconds.
 *
 * An SM that gets no work is null in window_of_sm: 0 is a window, and there are no magic numbers.
 */
#include "api/encode/encode.h"

#include "base/clock.h"
#include "base/json_text.h"

enum { ANSWER_ROOM = 1024 };

/* When the speeds that answers predict from were measured; null if none were. */
static void encode_speeds_taken_at(struct json_text *t, const struct fingerprint *fp)
{
    char when[32];

    if (IS_KNOWN(fp->throughput.plateau_gbps))
        json_text_text(t, "speeds_taken_at",
                       clock_rfc3339(fingerprint_part_taken_at(fp, PART_CURVE), when, sizeof when));
    else
        json_text_null(t, "speeds_taken_at");
}

void encode_begin(struct json_text *t, const struct snapshot_gpu *gpu, const char *fingerprint_id,
                  size_t room)
{
    const struct gpu_identity *measured = &gpu->fingerprint.gpu;

    json_text_begin(t, room);
    json_text_open(t, NULL, '{');
    json_text_text(t, "gpu", measured->uuid);
    json_text_text(t, "fingerprint_id", fingerprint_id);
    json_text_bool(t, "fingerprint_stale", gpu->fingerprint_stale);
    json_text_text(t, "origin", origin_name(measured->origin));
    encode_speeds_taken_at(t, &gpu->fingerprint);
}

char *encode_scope(const struct snapshot_gpu *gpu, const struct scope_request *request,
                   const struct scope_answer *answer, size_t *out_bytes)
{
    struct json_text t;

    encode_begin(&t, gpu, answer->fingerprint_id, ANSWER_ROOM);
    json_text_u64(&t, "bytes", request->bytes);
    json_text_text(&t, "access", access_name(request->access));
    json_text_text(&t, "advice", advice_name(answer->advice));
    json_text_u64(&t, "scope_bytes", answer->scope_bytes);
    json_text_u64(&t, "passes", answer->passes);
    json_text_figure_maybe(&t, "with_gbps", answer->with_gbps);
    json_text_figure_maybe(&t, "without_gbps", answer->without_gbps);
    json_text_text(&t, "reason", answer->reason);
    json_text_close(&t, '}');
    return json_text_end(&t, out_bytes);
}

void encode_windows(struct json_text *t, const struct placement_window *windows, uint32_t count)
{
    json_text_open(t, "windows", '[');
    for (uint32_t w = 0; w < count; w++) {
        const struct placement_window *window = &windows[w];
        json_text_open(t, NULL, '{');
        json_text_u64(t, "index", w);
        json_text_u64(t, "first_byte", window->first_byte);
        json_text_u64(t, "length_bytes", window->length_bytes);
        json_text_u64(t, "sm_count", window->sm_count);
        json_text_u64(t, "group_count", window->group_count);
        json_text_close(t, '}');
    }
    json_text_close(t, ']');
}

/* Without a limit, or without windows, there is nothing to keep a margin from. */
static struct maybe_u64 margin_of(const struct placement_answer *answer)
{
    if (answer->advice == ADVICE_NO_LIMIT_SEEN || answer->window_count == 0)
        return UNKNOWN_U64(REASON_NOT_APPLICABLE);
    return KNOWN_U64(answer->margin_bytes);
}

char *encode_placement(const struct snapshot_gpu *gpu, const struct placement_request *request,
                       const struct placement_answer *answer, size_t *out_bytes)
{
    struct json_text t;

    encode_begin(&t, gpu, answer->fingerprint_id,
                 ANSWER_ROOM + (size_t)answer->window_count * ENCODE_WINDOW_ROOM +
                     (size_t)answer->sm_slots * ENCODE_SM_ROOM);
    json_text_u64(&t, "bytes", request->bytes);
    json_text_text(&t, "advice", advice_name(answer->advice));
    json_text_u64(&t, "window_count", answer->window_count);
    encode_windows(&t, answer->windows, answer->window_count);
    json_text_i16s(&t, "window_of_sm", answer->window_of_sm, answer->sm_slots);
    json_text_u64_maybe(&t, "margin_bytes", margin_of(answer));
    json_text_figure_maybe(&t, "with_gbps", answer->with_gbps);
    json_text_figure_maybe(&t, "without_gbps", answer->without_gbps);
    json_text_text(&t, "reason", answer->reason);
    json_text_close(&t, '}');
    return json_text_end(&t, out_bytes);
}
