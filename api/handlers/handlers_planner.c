/* handlers_planner.c: replies with the answers of the planner as JSON, and with the environment of
 * a job as plain text for a scheduler. */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"
#include "api/encode/encode.h"
#include "planner/job_env.h"

#include <string.h>

/* Replies with an error of the decoder or of the planner. If the refused parameter is well-formed,
 * the request is understood but impossible, so the status is 422 and not 400. */
static void refuse(const struct handlers_context *c, const struct request *request, struct err *err,
                   bool well_formed, struct reply *reply)
{
    if (err->status == STATUS_TOO_MANY_BYTES)
        err->hint = "Request at most that size. GET /v1/gpus/{gpu}/memory and reachctl memory list "
                    "every kind of memory.";
    if (err->status == STATUS_INVALID_ARGUMENT &&
        (well_formed || decode_is_well_formed(request, c->function, err->field)))
        reply_err_as(reply, request, err, HTTP_UNPROCESSABLE_CONTENT);
    else
        reply_err(reply, request, err);
}

/* Calls the planner with the decoded request. */
static enum status plan(const struct snapshot_gpu *gpu, struct planner_call *call, struct err *err)
{
    const struct fingerprint *fp = &gpu->fingerprint;
    const char *id = gpu->fingerprint_id;

    switch (call->function) {
    case PLANNER_SCOPE:
        call->scope.request.fingerprint_id = id;
        return placement_scope(fp, &call->scope.request, &call->scope.answer, err);
    case PLANNER_PLACEMENT:
        call->placement.request.fingerprint_id = id;
        return placement_plan(fp, &call->placement.request, &call->placement.answer, err);
    case PLANNER_PLAN:
        call->plan.request.fingerprint_id = id;
        return strategy_plan(fp, &call->plan.request, &call->plan.answer, err);
    case PLANNER_SPLIT:
        call->split.request.fingerprint_id = id;
        return split_jobs(fp, &call->split.request, &call->split.answer, err);
    case PLANNER_FIT:
        call->fit.request.fingerprint_id = id;
        return fit_plan(fp, &call->fit.request, &call->fit.answer, err);
    case PLANNER_EXPLAIN:
        call->explain.request.fingerprint_id = id;
        return explain_loss(fp, &call->explain.request, &call->explain.answer, err);
    case PLANNER_MEMORY: /* handlers_memory */
    case PLANNER_NONE:
    case PLANNER_COUNT:
        break;
    }
    return err_set(err, STATUS_INTERNAL, "no function of the planner has the number %d",
                   (int)call->function);
}

void handlers_planner(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct planner_call own;
    struct planner_call *call = c->call ? c->call : &own;
    struct err err;
    size_t bytes = 0;
    bool decoded;
    char *text;

    if (!handlers_check_measured(c, request, HTTP_CONFLICT, reply))
        return;
    call->function = c->function;
    decoded = decode_planner_request(request, c->function, &call->scope.request, &err);
    if (decoded && plan(c->gpu, call, &err) == STATUS_OK) {
        text = encode_planner_call(c->gpu, call, &bytes);
        reply_document(reply, document_new_text(text, bytes, NULL));
    } else {
        refuse(c, request, &err, decoded, reply);
    }
}

void handlers_memory(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct memory_call call;
    struct err err;
    size_t bytes = 0;
    char *text;

    if (!handlers_check_measured(c, request, HTTP_CONFLICT, reply))
        return;
    if (request->param_count == 0) {
        text = encode_memory_facts(c->gpu, &bytes);
        reply_document(reply, document_new_text(text, bytes, NULL));
        return;
    }
    if (!decode_planner_request(request, c->function, &call.request, &err)) {
        /* Other parameters require the parameter bytes, which is otherwise optional. */
        refuse(c, request, &err, !request_param(request, "bytes"), reply);
        return;
    }
    call.request.fingerprint_id = c->gpu->fingerprint_id;
    if (memory_choices_rank(&c->gpu->fingerprint, &call.request, &call.answer, &err) == STATUS_OK) {
        text = encode_memory_choices(c->gpu, &call, &bytes);
        reply_document(reply, document_new_text(text, bytes, NULL));
    } else {
        refuse(c, request, &err, true, reply);
    }
}

void handlers_caches(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    size_t bytes = 0;
    char *text;

    if (!handlers_check_measured(c, request, HTTP_CONFLICT, reply))
        return;
    text = encode_caches(c->gpu, &bytes);
    reply_document(reply, document_new_text(text, bytes, NULL));
}

/* Refuses a stale fingerprint. Other answers have a member that reports it, but a job would rely on
 * these lines for its whole run. */
static void refuse_stale(const struct request *request, const struct snapshot_gpu *gpu,
                         struct reply *reply)
{
    static const struct problem stale = {
        .http_status = HTTP_CONFLICT,
        .status = STATUS_CONFLICT,
        .slug = "stale-fingerprint",
        .title = "The fingerprint no longer describes this GPU.",
        .next_step = "Measure again: POST /v1/gpus/{gpu}/measurements, or reachctl measure."};

    reply_refusal(reply, request, &stale, "fingerprint %s of %s is stale: %.250s",
                  gpu->fingerprint_id, gpu->identity.uuid, gpu->last_error.text);
}

void handlers_environment(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    struct err err;
    char *text;

    if (!handlers_check_measured(c, request, HTTP_CONFLICT, reply))
        return;
    if (c->gpu->fingerprint_stale) {
        refuse_stale(request, c->gpu, reply);
        return;
    }
    text = job_env_variables(&c->gpu->fingerprint, c->gpu->fingerprint_id, &err);
    if (text)
        reply_document(reply,
                       document_new_typed("text/plain; charset=utf-8", text, strlen(text), NULL));
    else
        refuse(c, request, &err, true, reply);
}
