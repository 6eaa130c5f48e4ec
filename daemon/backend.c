/* backend.c: the API's questions, answered from the store and the pipeline. No slot waits for a
 * measurement; those that read the database wait for the disk. */
#include "backend.h"

#include "api/encode/encode.h"
#include "base/json_load.h"
#include "base/json_out.h"

#include <stdlib.h>
#include <string.h>

enum { BACKEND_MAX_PAGE = 1000 };

static void backend_time_or_null(struct json_out *o, const char *name, int64_t wall_seconds)
{
    if (wall_seconds) {
        json_out_time(o, name, wall_seconds);
    } else {
        json_out_value(o, name, json_null());
    }
}

json_t *backend_job_json(const struct job *job)
{
    struct json_out o;

    json_out_begin(&o);
    json_out_text(&o, "id", job->id);
    json_out_text(&o, "gpu", job->uuid);
    json_out_text(&o, "kind", job_kind_name(job->kind));
    json_out_text(&o, "depth", job->kind == JOB_CHECK ? "check" : depth_name(job->depth));
    json_out_text(&o, "state", job_state_name(job->state));
    json_out_real(&o, "fraction", job->fraction);
    json_out_text(&o, "sentence", job->sentence);
    backend_time_or_null(&o, "queued_at", job->queued_at);
    backend_time_or_null(&o, "started_at", job->started_at);
    backend_time_or_null(&o, "ended_at", job->ended_at);
    json_out_text_or_null(&o, "fingerprint_id", job->fingerprint_id);
    json_out_value(&o, "error", encode_err(&job->error));
    return json_out_end(&o);
}

static enum status backend_give(json_t *take, json_t **out, struct err *err)
{
    *out = take;
    return take ? STATUS_OK : err_set(err, STATUS_NO_MEMORY, "no memory for the answer");
}

static enum status backend_submit(void *self, const char *uuid, enum depth depth, json_t **out_job,
                                  struct err *err)
{
    const struct backend *b = self;
    struct job job;
    enum status status = pipeline_submit(b->pipeline, uuid, depth, &job, err);

    return status ? status : backend_give(backend_job_json(&job), out_job, err);
}

static enum status backend_job(void *self, const char *id, json_t **out_job, struct err *err)
{
    const struct backend *b = self;
    struct job job;
    enum status status = pipeline_job(b->pipeline, id, &job, err);

    return status ? status : backend_give(backend_job_json(&job), out_job, err);
}

static enum status backend_cancel(void *self, const char *id, json_t **out_job, struct err *err)
{
    const struct backend *b = self;
    struct job job;
    enum status status = pipeline_cancel(b->pipeline, id, &job, err);

    return status ? status : backend_give(backend_job_json(&job), out_job, err);
}

/* {NAME: list, "next": last or null}. */
static json_t *backend_page(const char *name, json_t *take_list, bool has_next, int64_t next)
{
    struct json_out o;

    json_out_begin(&o);
    json_out_value(&o, name, take_list);
    json_out_value(&o, "next", has_next ? json_integer(next) : json_null());
    return json_out_end(&o);
}

static json_t *backend_fingerprint_row(const struct store_fingerprint_row *row)
{
    struct json_out o;

    json_out_begin(&o);
    json_out_text(&o, "id", row->id);
    json_out_u64(&o, "run", (uint64_t)row->run);
    json_out_text(&o, "depth", depth_name(row->depth));
    json_out_text(&o, "origin", origin_name(row->origin));
    json_out_time(&o, "taken_at", row->taken_at);
    json_out_u64(&o, "duration_ms", row->duration_ms);
    return json_out_end(&o);
}

static enum status backend_history(void *self, const char *uuid, int64_t before, uint32_t limit,
                                   json_t **out_page, struct err *err)
{
    const struct backend *b = self;
    uint32_t max = limit < BACKEND_MAX_PAGE ? limit : BACKEND_MAX_PAGE;
    struct store_fingerprint_row *rows = calloc(max + 1, sizeof *rows);
    json_t *list = json_array();
    uint32_t count = 0;

    if (!rows) {
        json_decref(list);
        return err_set(err, STATUS_NO_MEMORY, "no memory for a page of %u", max);
    }
    /* One more than asked for tells whether there is a next page. */
    enum status status =
        store_list_fingerprints(b->store, uuid, before, rows, max + 1, &count, err);
    uint32_t shown = count < max ? count : max;

    for (uint32_t i = 0; i < shown; i++) {
        json_out_append(&list, backend_fingerprint_row(&rows[i]));
    }
    if (status) {
        json_decref(list);
    } else {
        status = backend_give(
            backend_page("fingerprints", list, count > max, shown ? rows[shown - 1].run : 0),
            out_page, err);
    }
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
    struct json_out o;

    json_out_begin(&o);
    json_out_u64(&o, "id", (uint64_t)row->id);
    json_out_u64(&o, "run", (uint64_t)row->run);
    json_out_text(&o, "kind", probe_kind_name(row->kind));
    json_out_time(&o, "started_at", row->started_at);
    json_out_u64(&o, "duration_ns", row->duration_ns);
    json_out_u64(&o, "value_count", row->value_count);
    json_out_text(&o, "verdict", verdict_name(row->verdict));
    return json_out_end(&o);
}

static enum status backend_observations(void *self, const char *uuid, int64_t run, int64_t before,
                                        uint32_t limit, json_t **out_page, struct err *err)
{
    const struct backend *b = self;
    uint32_t max = limit < BACKEND_MAX_PAGE ? limit : BACKEND_MAX_PAGE;
    struct store_observation_row *rows = calloc(max + 1, sizeof *rows);
    json_t *list = json_array();
    uint32_t count = 0;

    if (!rows) {
        json_decref(list);
        return err_set(err, STATUS_NO_MEMORY, "no memory for a page of %u", max);
    }
    enum status status =
        store_list_observations(b->store, uuid, run, before, rows, max + 1, &count, err);
    uint32_t shown = count < max ? count : max;

    for (uint32_t i = 0; i < shown; i++) {
        json_out_append(&list, backend_observation_row(&rows[i]));
    }
    if (status) {
        json_decref(list);
    } else {
        status = backend_give(
            backend_page("observations", list, count > max, shown ? rows[shown - 1].id : 0),
            out_page, err);
    }
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

    if (id < 1 || id == INT64_MAX) {
        return err_set(err, STATUS_NOT_FOUND, "there is no observation %lld", (long long)id);
    }
    enum status status = store_observation_json(b->store, uuid, id, &text, err);

    if (status) {
        return status;
    }
    json_t *json = json_load_whole(text, strlen(text), NULL);

    free(text);
    if (!json) {
        return json_load_was_short()
                   ? err_set(err, STATUS_NO_MEMORY, "no memory for observation %lld", (long long)id)
                   : err_set(err, STATUS_CORRUPT, "observation %lld is not JSON", (long long)id);
    }
    /* The text does not say which run it belongs to; the listing does. */
    status = store_list_observations(b->store, uuid, 0, id + 1, &row, 1, &count, err);
    if (!status && (count == 0 || row.id != id)) {
        status = err_set(err, STATUS_NOT_FOUND, "observation %lld has gone", (long long)id);
    }
    if (!status && (json_object_set_new(json, "id", json_integer(id)) ||
                    json_object_set_new(json, "run", json_integer(row.run)))) {
        status = err_set(err, STATUS_NO_MEMORY, "no memory for the answer");
    }
    if (status) {
        json_decref(json);
        return status;
    }
    *out = json;
    return STATUS_OK;
}

static void backend_condition(void *self, struct api_condition *out)
{
    const struct backend *b = self;
    struct store_health health;
    struct job_counts jobs;

    pipeline_count_jobs(b->pipeline, &jobs);
    store_health(b->store, &health);
    *out = (struct api_condition){.jobs_queued = jobs.queued,
                                  .jobs_running = jobs.running,
                                  .jobs_done = jobs.done,
                                  .jobs_failed = jobs.failed,
                                  .database = health.trouble,
                                  .failed_writes = health.failed_writes,
                                  .damaged_rows = health.damaged_rows,
                                  .moved_aside = health.moved_aside};
    if (out->database.status == STATUS_READ_ONLY && !out->database.hint)
        out->database.hint =
            "Give reachd write access to the state directory, or keep the state in "
            "memory (--state :memory:).";
}

struct api_backend backend_api(struct backend *backend)
{
    return (struct api_backend){.self = backend,
                                .submit = backend_submit,
                                .job = backend_job,
                                .cancel = backend_cancel,
                                .history = backend_history,
                                .fingerprint_at = backend_fingerprint_at,
                                .observations = backend_observations,
                                .observation = backend_observation,
                                .condition = backend_condition};
}
