/* handlers_node.c: what the node and the service themselves say.
 *
 * Alive and ready are two questions. /healthz answers whether this process serves, and depends on
 * nothing. /readyz answers whether a job that asks now gets an answer that rests on a measurement:
 * 200 as soon as one GPU has a fingerprint, 503 with the reason before, and also on a node where no
 * GPU was found, since there is nothing it could answer. A fingerprint of before a failed
 * measurement counts: it is served.
 */
#include "api/handlers/handlers.h"

#include "api/encode/encode.h"
#include "api/decode/problem.h"
#include "api/handlers/routes.h"
#include "base/clock.h"
#include "base/json_out.h"

#include <stdio.h>
#include <unistd.h>

extern const char api_openapi_yaml[];
extern const unsigned long api_openapi_yaml_size;

enum { HOSTNAME_BYTES = 256 };

void handlers_index(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct document *kept = cache_get(c->cache, CACHE_INDEX);

    if (kept)
        reply_document(reply, kept);
    else
        handlers_reply_kept(c, request, CACHE_INDEX, document_new(routes_to_json(), NULL), reply);
}

void handlers_healthz(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct document *kept = cache_get(c->cache, CACHE_HEALTH);

    if (kept)
        reply_document(reply, kept);
    else
        handlers_reply_kept(c, request, CACHE_HEALTH,
                            document_new(json_pack("{s:s}", "status", "alive"), NULL), reply);
}

static bool any_fingerprint(const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (s->gpus[i].has_fingerprint)
            return true;
    }
    return false;
}

static void not_ready(const struct snapshot *s, const struct request *request, int64_t now,
                      struct reply *reply)
{
    struct problem p = {.http_status = HTTP_SERVICE_UNAVAILABLE,
                        .status = s->source_error.status,
                        .slug = "not-ready",
                        .title = "No GPU of this node has a fingerprint yet."};

    if (s->discovering) {
        snprintf(p.detail, sizeof(p.detail), "%.300s", s->source_error.text);
    } else if (s->gpu_count == 0) {
        snprintf(p.detail, sizeof(p.detail), "no GPU was found: %.300s",
                 s->source_error.status == STATUS_OK ? "the source lists none"
                                                     : s->source_error.text);
    } else {
        const struct snapshot_gpu *first = &s->gpus[0];
        snprintf(p.detail, sizeof(p.detail), "GPU %s is %s%s%.250s", first->identity.uuid,
                 gpu_state_name(first->state), first->last_error.status == STATUS_OK ? "" : ": ",
                 first->last_error.status == STATUS_OK ? "" : first->last_error.text);
    }
    p.next_step = s->source_error.hint;
    if (s->source_error.status == STATUS_OK)
        p.next_step = "Wait for the measurement, or start one: POST /v1/gpus/0/fingerprint.";
    if (now > 0)
        p.gpus = encode_states(s, now);
    reply_problem(reply, request, &p);
    json_decref(p.gpus);
}

/* What only an operator wants to know of a daemon that is ready. */
static void add_jobs(const struct api_condition *now, struct json_out *o)
{
    struct json_out jobs;

    json_out_begin(&jobs);
    json_out_u64(&jobs, "queued", now->jobs_queued);
    json_out_u64(&jobs, "running", now->jobs_running);
    json_out_value(o, "jobs", json_out_end(&jobs));
}

void handlers_readyz(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    const char *verbose = request_param(request, "verbose");
    int64_t now = verbose ? clock_wall_seconds() : 0;
    struct api_condition condition = {.jobs_queued = 0};
    struct json_out o;

    if (verbose && *verbose) {
        struct problem p = {.status = STATUS_INVALID_ARGUMENT,
                            .parameter = "verbose",
                            .detail = "verbose takes no value"};
        reply_problem(reply, request, &p);
        return;
    }
    if (!any_fingerprint(c->snapshot)) {
        not_ready(c->snapshot, request, now, reply);
        return;
    }
    json_out_begin(&o);
    json_out_text(&o, "status", "ready");
    json_out_value(&o, "gpus", encode_states(c->snapshot, now));
    c->backend->condition(c->backend->self, &condition);
    if (verbose)
        add_jobs(&condition, &o);
    if (verbose || condition.database.status != STATUS_OK)
        json_out_value(&o, "database_error", encode_err(&condition.database));
    reply_json(reply, HTTP_OK, json_out_end(&o));
}

void handlers_openapi(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct document *kept = cache_get(c->cache, CACHE_OPENAPI);

    if (kept)
        reply_document(reply, kept);
    else
        handlers_reply_kept(
            c, request, CACHE_OPENAPI,
            document_new_static("application/yaml", api_openapi_yaml, api_openapi_yaml_size),
            reply);
}

void handlers_node(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct document *kept = cache_get(c->cache, CACHE_NODE);
    char hostname[HOSTNAME_BYTES] = "";

    if (kept) {
        reply_document(reply, kept);
        return;
    }
    if (gethostname(hostname, sizeof(hostname) - 1) != 0)
        snprintf(hostname, sizeof(hostname), "unknown");
    handlers_reply_kept(c, request, CACHE_NODE,
                        document_new(encode_node(c->snapshot, hostname, c->daemon_version), NULL),
                        reply);
}
