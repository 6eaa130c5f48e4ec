/* handlers_plan.c: the planner's questions: how should this job be done, how do several share a
 * GPU, and is it the TLB? */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"
#include "api/encode/encode_plan.h"
#include "api/decode/problem.h"

void handlers_plan(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct job_request job;
    struct strategy_answer answer;
    const struct snapshot_gpu *gpu;
    struct problem problem;
    struct err err;
    size_t bytes = 0;
    char *text;

    gpu = handlers_measured_gpu(c, request, reply);
    if (!gpu)
        return;
    if (!decode_job(request, &job, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    job.fingerprint_id = gpu->fingerprint_id;
    if (strategy_plan(&gpu->fingerprint, &job, &answer, &err) != STATUS_OK) {
        handlers_reply_error(request, &err, reply);
        return;
    }
    text = encode_plan(gpu, &job, &answer, &bytes);
    handlers_reply_answer(request, text, bytes, reply);
}

void handlers_split(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct split_request question;
    struct split_answer answer;
    const struct snapshot_gpu *gpu;
    struct problem problem;
    struct err err;
    size_t bytes = 0;
    char *text;

    gpu = handlers_measured_gpu(c, request, reply);
    if (!gpu)
        return;
    if (!decode_split(request, &question, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    question.fingerprint_id = gpu->fingerprint_id;
    if (split_jobs(&gpu->fingerprint, &question, &answer, &err) != STATUS_OK) {
        handlers_reply_error(request, &err, reply);
        return;
    }
    text = encode_split(gpu, &question, &answer, &bytes);
    handlers_reply_answer(request, text, bytes, reply);
}

void handlers_explain(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct explain_request question;
    struct explain_answer answer;
    const struct snapshot_gpu *gpu;
    struct problem problem;
    struct err err;
    size_t bytes = 0;
    char *text;

    gpu = handlers_measured_gpu(c, request, reply);
    if (!gpu)
        return;
    if (!decode_explain(request, &question, &problem)) {
        reply_problem(reply, request, &problem);
        return;
    }
    question.fingerprint_id = gpu->fingerprint_id;
    if (explain_loss(&gpu->fingerprint, &question, &answer, &err) != STATUS_OK) {
        handlers_reply_error(request, &err, reply);
        return;
    }
    text = encode_explain(gpu, &question, &answer, &bytes);
    handlers_reply_answer(request, text, bytes, reply);
}
