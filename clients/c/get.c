/* get.c: one request to any source, and the checks of its answer. An answer is refused if it is
 * about another GPU. Stale answers, and cached answers of an unreachable daemon, are refused unless
 * the caller allows them. A GET to a daemon carries the ETag of its last answer to the same target.
 * If the daemon answers 304, that answer is returned again and marked as confirmed. */
#include "clients/c/answer_cache.h"
#include "clients/c/handle.h"
#include "clients/c/http.h"
#include "clients/c/offline.h"

#include "base/c_locale.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HTTP_OK = 200, HTTP_NOT_MODIFIED = 304, HTTP_UNAVAILABLE = 503, DISCOVERY_PAUSE_MS = 100 };

/* Limits for answers that a job relies on, and for all others (an observation is raw numbers). */
enum { MAX_ANSWER_BYTES = 16 << 20, MAX_RAW_BYTES = 1 << 30 };

/* One call of the public interface. */
struct call {
    struct reach *reach;
    const struct reach_request *request;
    enum answer_kind kind; /* kind of the body if the HTTP status is 200 */
    uint64_t end_ms;
    unsigned allow;
    struct reach_error *error;
};

static uint64_t now_ms(void)
{
    return clock_monotonic() / NSEC_PER_MSEC;
}

static bool is_get(const struct reach_request *request)
{
    return !request->method || strcmp(request->method, "GET") == 0;
}

/* ---- responses that are no answers ---- */

static enum reach_status status_of_slug(const char *slug, uint32_t http_status)
{
    static const struct {
        const char *slug;
        enum reach_status status;
    } slugs[] = {{"invalid-argument", REACH_INVALID_ARGUMENT},
                 {"too-many-bytes", REACH_INVALID_ARGUMENT},
                 {"not-found", REACH_NOT_FOUND},
                 {"no-fingerprint", REACH_NOT_MEASURED},
                 {"not-applicable", REACH_NOT_MEASURED},
                 {"not-supported", REACH_NOT_SUPPORTED},
                 {"method-not-allowed", REACH_NOT_SUPPORTED},
                 {"stale-fingerprint", REACH_STALE},
                 {"unauthorized", REACH_UNAUTHORIZED},
                 {"internal", REACH_INTERNAL}};

    for (size_t i = 0; slug && i < sizeof(slugs) / sizeof(*slugs); i++) {
        if (strcmp(slug, slugs[i].slug) == 0)
            return slugs[i].status;
    }
    return http_status / 100 == 5 || (slug && http_status == 409) ? REACH_UNAVAILABLE
                                                                  : REACH_PROTOCOL;
}

static const char *source_name(const struct reach *reach)
{
    return reach->http ? http_address(reach->http) : reach->offline->name;
}

/* A problem document (RFC 9457) contains the failure, the parameter to blame, and the next step. */
static enum reach_status fail_with_problem(const struct call *call,
                                           const struct reach_answer *answer)
{
    const char *slug = json_string_value(json_object_get(answer->content->json, "slug"));
    const char *detail = json_string_value(json_object_get(answer->content->json, "detail"));
    const char *next = json_string_value(json_object_get(answer->content->json, "next_step"));
    const json_t *blamed = json_array_get(json_object_get(answer->content->json, "errors"), 0);
    const char *field = json_string_value(json_object_get(blamed, "parameter"));
    const enum reach_status status = status_of_slug(slug, answer->http_status);

    if (slug && detail)
        fail_text(call->error, status, "%.300s%s%.250s", detail, next ? ". " : "",
                  next ? next : "");
    else
        fail_text(call->error, status, "the response from %s is not one of reachd: HTTP %u",
                  source_name(call->reach), answer->http_status);
    fail_field(call->error, field ? field : json_string_value(json_object_get(blamed, "pointer")));
    if (call->error)
        call->error->http_status = answer->http_status;
    return status;
}

/* ---- checks of an answer ---- */

/* Copies the {gpu} of the target, or "" if the target has none. `out` needs REACH_UUID_BYTES. */
static void gpu_of_target(const char *target, char *out)
{
    static const char prefix[] = "/v1/gpus/";
    const char *at = target + sizeof(prefix) - 1;

    out[0] = '\0';
    if (strncmp(target, prefix, sizeof(prefix) - 1) == 0)
        snprintf(out, REACH_UUID_BYTES, "%.*s", (int)strcspn(at, "/?"), at);
}

/* Returns whether the name is an index such as "0", "pci:0" or "cuda:0". The colon may be
 * escaped. */
static bool is_index(const char *gpu)
{
    return gpu[strspn(gpu, "0123456789")] == '\0' || strncmp(gpu, "pci", 3) == 0 ||
           strncmp(gpu, "cuda", 4) == 0;
}

static enum reach_status check_gpu(const struct call *call, const struct reach_answer *answer,
                                   const char *gpu)
{
    const struct reach_provenance *p = reach_answer_provenance(answer);
    const char *uuid = p                                     ? p->gpu_uuid
                       : answer->content->kind == ANSWER_GPU ? answer->content->gpus->uuid
                                                             : NULL;

    if (!uuid || is_index(gpu) || identity_is_same_uuid(gpu, uuid) || identity_is_prefix(gpu, uuid))
        return REACH_OK;
    return fail_with(call->error, REACH_WRONG_GPU,
                     "the request was for %s and the answer is for %s", gpu, uuid);
}

static enum reach_status check_stale(unsigned allow, const struct reach_answer *answer,
                                     struct reach_error *error)
{
    const struct reach_provenance *p = reach_answer_provenance(answer);

    if (!p || !p->stale || allow & REACH_ALLOW_STALE)
        return REACH_OK;
    return fail_with(error, REACH_STALE,
                     "fingerprint %s of %s is stale: the chip or its driver is not what was "
                     "measured. Measure again (reachctl measure --wait), or allow it "
                     "(REACH_ALLOW_STALE)",
                     p->fingerprint_id, p->gpu_uuid);
}

static enum reach_status judge(const struct call *call, const struct reach_answer *answer)
{
    const struct offline *offline = call->reach->offline;
    enum reach_status status;
    char gpu[REACH_UUID_BYTES];

    gpu_of_target(call->request->target, gpu);
    if (offline && answer->http_status == 404 && *gpu && !is_index(gpu) &&
        !snapshot_find(offline->snapshot, gpu)) { /* off line, an unknown UUID is another GPU */
        const struct snapshot *snapshot = offline->snapshot;
        const bool one = snapshot->gpu_count == 1;

        status = fail_with(call->error, REACH_WRONG_GPU, "%s has no fingerprint of %s%s%s",
                           source_name(call->reach), gpu, one ? ", but the fingerprint of " : "",
                           one ? snapshot->gpus[0].identity.uuid : "");
        if (call->error)
            call->error->http_status = answer->http_status;
        return status;
    }
    if (answer->http_status / 100 != 2)
        return fail_with_problem(call, answer);
    status = check_gpu(call, answer, gpu);
    return status == REACH_OK ? check_stale(call->allow, answer, call->error) : status;
}

/* ---- sources ---- */

static enum reach_status send_offline(const struct call *call, struct reach_answer **out)
{
    const struct offline *offline = call->reach->offline;
    const bool is_plan = call->kind == ANSWER_PLAN;
    struct answer_origin origin = {
        .kind = call->kind, .source = offline->source, .confirmed_ms = offline->read_ms};
    struct offline_response got;
    enum reach_status status;

    if (is_plan && !(origin.call = malloc(sizeof(*origin.call))))
        return fail_with(call->error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory");
    status = offline_send(offline, call->request, origin.call, &got, call->error);
    if (status != REACH_OK || got.http_status != HTTP_OK) {
        free(origin.call);
        origin.call = NULL;
    }
    if (status != REACH_OK)
        return status;
    origin.http_status = got.http_status;
    origin.gpu = got.gpu;
    return answer_new(&origin, got.body, got.body_bytes, out, call->error);
}

/* Returns whether GPU discovery of the daemon is still running. The lists of GPUs report it, and
 * other requests of the API are refused with "not-ready". (The marks cannot be part of a JSON
 * string, because quotes are escaped there.) */
static bool is_discovering(const struct call *call, const struct http_response *got)
{
    const char *mark = got->http_status == HTTP_UNAVAILABLE ? "\"slug\":\"not-ready\""
                       : got->http_status == HTTP_OK        ? "\"discovery\":\"running\""
                                                            : NULL;

    return mark && got->body && strncmp(call->request->target, "/v1/", 4) == 0 &&
           strstr(got->body, mark);
}

static enum reach_status exchange_once(const struct call *call, const char *tag,
                                       struct http_response *out)
{
    const uint64_t now = now_ms();
    const uint64_t left = call->end_ms > now ? call->end_ms - now : 1;
    const bool is_raw = call->kind == ANSWER_RAW;

    return http_send(call->reach->http, call->request, tag,
                     is_raw ? MAX_RAW_BYTES : MAX_ANSWER_BYTES, (uint32_t)left, out, call->error);
}

/* Repeats the request while GPU discovery runs, unless the caller allows answers during discovery.
 */
static enum reach_status exchange(const struct call *call, const char *tag,
                                  struct http_response *out)
{
    const struct timespec pause = {.tv_nsec = DISCOVERY_PAUSE_MS * (long)NSEC_PER_MSEC};

    for (;;) {
        const enum reach_status status = exchange_once(call, tag, out);
        if (status != REACH_OK || call->allow & REACH_ALLOW_DISCOVERY || !is_discovering(call, out))
            return status;
        http_response_free(out);
        if (now_ms() + DISCOVERY_PAUSE_MS >= call->end_ms)
            break;
        nanosleep(&pause, NULL);
    }
    return fail_with(call->error, REACH_UNAVAILABLE,
                     "GPU discovery of the daemon at %s is still running: its driver has not yet "
                     "answered which GPUs there are. Try again",
                     source_name(call->reach));
}

/* Returns an answer from the cache. With a tag, the daemon has confirmed the answer; if `tag` is
 * NULL, no daemon answers. Returns REACH_NOT_FOUND if the cache has no such answer. */
static enum reach_status from_cache(const struct call *call, const char *tag,
                                    struct reach_answer **out)
{
    struct answer_origin origin = {.kind = call->kind,
                                   .http_status = HTTP_OK,
                                   .source = tag ? REACH_FROM_DAEMON : REACH_FROM_CACHE,
                                   .confirmed_ms = now_ms()};
    struct answer_content *content =
        answer_cache_get(call->reach->cache, call->request->target, tag, &origin.confirmed_ms);
    enum reach_status status = REACH_NOT_FOUND;

    if (content)
        status = answer_share(&origin, content, out, call->error);
    answer_content_release(content);
    return status;
}

/* Makes the answer from a response other than 304. Takes the body. */
static enum reach_status from_response(const struct call *call, struct http_response *take,
                                       struct reach_answer **out)
{
    struct answer_cache *cache = call->reach->cache;
    const char *target = call->request->target;
    const struct answer_origin origin = {.kind = call->kind,
                                         .http_status = (uint32_t)take->http_status,
                                         .source = REACH_FROM_DAEMON,
                                         .confirmed_ms = now_ms()};
    char *body = take->body ? take->body : calloc(1, 1);
    enum reach_status status;

    take->body = NULL;
    if (!body)
        return fail_with(call->error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory");
    status = answer_new(&origin, body, take->body_bytes, out, call->error);
    if (!is_get(call->request))
        return status;
    if (status == REACH_OK && origin.http_status == HTTP_OK &&
        (*out)->content->rests_on_fingerprint)
        answer_cache_put(cache, target, take->tag, *out);
    else
        answer_cache_drop(cache, target);
    return status;
}

static enum reach_status send_to_daemon(const struct call *call, struct reach_answer **out)
{
    char tag[HTTP_TAG_BYTES] = "";
    struct http_response got;
    enum reach_status status;

    if (is_get(call->request))
        answer_cache_tag(call->reach->cache, call->request->target, tag);
    status = exchange(call, tag, &got);
    if (status != REACH_OK) {
        if (is_get(call->request) && call->allow & REACH_ALLOW_CACHED &&
            (status == REACH_UNREACHABLE || status == REACH_TIMEOUT) &&
            from_cache(call, NULL, out) == REACH_OK)
            return REACH_OK;
        return status;
    }
    if (got.http_status == HTTP_NOT_MODIFIED && *tag) {
        http_response_free(&got);
        status = from_cache(call, tag, out);
        if (status != REACH_NOT_FOUND)
            return status;
        /* Another thread has dropped the answer meanwhile. */
        status = exchange(call, "", &got);
        if (status != REACH_OK)
            return status;
    }
    status = from_response(call, &got, out);
    http_response_free(&got);
    return status;
}

static enum reach_status perform(const struct call *call, struct reach_answer **out)
{
    const enum reach_status status =
        call->reach->offline ? send_offline(call, out) : send_to_daemon(call, out);

    return status == REACH_OK ? judge(call, *out) : status;
}

/* ---- the public functions ---- */

/* Returns whether HTTP can carry the path unchanged. */
static bool is_target(const char *target)
{
    if (!target || target[0] != '/' || strlen(target) >= HTTP_TARGET_BYTES)
        return false;
    for (; *target; target++) {
        if ((unsigned char)*target <= ' ' || (unsigned char)*target >= 0x7f || *target == '#')
            return false;
    }
    return true;
}

/* Returns whether the text is valid as the value of a header field, without line ends. NULL is
 * allowed. */
static bool is_field(const char *value)
{
    const size_t length = value ? strlen(value) : 0;

    for (size_t i = 0; i < length; i++) {
        if (value[i] < ' ' || value[i] > '~')
            return false;
    }
    return length < HTTP_FIELD_BYTES;
}

static enum reach_status check_request(const struct reach *reach,
                                       const struct reach_request *request, bool has_out,
                                       struct reach_error *error)
{
    static const char *const methods[] = {"GET", "POST", "DELETE"};
    bool known = request && !request->method;

    if (!reach || !request || !has_out)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "a request needs a handle, a target and a place for the answer");
    if (request->size != sizeof(*request))
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "size of struct reach_request is %zu and not %zu", request->size,
                         sizeof(*request));
    for (size_t i = 0; request->method && i < sizeof(methods) / sizeof(*methods); i++)
        known = known || strcmp(request->method, methods[i]) == 0;
    if (!known)
        return fail_with(error, REACH_INVALID_ARGUMENT, "the method is GET, POST or DELETE");
    if (!is_target(request->target))
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "the target of a request is a path such as /v1/gpus, escaped, of less "
                         "than %d bytes",
                         (int)HTTP_TARGET_BYTES);
    if (!is_field(request->accept) || !is_field(request->token))
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "accept and token of a request are printable ASCII of less than %d bytes",
                         (int)HTTP_FIELD_BYTES);
    return REACH_OK;
}

/* `is_typed` requests the fields of the answer, if its target has any. Answers of this library's
 * own handlers are correct and not stale, so only the typed functions need the fields. */
static enum reach_status send_request(struct reach *reach, const struct reach_request *request,
                                      bool is_typed, struct reach_answer **out,
                                      struct reach_error *error)
{
    C_LOCALE_HERE;
    enum reach_status status = check_request(reach, request, out != NULL, error);
    struct call call;

    if (out)
        *out = NULL;
    if (status != REACH_OK)
        return status;
    call = (struct call){
        .reach = reach,
        .request = request,
        .kind = is_typed || !reach->offline ? answer_kind_from_target(request->target) : ANSWER_RAW,
        .end_ms = now_ms() + atomic_load(&reach->timeout_ms),
        .allow = atomic_load(&reach->allow),
        .error = error};
    return perform(&call, out);
}

enum reach_status reach_send(struct reach *reach, const struct reach_request *request,
                             struct reach_answer **out, struct reach_error *error)
{
    return send_request(reach, request, true, out, error);
}

enum reach_status reach_get(struct reach *reach, const char *target, char **out_json,
                            struct reach_error *error)
{
    const struct reach_request request = {.size = sizeof(request), .target = target};
    struct reach_answer *answer = NULL;
    enum reach_status status;

    if (!out_json)
        return fail_with(error, REACH_INVALID_ARGUMENT, "reach_get needs a place for the JSON");
    *out_json = NULL;
    status = send_request(reach, &request, false, &answer, error);
    if (answer && !(*out_json = strdup(answer->content->body)))
        status = fail_with(error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory");
    reach_answer_free(answer);
    return status;
}

enum reach_status handle_get(struct reach *reach, const char *target, struct reach_answer **out,
                             struct reach_error *error)
{
    const struct reach_request request = {.size = sizeof(request), .target = target};
    const enum reach_status status = reach_send(reach, &request, out, error);

    if (status != REACH_OK) {
        reach_answer_free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- fingerprints and their states ---- */

static enum reach_status get_state(struct reach *reach, const char *gpu, struct reach_answer **out,
                                   struct reach_error *error)
{
    char target[HTTP_TAG_BYTES + REACH_UUID_BYTES];

    snprintf(target, sizeof(target), "/v1/gpus/%.63s", gpu);
    return handle_get(reach, target, out, error);
}

/* Document and state must describe the same fingerprint, which may be replaced between the two
 * requests. */
enum reach_status reach_get_fingerprint(struct reach *reach, const char *gpu,
                                        struct reach_answer **out, struct reach_error *error)
{
    C_LOCALE_HERE;
    enum { TRIES = 3 };
    char target[HTTP_TAG_BYTES + REACH_UUID_BYTES];
    enum reach_status status = handle_check(reach, gpu, out != NULL, error);

    if (out)
        *out = NULL;
    if (status != REACH_OK || !out)
        return status;
    snprintf(target, sizeof(target), "/v1/gpus/%.63s/fingerprint", gpu);
    for (int i = 0; i < TRIES; i++) {
        struct reach_answer *state = NULL;
        const struct reach_gpu *now;
        bool is_same;

        status = handle_get(reach, target, out, error);
        if (status != REACH_OK || (*out)->source != REACH_FROM_DAEMON)
            return status;
        status = get_state(reach, gpu, &state, error);
        now = reach_answer_gpu(state, 0);
        is_same = now && strcmp(now->fingerprint_id, (*out)->provenance.fingerprint_id) == 0;
        if (is_same) {
            (*out)->provenance.stale = now->stale;
            answer_cache_learn(reach->cache, &(*out)->provenance);
            status = check_stale(atomic_load(&reach->allow), *out, error);
        }
        reach_answer_free(state);
        if (is_same && status == REACH_OK)
            return REACH_OK;
        reach_answer_free(*out);
        *out = NULL;
        if (status != REACH_OK)
            return status;
    }
    return fail_with(error, REACH_UNAVAILABLE,
                     "the fingerprint of %s changed during the request; try again", gpu);
}

enum reach_status reach_check_fingerprint(struct reach *reach, const char *answered_uuid,
                                          const char *fingerprint_id, struct reach_error *error)
{
    C_LOCALE_HERE;
    struct reach_answer *state = NULL;
    const struct reach_gpu *now;
    enum reach_status status;

    if (!reach || !answered_uuid || !fingerprint_id || !*fingerprint_id)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "to revalidate needs a handle and an answer that rests on a fingerprint");
    status = handle_check(reach, answered_uuid, true, error);
    if (status != REACH_OK)
        return status;
    if (reach->offline)
        return offline_revalidate(reach->offline, answered_uuid, fingerprint_id, error);
    status = get_state(reach, answered_uuid, &state, error);
    now = reach_answer_gpu(state, 0);
    if (!now)
        return status;
    if (now->state == REACH_STATE_LOST)
        status = fail_with(error, REACH_NOT_FOUND, "%s is lost: the driver no longer lists it",
                           now->uuid);
    else if (!*now->fingerprint_id)
        status = fail_with(error, REACH_NOT_MEASURED,
                           "the daemon no longer has a fingerprint of %s", now->uuid);
    else if (strcmp(now->fingerprint_id, fingerprint_id) != 0)
        status = fail_with(error, REACH_STALE,
                           "the answer rests on fingerprint %.63s, and %s has been measured again "
                           "since: it now has %s. Request a new answer",
                           fingerprint_id, now->uuid, now->fingerprint_id);
    else if (now->stale)
        status = fail_with(error, REACH_STALE,
                           "fingerprint %s of %s has become stale: the chip or its driver is not "
                           "what was measured. Measure again (reachctl measure --wait)",
                           fingerprint_id, now->uuid);
    reach_answer_free(state);
    return status;
}

enum reach_status reach_revalidate(struct reach *reach, const struct reach_answer *answer,
                                   struct reach_error *error)
{
    const struct reach_provenance *p = reach_answer_provenance(answer);

    return reach_check_fingerprint(reach, p ? p->gpu_uuid : NULL, p ? p->fingerprint_id : NULL,
                                   error);
}
