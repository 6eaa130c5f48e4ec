/* ask.c: the questions. A daemon is asked with the ETag of what it said last; what it confirms is
 * given out from there, what it says anew is read and checked. An answer from a stale fingerprint,
 * or one from before the daemon went away, is given out only to those who take it. */
#include "clients/c/answer.h"
#include "clients/c/kept.h"
#include "clients/c/offline.h"
#include "clients/c/wire.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HTTP_OK = 200, HTTP_NOT_MODIFIED = 304 };

/* One call: how much time it has left, and what it takes. */
struct call {
    struct reach *reach;
    uint64_t end_ms;
    unsigned accept;
    struct reach_error *error;
};

static uint64_t now_ms(void)
{
    return clock_monotonic() / NSEC_PER_MSEC;
}

static struct call begin(struct reach *reach, struct reach_error *error)
{
    return (struct call){.reach = reach,
                         .end_ms = now_ms() + atomic_load(&reach->deadline_ms),
                         .accept = atomic_load(&reach->accept),
                         .error = error};
}

/* ---- paths ---- */

/* Letters, digits and a few signs: no escaping needed, and nothing else names a GPU. */
static enum reach_status check_gpu_name(const char *gpu, struct reach_error *error)
{
    static const char GOOD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    if (gpu && *gpu && strlen(gpu) < REACH_UUID_BYTES && gpu[strspn(gpu, GOOD)] == '\0')
        return REACH_OK;
    return fail_with(error, REACH_INVALID_ARGUMENT,
                     "a GPU is named by its UUID or its index, not by \"%.80s\"",
                     gpu ? gpu : "(NULL)");
}

static enum reach_status check_call(const struct reach *reach, const char *gpu, const void *request,
                                    const void *out, struct reach_error *error)
{
    if (!reach || !request || !out)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "a question needs a handle, a request and a place for the answer");
    return check_gpu_name(gpu, error);
}

/* Appends "?name=value" or "&name=value"; 0 adds nothing. */
static void add_size(char *path, const char *name, uint64_t value)
{
    const size_t at = strlen(path);

    if (value > 0)
        snprintf(path + at, WIRE_PATH_BYTES - at, "%c%s=%" PRIu64, strchr(path, '?') ? '&' : '?',
                 name, value);
}

/* ---- asking a daemon ---- */

/* The daemon says what went wrong and what to do next (RFC 9457); both are passed on. */
static enum reach_status fail_with_problem(const struct call *call, const struct wire_answer *got)
{
    static const struct {
        const char *slug;
        enum reach_status status;
    } slugs[] = {{"invalid-argument", REACH_INVALID_ARGUMENT},
                 {"not-found", REACH_NOT_FOUND},
                 {"no-fingerprint", REACH_NOT_MEASURED},
                 {"not-applicable", REACH_NOT_MEASURED},
                 {"not-supported", REACH_NOT_SUPPORTED}};
    json_t *problem = json_loadb(got->body ? got->body : "", got->body_bytes, 0, NULL);
    const char *slug = json_string_value(json_object_get(problem, "slug"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *next = json_string_value(json_object_get(problem, "next_step"));
    enum reach_status status = got->http_status / 100 == 5 ? REACH_UNAVAILABLE : REACH_PROTOCOL;

    for (size_t i = 0; slug && i < sizeof(slugs) / sizeof(*slugs); i++) {
        if (strcmp(slug, slugs[i].slug) == 0)
            status = slugs[i].status;
    }
    if (slug && detail)
        fail_with(call->error, status, "the daemon answers: %.300s%s%.250s", detail,
                  next ? ". " : "", next ? next : "");
    else
        fail_with(call->error, status, "what answers at %s is not reachd: HTTP %ld",
                  wire_where(call->reach->wire), got->http_status);
    json_decref(problem);
    return status;
}

static enum reach_status get(const struct call *call, const char *path, const char *tag,
                             struct wire_answer *out)
{
    const uint64_t now = now_ms();
    const uint64_t left = call->end_ms > now ? call->end_ms - now : 1;

    return wire_get(call->reach->wire, path, tag, (uint32_t)left, out, call->error);
}

/* Reads the body into a new answer. */
static enum reach_status read_body(const struct call *call, const struct wire_answer *got,
                                   answer_fn *read, size_t bytes, void **out)
{
    json_t *json =
        json_loadb(got->body ? got->body : "", got->body_bytes, JSON_REJECT_DUPLICATES, NULL);
    enum reach_status status;

    *out = NULL;
    if (!json)
        return fail_with(call->error, REACH_PROTOCOL, "what answers at %s is not reachd: no JSON",
                         wire_where(call->reach->wire));
    *out = calloc(1, bytes);
    status = *out ? read(json, *out, call->error)
                  : fail_with(call->error, REACH_NO_MEMORY, "no memory for an answer");
    if (status != REACH_OK) {
        free(*out);
        *out = NULL;
    }
    json_decref(json);
    return status;
}

/* Asks without a memory of earlier answers. */
static enum reach_status ask_fresh(const struct call *call, const char *path, answer_fn *read,
                                   size_t bytes, void **out)
{
    struct wire_answer got;
    enum reach_status status = get(call, path, "", &got);

    *out = NULL;
    if (status != REACH_OK)
        return status;
    if (got.http_status == HTTP_OK)
        status = read_body(call, &got, read, bytes, out);
    else
        status = fail_with_problem(call, &got);
    wire_answer_free(&got);
    return status;
}

static bool names_gpu(const char *gpu, const char *uuid)
{
    return gpu[strspn(gpu, "0123456789")] == '\0' || strcasecmp(gpu, uuid) == 0;
}

/* Whether an answer that is there may be given out; it is freed if not. */
static enum reach_status admit(const struct call *call, const char *gpu, void **answer)
{
    const struct reach_basis *basis = *answer;
    enum reach_status status = REACH_OK;

    if (!names_gpu(gpu, basis->gpu_uuid))
        status =
            fail_with(call->error, REACH_WRONG_GPU,
                      "the daemon was asked about %s and answers for %s", gpu, basis->gpu_uuid);
    else if (basis->stale && !(call->accept & REACH_ACCEPT_STALE))
        status = fail_with(call->error, REACH_STALE,
                           "fingerprint %s of %s is stale: the chip or its driver is not what was "
                           "measured. Measure again (reachctl fingerprint --follow), or take it as "
                           "it is with REACH_ACCEPT_STALE",
                           basis->fingerprint_id, basis->gpu_uuid);
    if (status != REACH_OK) {
        free(*answer);
        *answer = NULL;
    }
    return status;
}

/* The daemon did not answer: what it said before, for those who take it. `failed` is why. */
static enum reach_status ask_kept(const struct call *call, const char *path, const char *gpu,
                                  enum reach_status failed, void **out)
{
    if (!(call->accept & REACH_ACCEPT_KEPT) ||
        (failed != REACH_UNREACHABLE && failed != REACH_DEADLINE))
        return failed;
    *out = kept_copy(call->reach->kept, path, NULL, 0);
    return *out ? admit(call, gpu, out) : failed;
}

/* Asks the daemon this path about this GPU. `*out` is an answer that begins with its basis. */
static enum reach_status ask_daemon(const struct call *call, const char *path, const char *gpu,
                                    answer_fn *read, size_t bytes, void **out)
{
    struct kept *kept = call->reach->kept;
    char tag[WIRE_TAG_BYTES];
    enum reach_status status;
    struct wire_answer got;

    *out = NULL;
    kept_tag(kept, path, tag);
    status = get(call, path, tag, &got);
    if (status != REACH_OK)
        return ask_kept(call, path, gpu, status, out);
    if (got.http_status == HTTP_NOT_MODIFIED) {
        *out = kept_copy(kept, path, tag, now_ms());
        if (!*out) { /* another thread has thrown it away meanwhile */
            wire_answer_free(&got);
            status = get(call, path, "", &got);
            if (status != REACH_OK)
                return status;
        }
    }
    if (*out) {
        kept_learn(kept, *out);
    } else if (got.http_status == HTTP_OK) {
        status = read_body(call, &got, read, bytes, out);
        if (status == REACH_OK) {
            ((struct reach_basis *)*out)->confirmed_ms = now_ms();
            kept_put(kept, path, got.tag, *out, bytes);
        }
    } else {
        kept_drop(kept, path);
        status = fail_with_problem(call, &got);
    }
    wire_answer_free(&got);
    return status == REACH_OK ? admit(call, gpu, out) : status;
}

/* ---- the public questions ---- */

enum reach_status reach_ask_gpus(struct reach *reach, struct reach_gpus **out,
                                 struct reach_error *error)
{
    enum reach_status status = check_call(reach, "0", "", out, error);
    struct call call;
    void *answer;

    if (out)
        *out = NULL;
    if (status != REACH_OK)
        return status;
    call = begin(reach, error);
    if (!reach->offline) {
        status = ask_fresh(&call, "/v1/gpus", answer_gpus, sizeof(**out), &answer);
        *out = answer;
        return status;
    }
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_with(error, REACH_NO_MEMORY, "no memory for an answer");
    offline_gpus(reach->offline, *out);
    return REACH_OK;
}

/* A new, empty answer for an offline handle that has this GPU; NULL and a status. */
static void *offline_answer(const struct reach *reach, const char *gpu, size_t bytes,
                            enum reach_status *status, struct reach_error *error)
{
    void *answer = NULL;

    *status = offline_check_gpu(reach->offline, gpu, error);
    if (*status != REACH_OK)
        return NULL;
    answer = calloc(1, bytes);
    if (!answer)
        *status = fail_with(error, REACH_NO_MEMORY, "no memory for an answer");
    return answer;
}

enum reach_status reach_ask_scope(struct reach *reach, const char *gpu,
                                  const struct reach_scope_request *request,
                                  struct reach_scope **out, struct reach_error *error)
{
    enum reach_status status = check_call(reach, gpu, request, out, error);
    char path[WIRE_PATH_BYTES];
    struct call call;
    void *answer;

    if (out)
        *out = NULL;
    if (status != REACH_OK)
        return status;
    if (!reach_access_name(request->access))
        return fail_with(error, REACH_INVALID_ARGUMENT, "there is no kind of access %d",
                         (int)request->access);
    if (reach->offline) {
        *out = offline_answer(reach, gpu, sizeof(**out), &status, error);
        if (*out)
            status = offline_scope(reach->offline, request, *out, error);
    } else {
        call = begin(reach, error);
        snprintf(path, sizeof(path), "/v1/gpus/%s/scope?access=%s&bytes=%" PRIu64, gpu,
                 reach_access_name(request->access), request->bytes);
        status = ask_daemon(&call, path, gpu, answer_scope, sizeof(**out), &answer);
        *out = answer;
    }
    if (status != REACH_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

enum reach_status reach_ask_placement(struct reach *reach, const char *gpu,
                                      const struct reach_placement_request *request,
                                      struct reach_placement **out, struct reach_error *error)
{
    enum reach_status status = check_call(reach, gpu, request, out, error);
    char path[WIRE_PATH_BYTES];
    struct call call;
    void *answer;

    if (out)
        *out = NULL;
    if (status != REACH_OK)
        return status;
    if (reach->offline) {
        *out = offline_answer(reach, gpu, sizeof(**out), &status, error);
        if (*out)
            status = offline_placement(reach->offline, request, *out, error);
    } else {
        call = begin(reach, error);
        snprintf(path, sizeof(path), "/v1/gpus/%s/placement?bytes=%" PRIu64, gpu, request->bytes);
        add_size(path, "windows", request->windows);
        add_size(path, "granularity", request->granularity_bytes);
        status = ask_daemon(&call, path, gpu, answer_placement, sizeof(**out), &answer);
        *out = answer;
    }
    if (status != REACH_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- fingerprints ---- */

/* The state of one GPU, which says which fingerprint is served and whether it is stale. */
static enum reach_status ask_gpu(const struct call *call, const char *gpu, struct reach_gpu *out)
{
    char path[WIRE_PATH_BYTES];
    enum reach_status status;
    void *answer;

    snprintf(path, sizeof(path), "/v1/gpus/%s", gpu);
    status = ask_fresh(call, path, answer_gpu, sizeof(*out), &answer);
    if (status == REACH_OK && !names_gpu(gpu, ((struct reach_gpu *)answer)->uuid))
        status = fail_with(call->error, REACH_WRONG_GPU,
                           "the daemon was asked about %s and answers for %s", gpu,
                           ((struct reach_gpu *)answer)->uuid);
    if (status == REACH_OK)
        *out = *(struct reach_gpu *)answer;
    free(answer);
    return status;
}

/* The document does not say whether it is stale, the state of the GPU does; both must speak of the
 * same fingerprint, which may be replaced while we ask. */
static enum reach_status ask_fingerprint(const struct call *call, const char *gpu,
                                         struct reach_fingerprint **out)
{
    enum { TRIES = 3 };
    char path[WIRE_PATH_BYTES];
    enum reach_status status;
    struct reach_gpu state;
    void *answer;

    snprintf(path, sizeof(path), "/v1/gpus/%s/fingerprint", gpu);
    for (int i = 0; i < TRIES; i++) {
        status = ask_daemon(call, path, gpu, answer_fingerprint, sizeof(**out), &answer);
        if (status != REACH_OK)
            return status;
        *out = answer;
        if ((*out)->basis.kept)
            return REACH_OK;
        status = ask_gpu(call, gpu, &state);
        if (status == REACH_OK && strcmp(state.fingerprint_id, (*out)->basis.fingerprint_id) == 0) {
            (*out)->basis.stale = state.stale;
            kept_learn(call->reach->kept, &(*out)->basis);
            status = admit(call, gpu, &answer);
            *out = answer;
            return status;
        }
        free(*out);
        *out = NULL;
        if (status != REACH_OK)
            return status;
    }
    return fail_with(call->error, REACH_UNAVAILABLE,
                     "the fingerprint of %s changed while it was asked for; ask again", gpu);
}

enum reach_status reach_ask_fingerprint(struct reach *reach, const char *gpu,
                                        struct reach_fingerprint **out, struct reach_error *error)
{
    enum reach_status status = check_call(reach, gpu, "", out, error);
    struct call call;

    if (out)
        *out = NULL;
    if (status != REACH_OK)
        return status;
    if (!reach->offline) {
        call = begin(reach, error);
        return ask_fingerprint(&call, gpu, out);
    }
    *out = offline_answer(reach, gpu, sizeof(**out), &status, error);
    if (*out)
        offline_fingerprint(reach->offline, *out);
    return status;
}

enum reach_status reach_confirm(struct reach *reach, const struct reach_basis *basis,
                                struct reach_error *error)
{
    enum reach_status status = check_call(reach, basis ? basis->gpu_uuid : "", basis, "", error);
    struct reach_gpu state;
    struct call call;

    if (status != REACH_OK)
        return status;
    if (reach->offline)
        return offline_confirm(reach->offline, basis, error);
    call = begin(reach, error);
    status = ask_gpu(&call, basis->gpu_uuid, &state);
    if (status != REACH_OK)
        return status;
    if (strcmp(state.state, "lost") == 0)
        return fail_with(error, REACH_NOT_FOUND, "%s is lost: the driver no longer shows it",
                         state.uuid);
    if (!state.fingerprint_id[0])
        return fail_with(error, REACH_NOT_MEASURED, "the daemon has no fingerprint of %s any more",
                         state.uuid);
    if (strcmp(state.fingerprint_id, basis->fingerprint_id) != 0)
        return fail_with(
            error, REACH_STALE,
            "the answer rests on fingerprint %s, and %s has been measured again since: "
            "its fingerprint is %s. Ask again",
            basis->fingerprint_id, state.uuid, state.fingerprint_id);
    if (state.stale)
        return fail_with(error, REACH_STALE,
                         "fingerprint %s of %s has gone stale: the chip or its driver is not what "
                         "was measured. Measure again (reachctl fingerprint --follow)",
                         basis->fingerprint_id, state.uuid);
    return REACH_OK;
}
