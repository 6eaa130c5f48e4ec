/* answer.c: see answer.h. Fields of a newer daemon are passed over; those that an answer cannot do
 * without are checked after reading. */
#include "clients/c/answer_parts.h"

#include "clients/c/offline.h"

#include "base/maybe_json.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

/* null in window_of_sm while it is being read: no window has this number. */
enum { NULL_WINDOW = 0xffff };

struct reach_number answer_number(struct maybe_f64 m)
{
    struct reach_number n = {.known = IS_KNOWN(m), .value = IS_KNOWN(m) ? m.v : 0};

    maybe_json_reason(m.known, m.reason, n.reason, sizeof(n.reason));
    return n;
}

struct reach_number answer_figure(struct maybe_f64 m)
{
    if (IS_KNOWN(m))
        m.v = stats_six_digits(m.v);
    return answer_number(m);
}

struct reach_number answer_size(struct maybe_u64 m)
{
    return answer_number((struct maybe_f64){
        .known = m.known, .reason = m.reason, .v = IS_KNOWN(m) ? (double)m.v : 0});
}

void answer_read_number(struct json_in *in, const char *name, struct reach_number *out)
{
    struct maybe_f64 m = UNKNOWN_F64(REASON_NOT_MEASURED);

    json_in_f64_maybe(in, name, &m);
    *out = answer_number(m);
}

void answer_read_basis(struct json_in *in, struct reach_basis *out)
{
    json_in_text(in, "gpu", out->gpu_uuid, sizeof(out->gpu_uuid));
    json_in_text(in, "fingerprint_id", out->fingerprint_id, sizeof(out->fingerprint_id));
    json_in_text(in, "origin", out->origin, sizeof(out->origin));
    json_in_bool(in, "fingerprint_stale", &out->stale);
    if (json_in_ok(in) && (!out->gpu_uuid[0] || !out->fingerprint_id[0] || !out->origin[0]))
        json_in_fail(in, "fingerprint_id", "the answer does not say what it rests on");
}

enum reach_status answer_end(struct json_in *in, const struct err *err, struct reach_error *error)
{
    if (json_in_end(in) == STATUS_OK)
        return REACH_OK;
    return fail_with(error, REACH_PROTOCOL, "the daemon's answer makes no sense: %s", err->text);
}

/* ---- GPUs ---- */

static void read_gpu(struct json_in *in, struct reach_gpu *out)
{
    json_in_u32(in, "index", REACH_GPU_SLOTS - 1, &out->index);
    json_in_text(in, "uuid", out->uuid, sizeof(out->uuid));
    json_in_text(in, "name", out->name, sizeof(out->name));
    json_in_text(in, "origin", out->origin, sizeof(out->origin));
    json_in_text(in, "state", out->state, sizeof(out->state));
    json_in_u32(in, "sm_count", REACH_SM_SLOTS, &out->sm_count);
    json_in_u64(in, "memory_bytes", &out->memory_bytes);
    json_in_bool(in, "mig", &out->mig);
    json_in_text_or_null(in, "fingerprint_id", out->fingerprint_id, sizeof(out->fingerprint_id));
    json_in_bool(in, "fingerprint_stale", &out->stale);
    if (json_in_ok(in) && (!out->uuid[0] || !out->state[0]))
        json_in_fail(in, "uuid", "a GPU without a UUID or a state");
}

enum reach_status answer_gpu(const json_t *json, void *out, struct reach_error *error)
{
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    read_gpu(&in, out);
    return answer_end(&in, &err, error);
}

enum reach_status answer_gpus(const json_t *json, void *out, struct reach_error *error)
{
    struct reach_gpus *gpus = out;
    const json_t *list;
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    list = json_in_array(&in, "gpus", REACH_GPU_SLOTS);
    if (!list && json_in_ok(&in))
        json_in_fail(&in, "gpus", "is missing");
    for (uint32_t i = 0; json_in_ok(&in) && i < json_array_size(list); i++) {
        struct json_in gpu;
        json_in_begin_inside(&gpu, &in, json_array_get(list, i), "gpus", (int)i);
        read_gpu(&gpu, &gpus->gpu[i]);
        json_in_absorb(&in, json_in_end(&gpu));
        gpus->count = i + 1;
    }
    return answer_end(&in, &err, error);
}

enum reach_status answer_fingerprint(const json_t *json, void *out, struct reach_error *error)
{
    return offline_describe(json, out, error);
}

/* ---- scope and placement ---- */

enum reach_status answer_scope(const json_t *json, void *out, struct reach_error *error)
{
    struct reach_scope *scope = out;
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    answer_read_basis(&in, &scope->basis);
    json_in_u64(&in, "bytes", &scope->bytes);
    json_in_text(&in, "advice", scope->advice, sizeof(scope->advice));
    json_in_u64(&in, "scope_bytes", &scope->scope_bytes);
    json_in_u64(&in, "passes", &scope->passes);
    answer_read_number(&in, "with_gbps", &scope->with_gbps);
    answer_read_number(&in, "without_gbps", &scope->without_gbps);
    json_in_text(&in, "reason", scope->reason, sizeof(scope->reason));
    if (json_in_ok(&in) && (scope->scope_bytes == 0 || scope->passes == 0 || !scope->advice[0] ||
                            scope->scope_bytes < scope->bytes / scope->passes))
        json_in_fail(&in, "scope_bytes", "%llu bytes do not go into %llu passes of %llu",
                     (unsigned long long)scope->bytes, (unsigned long long)scope->passes,
                     (unsigned long long)scope->scope_bytes);
    return answer_end(&in, &err, error);
}

void answer_read_windows(struct json_in *in, struct reach_windows *out)
{
    const json_t *const list = json_in_array(in, "windows", REACH_WINDOW_SLOTS);
    uint16_t table[REACH_SM_SLOTS];

    for (uint32_t i = 0; json_in_ok(in) && i < json_array_size(list); i++) {
        struct reach_window *w = &out->window[i];
        struct json_in one;
        json_in_begin_inside(&one, in, json_array_get(list, i), "windows", (int)i);
        json_in_u64(&one, "first_byte", &w->first_byte);
        json_in_u64(&one, "length_bytes", &w->length_bytes);
        json_in_u32(&one, "sm_count", REACH_SM_SLOTS, &w->sm_count);
        json_in_u32(&one, "group_count", REACH_GROUP_SLOTS, &w->group_count);
        json_in_absorb(in, json_in_end(&one));
        out->window_count = i + 1;
    }
    out->sm_slots = json_in_u16_array(in, "window_of_sm", REACH_SM_SLOTS, REACH_WINDOW_SLOTS - 1,
                                      NULL_WINDOW, table);
    for (uint32_t sm = 0; json_in_ok(in) && sm < out->sm_slots; sm++)
        out->window_of_sm[sm] = table[sm] == NULL_WINDOW ? REACH_IDLE : (int16_t)table[sm];
}

/* Counts the SMs that the table sends to each window. */
static enum reach_status check_table(const struct reach_windows *windows, struct reach_error *error)
{
    uint32_t count[REACH_WINDOW_SLOTS] = {0};

    for (uint32_t sm = 0; sm < windows->sm_slots; sm++) {
        const int16_t w = windows->window_of_sm[sm];
        if (w == REACH_IDLE)
            continue;
        if (w < 0 || (uint32_t)w >= windows->window_count)
            return fail_with(error, REACH_PROTOCOL,
                             "the placement sends SM %u to window %d, and there are %u", sm, w,
                             windows->window_count);
        count[w]++;
    }
    for (uint32_t w = 0; w < windows->window_count; w++) {
        if (count[w] == 0 || count[w] != windows->window[w].sm_count)
            return fail_with(error, REACH_PROTOCOL,
                             "window %u of the placement is said to have %u SMs and has %u", w,
                             windows->window[w].sm_count, count[w]);
    }
    return REACH_OK;
}

enum reach_status answer_check_windows(const struct reach_windows *windows, uint64_t bytes,
                                       struct reach_error *error)
{
    uint64_t next = 0;

    for (uint32_t w = 0; w < windows->window_count; w++) {
        const struct reach_window *window = &windows->window[w];
        if (window->first_byte != next || window->length_bytes == 0 ||
            window->length_bytes > bytes - next)
            return fail_with(error, REACH_PROTOCOL,
                             "window %u of the placement does not lie behind the one before it and "
                             "within the allocation",
                             w);
        next += window->length_bytes;
    }
    if (windows->window_count > 0 && next != bytes)
        return fail_with(error, REACH_PROTOCOL,
                         "the windows of the placement do not cover the allocation");
    return check_table(windows, error);
}

enum reach_status answer_placement(const json_t *json, void *out, struct reach_error *error)
{
    struct reach_placement *placement = out;
    enum reach_status status;
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    answer_read_basis(&in, &placement->basis);
    json_in_u64(&in, "bytes", &placement->bytes);
    json_in_text(&in, "advice", placement->advice, sizeof(placement->advice));
    answer_read_windows(&in, &placement->windows);
    answer_read_number(&in, "margin_bytes", &placement->margin_bytes);
    answer_read_number(&in, "with_gbps", &placement->with_gbps);
    answer_read_number(&in, "without_gbps", &placement->without_gbps);
    json_in_text(&in, "reason", placement->reason, sizeof(placement->reason));
    if (json_in_ok(&in) && !placement->advice[0])
        json_in_fail(&in, "advice", "is missing");
    status = answer_end(&in, &err, error);
    if (status == REACH_OK)
        status = answer_check_windows(&placement->windows, placement->bytes, error);
    return status;
}
