/* question.c: the typed functions of reach.h. The table of planner/params.h lists the parameters of
 * each function. A parameter of 0 is left out, and the daemon uses its default. */
#include "clients/c/handle.h"
#include "clients/c/http.h"

#include "base/c_locale.h"
#include "planner/params.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES = 40 };

/* The allocations of a request. If there are none, the request's own fields describe its only
 * allocation. */
struct allocations {
    uint32_t count;
    const struct reach_allocation *of;
    bool are_touched; /* touches and sizes of accesses are used too */
};

/* ---- targets ---- */

static void add(char *target, const char *name, const char *value)
{
    const size_t at = strlen(target);

    snprintf(target + at, HTTP_TARGET_BYTES - at, "%c%s=%s", strchr(target, '?') ? '&' : '?', name,
             value);
}

/* The text is exact and has no plus in the exponent, because a plus is a blank in a query. */
static const char *real_text(double value, char *out)
{
    char *plus;

    snprintf(out, VALUE_BYTES, "%.17g", value);
    plus = strchr(out, '+');
    if (plus)
        memmove(plus, plus + 1, strlen(plus));
    return out;
}

/* Returns the value as text; NULL if it is left out or is not a word of the table. */
static const char *value_text(const struct param *p, bool is_needed, const void *from, char *out)
{
    uint64_t integer = 0;
    uint32_t small = 0;
    double real = 0;
    bool flag = false;

    switch (p->kind) {
    case PARAM_FLAG:
        memcpy(&flag, from, sizeof(flag));
        return flag ? "true" : NULL;
    case PARAM_REAL:
    case PARAM_REAL_OR_0:
        memcpy(&real, from, sizeof(real));
        return real != 0 || is_needed ? real_text(real, out) : NULL;
    case PARAM_COMPLEMENT:
        memcpy(&real, from, sizeof(real));
        return real != 0 ? real_text(1 - real, out) : NULL;
    case PARAM_WORD:
        memcpy(&small, from, sizeof(small));
        return p->word(small);
    case PARAM_ACCESS_SIZE:
    case PARAM_COUNT:
        memcpy(&small, from, sizeof(small));
        integer = small;
        break;
    default:
        memcpy(&integer, from, sizeof(integer));
    }
    snprintf(out, VALUE_BYTES, "%" PRIu64, integer);
    return integer > 0 || is_needed ? out : NULL;
}

/* `offsets` has the offset in the request struct of each parameter of the function. */
static enum reach_status add_params(enum planner_function function, const size_t *offsets,
                                    bool has_list, const void *request, char *target,
                                    struct reach_error *error)
{
    const struct param *p;

    for (uint32_t i = 0; (p = param_at(i)); i++) {
        const struct param_use *use = &p->uses[function];
        char text[VALUE_BYTES];
        const char *value;
        if (!use->member)
            continue;
        value = value_text(p, use->needed, (const char *)request + *offsets++, text);
        if (has_list && use->form != PARAM_ONE)
            continue;
        if (value)
            add(target, p->name, value);
        if (!value && p->kind == PARAM_WORD) {
            fail_text(error, REACH_INVALID_ARGUMENT, "there is no such kind of %s", p->name);
            fail_field(error, p->name);
            return REACH_INVALID_ARGUMENT;
        }
    }
    return REACH_OK;
}

/* ---- lists of allocations ---- */

enum { LIST_BYTES = REACH_ALLOCATION_MAX * VALUE_BYTES, DEFAULT_ELEMENT = 128, SECTOR = 32 };

/* A value of 0 in a list is sent as the default, because a list contains all items. */
static uint64_t element_of(const struct reach_allocation *a)
{
    return a->element_bytes > 0 ? a->element_bytes : DEFAULT_ELEMENT;
}

static uint64_t transaction_of(const struct reach_allocation *a)
{
    return a->transaction_bytes > 0 ? a->transaction_bytes
                                    : (element_of(a) + SECTOR - 1) / SECTOR * SECTOR;
}

static uint64_t bytes_in(const struct reach_allocation *a)
{
    return a->bytes;
}

static void add_list(char *target, const char *name, const struct allocations *list,
                     uint64_t (*value_of)(const struct reach_allocation *))
{
    char text[LIST_BYTES] = "";

    for (uint32_t i = 0; i < list->count; i++) {
        const size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s%" PRIu64, i > 0 ? "," : "",
                 value_of(&list->of[i]));
    }
    add(target, name, text);
}

static uint64_t granularity_of(const struct reach_allocation *a)
{
    return a->granularity_bytes > 0 ? a->granularity_bytes : element_of(a);
}

static uint64_t scope_granularity_of(const struct reach_allocation *a)
{
    return a->granularity_bytes > 0 ? a->granularity_bytes : DEFAULT_ELEMENT;
}

static void add_touches(char *target, const struct allocations *list)
{
    char text[LIST_BYTES] = "";

    for (uint32_t i = 0; i < list->count; i++) {
        char number[VALUE_BYTES];
        const size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s%s", i > 0 ? "," : "",
                 real_text(list->of[i].touches, number));
    }
    add(target, "touches", text);
}

static enum reach_status add_allocations(const struct allocations *list, char *target,
                                         struct reach_error *error)
{
    if (list->count == 0)
        return REACH_OK;
    if (list->count > REACH_ALLOCATION_MAX || !list->of) {
        fail_text(error, REACH_INVALID_ARGUMENT, "a list of allocations has between 1 and %d",
                  (int)REACH_ALLOCATION_MAX);
        fail_field(error, "bytes");
        return REACH_INVALID_ARGUMENT;
    }
    add_list(target, "bytes", list, bytes_in);
    add_list(target, "granularity", list,
             list->are_touched ? granularity_of : scope_granularity_of);
    if (!list->are_touched)
        return REACH_OK;
    add_list(target, "element", list, element_of);
    add_list(target, "transaction", list, transaction_of);
    add_touches(target, list);
    return REACH_OK;
}

/* ---- typed functions ---- */

/* The offset of each parameter in its struct. */
/* Generated from daemon/planner/params.c by make generated: offsets. */
/* clang-format off */
static const size_t scope_offsets[] = {
    offsetof(struct reach_scope_request, bytes),
    offsetof(struct reach_scope_request, access),
    offsetof(struct reach_scope_request, granularity_bytes),
};
static const size_t placement_offsets[] = {
    offsetof(struct reach_placement_request, bytes),
    offsetof(struct reach_placement_request, windows),
    offsetof(struct reach_placement_request, granularity_bytes),
};
static const size_t plan_offsets[] = {
    offsetof(struct reach_job, bytes),
    offsetof(struct reach_job, access),
    offsetof(struct reach_job, element_bytes),
    offsetof(struct reach_job, transaction_bytes),
    offsetof(struct reach_job, reserve_bytes),
    offsetof(struct reach_job, accesses),
    offsetof(struct reach_job, launch_us),
    offsetof(struct reach_job, first_launch_us),
    offsetof(struct reach_job, dependent_reads),
    offsetof(struct reach_job, busiest_bank_ns),
    offsetof(struct reach_job, no_sm_binding),
    offsetof(struct reach_job, single_pass),
    offsetof(struct reach_job, input_bytes),
    offsetof(struct reach_job, input_gbps),
    offsetof(struct reach_job, scan_gps),
    offsetof(struct reach_job, in_reach_gbps),
    offsetof(struct reach_job, output_bytes),
    offsetof(struct reach_job, written_bytes),
    offsetof(struct reach_job, partition_bytes),
    offsetof(struct reach_job, scattered),
    offsetof(struct reach_job, concentration),
    offsetof(struct reach_job, window_concentration),
    offsetof(struct reach_job, lines),
    offsetof(struct reach_job, line_concentration),
    offsetof(struct reach_job, windows),
    offsetof(struct reach_job, granularity_bytes),
};
static const size_t explain_offsets[] = {
    offsetof(struct reach_explain_request, bytes),
    offsetof(struct reach_explain_request, access),
    offsetof(struct reach_explain_request, element_bytes),
    offsetof(struct reach_explain_request, transaction_bytes),
    offsetof(struct reach_explain_request, scattered),
    offsetof(struct reach_explain_request, observed_gbps),
};
/* clang-format on */
/* End of the generated part. */

/* A typed function. The first offset is the offset of `bytes`. */
struct question {
    enum planner_function function;
    size_t size; /* size of the request struct */
    const size_t *offsets;
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

static enum reach_status begin(const struct reach *reach, const char *gpu,
                               enum planner_function function, const void *request, size_t size,
                               struct reach_answer **out, char *target, struct reach_error *error)
{
    enum reach_status status = handle_check(reach, gpu, out != NULL, error);

    if (out)
        *out = NULL;
    if (status == REACH_OK)
        status = check_size(request, size, error);
    if (status == REACH_OK)
        snprintf(target, HTTP_TARGET_BYTES, "/v1/gpus/%.63s/%s", gpu,
                 planner_function_name(function));
    return status;
}

/* Returns the number of bytes that an answer is about; 0 if the answer has no such number. */
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

/* Returns the number of bytes that the request is about. */
static uint64_t asked_bytes(const struct question *question, const void *request,
                            const struct allocations *list)
{
    uint64_t bytes = 0;

    if (list->count == 0)
        memcpy(&bytes, (const char *)request + question->offsets[0], sizeof(bytes));
    for (uint32_t i = 0; i < list->count; i++)
        bytes += list->of[i].bytes;
    return bytes;
}

static enum reach_status ask_list(struct reach *reach, const char *gpu,
                                  const struct question *question, const void *request,
                                  const struct allocations *list, struct reach_answer **out,
                                  struct reach_error *error)
{
    C_LOCALE_HERE;
    char target[HTTP_TARGET_BYTES];
    uint64_t bytes;
    enum reach_status status =
        begin(reach, gpu, question->function, request, question->size, out, target, error);

    if (status == REACH_OK)
        status = add_allocations(list, target, error);
    if (status == REACH_OK)
        status = add_params(question->function, question->offsets, list->count > 0, request, target,
                            error);
    if (status == REACH_OK)
        status = handle_get(reach, target, out, error);
    if (status != REACH_OK)
        return status;
    bytes = asked_bytes(question, request, list);
    if (bytes_of(*out) == bytes)
        return REACH_OK;
    status = fail_with(error, REACH_PROTOCOL,
                       "the request was for %" PRIu64 " bytes and the answer is for %" PRIu64,
                       bytes, bytes_of(*out));
    reach_answer_free(*out);
    *out = NULL;
    return status;
}

static enum reach_status ask(struct reach *reach, const char *gpu, const struct question *question,
                             const void *request, struct reach_answer **out,
                             struct reach_error *error)
{
    const struct allocations none = {.count = 0};

    return ask_list(reach, gpu, question, request, &none, out, error);
}

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
    static const struct question question = {PLANNER_SCOPE, sizeof(*request), scope_offsets};
    struct allocations list = {.count = 0};

    if (check_size(request, sizeof(*request), NULL) == REACH_OK)
        list = (struct allocations){request->allocation_count, request->allocation, false};
    return ask_list(reach, gpu, &question, request, &list, out, error);
}

enum reach_status reach_get_placement(struct reach *reach, const char *gpu,
                                      const struct reach_placement_request *request,
                                      struct reach_answer **out, struct reach_error *error)
{
    static const struct question question = {PLANNER_PLACEMENT, sizeof(*request),
                                             placement_offsets};

    return ask(reach, gpu, &question, request, out, error);
}

enum reach_status reach_get_plan(struct reach *reach, const char *gpu, const struct reach_job *job,
                                 struct reach_answer **out, struct reach_error *error)
{
    static const struct question question = {PLANNER_PLAN, sizeof(*job), plan_offsets};
    struct allocations list = {.count = 0};

    if (check_size(job, sizeof(*job), NULL) == REACH_OK)
        list = (struct allocations){job->allocation_count, job->allocation, true};
    return ask_list(reach, gpu, &question, job, &list, out, error);
}

/* The daemon takes lists, such as "bytes=1,2&weight=1,2". */
enum reach_status reach_get_split(struct reach *reach, const char *gpu,
                                  const struct reach_split_request *request,
                                  struct reach_answer **out, struct reach_error *error)
{
    C_LOCALE_HERE;
    _Static_assert((int)REACH_JOB_MAX <= (int)REACH_ALLOCATION_MAX, "room of a list");
    char target[HTTP_TARGET_BYTES];
    char sizes[LIST_BYTES] = "";
    char weights[LIST_BYTES] = "";
    enum reach_status status =
        begin(reach, gpu, PLANNER_SPLIT, request, sizeof(*request), out, target, error);

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
    static const struct question question = {PLANNER_EXPLAIN, sizeof(*request), explain_offsets};

    return ask(reach, gpu, &question, request, out, error);
}
