/* handlers_node.c: the node and the state of the service.
 *
 * /healthz is 200 if this process serves, and depends on nothing else. /readyz is 200 if a job gets
 * an answer that rests on a measurement, as soon as one GPU has a fingerprint; before, and on a
 * node without GPUs, it is 503 with the reason. A fingerprint from before a failed measurement
 * counts, since it is served. /v1/health is 200 and reports the state of measurements and of the
 * database: results are served from memory while the database cannot be written.
 */
#include "api/handlers/handlers.h"

#include "api/encode/encode.h"
#include "base/clock.h"
#include "base/json_builder.h"

#include <stdio.h>
#include <unistd.h>

extern const char api_openapi_yaml[];
extern const unsigned long api_openapi_yaml_size;

enum { HOSTNAME_BYTES = 256 };

struct document *handlers_healthz(const struct handlers_context *c)
{
    (void)c;
    return document_new(json_pack("{s:s}", "status", "alive"), NULL);
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
    const struct err *error = &s->source_error;
    const struct snapshot_gpu *first = s->gpu_count > 0 ? &s->gpus[0] : NULL;
    const bool failed = first && first->last_error.status != STATUS_OK;
    struct problem p = {.http_status = HTTP_SERVICE_UNAVAILABLE,
                        .status = error->status,
                        .slug = "not-ready",
                        .title = "No GPU of this node has a fingerprint yet.",
                        .next_step = error->hint,
                        .gpus = now > 0 ? encode_states(s, now) : NULL};

    if (error->status == STATUS_OK)
        p.next_step = "Wait for the measurement, or start one: POST /v1/gpus/0/measurements.";
    if (s->discovering)
        reply_refusal(reply, request, &p, "%.300s", error->text);
    else if (!first)
        reply_refusal(reply, request, &p, "no GPU was found: %.300s",
                      error->status == STATUS_OK ? "the source lists none" : error->text);
    else
        reply_refusal(reply, request, &p, "GPU %s is %s%s%.250s", first->identity.uuid,
                      gpu_state_name(first->state), failed ? ": " : "",
                      failed ? first->last_error.text : "");
    json_decref(p.gpus);
}

/* Added for operators: ?verbose. */
static void add_measurements(const struct api_health *now, struct json_builder *o)
{
    struct json_builder measurements;

    json_builder_begin(&measurements);
    json_builder_u64(&measurements, "queued", now->measurements_queued);
    json_builder_u64(&measurements, "running", now->measurements_running);
    json_builder_value(o, "measurements", json_builder_end(&measurements));
}

static json_t *results_to_json(const struct api_results *results)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "fingerprints", results->fingerprints);
    json_builder_u64(&o, "observations", results->observations);
    return json_builder_end(&o);
}

static json_t *database_to_json(const struct api_health *now)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_value(&o, "ok", json_boolean(now->database.status == STATUS_OK));
    json_builder_value(&o, "error", encode_err(&now->database));
    if (now->database_error_since > 0)
        json_builder_time(&o, "error_since", now->database_error_since);
    else
        json_builder_value(&o, "error_since", json_null());
    json_builder_value(&o, "unwritten", results_to_json(&now->unwritten));
    json_builder_value(&o, "dropped", results_to_json(&now->dropped));
    json_builder_u64(&o, "failed_writes", now->failed_writes);
    json_builder_u64(&o, "damaged_rows", now->damaged_rows);
    json_builder_u64(&o, "files_quarantined", now->quarantined);
    return json_builder_end(&o);
}

void handlers_health(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct api_health now = {.measurements_queued = 0};
    struct json_builder o;

    (void)request;
    c->backend->health(c->backend->self, &now);
    json_builder_begin(&o);
    json_builder_text(&o, "status", now.database.status == STATUS_OK ? "ok" : "degraded");
    json_builder_value(&o, "database", database_to_json(&now));
    add_measurements(&now, &o);
    reply_json(reply, HTTP_OK, json_builder_end(&o));
}

void handlers_readyz(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    const char *verbose = request_param(request, "verbose");
    int64_t now = verbose ? clock_wall_seconds() : 0;
    struct api_health health = {.measurements_queued = 0};
    struct json_builder o;
    struct err err;

    if (verbose && *verbose) {
        err_set_field(&err, STATUS_INVALID_ARGUMENT, "verbose", "verbose takes no value");
        reply_err(reply, request, &err);
        return;
    }
    if (!any_fingerprint(c->snapshot)) {
        not_ready(c->snapshot, request, now, reply);
        return;
    }
    json_builder_begin(&o);
    json_builder_text(&o, "status", "ready");
    json_builder_value(&o, "gpus", encode_states(c->snapshot, now));
    c->backend->health(c->backend->self, &health);
    if (verbose)
        add_measurements(&health, &o);
    if (verbose || health.database.status != STATUS_OK)
        json_builder_value(&o, "database_error", encode_err(&health.database));
    if (verbose || health.database.status != STATUS_OK)
        json_builder_value(&o, "unwritten", results_to_json(&health.unwritten));
    reply_json(reply, HTTP_OK, json_builder_end(&o));
}

struct document *handlers_openapi(const struct handlers_context *c)
{
    (void)c;
    return document_new_static("application/yaml", api_openapi_yaml, api_openapi_yaml_size);
}

struct document *handlers_node(const struct handlers_context *c)
{
    char hostname[HOSTNAME_BYTES] = "";

    if (gethostname(hostname, sizeof(hostname) - 1) != 0)
        snprintf(hostname, sizeof(hostname), "unknown");
    return document_new(encode_node(c->snapshot, hostname, c->daemon_version), NULL);
}
