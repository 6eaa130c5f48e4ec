/* handlers_node.c: answers requests for the node and the state of the service.
 *
 * /healthz is 200 if this process serves, and depends on nothing else. /readyz is 200 as soon as
 * one GPU has a fingerprint, because a job then gets an answer that rests on a measurement.
 * Otherwise, and on a node without GPUs, /readyz is 503 with the reason. A fingerprint from before
 * a failed measurement counts, since it is served. /v1/health is 200 and reports the problems of
 * the GPUs (snapshot/health.h), and the state of measurements and of the database: results are
 * served from memory while the database cannot be written.
 */
#include "api/handlers/handlers.h"

#include "api/encode/encode.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "snapshot/health.h"

#include <stdio.h>
#include <unistd.h>

extern const char api_openapi_yaml[];
extern const unsigned long api_openapi_yaml_size;

enum { HOSTNAME_BYTES = 256 };

struct document *handlers_healthz(const struct handlers_context *c)
{
    static const char alive[] = "{\"status\":\"alive\"}\n";

    (void)c;
    return document_new_static("application/json", alive, sizeof alive - 1);
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
                        .gpus = now > 0 ? s : NULL,
                        .now = now};

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
}

/* Writes the members that ?verbose adds for operators. */
static void write_measurements(struct json_writer *t, const struct api_health *now)
{
    json_writer_open(t, "measurements", '{');
    json_writer_u64(t, "queued", now->measurements_queued);
    json_writer_u64(t, "running", now->measurements_running);
    json_writer_close(t, '}');
}

static void write_results(struct json_writer *t, const char *name,
                          const struct api_results *results)
{
    json_writer_open(t, name, '{');
    json_writer_u64(t, "fingerprints", results->fingerprints);
    json_writer_u64(t, "observations", results->observations);
    json_writer_close(t, '}');
}

static void write_database(struct json_writer *t, const struct api_health *now)
{
    json_writer_open(t, "database", '{');
    json_writer_bool(t, "ok", now->database.status == STATUS_OK);
    encode_err(t, "error", &now->database);
    json_writer_time_or_null(t, "error_since", now->database_error_since);
    write_results(t, "unwritten", &now->unwritten);
    write_results(t, "dropped", &now->dropped);
    json_writer_u64(t, "failed_writes", now->failed_writes);
    json_writer_u64(t, "damaged_rows", now->damaged_rows);
    json_writer_u64(t, "files_quarantined", now->quarantined);
    json_writer_close(t, '}');
}

static void write_gpu_counts(struct json_writer *t, const struct snapshot *s)
{
    json_writer_open(t, "gpus", '{');
    if (s->expected_gpus > 0)
        json_writer_u64(t, "expected", s->expected_gpus);
    else
        json_writer_null(t, "expected");
    if (health_is_counted(s))
        json_writer_u64(t, "found", health_count_found(s));
    else
        json_writer_null(t, "found");
    json_writer_close(t, '}');
}

/* Writes the newest quick check of each GPU for which one was made or put off (check-every). */
static void write_checks(struct json_writer *t, const struct snapshot *s)
{
    json_writer_open(t, "checks", '[');
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_check *const check = &s->gpus[i].check;

        if (check->checked_at == 0 && check->put_off_at == 0)
            continue;
        json_writer_open(t, NULL, '{');
        json_writer_text(t, "gpu", s->gpus[i].identity.uuid);
        json_writer_time_or_null(t, "checked_at", check->checked_at);
        json_writer_time_or_null(t, "put_off_at", check->put_off_at);
        json_writer_text_or_null(t, "put_off", check->put_off);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void write_problem(struct json_writer *t, const char *kind, const char *uuid,
                          const struct err *why)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "kind", kind);
    json_writer_text_or_null(t, "gpu", uuid);
    json_writer_text(t, "text", why->text);
    json_writer_text(t, "next_step", err_next_step(why));
    json_writer_close(t, '}');
}

static void write_gpu_problem(void *self, enum health_kind kind, const struct snapshot_gpu *gpu,
                              const struct err *why)
{
    write_problem(self, health_kind_name(kind), gpu ? gpu->identity.uuid : "", why);
}

/* A visitor that only counts. */
static void ignore_problem(void *self, enum health_kind kind, const struct snapshot_gpu *gpu,
                           const struct err *why)
{
    (void)self;
    (void)kind;
    (void)gpu;
    (void)why;
}

void handlers_health(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    struct api_health now = {.measurements_queued = 0};
    struct json_writer t;

    (void)request;
    c->backend->health(c->backend->self, &now);
    const bool stored = now.database.status == STATUS_OK;
    const bool ok = stored && health_visit(c->snapshot, ignore_problem, NULL) == 0;

    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "status", ok ? "ok" : "degraded");
    write_gpu_counts(&t, c->snapshot);
    json_writer_open(&t, "problems", '[');
    (void)health_visit(c->snapshot, write_gpu_problem, &t);
    if (!stored)
        write_problem(&t, "database", "", &now.database);
    json_writer_close(&t, ']');
    write_checks(&t, c->snapshot);
    write_database(&t, &now);
    write_measurements(&t, &now);
    json_writer_close(&t, '}');
    reply_json(reply, HTTP_OK, &t);
}

void handlers_readyz(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    const char *verbose = request_param(request, "verbose");
    int64_t now = verbose ? clock_wall_seconds() : 0;
    struct api_health health = {.measurements_queued = 0};
    struct json_writer t;
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
    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "status", "ready");
    encode_states(&t, "gpus", c->snapshot, now);
    c->backend->health(c->backend->self, &health);
    if (verbose)
        write_measurements(&t, &health);
    if (verbose || health.database.status != STATUS_OK) {
        encode_err(&t, "database_error", &health.database);
        write_results(&t, "unwritten", &health.unwritten);
    }
    json_writer_close(&t, '}');
    reply_json(reply, HTTP_OK, &t);
}

struct document *handlers_openapi(const struct handlers_context *c)
{
    (void)c;
    return document_new_static("application/yaml", api_openapi_yaml, api_openapi_yaml_size);
}

struct document *handlers_node(const struct handlers_context *c)
{
    char hostname[HOSTNAME_BYTES] = "";
    struct json_writer t;

    if (gethostname(hostname, sizeof(hostname) - 1) != 0)
        snprintf(hostname, sizeof(hostname), "unknown");
    json_writer_begin(&t, 0);
    encode_node(&t, c->snapshot, hostname, c->daemon_version);
    return document_new(&t, NULL);
}
