/* ask.c: the questions of reach.h. Each is a row: how it is written as a path for a daemon, how its
 * answer is read, and which function answers it offline. */
#include "clients/c/answer.h"
#include "clients/c/job.h"
#include "clients/c/offline.h"
#include "clients/c/get.h"
#include "clients/c/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends the query to a path of WIRE_PATH_BYTES; false, with an error, where the request makes no
 * sense to begin with. */
typedef enum reach_status path_fn(const void *request, char *path, struct reach_error *error);

struct question {
    const char *name; /* the last part of the path */
    size_t answer_bytes;
    size_t bytes_at; /* where the answer repeats the bytes that every request begins with; 0: not */
    path_fn *write_query;
    answer_fn *read;
    offline_fn *offline;
};

_Static_assert(offsetof(struct reach_scope_request, bytes) == 0, "begins with its bytes");
_Static_assert(offsetof(struct reach_placement_request, bytes) == 0, "begins with its bytes");
_Static_assert(offsetof(struct reach_job, bytes) == 0, "begins with its bytes");
_Static_assert(offsetof(struct reach_explain_request, bytes) == 0, "begins with its bytes");

/* ---- asking ---- */

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
                                    bool has_out, struct reach_error *error)
{
    if (!reach || !request || !has_out)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "a question needs a handle, a request and a place for the answer");
    return check_gpu_name(gpu, error);
}

/* What answers without asking the daemon, for this GPU. REACH_OK and NULL: nothing does. */
static enum reach_status find_offline(const struct reach *reach, const char *gpu,
                                      const struct offline **out, struct reach_error *error)
{
    *out = reach->offline;
    if (reach->offline)
        return offline_check_gpu(reach->offline, gpu, error);
    if (!reach->wire)
        return job_find_any(reach->job, gpu, out, error);
    if (reach->job)
        *out = job_find(reach->job, gpu);
    return REACH_OK;
}

static enum reach_status ask_offline(const struct offline *offline, const struct question *question,
                                     const void *request, void **out, struct reach_error *error)
{
    enum reach_status status;
    void *answer = calloc(1, question->answer_bytes);

    if (!answer)
        return fail_with(error, REACH_NO_MEMORY, "no memory for an answer");
    status = question->offline(offline, request, answer, error);
    if (status == REACH_OK)
        *out = answer;
    else
        free(answer);
    return status;
}

/* An answer to another question is none. */
static enum reach_status check_bytes(const struct question *question, const void *request,
                                     const void *answer, struct reach_error *error)
{
    uint64_t asked;
    uint64_t answered;

    if (question->bytes_at == 0)
        return REACH_OK;
    memcpy(&asked, request, sizeof(asked));
    memcpy(&answered, (const char *)answer + question->bytes_at, sizeof(answered));
    if (asked == answered)
        return REACH_OK;
    return fail_with(error, REACH_PROTOCOL,
                     "the daemon was asked about %" PRIu64 " bytes and answers about %" PRIu64,
                     asked, answered);
}

/* `*out` is NULL before and, where it fails, after. */
static enum reach_status ask(struct reach *reach, const char *gpu, const struct question *question,
                             const void *request, void **out, struct reach_error *error)
{
    char path[WIRE_PATH_BYTES];
    enum reach_status status = check_gpu_name(gpu, error);
    const struct offline *offline = NULL;
    struct remote_call call;
    void *answer;

    if (status != REACH_OK)
        return status;
    snprintf(path, sizeof(path), "/v1/gpus/%s/%s", gpu, question->name);
    status = question->write_query(request, path, error);
    if (status != REACH_OK)
        return status;
    status = find_offline(reach, gpu, &offline, error);
    if (status != REACH_OK)
        return status;
    if (offline)
        return ask_offline(offline, question, request, out, error);
    call = remote_begin(reach, error);
    answer = remote_ask(&call, path, gpu, question->read, question->answer_bytes);
    if (!answer)
        return call.status;
    status = check_bytes(question, request, answer, error);
    if (status == REACH_OK)
        *out = answer;
    else
        free(answer);
    return status;
}

/* ---- queries ---- */

static void add(char *path, const char *name, const char *value)
{
    const size_t at = strlen(path);

    snprintf(path + at, WIRE_PATH_BYTES - at, "%c%s=%s", strchr(path, '?') ? '&' : '?', name,
             value);
}

/* 0 is what the daemon takes where nothing is said. */
static void add_size(char *path, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (value > 0)
        add(path, name, text);
}

static enum reach_status add_access(char *path, enum reach_access access, struct reach_error *error)
{
    const char *name = reach_access_name(access);

    if (!name)
        return fail_with(error, REACH_INVALID_ARGUMENT, "there is no kind of access %d",
                         (int)access);
    add(path, "access", name);
    return REACH_OK;
}

/* Always there, so that 0 is refused and not left out. */
static void add_bytes(char *path, uint64_t bytes)
{
    if (bytes > 0)
        add_size(path, "bytes", bytes);
    else
        add(path, "bytes", "0");
}

static enum reach_status scope_query(const void *request, char *path, struct reach_error *error)
{
    const struct reach_scope_request *r = request;

    add_bytes(path, r->bytes);
    return add_access(path, r->access, error);
}

static enum reach_status placement_query(const void *request, char *path, struct reach_error *error)
{
    const struct reach_placement_request *r = request;

    (void)error;
    add_bytes(path, r->bytes);
    add_size(path, "windows", r->windows);
    add_size(path, "granularity", r->granularity_bytes);
    return REACH_OK;
}

enum { REAL_BYTES = 40 };

/* Exact, and without the plus of an exponent, which is a blank in a query. */
static char *real_text(double value, char *out)
{
    char *plus;

    snprintf(out, REAL_BYTES, "%.17g", value);
    plus = strchr(out, '+');
    if (plus)
        memmove(plus, plus + 1, strlen(plus));
    return out;
}

static void add_real(char *path, const char *name, double value)
{
    char text[REAL_BYTES];

    if (value != 0)
        add(path, name, real_text(value, text));
}

static void add_flag(char *path, const char *name, bool value)
{
    if (value)
        add(path, name, "true");
}

static enum reach_status plan_query(const void *request, char *path, struct reach_error *error)
{
    const struct reach_job *r = request;

    add_bytes(path, r->bytes);
    add_size(path, "element", r->element_bytes);
    add_size(path, "transaction", r->transaction_bytes);
    add_size(path, "reserve", r->reserve_bytes);
    add_size(path, "accesses", r->accesses);
    add_flag(path, "fixed", r->fixed);
    add_flag(path, "once", r->once);
    add_real(path, "input_bytes", r->input_bytes);
    add_real(path, "input_gbps", r->input_gbps);
    add_real(path, "output_bytes", r->output_bytes);
    add_real(path, "deal_bytes", r->deal_bytes);
    add_real(path, "look_gps", r->look_gps);
    add_real(path, "inside_gbps", r->inside_gbps);
    add_size(path, "granularity", r->granularity_bytes);
    add_size(path, "windows", r->windows);
    return add_access(path, r->access, error);
}

/* The daemon takes lists, "bytes=1,2&weight=1,2"; a weight of 0 is 1. */
static enum reach_status split_query(const void *request, char *path, struct reach_error *error)
{
    const struct reach_split_request *r = request;
    char sizes[WIRE_PATH_BYTES / 2] = "";
    char weights[WIRE_PATH_BYTES / 2] = "";

    if (r->job_count == 0 || r->job_count > REACH_JOB_SLOTS)
        return fail_with(error, REACH_INVALID_ARGUMENT, "a split is between 1 and %d jobs, not %u",
                         (int)REACH_JOB_SLOTS, r->job_count);
    for (uint32_t j = 0; j < r->job_count; j++) {
        const double weight = r->jobs[j].weight == 0 ? 1 : r->jobs[j].weight;
        char text[REAL_BYTES];
        const size_t at = strlen(sizes);
        const size_t to = strlen(weights);
        snprintf(sizes + at, sizeof(sizes) - at, "%s%" PRIu64, j ? "," : "", r->jobs[j].bytes);
        snprintf(weights + to, sizeof(weights) - to, "%s%s", j ? "," : "", real_text(weight, text));
    }
    add(path, "bytes", sizes);
    add(path, "weight", weights);
    return REACH_OK;
}

static enum reach_status explain_query(const void *request, char *path, struct reach_error *error)
{
    const struct reach_explain_request *r = request;
    char text[REAL_BYTES];

    add_bytes(path, r->bytes);
    add_size(path, "element", r->element_bytes);
    add_size(path, "transaction", r->transaction_bytes);
    add(path, "gbps", real_text(r->seen_gbps, text));
    return add_access(path, r->access, error);
}

/* ---- the public questions ---- */

enum reach_status reach_ask_gpus(struct reach *reach, struct reach_gpus **out,
                                 struct reach_error *error)
{
    enum reach_status status = check_call(reach, "0", "", out != NULL, error);
    struct remote_call call;

    if (out)
        *out = NULL;
    if (status != REACH_OK || !reach || !out)
        return status;
    if (reach->wire) {
        call = remote_begin(reach, error);
        *out = remote_ask_fresh(&call, "/v1/gpus", answer_gpus, sizeof(**out));
        return call.status;
    }
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_with(error, REACH_NO_MEMORY, "no memory for an answer");
    if (reach->offline)
        offline_gpus(reach->offline, *out);
    else
        job_gpus(reach->job, *out);
    return REACH_OK;
}

static enum reach_status fingerprint_query(const void *request, char *path,
                                           struct reach_error *error)
{
    (void)request;
    (void)path;
    (void)error;
    return REACH_OK;
}

enum reach_status reach_ask_fingerprint(struct reach *reach, const char *gpu,
                                        struct reach_fingerprint **out, struct reach_error *error)
{
    static const struct question question = {
        "fingerprint",     sizeof(**out),      0,
        fingerprint_query, answer_fingerprint, offline_fingerprint};
    enum reach_status status = check_call(reach, gpu, "", out != NULL, error);
    const struct offline *offline = NULL;
    struct remote_call call;
    void *answer = NULL;

    if (out)
        *out = NULL;
    if (status != REACH_OK || !reach || !out)
        return status;
    status = find_offline(reach, gpu, &offline, error);
    if (status != REACH_OK)
        return status;
    if (offline) {
        status = ask_offline(offline, &question, "", &answer, error);
        *out = answer;
        return status;
    }
    call = remote_begin(reach, error);
    *out = remote_fingerprint(&call, gpu);
    return call.status;
}

enum reach_status reach_ask_scope(struct reach *reach, const char *gpu,
                                  const struct reach_scope_request *request,
                                  struct reach_scope **out, struct reach_error *error)
{
    static const struct question question = {
        "scope",     sizeof(**out), offsetof(struct reach_scope, bytes),
        scope_query, answer_scope,  offline_scope};
    enum reach_status status = check_call(reach, gpu, request, out != NULL, error);
    void *answer = NULL;

    if (status == REACH_OK)
        status = ask(reach, gpu, &question, request, &answer, error);
    if (out)
        *out = answer;
    return status;
}

enum reach_status reach_ask_placement(struct reach *reach, const char *gpu,
                                      const struct reach_placement_request *request,
                                      struct reach_placement **out, struct reach_error *error)
{
    static const struct question question = {
        "placement",     sizeof(**out),    offsetof(struct reach_placement, bytes),
        placement_query, answer_placement, offline_placement};
    enum reach_status status = check_call(reach, gpu, request, out != NULL, error);
    void *answer = NULL;

    if (status == REACH_OK)
        status = ask(reach, gpu, &question, request, &answer, error);
    if (out)
        *out = answer;
    return status;
}

enum reach_status reach_ask_plan(struct reach *reach, const char *gpu, const struct reach_job *job,
                                 struct reach_plan **out, struct reach_error *error)
{
    static const struct question question = {
        "plan",     sizeof(**out), offsetof(struct reach_plan, bytes),
        plan_query, answer_plan,   offline_plan};
    enum reach_status status = check_call(reach, gpu, job, out != NULL, error);
    void *answer = NULL;

    if (status == REACH_OK)
        status = ask(reach, gpu, &question, job, &answer, error);
    if (out)
        *out = answer;
    return status;
}

enum reach_status reach_ask_split(struct reach *reach, const char *gpu,
                                  const struct reach_split_request *request,
                                  struct reach_split **out, struct reach_error *error)
{
    static const struct question question = {"split",     sizeof(**out), 0,
                                             split_query, answer_split,  offline_split};
    enum reach_status status = check_call(reach, gpu, request, out != NULL, error);
    struct reach_split *split;
    void *answer = NULL;

    if (status == REACH_OK)
        status = ask(reach, gpu, &question, request, &answer, error);
    split = answer;
    if (split && split->job_count != request->job_count) {
        status = fail_with(error, REACH_PROTOCOL,
                           "the daemon was asked about %u jobs and answers "
                           "about %u",
                           request->job_count, split->job_count);
        free(split);
        split = NULL;
    }
    if (out)
        *out = split;
    return status;
}

enum reach_status reach_ask_explain(struct reach *reach, const char *gpu,
                                    const struct reach_explain_request *request,
                                    struct reach_explanation **out, struct reach_error *error)
{
    static const struct question question = {
        "explain",     sizeof(**out),  offsetof(struct reach_explanation, bytes),
        explain_query, answer_explain, offline_explain};
    enum reach_status status = check_call(reach, gpu, request, out != NULL, error);
    void *answer = NULL;

    if (status == REACH_OK)
        status = ask(reach, gpu, &question, request, &answer, error);
    if (out)
        *out = answer;
    return status;
}

enum reach_status reach_confirm(struct reach *reach, const struct reach_basis *basis,
                                struct reach_error *error)
{
    enum reach_status status = check_call(reach, basis ? basis->gpu_uuid : "0", basis, true, error);
    struct remote_call call;

    if (status != REACH_OK)
        return status;
    if (reach->offline)
        return offline_confirm(reach->offline, basis, error);
    if (!reach->wire)
        return fail_with(error, REACH_NOT_SUPPORTED,
                         "the environment does not change, and this handle asks nobody else");
    call = remote_begin(reach, error);
    return remote_confirm(&call, basis);
}
