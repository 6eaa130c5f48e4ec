/* backend.c: answers the API's requests from the store and the pipeline. No function waits for a
 * measurement, but functions that read the database wait for the disk. */
#include "service/backend.h"

#include "api/encode/encode.h"
#include "base/json_load.h"
#include "base/json_writer.h"
#include "compare/compare.h"

#include <stdlib.h>
#include <string.h>

/* The largest numbers of rows in a page, and of served documents in a row. */
enum { BACKEND_MAX_PAGE = 1000, BACKEND_MAX_SERVED = 64 };

static void write_measurement(struct json_writer *t, const struct measurement *measurement)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "id", measurement->id);
    json_writer_text(t, "gpu", measurement->uuid);
    json_writer_text(t, "kind", measurement_kind_name(measurement->kind));
    json_writer_text(t, "depth",
                     measurement->kind == MEASUREMENT_CHECK ? "check"
                                                            : depth_name(measurement->depth));
    json_writer_text(t, "state", measurement_state_name(measurement->state));
    json_writer_real(t, "progress", measurement->progress);
    json_writer_text(t, "message", measurement->message);
    json_writer_time_or_null(t, "queued_at", measurement->queued_at);
    json_writer_time_or_null(t, "started_at", measurement->started_at);
    json_writer_time_or_null(t, "ended_at", measurement->ended_at);
    json_writer_text_or_null(t, "fingerprint_id", measurement->fingerprint_id);
    json_writer_text_or_null(t, "measured_id", measurement->measured_id);
    encode_err(t, "error", &measurement->error);
    json_writer_close(t, '}');
}

/* Answers with a measurement, unless `status` is an error. `out_measurement` may be NULL. */
static enum status answer_measurement(enum status status, const struct measurement *m,
                                      struct json_writer *out,
                                      struct api_measurement *out_measurement)
{
    if (status)
        return status;
    write_measurement(out, m);
    if (out_measurement) {
        memcpy(out_measurement->id, m->id, sizeof out_measurement->id);
        out_measurement->is_running = m->state == MEASUREMENT_RUNNING;
    }
    return STATUS_OK;
}

static enum status backend_submit(void *self, const char *uuid, enum depth depth,
                                  struct json_writer *out, struct api_measurement *out_measurement,
                                  struct err *err)
{
    const struct backend *b = self;
    struct measurement m;
    enum status status = pipeline_submit(b->pipeline, uuid, depth, &m, err);

    return answer_measurement(status, &m, out, out_measurement);
}

static enum status backend_measurement(void *self, const char *id, struct json_writer *out,
                                       struct err *err)
{
    const struct backend *b = self;
    struct measurement m;
    enum status status = pipeline_measurement(b->pipeline, id, &m, err);

    return answer_measurement(status, &m, out, NULL);
}

static enum status backend_cancel(void *self, const char *id, struct json_writer *out,
                                  struct api_measurement *out_measurement, struct err *err)
{
    const struct backend *b = self;
    struct measurement m;
    enum status status = pipeline_cancel(b->pipeline, id, &m, err);

    return answer_measurement(status, &m, out, out_measurement);
}

static enum status backend_forget(void *self, const char *uuid, struct err *err)
{
    const struct backend *b = self;

    return pipeline_forget(b->pipeline, uuid, err);
}

/* ---- pages ---- */

/* Begins a page: {NAME: list, "next": number or null}. */
static void begin_page(struct json_writer *t, const char *name)
{
    json_writer_open(t, NULL, '{');
    json_writer_open(t, name, '[');
}

/* Ends a page. `next` is 0 on the last page. */
static void end_page(struct json_writer *t, int64_t next)
{
    json_writer_close(t, ']');
    if (next)
        json_writer_i64(t, "next", next);
    else
        json_writer_null(t, "next");
    json_writer_close(t, '}');
}

/* Writes one row of the history, with the documents that were served since. */
static enum status write_fingerprint_row(struct json_writer *t, const struct backend *b,
                                         const char *uuid, const struct store_fingerprint_row *row,
                                         struct err *err)
{
    char served[BACKEND_MAX_SERVED][FINGERPRINT_ID_BYTES];
    uint32_t count = 0;
    const enum status status =
        store_list_served(b->store, uuid, row->run, served, BACKEND_MAX_SERVED, &count, err);

    json_writer_open(t, NULL, '{');
    json_writer_text(t, "id", row->id);
    json_writer_open(t, "served", '[');
    for (uint32_t i = 0; i < count; i++)
        json_writer_text(t, NULL, served[i]);
    json_writer_close(t, ']');
    json_writer_i64(t, "run", row->run);
    json_writer_text(t, "depth", depth_name(row->depth));
    json_writer_text(t, "origin", origin_name(row->origin));
    json_writer_time(t, "taken_at", row->taken_at);
    json_writer_u64(t, "duration_ms", row->duration_ms);
    json_writer_close(t, '}');
    return status;
}

static enum status backend_history(void *self, const char *uuid, int64_t before, uint32_t limit,
                                   struct json_writer *out, struct err *err)
{
    const struct backend *b = self;
    const uint32_t max = limit < BACKEND_MAX_PAGE ? limit : BACKEND_MAX_PAGE;
    struct store_fingerprint_row *rows = calloc(max + 1, sizeof *rows);
    uint32_t count = 0;
    /* One more row than requested shows whether there is a next page. */
    enum status status =
        rows ? store_list_fingerprints(b->store, uuid, before, rows, max + 1, &count, err)
             : err_no_memory(err, "a page of %u entries", max);

    begin_page(out, "fingerprints");
    for (uint32_t i = 0; i < count && i < max && !status; i++)
        status = write_fingerprint_row(out, b, uuid, &rows[i], err);
    end_page(out, count > max && max ? rows[max - 1].run : 0);
    free(rows);
    return status;
}

static enum status backend_fingerprint_at(void *self, const char *uuid, const char *id,
                                          struct fingerprint *out, struct err *err)
{
    const struct backend *b = self;

    return store_fingerprint(b->store, uuid, id, out, err);
}

static void write_observation_row(struct json_writer *t, const struct store_observation_row *row)
{
    json_writer_open(t, NULL, '{');
    json_writer_i64(t, "id", row->id);
    json_writer_i64(t, "run", row->run);
    json_writer_text(t, "kind", probe_kind_name(row->kind));
    json_writer_time(t, "started_at", row->started_at);
    json_writer_u64(t, "duration_ns", row->duration_ns);
    json_writer_u64(t, "value_count", row->value_count);
    json_writer_text(t, "verdict", verdict_name(row->verdict));
    json_writer_close(t, '}');
}

static enum status backend_observations(void *self, const char *uuid, int64_t run, int64_t before,
                                        uint32_t limit, struct json_writer *out, struct err *err)
{
    const struct backend *b = self;
    const uint32_t max = limit < BACKEND_MAX_PAGE ? limit : BACKEND_MAX_PAGE;
    struct store_observation_row *rows = calloc(max + 1, sizeof *rows);
    uint32_t count = 0;
    enum status status =
        rows ? store_list_observations(b->store, uuid, run, before, rows, max + 1, &count, err)
             : err_no_memory(err, "a page of %u entries", max);

    begin_page(out, "observations");
    for (uint32_t i = 0; i < count && i < max; i++)
        write_observation_row(out, &rows[i]);
    end_page(out, count > max && max ? rows[max - 1].id : 0);
    free(rows);
    return status;
}

static enum status backend_observation(void *self, const char *uuid, int64_t id, json_t **out,
                                       struct err *err)
{
    const struct backend *b = self;
    struct store_observation_row row = {0};
    uint32_t count = 0;
    char *text = NULL;

    if (id < 1 || id == INT64_MAX)
        return err_set(err, STATUS_NOT_FOUND, "there is no observation %lld", (long long)id);
    enum status status = store_observation_json(b->store, uuid, id, &text, err);

    if (status)
        return status;
    json_t *json = json_load_whole(text, strlen(text), NULL);

    free(text);
    if (!json)
        return json_load_was_short()
                   ? err_set(err, STATUS_NO_MEMORY, "cannot read observation %lld: out of memory",
                             (long long)id)
                   : err_set(err, STATUS_CORRUPT, "observation %lld is not JSON", (long long)id);
    /* The text does not contain its run, but the listing does. */
    status = store_list_observations(b->store, uuid, 0, id + 1, &row, 1, &count, err);
    if (!status && (count == 0 || row.id != id))
        status = err_set(err, STATUS_NOT_FOUND, "observation %lld was removed", (long long)id);
    if (!status && (json_object_set_new(json, "id", json_integer(id)) ||
                    json_object_set_new(json, "run", json_integer(row.run))))
        status = err_no_memory(err, "the answer");
    if (status) {
        json_decref(json);
    } else {
        *out = json;
    }
    return status;
}

static void backend_health(void *self, struct api_health *out)
{
    const struct backend *b = self;
    struct store_health health;
    struct measurement_counts queue;

    pipeline_count_measurements(b->pipeline, &queue);
    store_check_soon(b->store);
    store_health(b->store, &health);
    *out = (struct api_health){
        .measurements_queued = queue.queued,
        .measurements_running = queue.running,
        .measurements_done = queue.done,
        .measurements_failed = queue.failed,
        .database = health.last_error,
        .database_error_since = health.last_error_since,
        .unwritten = {health.unwritten.fingerprints, health.unwritten.observations},
        .dropped = {health.dropped.fingerprints, health.dropped.observations},
        .failed_writes = health.failed_writes,
        .damaged_rows = health.damaged_rows,
        .quarantined = health.quarantined};
    if (out->database.status == STATUS_READ_ONLY && !out->database.hint)
        out->database.hint =
            "Give reachd write access to the state directory, or keep the state in "
            "memory (--state :memory:).";
}

static enum status backend_compare(void *self, const struct fingerprint *fp,
                                   struct json_writer *out, struct err *err)
{
    const struct backend *b = self;
    struct comparison comparison;
    const enum status status = comparison_make(b->reference, fp, &comparison, err);

    if (status == STATUS_OK)
        comparison_write(out, &comparison);
    comparison_free(&comparison);
    return status;
}

struct api_backend backend_api(struct backend *backend)
{
    return (struct api_backend){.self = backend,
                                .submit = backend_submit,
                                .measurement = backend_measurement,
                                .cancel = backend_cancel,
                                .forget = backend_forget,
                                .history = backend_history,
                                .fingerprint_at = backend_fingerprint_at,
                                .observations = backend_observations,
                                .observation = backend_observation,
                                .compare = backend_compare,
                                .health = backend_health};
}
