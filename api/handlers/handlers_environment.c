/* handlers_environment.c: what a scheduler puts into a job's environment. Plain text, ready to be
 * copied: whoever asks stands between a user and his job, has little time and no parser. */
#include "api/handlers/handlers.h"

#include "api/decode/problem.h"
#include "planner/job_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char TEXT_TYPE[] = "text/plain; charset=utf-8";

/* Other answers say of themselves that they are stale; these lines would be believed for as long as
 * the job runs. */
static void stale(const struct request *request, const struct snapshot_gpu *gpu,
                  struct reply *reply)
{
    struct problem p = {.http_status = HTTP_CONFLICT,
                        .status = STATUS_CONFLICT,
                        .slug = "stale-fingerprint",
                        .title = "The fingerprint no longer describes this GPU.",
                        .next_step = "Measure again: POST /v1/gpus/{gpu}/measurements, or reachctl "
                                     "fingerprint."};

    snprintf(p.detail, sizeof(p.detail), "fingerprint %s of %s is stale: %.250s",
             gpu->fingerprint_id, gpu->identity.uuid, gpu->last_error.text);
    reply_problem(reply, request, &p);
}

void handlers_environment(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    const struct snapshot_gpu *gpu = handlers_measured_gpu(c, request, reply);
    struct document *document;
    struct err err;
    char *text;

    if (!gpu)
        return;
    if (gpu->fingerprint_stale) {
        stale(request, gpu, reply);
        return;
    }
    text = malloc(JOB_ENV_BYTES);
    if (!text) {
        reply_failure(reply, request, STATUS_NO_MEMORY, "no memory to write the answer");
        return;
    }
    if (job_env_variables(&gpu->fingerprint, gpu->fingerprint_id, text, &err) != STATUS_OK) {
        free(text);
        handlers_reply_error(request, &err, reply);
        return;
    }
    document = document_new_typed(TEXT_TYPE, text, strlen(text), NULL);
    if (!document) {
        reply_failure(reply, request, STATUS_NO_MEMORY, "no memory to write the answer");
        return;
    }
    reply_document(reply, document);
    document_free(document);
}
