/* survey.c: see survey.h. Hosts respond in any order. Each host is added with its place in the
 * list, which orders the reports. */
#include "clients/fleet/survey.h"

#include "clients/fleet/host_answer.h"

#include <stdlib.h>
#include <string.h>

enum { TIME_BYTES = 24 };

/* The state that the steps share. */
struct work {
    struct fleet_db *db;
    const struct hosts *hosts;
    const struct survey_settings *settings;
    struct survey *survey;
    struct host_answer *answer; /* the answer of one host at a time */
    uint32_t done;
    uint32_t failed;
};

bool survey_is_fine(enum fleet_outcome outcome)
{
    return outcome == FLEET_ANSWERED || outcome == FLEET_UNCHANGED;
}

void survey_free(struct survey *take)
{
    for (uint32_t i = 0; i < take->host_count; i++)
        free(take->hosts[i].detail);
    free(take->hosts);
    *take = (struct survey){0};
}

/* ---- one host ---- */

/* Adds the answer of a host, or the reason of its failure. An invalid answer is a failure of the
 * host, not of the survey. */
static enum status add_host(struct work *w, uint32_t index, struct fleet_host *host,
                            const json_t *document, struct err *err)
{
    enum status s = STATUS_OK;

    if (document)
        s = host_answer_read(document, w->answer, err);
    if (s == STATUS_OK)
        s = fleet_survey_add(w->db, index + 1, host, document ? w->answer : NULL, err);
    if (document)
        host_answer_free(w->answer);
    if (s != STATUS_CONFLICT && s != STATUS_PROTOCOL)
        return s;
    host->outcome = s == STATUS_CONFLICT ? FLEET_INCONSISTENT : FLEET_BAD_RESPONSE;
    host->detail = err->text;
    host->etag = "";
    return fleet_survey_add(w->db, index + 1, host, NULL, err);
}

static enum status on_done(void *self, uint32_t index, const struct collect_result *result,
                           struct err *err)
{
    struct work *const w = self;
    struct fleet_host host = result->host;
    const enum status s = add_host(w, index, &host, result->document, err);

    w->survey->hosts[index].host = host;
    w->survey->hosts[index].host.etag = ""; /* the tag was freed with the transfer */
    w->survey->received_bytes += host.received_bytes;
    w->done++;
    w->failed += !survey_is_fine(host.outcome);
    if (s == STATUS_OK && w->settings->progress)
        w->settings->progress(w->settings->self, w->done, w->failed, w->hosts->count);
    return s;
}

/* ---- all hosts ---- */

/* Reads the outcome of a host after the survey was stored. The columns are its place, outcome,
 * detail and number of GPUs. */
static enum status read_host(void *self, const char *const *values, struct err *err)
{
    struct survey *const survey = self;
    struct survey_host *const h = &survey->hosts[strtoul(values[0], NULL, 10) - 1];

    (void)fleet_outcome_from_name(values[1], &h->host.outcome);
    h->gpu_count = (uint32_t)strtoul(values[3], NULL, 10);
    h->host.detail = h->detail = strdup(values[2]);
    survey->counts[h->host.outcome]++;
    return h->detail ? STATUS_OK : err_no_memory(err, "a survey");
}

static enum status run_survey(struct work *w, struct err *err)
{
    const nsec_t began = clock_monotonic();
    char at[TIME_BYTES];
    enum status s;

    clock_rfc3339(clock_wall_seconds(), at, sizeof(at));
    s = fleet_survey_begin(w->db, err);
    if (s == STATUS_OK)
        s = collect_run(w->hosts, &w->settings->collect, w->db, on_done, w, err);
    if (s == STATUS_OK)
        s = fleet_survey_end(w->db, at, began, &w->survey->stored, err);
    else
        fleet_survey_abort(w->db);
    if (s != STATUS_OK)
        return s;
    return fleet_query(w->db,
                       "SELECT n.seq, n.outcome, n.detail, COUNT(g.host) FROM fleet_new_host n "
                       "LEFT JOIN fleet_new_gpu g ON g.host = n.seq "
                       "GROUP BY n.seq, n.outcome, n.detail ORDER BY n.seq",
                       0, NULL, read_host, w->survey, err);
}

enum status survey_run(struct fleet_db *db, const struct hosts *hosts,
                       const struct survey_settings *settings, struct survey *out, struct err *err)
{
    struct err scratch = {.status = STATUS_OK};
    struct work w = {.db = db,
                     .hosts = hosts,
                     .settings = settings,
                     .survey = out,
                     .answer = malloc(sizeof(*w.answer))};
    enum status s;

    *out = (struct survey){.hosts = calloc(hosts->count + 1, sizeof(*out->hosts))};
    if (!out->hosts || !w.answer) {
        free(out->hosts);
        free(w.answer);
        *out = (struct survey){0};
        return err_no_memory(err, "a survey");
    }
    out->host_count = hosts->count;
    s = run_survey(&w, err ? err : &scratch);
    free(w.answer);
    if (s != STATUS_OK)
        survey_free(out);
    return s;
}
