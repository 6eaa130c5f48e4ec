/* upgrade_1.c: converts a database of version 1, which has its metrics in another form. Its
 * fingerprints are complete, so its surveys are stored again, in order, in a new file. That file
 * replaces the old one, which is kept as PATH.version-1. The ETags of hosts are not copied, so the
 * next survey reads all answers again. */
#include "clients/fleet/db_engine.h"

#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 256 };

/* One host of a survey of the old database. */
struct old_host {
    char id[FLEET_INTEGER_BYTES];
    char name[TEXT_BYTES];
    char detail[TEXT_BYTES * 2];
    char version[HOST_ANSWER_VERSION_BYTES];
    struct fleet_host host; /* its texts are the members above */
};

/* Reads an outcome, including the words that version 2 has renamed. */
static enum fleet_outcome read_outcome(const char *word)
{
    enum fleet_outcome outcome = FLEET_ERROR;

    if (strcmp(word, "untrusted") == 0)
        return FLEET_TLS_ERROR;
    if (strcmp(word, "garbage") == 0)
        return FLEET_BAD_RESPONSE;
    if (strcmp(word, "lied") == 0)
        return FLEET_INCONSISTENT;
    (void)fleet_outcome_from_name(word, &outcome);
    return outcome;
}

static enum status read_host(void *self, const char *const *values, struct err *err)
{
    struct old_host *const h = self;

    (void)err;
    (void)snprintf(h->id, sizeof(h->id), "%s", values[0]);
    (void)snprintf(h->name, sizeof(h->name), "%s", values[1]);
    (void)snprintf(h->detail, sizeof(h->detail), "%s", values[3]);
    (void)snprintf(h->version, sizeof(h->version), "%s", values[4]);
    h->host = (struct fleet_host){.name = h->name,
                                  .outcome = read_outcome(values[2]),
                                  .detail = h->detail,
                                  .etag = "",
                                  .attempts = (uint32_t)strtoul(values[5], NULL, 10),
                                  .received_bytes = strtoull(values[6], NULL, 10),
                                  .elapsed_ms = (uint32_t)strtoul(values[7], NULL, 10)};
    return STATUS_OK;
}

/* Reads a document and writes it in the current form. Its id stays, although version 1 wrote
 * numbers in another form and hashed that form. */
static enum status read_document(const char *document, struct host_answer_gpu *out, struct err *err)
{
    json_t *const json = json_loads(document, 0, NULL);
    char hash[FINGERPRINT_ID_BYTES];
    enum status s = STATUS_OK;

    if (!json)
        return err_set(err, STATUS_CORRUPT, "a stored fingerprint of %s is not JSON", out->uuid);
    out->fingerprint = malloc(sizeof(*out->fingerprint));
    if (out->fingerprint)
        s = fingerprint_from_json(json, out->fingerprint, err);
    json_object_del(json, "id");
    out->text = fingerprint_json_text(json, hash);
    json_decref(json);
    return out->text && out->fingerprint ? s : err_no_memory(err, "a stored fingerprint");
}

/* The columns are slot, uuid, serial, model, state, fingerprint_id and document. */
static enum status read_gpu(void *self, const char *const *values, struct err *err)
{
    struct host_answer *const answer = self;
    struct host_answer_gpu *gpu;

    if (answer->gpu_count == REACH_MAX_GPUS)
        return err_set(err, STATUS_CORRUPT, "a host has more than %d GPUs", REACH_MAX_GPUS);
    gpu = &answer->gpus[answer->gpu_count++];
    *gpu = (struct host_answer_gpu){.slot = (uint32_t)strtoul(values[0], NULL, 10)};
    (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", values[1]);
    (void)snprintf(gpu->serial, sizeof(gpu->serial), "%s", values[2]);
    (void)snprintf(gpu->model, sizeof(gpu->model), "%s", values[3]);
    (void)snprintf(gpu->state, sizeof(gpu->state), "%s", values[4]);
    (void)snprintf(gpu->fingerprint_id, sizeof(gpu->fingerprint_id), "%s",
                   values[5] ? values[5] : "");
    return values[6] ? read_document(values[6], gpu, err) : STATUS_OK;
}

/* Reads the stored answer of a host. */
static enum status read_answer(struct fleet_db *old, const char *survey, struct old_host *h,
                               struct host_answer *out, struct err *err)
{
    static const char sightings[] =
        "SELECT s.slot, g.uuid, g.serial, k.model, s.state, f.name, d.document "
        "FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_kind k ON k.id = s.kind "
        "LEFT JOIN fleet_fingerprint f ON f.id = s.fingerprint "
        "LEFT JOIN fleet_document d ON d.fingerprint = f.id "
        "WHERE s.survey = CAST($1 AS INTEGER) AND s.host = CAST($2 AS INTEGER) ORDER BY s.slot";

    (void)snprintf(out->daemon_version, sizeof(out->daemon_version), "%s", h->version);
    return fleet_query(old, sightings, FLEET_VALUES(survey, h->id), read_gpu, out, err);
}

static enum status copy_host(struct fleet_db *old, const char *survey, uint32_t place,
                             struct old_host *h, struct fleet_db *fresh, struct err *err)
{
    struct host_answer answer = {.gpu_count = 0};
    enum status s = STATUS_OK;

    /* The new survey detects again that hosts report the same GPU. */
    if (h->host.outcome == FLEET_INCONSISTENT || h->host.outcome == FLEET_ANSWERED)
        s = read_answer(old, survey, h, &answer, err);
    if (answer.gpu_count > 0)
        h->host.outcome = FLEET_ANSWERED;
    if (s == STATUS_OK)
        s = fleet_survey_add(fresh, place, &h->host,
                             h->host.outcome == FLEET_ANSWERED ? &answer : NULL, err);
    host_answer_free(&answer);
    return s;
}

static enum status copy_hosts(struct fleet_db *old, const char *survey, struct fleet_db *fresh,
                              struct err *err)
{
    static const char next[] =
        "SELECT h.id, h.name, o.outcome, o.detail, o.daemon_version, o.attempts, "
        "o.received_bytes, o.elapsed_ms FROM fleet_outcome o JOIN fleet_host h ON h.id = o.host "
        "WHERE o.survey = CAST($1 AS INTEGER) AND o.host > CAST($2 AS INTEGER) "
        "ORDER BY o.host LIMIT 1";
    struct old_host h = {.id = "0"};
    enum status s = STATUS_OK;

    for (uint32_t place = 1; s == STATUS_OK; place++) {
        char last[FLEET_INTEGER_BYTES];

        memcpy(last, h.id, sizeof(last));
        s = fleet_query(old, next, FLEET_VALUES(survey, last), read_host, &h, err);
        if (s != STATUS_OK || strcmp(last, h.id) == 0)
            break;
        s = copy_host(old, survey, place, &h, fresh, err);
    }
    return s;
}

/* A survey of the old database. */
struct old_survey {
    char id[FLEET_INTEGER_BYTES];
    char at[TEXT_BYTES];
    char elapsed_ms[FLEET_INTEGER_BYTES];
};

static enum status read_survey(void *self, const char *const *values, struct err *err)
{
    struct old_survey *const v = self;

    (void)err;
    (void)snprintf(v->id, sizeof(v->id), "%s", values[0]);
    (void)snprintf(v->at, sizeof(v->at), "%s", values[1]);
    (void)snprintf(v->elapsed_ms, sizeof(v->elapsed_ms), "%s", values[2]);
    return STATUS_OK;
}

static enum status copy_survey(struct fleet_db *old, const struct old_survey *v,
                               struct fleet_db *fresh, struct err *err)
{
    struct fleet_survey stored = {0};
    enum status s = fleet_survey_begin(fresh, err);

    if (s == STATUS_OK)
        s = copy_hosts(old, v->id, fresh, err);
    if (s == STATUS_OK)
        s = fleet_survey_end(fresh, v->at, clock_monotonic(), &stored, err);
    else
        fleet_survey_abort(fresh);
    if (s == STATUS_OK && stored.number != strtoll(v->id, NULL, 10))
        s = err_set(err, STATUS_CORRUPT, "survey %s would change its number to %lld", v->id,
                    (long long)stored.number);
    if (s == STATUS_OK)
        s = fleet_query(fresh, "UPDATE fleet_survey SET elapsed_ms = $2 WHERE id = $1",
                        FLEET_VALUES(v->id, v->elapsed_ms), NULL, NULL, err);
    return s;
}

static enum status copy_surveys(struct fleet_db *old, struct fleet_db *fresh, struct err *err)
{
    struct old_survey v = {.id = "0"};
    enum status s = STATUS_OK;

    while (s == STATUS_OK) {
        char last[FLEET_INTEGER_BYTES];

        memcpy(last, v.id, sizeof(last));
        s = fleet_query(
            old,
            "SELECT id, at, elapsed_ms FROM fleet_survey WHERE id > CAST($1 AS INTEGER) "
            "ORDER BY id LIMIT 1",
            FLEET_VALUES(last), read_survey, &v, err);
        if (s != STATUS_OK || strcmp(last, v.id) == 0)
            break;
        s = copy_survey(old, &v, fresh, err);
    }
    return s;
}

static enum status copy_file(const char *path, const char *part, struct err *err)
{
    struct fleet_db old = {.engine = &fleet_sqlite};
    struct fleet_db *fresh = NULL;
    bool oldest = false;
    enum status s = old.engine->open(path, false, &old.connection, err);

    if (s == STATUS_OK)
        s = fleet_connect(part, false, &fresh, &oldest, err);
    if (s == STATUS_OK)
        s = copy_surveys(&old, fresh, err);
    fleet_close(fresh);
    if (old.connection)
        old.engine->close(old.connection);
    return s;
}

static enum status move_file(const char *from, const char *to, struct err *err)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0
               ? STATUS_OK
               : err_set(err, STATUS_IO, "cannot rename %.150s to %.150s: %s", from, to,
                         strerror(errno));
}

enum status fleet_upgrade_version_1(const char *path, struct err *err)
{
    char *part = NULL, *kept = NULL;
    enum status s = STATUS_OK;

    if (asprintf(&part, "%s.part-%ld", path, (long)getpid()) < 0 ||
        asprintf(&kept, "%s.version-1", path) < 0)
        s = err_no_memory(err, "a file name");
    if (s == STATUS_OK) {
        s = copy_file(path, part, err);
        if (s == STATUS_OK)
            s = move_file(path, kept, err);
        if (s == STATUS_OK)
            s = move_file(part, path, err);
        if (s != STATUS_OK)
            (void)unlink(part);
    }
    free(part);
    free(kept);
    return s;
}
