/* ask_daemon.c: see ask_daemon.h. Open, get, copy what the program works with, close. */
#include "ask_daemon.h"

#include "clients/c/reach.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)ASK_MAX_SMS == (int)REACH_SM_MAX, "SMs of a table");
_Static_assert((int)ASK_MAX_WINDOWS == (int)REACH_WINDOW_MAX, "windows of a placement");

/* One request: what `get` returns, or NULL and why. The caller frees the answer. */
typedef enum reach_status get_fn(struct reach *reach, const char *gpu, uint64_t bytes,
                                 struct reach_answer **out, struct reach_error *error);

static struct reach_answer *ask(const char *uri, const char *gpu, uint64_t bytes, get_fn *get,
                                char *why)
{
    struct reach_answer *answer = NULL;
    struct reach *reach = NULL;
    struct reach_error error;

    if (reach_open(uri, &reach, &error) != REACH_OK ||
        get(reach, gpu, bytes, &answer, &error) != REACH_OK)
        snprintf(why, ASK_TEXT_BYTES, "%.*s", ASK_TEXT_BYTES - 1, error.text);
    reach_close(reach);
    return answer;
}

static enum reach_status get_scope(struct reach *reach, const char *gpu, uint64_t bytes,
                                   struct reach_answer **out, struct reach_error *error)
{
    const struct reach_scope_request request = {.size = sizeof request, .bytes = bytes};

    return reach_get_scope(reach, gpu, &request, out, error);
}

static enum reach_status get_placement(struct reach *reach, const char *gpu, uint64_t bytes,
                                       struct reach_answer **out, struct reach_error *error)
{
    const struct reach_placement_request request = {.size = sizeof request, .bytes = bytes};

    return reach_get_placement(reach, gpu, &request, out, error);
}

static enum reach_status get_chip(struct reach *reach, const char *gpu, uint64_t bytes,
                                  struct reach_answer **out, struct reach_error *error)
{
    (void)bytes;
    return reach_get_fingerprint(reach, gpu, out, error);
}

static double number(struct reach_number n)
{
    return n.known ? n.value : (double)NAN;
}

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

bool ask_scope(const char *uri, const char *gpu, uint64_t bytes, struct ask_scope *out, char *why)
{
    struct reach_answer *answer = ask(uri, gpu, bytes, get_scope, why);
    const struct reach_scope *scope = reach_answer_scope(answer);

    memset(out, 0, sizeof *out);
    if (!answer)
        return false;
    copy_text(out->advice, sizeof out->advice, reach_advice_name(scope->advice));
    out->scope_bytes = scope->scope_bytes;
    out->passes = scope->passes;
    reach_answer_free(answer);
    return true;
}

/* libreach has checked that the windows cover the allocation and that no SM is in another one. */
static void copy_windows(const struct reach_windows *from, struct ask_placement *out)
{
    out->window_count = from->window_count;
    for (uint32_t w = 0; w < from->window_count; w++) {
        out->windows[w].first_byte = from->window[w].first_byte;
        out->windows[w].length_bytes = from->window[w].length_bytes;
    }
    out->sm_slots = from->sm_slots;
    memcpy(out->window_of_sm, from->window_of_sm, from->sm_slots * sizeof *out->window_of_sm);
}

bool ask_placement(const char *uri, const char *gpu, uint64_t bytes, struct ask_placement *out,
                   char *why)
{
    struct reach_answer *answer = ask(uri, gpu, bytes, get_placement, why);
    const struct reach_provenance *from = reach_answer_provenance(answer);
    const struct reach_placement *placement = reach_answer_placement(answer);

    memset(out, 0, sizeof *out);
    if (!answer)
        return false;
    copy_text(out->advice, sizeof out->advice, reach_advice_name(placement->advice));
    copy_text(out->reason, sizeof out->reason, placement->reason);
    copy_text(out->fingerprint_id, sizeof out->fingerprint_id, from->fingerprint_id);
    copy_text(out->origin, sizeof out->origin, reach_origin_name(from->origin));
    out->predicted_gbps = number(placement->predicted_gbps);
    out->naive_gbps = number(placement->naive_gbps);
    copy_windows(&placement->windows, out);
    if (out->window_count == 0)
        snprintf(why, ASK_TEXT_BYTES, "not applicable (%s): %.400s", out->advice, out->reason);
    reach_answer_free(answer);
    return out->window_count > 0;
}

bool ask_chip(const char *uri, const char *gpu, struct ask_chip *out, char *why)
{
    struct reach_answer *answer = ask(uri, gpu, 0, get_chip, why);
    const struct reach_fingerprint *fingerprint = reach_answer_fingerprint(answer);

    memset(out, 0, sizeof *out);
    if (!answer)
        return false;
    copy_text(out->name, sizeof out->name, fingerprint->name);
    copy_text(out->uuid, sizeof out->uuid, reach_answer_provenance(answer)->gpu_uuid);
    out->memory_bytes = fingerprint->memory_bytes;
    out->plateau_gbps = number(fingerprint->plateau_gbps);
    for (uint32_t sm = 0; sm < ASK_MAX_SMS; sm++)
        out->group_of_sm[sm] =
            sm < fingerprint->sm_slots ? fingerprint->group_of_sm[sm] : (int16_t)ASK_NO_GROUP;
    reach_answer_free(answer);
    return true;
}
