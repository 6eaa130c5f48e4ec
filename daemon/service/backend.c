/* backend.c: the API's requests, answered from the store and the pipeline. No slot waits for a
 * measurement; those that read the database wait for the disk. */
#include "service/backend.h"

#include "api/encode/encode.h"
#include "base/json_load.h"
#include "base/json_builder.h"
#include "compare/compare.h"

#include <stdlib.h>
#include <string.h>

enum { BACKEND_MAX_PAGE = 1000, BACKEND_MAX_SERVED = 64 }; /* of a measurement */

static void backend_time_or_null(struct json_builder *o, const char *name, int64_t wall_seconds)
{
    if (wall_seconds) {
        json_builder_time(o, name, wall_seconds);
    } else {
        json_builder_value(o, name, json_null());
    }
}

static json_t *measurement_json(const struct measurement *measurement)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_text(&o, "id", measurement->id);
    json_builder_text(&o, "gpu", measurement->uuid);
    json_builder_text(&o, "kind", measurement_kind_name(measurement->kind));
    json_builder_text(&o, "depth",
                      measurement->kind == MEASUREMENT_CHECK ? "check"
                                                             : depth_name(measurement->depth));
    json_builder_text(&o, "state", measurement_state_name(measurement->state));
    json_builder_real(&o, "progress", measurement->progress);
    json_builder_text(&o, "message", measurement->message);
    backend_time_or_null(&o, "queued_at", measurement->queued_at);
    backend_time_or_null(&o, "started_at", measurement->started_at);
    backend_time_or_null(&o, "ended_at", measurement->ended_at);
    json_builder_text_or_null(&o, "fingerprint_id", measurement->fingerprint_id);
    json_builder_text_or_null(&o, "measured_id", measurement->measured_id);
    json_builder_value(&o, "error", encode_err(&measurement->error));
    return json_builder_end(&o);
}

static enum status backend_emit(json_t *take, json_t **out, struct err *err)
{
    *out = take;
    return take ? STATUS_OK : err_set(err, STATUS_NO_MEMORY, "no memory for the answer");
}

/* Answers with a measurement, unless `status` says that there is none. */
static enum status backend_emit_measurement(enum status status, const struct measurement *m,
                                            json_t **out, struct err *err)
{
    return status ? status : backend_emit(measurement_json(m), out, err);
}

static enum status backend_submit(void *self, const char *uuid, enum depth depth,
                                  json_t **out_measurement, struct err *err)
{
    const struct backend *b = self;
    struct measurement m;
    enum status status = pipeline_submit(b->pipeline, uuid, depth, &m, err);

    return backend_emit_measurement(status, &m, out_measurement, err);
}

static enum status backend_measurement(void *self, const char *id, json_t **out_measurement,
                                       struct err *err)
{
    const struct backend *b = self;
    struct measurement m;
    enum status status = pipeline_measurement(b->pipeline, id, &m, err);

    return backend_emit_measurement(status, &m, out_measurement, err);
}

static enum status backend_cancel(void *self, const char *id, json_t **out_measurement,
                                  struct err *err)
{
    const struct backend *b = self;
    struct measurement m;
    enum status status = pipeline_cancel(b->pipeline, id, &m, err);

    return backend_emit_measurement(status, &m, out_measurement, err);
}

static enum status backend_forget(void *self, const char *uuid, struct err *err)
{
    const struct backend *b = self;

    return pipeline_forget(b->pipeline, uuid, err);
}

/* ---- pages ------------------------------------------------------------------------------------
 */

/* {NAME: list, "next": number or null}, unless `status` says otherwise; `next` 0 is the last page.
 */
static enum status backend_emit_page(enum status status, const char *name, json_t *take_list,
                                     int64_t next, json_t **out, struct err *err)
{
    struct json_builder o;

    if (status) {
        json_decref(take_list);
        return status;
    }
    json_builder_begin(&o);
    json_builder_value(&o, name, take_list);
    json_builder_value(&o, "next", next ? json_integer(next) : json_null());
    return backend_emit(json_builder_end(&o), out, err);
}

/* One row of the history; `served` is what was served since. */
static json_t *backend_fingerprint_row(const struct store_fingerprint_row *row,
                                       char (*served)[FINGERPRINT_ID_BYTES], uint32_t count)
{
    json_t *ids = json_array();
    struct json_builder o;

    for (uint32_t i = 0; i < count; i++)
        json_builder_append(&ids, json_new_text(served[i]));
    json_builder_begin(&o);
    json_builder_text(&o, "id", row->id);
    json_builder_value(&o, "served", ids);
    json_builder_u64(&o, "run", (uint64_t)row->run);
    json_builder_text(&o, "depth", depth_name(row->depth));
    json_builder_text(&o, "origin", origin_name(row->origin));
    json_builder_time(&o, "taken_at", row->taken_at);
    json_builder_u64(&o, "duration_ms", row->duration_ms);
    return json_builder_end(&o);
}

/* Adds one row to the history. */
static enum status backend_add_row(const struct backend *b, const char *uuid,
                                   const struct store_fingerprint_row *row, json_t **list,
                                   struct err *err)
{
    char served[BACKEND_MAX_SERVED][FINGERPRINT_ID_BYTES];
    uint32_t count = 0;
    const enum status status =
        store_list_served(b->store, uuid, row->run, served, BACKEND_MAX_SERVED, &count, err);

    if (!status)
        json_builder_append(list, backend_fingerprint_row(row, served, count));
    return status;
}

static enum status backend_history(void *self, const char *uuid, int64_t before, uint32_t limit,
                                   json_t **out_page, struct err *err)
{
    const struct backend *b = self;
    const uint32_t max = limit < BACKEND_MAX_PAGE ? limit : BACKEND_MAX_PAGE;
    struct store_fingerprint_row *rows = calloc(max + 1, sizeof *rows);
    json_t *list = json_array();
    uint32_t count = 0;
    /* One more than asked for tells whether there is a next page. */
    enum status status =
        rows ? store_list_fingerprints(b->store, uuid, before, rows, max + 1, &count, err)
             : err_set(err, STATUS_NO_MEMORY, "no memory for a page of %u", max);

    for (uint32_t i = 0; i < count && i < max && !status; i++)
        status = backend_add_row(b, uuid, &rows[i], &list, err);
    status = backend_emit_page(status, "fingerprints", list,
                               count > max && max ? rows[max - 1].run : 0, out_page, err);
    free(rows);
    return status;
}

static enum status backend_fingerprint_at(void *self, const char *uuid, const char *id,
                                          struct fingerprint *out, struct err *err)
{
    const struct backend *b = self;

    return store_fingerprint(b->store, uuid, id, out, err);
}

static json_t *backend_observation_row(const struct store_observation_row *row)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "id", (uint64_t)row->id);
    json_builder_u64(&o, "run", (uint64_t)row->run);
    json_builder_text(&o, "kind", probe_kind_name(row->kind));
    json_builder_time(&o, "started_at", row->started_at);
    json_builder_u64(&o, "duration_ns", row->duration_ns);
    json_builder_u64(&o, "value_count", row->value_count);
    json_builder_text(&o, "verdict", verdict_name(row->verdict));
    return json_builder_end(&o);
}

static enum status backend_observations(void *self, const char *uuid, int64_t run, int64_t before,
                                        uint32_t limit, json_t **out_page, struct err *err)
{
    const struct backend *b = self;
    const uint32_t max = limit < BACKEND_MAX_PAGE ? limit : BACKEND_MAX_PAGE;
    struct store_observation_row *rows = calloc(max + 1, sizeof *rows);
    json_t *list = json_array();
    uint32_t count = 0;
    enum status status =
        rows ? store_list_observations(b->store, uuid, run, before, rows, max + 1, &count, err)
             : err_set(err, STATUS_NO_MEMORY, "no memory for a page of %u", max);

    for (uint32_t i = 0; i < count && i < max; i++)
        json_builder_append(&list, backend_observation_row(&rows[i]));
    status = backend_emit_page(status, "observations", list,
                               count > max && max ? rows[max - 1].id : 0, out_page, err);
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
                   ? err_set(err, STATUS_NO_MEMORY, "no memory for observation %lld", (long long)id)
                   : err_set(err, STATUS_CORRUPT, "observation %lld is not JSON", (long long)id);
    /* The text does not name its run; the listing does. */
    status = store_list_observations(b->store, uuid, 0, id + 1, &row, 1, &count, err);
    if (!status && (count == 0 || row.id != id))
        status = err_set(err, STATUS_NOT_FOUND, "observation %lld has gone", (long long)id);
    if (!status && (json_object_set_new(json, "id", json_integer(id)) ||
                    json_object_set_new(json, "run", json_integer(row.run))))
        status = err_set(err, STATUS_NO_MEMORY, "no memory for the answer");
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
