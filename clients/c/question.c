/* question.c: the typed functions of reach.h. Each request struct is a table of parameters; what is
 * 0 is left out, and then the daemon's default holds. */
#include "clients/c/handle.h"
#include "clients/c/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES = 40 };

enum kind {
    KIND_BYTES,
    KIND_U64,
    KIND_U32,
    KIND_FLAG,
    KIND_REAL,
    KIND_RATE,
    KIND_COMPLEMENT, /* 1 less the number is sent */
    KIND_ACCESS
};

struct param {
    const char *name;
    enum kind kind; /* KIND_BYTES and KIND_RATE are sent if they are 0, to be refused */
    size_t offset;
};

/* ---- targets ---- */

static void add(char *target, const char *name, const char *value)
{
    const size_t at = strlen(target);

    snprintf(target + at, HTTP_TARGET_BYTES - at, "%c%s=%s", strchr(target, '?') ? '&' : '?', name,
             value);
}

/* Exact, and without the plus of an exponent, which is a blank in a query. */
static const char *real_text(double value, char *out)
{
    char *plus;

    snprintf(out, VALUE_BYTES, "%.17g", value);
    plus = strchr(out, '+');
    if (plus)
        memmove(plus, plus + 1, strlen(plus));
    return out;
}

/* The value as text; NULL if it is left out, or is no kind of access. */
static const char *value_text(const struct param *param, const void *from, char *out)
{
    uint64_t integer = 0;
    uint32_t small = 0;
    double real = 0;
    bool flag = false;

    switch (param->kind) {
    case KIND_BYTES:
    case KIND_U64:
        memcpy(&integer, from, sizeof(integer));
        break;
    case KIND_U32:
        memcpy(&small, from, sizeof(small));
        integer = small;
        break;
    case KIND_FLAG:
        memcpy(&flag, from, sizeof(flag));
        return flag ? "true" : NULL;
    case KIND_REAL:
    case KIND_RATE:
        memcpy(&real, from, sizeof(real));
        return real != 0 || param->kind == KIND_RATE ? real_text(real, out) : NULL;
    case KIND_COMPLEMENT:
        memcpy(&real, from, sizeof(real));
        return real != 0 ? real_text(1 - real, out) : NULL;
    case KIND_ACCESS:
        memcpy(&small, from, sizeof(small));
        return reach_access_name((enum reach_access)small);
    }
    snprintf(out, VALUE_BYTES, "%" PRIu64, integer);
    return integer > 0 || param->kind == KIND_BYTES ? out : NULL;
}

static enum reach_status add_params(const struct param *params, size_t count, const void *request,
                                    char *target, struct reach_error *error)
{
    for (size_t i = 0; i < count; i++) {
        char text[VALUE_BYTES];
        const char *value = value_text(&params[i], (const char *)request + params[i].offset, text);
        if (value)
            add(target, params[i].name, value);
        if (!value && params[i].kind == KIND_ACCESS) {
            fail_text(error, REACH_INVALID_ARGUMENT, "there is no such kind of access");
            fail_field(error, params[i].name);
            return REACH_INVALID_ARGUMENT;
        }
    }
    return REACH_OK;
}

/* ---- asking ---- */

/* A typed function: the last segment of its path, and its parameters. */
struct question {
    const char *name;
    size_t size; /* of the request struct */
    const struct param *params;
    size_t count;
};

static enum reach_status check_size(const void *request, size_t size, struct reach_error *error)
{
    size_t given = 0;

    if (request)
        memcpy(&given, request, sizeof(given));
    if (given == size)
        return REACH_OK;
    fail_text(error, REACH_INVALID_ARGUMENT,
              "size of the request is %zu and not %zu: set it to the sizeof of the struct", given,
              size);
    fail_field(error, "size");
    return REACH_INVALID_ARGUMENT;
}

static enum reach_status begin(const struct reach *reach, const char *gpu, const char *name,
                               const void *request, size_t size, struct reach_answer **out,
                               char *target, struct reach_error *error)
{
    enum reach_status status = handle_check(reach, gpu, out != NULL, error);

    if (out)
        *out = NULL;
    if (status == REACH_OK)
        status = check_size(request, size, error);
    if (status == REACH_OK)
        snprintf(target, HTTP_TARGET_BYTES, "/v1/gpus/%.63s/%s", gpu, name);
    return status;
}

/* The bytes that an answer is for; 0: it has none. */
static uint64_t bytes_of(const struct reach_answer *answer)
{
    switch (answer->content->kind) {
    case ANSWER_SCOPE:
        return answer->content->scope.bytes;
    case ANSWER_PLACEMENT:
        return answer->content->placement.bytes;
    case ANSWER_PLAN:
        return answer->content->plan.bytes;
    case ANSWER_EXPLANATION:
        return answer->content->explanation.bytes;
    default:
        return 0;
    }
}

static enum reach_status ask(struct reach *reach, const char *gpu, const struct question *question,
                             const void *request, struct reach_answer **out,
                             struct reach_error *error)
{
    char target[HTTP_TARGET_BYTES];
    uint64_t bytes;
    enum reach_status status =
        begin(reach, gpu, question->name, request, question->size, out, target, error);

    if (status == REACH_OK)
        status = add_params(question->params, question->count, request, target, error);
    if (status == REACH_OK)
        status = handle_get(reach, target, out, error);
    if (status != REACH_OK)
        return status;
    memcpy(&bytes, (const char *)request + question->params[0].offset, sizeof(bytes));
    if (bytes_of(*out) == bytes)
        return REACH_OK;
    status = fail_with(error, REACH_PROTOCOL,
                       "the request was for %" PRIu64 " bytes and the answer is for %" PRIu64,
                       bytes, bytes_of(*out));
    reach_answer_free(*out);
    *out = NULL;
    return status;
}

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

enum reach_status reach_get_gpus(struct reach *reach, struct reach_answer **out,
                                 struct reach_error *error)
{
    const enum reach_status status = handle_check(reach, "0", out != NULL, error);

    return status == REACH_OK ? handle_get(reach, "/v1/gpus", out, error) : status;
}

enum reach_status reach_get_scope(struct reach *reach, const char *gpu,
                                  const struct reach_scope_request *request,
                                  struct reach_answer **out, struct reach_error *error)
{
    static const struct param params[] = {
        {"bytes", KIND_BYTES, offsetof(struct reach_scope_request, bytes)},
        {"access", KIND_ACCESS, offsetof(struct reach_scope_request, access)}};
    static const struct question question = {"scope", sizeof(*request), params, COUNT_OF(params)};

    return ask(reach, gpu, &question, request, out, error);
}

enum reach_status reach_get_placement(struct reach *reach, const char *gpu,
                                      const struct reach_placement_request *request,
                                      struct reach_answer **out, struct reach_error *error)
{
    static const struct param params[] = {
        {"bytes", KIND_BYTES, offsetof(struct reach_placement_request, bytes)},
        {"windows", KIND_U32, offsetof(struct reach_placement_request, windows)},
        {"granularity", KIND_U64, offsetof(struct reach_placement_request, granularity_bytes)}};
    static const struct question question = {"placement", sizeof(*request), params,
                                             COUNT_OF(params)};

    return ask(reach, gpu, &question, request, out, error);
}

enum reach_status reach_get_plan(struct reach *reach, const char *gpu, const struct reach_job *job,
                                 struct reach_answer **out, struct reach_error *error)
{
    static const struct param params[] = {
        {"bytes", KIND_BYTES, offsetof(struct reach_job, bytes)},
        {"access", KIND_ACCESS, offsetof(struct reach_job, access)},
        {"element", KIND_U32, offsetof(struct reach_job, element_bytes)},
        {"transaction", KIND_U32, offsetof(struct reach_job, transaction_bytes)},
        {"reserve", KIND_U64, offsetof(struct reach_job, reserve_bytes)},
        {"accesses", KIND_U64, offsetof(struct reach_job, accesses)},
        {"no_sm_binding", KIND_FLAG, offsetof(struct reach_job, no_sm_binding)},
        {"single_pass", KIND_FLAG, offsetof(struct reach_job, single_pass)},
        {"input_bytes", KIND_REAL, offsetof(struct reach_job, input_bytes)},
        {"input_gbps", KIND_REAL, offsetof(struct reach_job, input_gbps)},
        {"output_bytes", KIND_REAL, offsetof(struct reach_job, output_bytes)},
        {"partition_bytes", KIND_REAL, offsetof(struct reach_job, partition_bytes)},
        {"scan_gps", KIND_REAL, offsetof(struct reach_job, scan_gps)},
        {"in_reach_gbps", KIND_REAL, offsetof(struct reach_job, in_reach_gbps)},
        {"granularity", KIND_U64, offsetof(struct reach_job, granularity_bytes)},
        {"contiguous", KIND_COMPLEMENT, offsetof(struct reach_job, scattered)},
        {"windows", KIND_U32, offsetof(struct reach_job, windows)}};
    static const struct question question = {"plan", sizeof(*job), params, COUNT_OF(params)};

    return ask(reach, gpu, &question, job, out, error);
}

/* The daemon takes lists, "bytes=1,2&weight=1,2". */
enum reach_status reach_get_split(struct reach *reach, const char *gpu,
                                  const struct reach_split_request *request,
                                  struct reach_answer **out, struct reach_error *error)
{
    enum { LIST_BYTES = REACH_JOB_MAX * VALUE_BYTES };
    char target[HTTP_TARGET_BYTES];
    char sizes[LIST_BYTES] = "";
    char weights[LIST_BYTES] = "";
    enum reach_status status =
        begin(reach, gpu, "split", request, sizeof(*request), out, target, error);

    if (status != REACH_OK)
        return status;
    if (request->job_count == 0 || request->job_count > REACH_JOB_MAX || !request->bytes) {
        fail_text(error, REACH_INVALID_ARGUMENT,
                  "a split is between 1 and %d jobs, with the bytes of each", (int)REACH_JOB_MAX);
        fail_field(error, "bytes");
        return REACH_INVALID_ARGUMENT;
    }
    for (uint32_t j = 0; j < request->job_count; j++) {
        char text[VALUE_BYTES];
        const size_t at = strlen(sizes);
        const size_t to = strlen(weights);
        snprintf(sizes + at, sizeof(sizes) - at, "%s%" PRIu64, j ? "," : "", request->bytes[j]);
        snprintf(weights + to, sizeof(weights) - to, "%s%s", j ? "," : "",
                 real_text(request->weight ? request->weight[j] : 1, text));
    }
    add(target, "bytes", sizes);
    add(target, "weight", weights);
    status = handle_get(reach, target, out, error);
    if (status != REACH_OK || (*out)->content->count == request->job_count)
        return status;
    status =
        fail_with(error, REACH_PROTOCOL, "the request was for %u jobs and the answer is for %u",
                  request->job_count, (*out)->content->count);
    reach_answer_free(*out);
    *out = NULL;
    return status;
}

enum reach_status reach_get_explain(struct reach *reach, const char *gpu,
                                    const struct reach_explain_request *request,
                                    struct reach_answer **out, struct reach_error *error)
{
    static const struct param params[] = {
        {"bytes", KIND_BYTES, offsetof(struct reach_explain_request, bytes)},
        {"access", KIND_ACCESS, offsetof(struct reach_explain_request, access)},
        {"element", KIND_U32, offsetof(struct reach_explain_request, element_bytes)},
        {"transaction", KIND_U32, offsetof(struct reach_explain_request, transaction_bytes)},
        {"contiguous", KIND_COMPLEMENT, offsetof(struct reach_explain_request, scattered)},
        {"gbps", KIND_RATE, offsetof(struct reach_explain_request, observed_gbps)}};
    static const struct question question = {"explain", sizeof(*request), params, COUNT_OF(params)};

    return ask(reach, gpu, &question, request, out, error);
}
