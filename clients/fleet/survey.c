/* survey.c: see survey.h. Three steps: ask, settle who is believed, keep. */
#include "clients/fleet/survey.h"

#include "clients/fleet/claim.h"
#include "clients/fleet/dispute.h"
#include "clients/fleet/spool.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME_BYTES = 24 };

/* What the steps share. */
struct work {
    struct fleet_db *db;
    const struct hosts *hosts;
    const struct survey_settings *settings;
    struct survey *survey;
    struct spool *spool;
    struct claim *claim; /* one at a time */
    uint32_t done;
    uint32_t failed;
    struct err *known_err; /* of the question below; status STATUS_OK: none */
};

bool survey_is_fine(enum fleet_outcome outcome)
{
    return outcome == FLEET_ANSWERED || outcome == FLEET_UNCHANGED;
}

void survey_free(struct survey *take)
{
    for (uint32_t i = 0; i < take->host_count; i++) {
        struct survey_host *const h = &take->hosts[i];
        free(h->detail);
        free(h->etag);
        free(h->daemon_version);
        free(h->gpus);
    }
    free(take->hosts);
    *take = (struct survey){0};
}

/* ---- ask ---- */

static enum status tag_of(void *self, uint32_t host, char *out, struct err *err)
{
    struct work *const w = self;

    return fleet_last_etag(w->db, w->hosts->names[host], out, err);
}

static bool is_known(void *self, const char *fingerprint_id)
{
    struct work *const w = self;
    bool known = false;

    return w->known_err->status == STATUS_OK &&
           fleet_has_fingerprint(w->db, fingerprint_id, &known, w->known_err) == STATUS_OK && known;
}

/* Copies a claim; the fingerprints that are new go to the spool. */
static enum status take_gpus(struct work *w, struct survey_host *h, struct err *err)
{
    h->gpus = calloc(w->claim->gpu_count + 1, sizeof(*h->gpus));
    if (!h->gpus)
        return err_set(err, STATUS_NO_MEMORY, "no memory for what a host answered");
    for (uint32_t i = 0; i < w->claim->gpu_count; i++) {
        const struct claim_gpu *const from = &w->claim->gpus[i];
        struct survey_gpu *const to = &h->gpus[i];
        to->slot = from->slot;
        memcpy(to->uuid, from->uuid, sizeof(to->uuid));
        memcpy(to->serial, from->serial, sizeof(to->serial));
        memcpy(to->model, from->model, sizeof(to->model));
        memcpy(to->state, from->state, sizeof(to->state));
        memcpy(to->fingerprint_id, from->fingerprint_id, sizeof(to->fingerprint_id));
        if (from->fingerprint && !is_known(w, from->fingerprint_id) &&
            spool_put(w->spool, from->fingerprint, &to->document, err) != STATUS_OK)
            return err ? err->status : STATUS_IO;
        h->gpu_count = i + 1;
    }
    return STATUS_OK;
}

/* Reads what a host answered, and says how it ended. Fails only where the survey does. */
static enum status read_answer(struct work *w, struct survey_host *h, json_t *document,
                               struct err *err)
{
    struct err why = {.status = STATUS_OK};
    const enum status s = claim_read(document, is_known, w, w->claim, &why);

    if (w->known_err->status != STATUS_OK) {
        *err = *w->known_err;
        return err->status;
    }
    if (s == STATUS_OK) {
        h->daemon_version = strdup(w->claim->daemon_version);
        return h->daemon_version ? take_gpus(w, h, err)
                                 : err_set(err, STATUS_NO_MEMORY, "no memory for an answer");
    }
    if (s != STATUS_CONFLICT && s != STATUS_PROTOCOL) {
        *err = why;
        return s;
    }
    h->outcome = s == STATUS_CONFLICT ? FLEET_LIED : FLEET_GARBAGE;
    return survey_set_detail(h, why.text, err);
}

static enum status on_done(void *self, uint32_t host, const struct collect_result *result,
                           struct err *err)
{
    struct work *const w = self;
    struct survey_host *const h = &w->survey->hosts[host];
    enum status s;

    h->outcome = result->outcome;
    h->attempts = result->attempts;
    h->elapsed_ms = result->elapsed_ms;
    h->received_bytes = result->received_bytes;
    w->survey->received_bytes += result->received_bytes;
    s = survey_set_detail(h, result->detail, err);
    if (s == STATUS_OK && result->document)
        s = read_answer(w, h, result->document, err);
    if (s != STATUS_OK)
        return s;
    h->etag = strdup(survey_is_fine(h->outcome) ? result->etag : "");
    if (!h->etag)
        return err_set(err, STATUS_NO_MEMORY, "no memory for an answer");
    w->done++;
    w->failed += !survey_is_fine(h->outcome);
    if (w->settings->progress)
        w->settings->progress(w->settings->self, w->done, w->failed, w->hosts->count);
    return STATUS_OK;
}

/* ---- keep ---- */

/* One host as the database takes it; `gpus` and `texts` have room for its GPUs. */
static enum status keep_host(struct work *w, struct survey_host *h, struct fleet_gpu *gpus,
                             char **texts, struct err *err)
{
    struct fleet_host row = {.name = h->name,
                             .outcome = h->outcome,
                             .detail = h->detail,
                             .etag = h->etag,
                             .daemon_version = h->daemon_version ? h->daemon_version : "",
                             .attempts = h->attempts,
                             .received_bytes = h->received_bytes,
                             .elapsed_ms = h->elapsed_ms};
    uint32_t believed = 0;
    enum status s = STATUS_OK;

    for (uint32_t i = 0; s == STATUS_OK && h->outcome != FLEET_UNCHANGED && i < h->gpu_count; i++) {
        const struct survey_gpu *const gpu = &h->gpus[i];
        texts[row.gpu_count] = NULL;
        if (gpu->document.bytes > 0)
            s = spool_get(w->spool, &gpu->document, &texts[row.gpu_count], err);
        gpus[row.gpu_count] = (struct fleet_gpu){.slot = gpu->slot,
                                                 .uuid = gpu->uuid,
                                                 .serial = gpu->serial,
                                                 .model = gpu->model,
                                                 .state = gpu->state,
                                                 .fingerprint_id = gpu->fingerprint_id,
                                                 .fingerprint_json = texts[row.gpu_count],
                                                 .disputed = gpu->disputed};
        believed += !gpu->disputed;
        row.gpu_count += s == STATUS_OK;
    }
    if (s == STATUS_OK)
        s = fleet_keep_host(w->db, w->survey->number, &row, row.gpu_count ? gpus : NULL, err);
    for (uint32_t i = 0; i < row.gpu_count; i++) {
        w->survey->new_fingerprints += s == STATUS_OK && texts[i];
        free(texts[i]);
    }
    if (s == STATUS_OK)
        w->survey->gpu_count += h->outcome == FLEET_UNCHANGED ? h->gpu_count : believed;
    return s;
}

/* The same; a host whose fingerprints the database does not take is kept as one that answered
 * something else. */
static enum status keep_or_blame(struct work *w, struct survey_host *h, struct err *err)
{
    struct fleet_gpu gpus[REACH_MAX_GPUS];
    char *texts[REACH_MAX_GPUS];
    struct err why = {.status = STATUS_OK};
    enum status s = keep_host(w, h, gpus, texts, &why);

    if (s == STATUS_CORRUPT) {
        h->outcome = FLEET_GARBAGE;
        h->gpu_count = 0;
        h->etag[0] = '\0';
        s = survey_set_detail(h, why.text, &why);
        if (s == STATUS_OK)
            s = keep_host(w, h, gpus, texts, &why);
    }
    if (s != STATUS_OK)
        *err = why;
    else
        w->survey->counts[h->outcome]++;
    return s;
}

static enum status keep_all(struct work *w, int64_t at, nsec_t began, struct err *err)
{
    char time[TIME_BYTES];
    enum status s =
        fleet_survey_begin(w->db, clock_rfc3339(at, time, sizeof(time)), &w->survey->number, err);

    if (s != STATUS_OK)
        return s;
    for (uint32_t i = 0; i < w->survey->host_count && s == STATUS_OK; i++)
        s = keep_or_blame(w, &w->survey->hosts[i], err);
    w->survey->elapsed_ms = (uint32_t)((clock_monotonic() - began) / NSEC_PER_MSEC);
    if (s == STATUS_OK)
        s = fleet_survey_end(w->db, w->survey->number, w->survey->elapsed_ms, err);
    if (s != STATUS_OK)
        fleet_survey_abort(w->db);
    return s;
}

/* The three steps. */
static enum status run(struct work *w, struct err *err)
{
    const struct collect_calls calls = {.self = w, .tag = tag_of, .done = on_done};
    const nsec_t began = clock_monotonic();
    const int64_t at = clock_wall_seconds();
    enum status s = spool_open(&w->spool, err);

    if (s == STATUS_OK)
        s = collect(w->hosts, &w->settings->collect, &calls, err);
    if (s == STATUS_OK)
        s = dispute_settle(w->db, w->survey, err);
    if (s == STATUS_OK)
        s = keep_all(w, at, began, err);
    spool_close(w->spool);
    return s;
}

enum status survey_run(struct fleet_db *db, const struct hosts *hosts,
                       const struct survey_settings *settings, struct survey *out, struct err *err)
{
    struct err scratch = {.status = STATUS_OK};
    struct err known_err = {.status = STATUS_OK};
    struct work w = {.db = db,
                     .hosts = hosts,
                     .settings = settings,
                     .survey = out,
                     .claim = malloc(sizeof(*w.claim)),
                     .known_err = &known_err};
    enum status s;

    *out = (struct survey){.hosts = calloc(hosts->count + 1, sizeof(*out->hosts))};
    if (!out->hosts || !w.claim) {
        free(out->hosts);
        free(w.claim);
        *out = (struct survey){0};
        return err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    }
    for (; out->host_count < hosts->count; out->host_count++)
        out->hosts[out->host_count].name = hosts->names[out->host_count];
    s = run(&w, err ? err : &scratch);
    free(w.claim);
    if (s != STATUS_OK)
        survey_free(out);
    return s;
}
