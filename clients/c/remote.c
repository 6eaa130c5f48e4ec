/* remote.c: see remote.h. A question goes out with the ETag of the last answer to it; on a 304 that
 * answer is given out again, confirmed, and nothing is parsed. */
#include "clients/c/remote.h"

#include "clients/c/kept.h"
#include "clients/c/wire.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { HTTP_OK = 200, HTTP_NOT_MODIFIED = 304, HTTP_UNAVAILABLE = 503 };
enum { DISCOVERY_PAUSE_MS = 100 };

static uint64_t now_ms(void)
{
    return clock_monotonic() / NSEC_PER_MSEC;
}

struct remote_call remote_begin(struct reach *reach, struct reach_error *error)
{
    return (struct remote_call){.reach = reach,
                                .end_ms = now_ms() + atomic_load(&reach->deadline_ms),
                                .accept = atomic_load(&reach->accept),
                                .error = error};
}

/* ---- one request ---- */

/* Has the daemon's driver not answered yet which GPUs there are? The list says so itself, and a
 * request for one GPU is answered with "not-ready". */
static bool is_discovering(const char *path, const struct wire_answer *got)
{
    const bool list = got->http_status == HTTP_OK && strcmp(path, "/v1/gpus") == 0;
    const char *text;
    json_t *json;
    bool found;

    if (!list && got->http_status != HTTP_UNAVAILABLE)
        return false;
    json = json_loadb(got->body ? got->body : "", got->body_bytes, 0, NULL);
    text = json_string_value(json_object_get(json, list ? "discovery" : "slug"));
    found = text && strcmp(text, list ? "running" : "not-ready") == 0;
    json_decref(json);
    return found;
}

/* One request, made again while GPU discovery runs. */
static bool get(struct remote_call *call, const char *path, const char *tag,
                struct wire_answer *out)
{
    const struct timespec pause = {.tv_nsec = DISCOVERY_PAUSE_MS * (long)NSEC_PER_MSEC};

    for (;;) {
        const uint64_t now = now_ms();
        const uint64_t left = call->end_ms > now ? call->end_ms - now : 1;

        call->status = wire_get(call->reach->wire, path, tag, (uint32_t)left, out, call->error);
        if (call->status != REACH_OK)
            return false;
        if (!is_discovering(path, out))
            return true;
        wire_answer_free(out);
        if (now_ms() + DISCOVERY_PAUSE_MS >= call->end_ms)
            break;
        nanosleep(&pause, NULL);
    }
    call->status =
        fail_with(call->error, REACH_UNAVAILABLE,
                  "GPU discovery of the daemon at %s is still running: its driver has not yet "
                  "answered which GPUs there are. Ask again",
                  wire_where(call->reach->wire));
    return false;
}

/* The daemon says what went wrong and what to do next (RFC 9457); both are passed on. */
static void take_problem(struct remote_call *call, const struct wire_answer *got)
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

    call->status = got->http_status / 100 == 5 ? REACH_UNAVAILABLE : REACH_PROTOCOL;
    for (size_t i = 0; slug && i < sizeof(slugs) / sizeof(*slugs); i++) {
        if (strcmp(slug, slugs[i].slug) == 0)
            call->status = slugs[i].status;
    }
    if (slug && detail)
        fail_text(call->error, call->status, "the daemon answers: %.300s%s%.250s", detail,
                  next ? ". " : "", next ? next : "");
    else
        fail_text(call->error, call->status, "what answers at %s is not reachd: HTTP %ld",
                  wire_where(call->reach->wire), got->http_status);
    json_decref(problem);
}

/* Reads the body into a new answer. */
static void *read_body(struct remote_call *call, const struct wire_answer *got, answer_fn *read,
                       size_t bytes)
{
    json_t *json = NULL;
    void *answer = calloc(1, bytes);

    if (!answer) {
        call->status = fail_with(call->error, REACH_NO_MEMORY, "no memory for an answer");
        return NULL;
    }
    json = json_loadb(got->body ? got->body : "", got->body_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (json)
        call->status = read(json, answer, call->error);
    else
        call->status =
            fail_with(call->error, REACH_PROTOCOL, "what answers at %s is not reachd: no JSON",
                      wire_where(call->reach->wire));
    json_decref(json);
    if (call->status == REACH_OK)
        return answer;
    free(answer);
    return NULL;
}

void *remote_ask_fresh(struct remote_call *call, const char *path, answer_fn *read, size_t bytes)
{
    struct wire_answer got;
    void *answer = NULL;

    if (!get(call, path, "", &got))
        return NULL;
    if (got.http_status == HTTP_OK)
        answer = read_body(call, &got, read, bytes);
    else
        take_problem(call, &got);
    wire_answer_free(&got);
    return answer;
}

/* ---- what may be given out ---- */

static bool names_gpu(const char *gpu, const char *uuid)
{
    return gpu[strspn(gpu, "0123456789")] == '\0' || strcasecmp(gpu, uuid) == 0;
}

/* The answer, or NULL where it may not be given out; it is freed then. */
static void *admit(struct remote_call *call, const char *gpu, void *take)
{
    const struct reach_basis *basis = take;

    if (!names_gpu(gpu, basis->gpu_uuid))
        call->status =
            fail_with(call->error, REACH_WRONG_GPU,
                      "the daemon was asked about %s and answers for %s", gpu, basis->gpu_uuid);
    else if (basis->stale && !(call->accept & REACH_ACCEPT_STALE))
        call->status = fail_with(
            call->error, REACH_STALE,
            "fingerprint %s of %s is stale: the chip or its driver is not what was measured. "
            "Measure again (reachctl fingerprint --follow), or take it as it is "
            "(REACH_ACCEPT_STALE)",
            basis->fingerprint_id, basis->gpu_uuid);
    else
        return take;
    free(take);
    return NULL;
}

/* No daemon answered, call->status says why: what it said before, for those who take it. */
static void *ask_kept(struct remote_call *call, const char *path, const char *gpu)
{
    void *answer;

    if (!(call->accept & REACH_ACCEPT_KEPT) ||
        (call->status != REACH_UNREACHABLE && call->status != REACH_DEADLINE))
        return NULL;
    answer = kept_copy(call->reach->kept, path, NULL, 0);
    if (!answer)
        return NULL;
    call->status = REACH_OK;
    return admit(call, gpu, answer);
}

/* What came back other than 304. */
static struct reach_basis *take_answer(struct remote_call *call, const char *path,
                                       const struct wire_answer *got, answer_fn *read, size_t bytes)
{
    struct reach_basis *answer = NULL;

    if (got->http_status == HTTP_OK)
        answer = read_body(call, got, read, bytes);
    else
        take_problem(call, got);
    if (!answer) {
        kept_drop(call->reach->kept, path);
        return NULL;
    }
    answer->confirmed_ms = now_ms();
    kept_put(call->reach->kept, path, got->tag, answer, bytes);
    return answer;
}

void *remote_ask(struct remote_call *call, const char *path, const char *gpu, answer_fn *read,
                 size_t bytes)
{
    struct kept *kept = call->reach->kept;
    struct reach_basis *answer = NULL;
    char tag[WIRE_TAG_BYTES];
    struct wire_answer got;

    kept_tag(kept, path, tag);
    if (!get(call, path, tag, &got))
        return ask_kept(call, path, gpu);
    if (got.http_status == HTTP_NOT_MODIFIED) {
        answer = kept_copy(kept, path, tag, now_ms());
        wire_answer_free(&got);
        if (answer)
            return admit(call, gpu, answer);
        /* Another thread has thrown it away meanwhile. */
        if (!get(call, path, "", &got))
            return NULL;
    }
    answer = take_answer(call, path, &got, read, bytes);
    wire_answer_free(&got);
    return answer ? admit(call, gpu, answer) : NULL;
}

/* ---- fingerprints, and the state that tells whether they are stale ---- */

static struct reach_gpu *ask_state(struct remote_call *call, const char *gpu)
{
    char path[WIRE_PATH_BYTES];
    struct reach_gpu *state;

    snprintf(path, sizeof(path), "/v1/gpus/%s", gpu);
    state = remote_ask_fresh(call, path, answer_gpu, sizeof(*state));
    if (!state || names_gpu(gpu, state->uuid))
        return state;
    call->status = fail_with(call->error, REACH_WRONG_GPU,
                             "the daemon was asked about %s and answers for %s", gpu, state->uuid);
    free(state);
    return NULL;
}

/* The state speaks of the same fingerprint: takes over what it says. False: of another one. */
static bool learn_state(struct remote_call *call, const struct reach_gpu *state,
                        struct reach_fingerprint *fp)
{
    if (strcmp(state->fingerprint_id, fp->basis.fingerprint_id) != 0)
        return false;
    fp->basis.stale = state->stale;
    kept_learn(call->reach->kept, &fp->basis);
    return true;
}

/* Document and state must speak of the same fingerprint, which may be replaced while we ask. */
struct reach_fingerprint *remote_fingerprint(struct remote_call *call, const char *gpu)
{
    enum { TRIES = 3 };
    char path[WIRE_PATH_BYTES];

    snprintf(path, sizeof(path), "/v1/gpus/%s/fingerprint", gpu);
    for (int i = 0; i < TRIES; i++) {
        struct reach_fingerprint *fp = remote_ask(call, path, gpu, answer_fingerprint, sizeof(*fp));
        struct reach_gpu *state;
        bool same;

        if (!fp || fp->basis.kept)
            return fp;
        state = ask_state(call, gpu);
        same = state && learn_state(call, state, fp);
        free(state);
        if (same)
            return admit(call, gpu, fp);
        free(fp);
        if (!state)
            return NULL;
    }
    call->status =
        fail_with(call->error, REACH_UNAVAILABLE,
                  "the fingerprint of %s changed while it was asked for; ask again", gpu);
    return NULL;
}

enum reach_status remote_confirm(struct remote_call *call, const struct reach_basis *basis)
{
    struct reach_gpu *state = ask_state(call, basis->gpu_uuid);

    if (!state)
        return call->status;
    if (strcmp(state->state, "lost") == 0)
        call->status = fail_with(call->error, REACH_NOT_FOUND,
                                 "%s is lost: the driver no longer shows it", state->uuid);
    else if (!state->fingerprint_id[0])
        call->status = fail_with(call->error, REACH_NOT_MEASURED,
                                 "the daemon has no fingerprint of %s any more", state->uuid);
    else if (strcmp(state->fingerprint_id, basis->fingerprint_id) != 0)
        call->status = fail_with(call->error, REACH_STALE,
                                 "the answer rests on fingerprint %s, and %s has been measured "
                                 "again since: it now has %s. Ask again",
                                 basis->fingerprint_id, state->uuid, state->fingerprint_id);
    else if (state->stale)
        call->status = fail_with(call->error, REACH_STALE,
                                 "fingerprint %s of %s has gone stale: the chip or its driver is "
                                 "not what was measured. Measure again (reachctl fingerprint "
                                 "--follow)",
                                 basis->fingerprint_id, state->uuid);
    free(state);
    return call->status;
}
