/* offline.c: a file is a snapshot of one GPU. The environment is a snapshot of N + 1 GPUs if
 * REACH_JOB_N has the highest number of all its variables. GPUs without a text have no
 * fingerprint. */
#include "clients/c/offline.h"

#include "api/handlers/handlers.h"
#include "base/clock.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"
#include "planner/job_env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_FILE_BYTES = 16 << 20, NAME_BYTES = 32 };

/* ---- opening ---- */

void offline_free(struct offline *take)
{
    if (!take)
        return;
    if (take->snapshot)
        snapshot_discard(take->snapshot);
    free(take->name);
    free(take);
}

/* Allocates a snapshot with room for `gpu_count` GPUs; returns NULL if memory runs out. */
static struct offline *make(enum reach_source source, const char *name, uint32_t gpu_count)
{
    struct offline *offline = calloc(1, sizeof(*offline));

    if (!offline)
        return NULL;
    offline->source = source;
    offline->name = strdup(name);
    offline->snapshot = snapshot_draft(gpu_count);
    offline->read_ms = clock_monotonic() / NSEC_PER_MSEC;
    if (offline->name && offline->snapshot) {
        offline->snapshot->gpu_count = gpu_count;
        return offline;
    }
    offline_free(offline);
    return NULL;
}

/* Fills the other members of a GPU from its fingerprint, which has been read. */
static void set_ready(struct snapshot_gpu *gpu)
{
    gpu->identity = gpu->fingerprint.gpu;
    gpu->has_fingerprint = true;
    gpu->state = GPU_STATE_READY;
}

/* Uses the id in the document, because a newer release also hashes fields that are dropped here. A
 * document without an id gets the hash of the fields that were read. */
static void read_id(const json_t *json, struct snapshot_gpu *gpu, struct reach_error *error)
{
    const char *id = json_string_value(json_object_get(json, "id"));

    error->status = REACH_OK;
    if (id && strlen(id) == FINGERPRINT_ID_BYTES - 2 && strncmp(id, "fp", 2) == 0)
        memcpy(gpu->fingerprint_id, id, FINGERPRINT_ID_BYTES - 1);
    else if (fingerprint_id(&gpu->fingerprint, gpu->fingerprint_id, NULL) != STATUS_OK)
        fail_text(error, REACH_NO_MEMORY, "cannot allocate the id of a fingerprint: out of memory");
}

/* Returns the document as a new reference, or NULL with an error. A pipe is refused because it
 * could block. */
static json_t *load_document(const char *path, struct reach_error *error)
{
    json_t *json = NULL;
    FILE *in = NULL;
    struct stat st;

    if (stat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES)) {
        fail_text(error, REACH_CORRUPT, "%s is not a fingerprint: %s", path,
                  S_ISREG(st.st_mode) ? "it is too long" : "it is not a regular file");
        return NULL;
    }
    in = fopen(path, "re");
    if (!in) {
        fail_text(error, REACH_NOT_FOUND, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    json = json_loadf(in, JSON_REJECT_DUPLICATES, NULL);
    fclose(in);
    if (!json)
        fail_text(error, REACH_CORRUPT, "%s is not a fingerprint: not JSON", path);
    return json;
}

enum reach_status offline_open_file(const char *path, struct offline **out,
                                    struct reach_error *error)
{
    struct offline *offline = make(REACH_FROM_FILE, path, 1);
    struct reach_error why = {.status = REACH_NO_MEMORY,
                              .text = "cannot allocate a handle: out of memory"};
    json_t *json = offline ? load_document(path, &why) : NULL;
    struct err err;

    *out = NULL;
    if (json &&
        fingerprint_from_json(json, &offline->snapshot->gpus[0].fingerprint, &err) != STATUS_OK)
        fail_text(&why, REACH_CORRUPT, "%s is not a fingerprint: %s", path, err.text);
    else if (json)
        read_id(json, &offline->snapshot->gpus[0], &why);
    json_decref(json);
    if (why.status != REACH_OK) {
        offline_free(offline);
        return fail_with(error, why.status, "%s", why.text);
    }
    set_ready(&offline->snapshot->gpus[0]);
    *out = offline;
    return REACH_OK;
}

static const char *variable(uint32_t number, char *name)
{
    const char *text;

    snprintf(name, NAME_BYTES, "REACH_JOB_%u", number);
    text = getenv(name);
    return text && *text ? text : NULL;
}

/* Reads one GPU from its text, if the environment has one. */
static enum reach_status read_variable(uint32_t number, enum offline_strictness strictness,
                                       struct snapshot_gpu *out, struct reach_error *error)
{
    char name[NAME_BYTES];
    const char *text = variable(number, name);
    struct err err;

    err_set(&out->last_error, STATUS_NOT_FOUND, "the environment has no valid %s", name);
    if (!text)
        return REACH_OK;
    if (job_env_read(text, &out->fingerprint, out->fingerprint_id, &err) == STATUS_OK) {
        out->last_error = (struct err){.status = STATUS_OK};
        set_ready(out);
        return REACH_OK;
    }
    memset(&out->fingerprint, 0, sizeof(out->fingerprint));
    out->fingerprint_id[0] = '\0';
    return strictness == OFFLINE_SKIP
               ? REACH_OK
               : fail_with(error, REACH_CORRUPT, "reachd did not write %s: %s", name, err.text);
}

enum reach_status offline_open_environment(enum offline_strictness strictness, struct offline **out,
                                           struct reach_error *error)
{
    enum reach_status status = REACH_OK;
    struct offline *offline;
    char name[NAME_BYTES];
    uint32_t count = 0;
    uint32_t valid = 0;

    *out = NULL;
    for (uint32_t i = 0; i < REACH_MAX_GPUS; i++)
        count = variable(i, name) ? i + 1 : count;
    offline = make(REACH_FROM_ENVIRONMENT, "the environment", count);
    if (!offline)
        return fail_with(error, REACH_NO_MEMORY, "cannot allocate a handle: out of memory");
    for (uint32_t i = 0; i < count && status == REACH_OK; i++) {
        status = read_variable(i, strictness, &offline->snapshot->gpus[i], error);
        valid += offline->snapshot->gpus[i].has_fingerprint;
    }
    if (status == REACH_OK && valid == 0 && strictness == OFFLINE_REFUSE)
        status = fail_with(error, REACH_NOT_FOUND,
                           "the environment has no REACH_JOB_0: no scheduler asked reachd for this "
                           "job");
    if (status == REACH_OK && valid > 0)
        *out = offline;
    else
        offline_free(offline);
    return status;
}

/* ---- revalidation ---- */

enum reach_status offline_revalidate(const struct offline *offline, const char *gpu_uuid,
                                     const char *fingerprint_id, struct reach_error *error)
{
    struct offline *now = NULL;
    enum reach_status status;

    if (offline->source != REACH_FROM_FILE)
        return fail_with(error, REACH_NOT_SUPPORTED,
                         "the environment of a job does not change: there is nothing to compare "
                         "with");
    status = offline_open_file(offline->name, &now, error);
    if (status != REACH_OK)
        return status;
    if (strcasecmp(now->snapshot->gpus[0].identity.uuid, gpu_uuid) != 0)
        status = fail_with(error, REACH_WRONG_GPU, "%s is the fingerprint of %s, not of %.63s",
                           offline->name, now->snapshot->gpus[0].identity.uuid, gpu_uuid);
    else if (strcmp(now->snapshot->gpus[0].fingerprint_id, fingerprint_id) != 0)
        status =
            fail_with(error, REACH_STALE,
                      "the answer rests on fingerprint %.63s, and %s now has %s: open it again",
                      fingerprint_id, offline->name, now->snapshot->gpus[0].fingerprint_id);
    offline_free(now);
    return status;
}

/* ---- a request ---- */

/* Returns the terminated body; NULL if memory runs out. */
static char *take_body(struct reply *reply, size_t *out_bytes)
{
    struct document *d = reply->document;
    char *body = d ? d->owned : NULL;

    *out_bytes = d ? d->bytes : 0;
    if (body)
        d->owned = NULL; /* the texts of documents are terminated */
    else if (d)
        body = strndup(d->text, d->bytes);
    else if (reply->is_empty)
        body = calloc(1, 1);
    return body;
}

enum reach_status offline_send(const struct offline *offline, const struct reach_request *from,
                               struct planner_call *call, struct offline_response *out,
                               struct reach_error *error)
{
    struct handlers_context c = {
        .snapshot = offline->snapshot, .daemon_version = REACHD_VERSION, .call = call};
    struct request request = {.method = from->method ? from->method : "GET",
                              .accept = from->accept};
    struct reply reply = {.http_status = 0};
    struct err err;

    if (request_parse(&request, from->target, &err) != STATUS_OK)
        reply_err(&reply, &request, &err);
    else
        routes_dispatch(&c, &request, &reply);
    out->http_status = reply.http_status;
    out->body = take_body(&reply, &out->body_bytes);
    out->gpu = c.gpu;
    reply_clear(&reply);
    request_clear(&request);
    return out->body
               ? REACH_OK
               : fail_with(error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory");
}
