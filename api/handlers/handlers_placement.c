/* handlers_placement.c: the two questions that the service exists for. */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"
#include "api/encode/encode.h"
#include "api/decode/problem.h"

#include <string.h>

const struct snapshot_gpu *handlers_measured_gpu(struct handlers_context *c,
                                                 const struct request *request, struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_find_gpu(c, request, reply);

    if (gpu && !gpu->has_fingerprint) {
        handlers_no_fingerprint(request, gpu, HTTP_CONFLICT, reply);
        return NULL;
    }
    return gpu;
}

void handlers_reply_answer(const struct request *request, char *take, size_t bytes,
                           struct reply *reply)
{
    struct document *made = document_new_text(take, bytes, NULL);

    if (!made) {
        reply_failure(reply, request, STATUS_NO_MEMORY, "no memory to write the answer");
        return;
    }
    reply_document(reply, made);
    document_free(made);
}

void handlers_reply_error(const struct request *request, const struct err *err, struct reply *reply)
{
    struct problem p = {.status = err->status, .parameter = err->field};

    memcpy(p.detail, err->text, sizeof(p.detail));
    if (err->status == STATUS_NOT_APPLICABLE)
        p.next_step = "Measure again: POST /v1/gpus/{gpu}/measurements with {\"depth\": \"full\"}, "
                      "or reachctl measure --depth full.";
    reply_problem(reply, request, &p);
}

void handlers_scope(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct scope_request question = {.access = ACCESS_READ};
    struct scope_answer answer;
    const struct snapshot_gpu *gpu;
    struct problem problem;
    struct err err;
    size_t bytes = 0;
    char *text;

    gpu = handlers_measured_gpu(c, request, reply);
    if (!gpu)
        return;
    if (!decode_bytes(request, "bytes", DECODE_REQUIRED, &question.bytes, &problem) ||
        !decode_access(request, &question.access, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    question.fingerprint_id = gpu->fingerprint_id;
    if (placement_scope(&gpu->fingerprint, &question, &answer, &err) != STATUS_OK) {
        handlers_reply_error(request, &err, reply);
        return;
    }
    text = encode_scope(gpu, &question, &answer, &bytes);
    handlers_reply_answer(request, text, bytes, reply);
}

void handlers_placement(struct handlers_context *c, const struct request *request,
                        struct reply *reply)
{
    struct placement_request question = {.bytes = 0};
    struct placement_answer answer;
    const struct snapshot_gpu *gpu;
    struct problem problem;
    uint64_t windows = 0;
    struct err err;
    size_t bytes = 0;
    char *text;

    gpu = handlers_measured_gpu(c, request, reply);
    if (!gpu)
        return;
    if (!decode_bytes(request, "bytes", DECODE_REQUIRED, &question.bytes, &problem) ||
        !decode_count(request, "windows", 1, PLACEMENT_MAX_WINDOWS, &windows, &problem) ||
        !decode_bytes(request, "granularity", DECODE_OPTIONAL, &question.granularity_bytes,
                      &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    question.windows = (uint32_t)windows;
    question.fingerprint_id = gpu->fingerprint_id;
    if (placement_plan(&gpu->fingerprint, &question, &answer, &err) != STATUS_OK) {
        handlers_reply_error(request, &err, reply);
        return;
    }
    text = encode_placement(gpu, &question, &answer, &bytes);
    handlers_reply_answer(request, text, bytes, reply);
}
