/* keep_host.c: one host of a survey, with its GPUs, all or nothing.
 *
 * Whose word counts: a GPU that two hosts show in one survey counts once, where it was seen first,
 * and one that several hosts claim (disputed) does not count. All of it is kept: the reports name
 * it.
 */
#include "clients/fleet/keep_private.h"

#include "base/identity.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOST_BYTES = 256,
    DETAIL_BYTES = 256,
    ETAG_BYTES = 128,
    WORD_BYTES = 64 /* versions and states */
};

/* A GPU, its texts made fit to be kept. */
struct clean_gpu {
    char serial[sizeof(((struct gpu_identity *)NULL)->serial)];
    char model[sizeof(((struct gpu_identity *)NULL)->name)];
    char state[WORD_BYTES];
};

struct host_row {
    int64_t id;
    int64_t asked;
    int64_t answered;
};

/* One printable line that fits. */
static void clean(const char *text, char *out, size_t out_size)
{
    (void)snprintf(out, out_size, "%s", text ? text : "");
    text_tidy(out);
}

/* A UUID keys all that is kept of a GPU, so it is not cut or mended. */
static bool is_uuid(const char *text)
{
    static const char allowed[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_./:";
    const size_t n = strspn(text, allowed);

    return n > 0 && text[n] == '\0' && n < sizeof(((struct gpu_identity *)NULL)->uuid);
}

static enum status check_gpus(const struct fleet_host *host, const struct fleet_gpu *gpus,
                              struct err *err)
{
    if (!gpus)
        return STATUS_OK;
    if (host->gpu_count > REACH_MAX_GPUS)
        return err_set(err, STATUS_CORRUPT, "%u GPUs in one host: a daemon has at most %d",
                       host->gpu_count, REACH_MAX_GPUS);
    for (uint32_t i = 0; i < host->gpu_count; i++) {
        if (!gpus[i].uuid || !is_uuid(gpus[i].uuid))
            return err_set(err, STATUS_CORRUPT, "the GPU in slot %u has no proper UUID",
                           gpus[i].slot);
        if (gpus[i].slot >= REACH_MAX_GPUS)
            return err_set(err, STATUS_CORRUPT, "there is no slot %u", gpus[i].slot);
        for (uint32_t k = 0; k < i; k++) {
            if (gpus[k].slot == gpus[i].slot)
                return err_set(err, STATUS_CORRUPT, "two GPUs in slot %u", gpus[i].slot);
        }
    }
    return STATUS_OK;
}

/* ---- the host ---- */

static enum status read_host(void *self, int columns, const char *const *values, struct err *err)
{
    struct host_row *const row = self;

    (void)columns;
    (void)err;
    *row = (struct host_row){.id = strtoll(values[0], NULL, 10),
                             .asked = strtoll(values[1], NULL, 10),
                             .answered = strtoll(values[2], NULL, 10)};
    return STATUS_OK;
}

static enum status find_host(struct fleet_db *db, const char *name, struct host_row *out,
                             struct err *err)
{
    bool found = false;
    enum status s;

    memset(out, 0, sizeof(*out));
    s = fleet_run(db, "SELECT id, asked, answered FROM fleet_host WHERE name = $1",
                  FLEET_VALUES(name), read_host, out, err);
    if (s == STATUS_OK && out->id == 0)
        s = fleet_run_number(
            db,
            "INSERT INTO fleet_host (id, name) "
            "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_host), $1) RETURNING id",
            FLEET_VALUES(name), &out->id, &found, err);
    return s;
}

static enum status keep_outcome(struct fleet_db *db, const char *survey, const struct host_row *row,
                                const struct fleet_host *host, struct err *err)
{
    char numbers[6][FLEET_NUMBER_BYTES];
    char detail[DETAIL_BYTES];
    char version[WORD_BYTES];

    clean(host->detail, detail, sizeof(detail));
    clean(host->daemon_version, version, sizeof(version));
    return fleet_run(
        db,
        "INSERT INTO fleet_outcome (survey, host, outcome, detail, daemon_version, gpu_count, "
        "attempts, received_bytes, elapsed_ms, previous) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        FLEET_VALUES(survey, fleet_number_text(row->id, numbers[0]),
                     fleet_outcome_name(host->outcome), detail, version,
                     fleet_number_text(host->gpu_count, numbers[1]),
                     fleet_number_text(host->attempts, numbers[2]),
                     fleet_number_text((int64_t)(host->received_bytes & INT64_MAX), numbers[3]),
                     fleet_number_text(host->elapsed_ms, numbers[4]),
                     fleet_number_text(row->answered, numbers[5])),
        NULL, NULL, err);
}

/* What was last heard of the host: when it was asked, and with an answer also its GPUs and ETag. */
static enum status note_host(struct fleet_db *db, const char *survey, const struct host_row *row,
                             const struct fleet_host *host, struct err *err)
{
    char id[FLEET_NUMBER_BYTES];
    char etag[ETAG_BYTES];

    fleet_number_text(row->id, id);
    clean(host->etag, etag, sizeof(etag));
    /* One that does not fit, or is no text of one line, would come back as another one. */
    if (!host->etag || strcmp(etag, host->etag) != 0)
        etag[0] = '\0';
    if (host->outcome == FLEET_ANSWERED)
        return fleet_run(db,
                         "UPDATE fleet_host SET asked = $2, answered = $2, etag = $3 WHERE id = $1",
                         FLEET_VALUES(id, survey, etag), NULL, NULL, err);
    if (host->outcome == FLEET_UNCHANGED)
        return fleet_run(db, "UPDATE fleet_host SET asked = $2, answered = $2 WHERE id = $1",
                         FLEET_VALUES(id, survey), NULL, NULL, err);
    return fleet_run(db, "UPDATE fleet_host SET asked = $2 WHERE id = $1", FLEET_VALUES(id, survey),
                     NULL, NULL, err);
}

/* ---- its GPUs ---- */

struct gpu_match {
    const char *serial;
    int64_t same;   /* has this serial number */
    int64_t silent; /* has none */
    int64_t latest; /* the one seen last */
};

/* Rows come by when they were seen, the latest last. */
static enum status match_gpu(void *self, int columns, const char *const *values, struct err *err)
{
    struct gpu_match *const m = self;
    const int64_t id = strtoll(values[0], NULL, 10);

    (void)columns;
    (void)err;
    if (strcmp(values[1], m->serial) == 0)
        m->same = id;
    if (values[1][0] == '\0')
        m->silent = id;
    m->latest = id;
    return STATUS_OK;
}

/* The row of this GPU. A serial number that is not told is no other one: the row of that UUID is
 * taken, and a number that is told later is put in. */
static enum status find_gpu(struct fleet_db *db, const char *survey, const char *uuid,
                            const char *serial, int64_t *out, struct err *err)
{
    struct gpu_match m = {.serial = serial};
    char id[FLEET_NUMBER_BYTES];
    bool found = false;
    enum status s =
        fleet_run(db, "SELECT id, serial FROM fleet_gpu WHERE uuid = $1 ORDER BY seen, id",
                  FLEET_VALUES(uuid), match_gpu, &m, err);

    *out = m.same ? m.same : serial[0] == '\0' ? m.latest : m.silent;
    if (s != STATUS_OK)
        return s;
    if (*out == 0)
        return fleet_run_number(db,
                                "INSERT INTO fleet_gpu (id, uuid, serial, first) VALUES "
                                "((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_gpu), $1, $2, $3) "
                                "RETURNING id",
                                FLEET_VALUES(uuid, serial, survey), out, &found, err);
    if (*out == m.silent && serial[0] != '\0')
        s = fleet_run(db, "UPDATE fleet_gpu SET serial = $2 WHERE id = $1",
                      FLEET_VALUES(fleet_number_text(*out, id), serial), NULL, NULL, err);
    return s;
}

static enum status keep_gpu(struct fleet_db *db, const char *survey, const char *host, bool counts,
                            const struct fleet_gpu *gpu, struct err *err)
{
    struct fleet_kept_fingerprint fp = {.id = 0};
    char numbers[7][FLEET_NUMBER_BYTES];
    struct clean_gpu c;
    int64_t id = 0;
    enum status s;

    clean(gpu->serial, c.serial, sizeof(c.serial));
    clean(gpu->model, c.model, sizeof(c.model));
    clean(gpu->state, c.state, sizeof(c.state));
    s = find_gpu(db, survey, gpu->uuid, c.serial, &id, err);
    if (s != STATUS_OK)
        return s;
    if (gpu->fingerprint_id && gpu->fingerprint_id[0])
        s = fleet_keep_fingerprint(db, gpu, &fp, err);
    else
        s = fleet_keep_kind(db, c.model, "", &fp.kind, err);
    if (s != STATUS_OK)
        return s;
    return fleet_run(
        db,
        "INSERT INTO fleet_sighting (survey, host, slot, gpu, state, kind, fingerprint, signature, "
        "map, structure, counted, was_survey, was_host, was_slot, was_fingerprint) "
        "SELECT CAST($1 AS INTEGER), CAST($2 AS INTEGER), CAST($3 AS INTEGER), g.id, $5, "
        "CAST($6 AS INTEGER), CAST($7 AS INTEGER), CAST($8 AS INTEGER), CAST($9 AS INTEGER), "
        "CAST($10 AS INTEGER), CASE WHEN g.seen = CAST($1 AS INTEGER) OR EXISTS (SELECT 1 "
        "FROM fleet_sighting t WHERE t.survey = CAST($1 AS INTEGER) AND t.host = "
        "CAST($2 AS INTEGER) AND t.gpu = g.id) THEN 0 ELSE CAST($11 AS INTEGER) END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.seen END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.host END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.slot END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.fingerprint END "
        "FROM fleet_gpu g WHERE g.id = $4",
        FLEET_VALUES(
            survey, host, fleet_number_text(gpu->slot, numbers[0]),
            fleet_number_text(id, numbers[1]), c.state, fleet_number_text(fp.kind, numbers[2]),
            fp.id ? fleet_number_text(fp.id, numbers[3]) : NULL,
            fp.id ? fleet_number_text(fp.signature, numbers[4]) : NULL,
            fp.id ? fleet_number_text(fp.map, numbers[5]) : NULL,
            fp.id ? fleet_number_text(fp.structure, numbers[6]) : NULL, counts ? "1" : "0"),
        NULL, NULL, err);
}

/* The GPUs of its last answer, once more, in one statement. */
static enum status repeat_gpus(struct fleet_db *db, const char *survey, const char *host,
                               int64_t answered, struct err *err)
{
    char last[FLEET_NUMBER_BYTES];

    if (answered == 0)
        return err_set(err, STATUS_CORRUPT, "nothing changed, it says, but it never answered");
    return fleet_run(
        db,
        "INSERT INTO fleet_sighting (survey, host, slot, gpu, state, kind, fingerprint, signature, "
        "map, structure, counted, was_survey, was_host, was_slot, was_fingerprint) "
        "SELECT CAST($1 AS INTEGER), s.host, s.slot, s.gpu, s.state, s.kind, s.fingerprint, "
        "s.signature, s.map, s.structure, CASE WHEN g.seen = CAST($1 AS INTEGER) OR EXISTS ("
        "SELECT 1 FROM fleet_sighting t WHERE t.survey = s.survey AND t.host = s.host "
        "AND t.gpu = s.gpu AND t.slot < s.slot) THEN 0 ELSE 1 END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.seen END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.host END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.slot END, "
        "CASE WHEN g.seen IN (0, CAST($1 AS INTEGER)) THEN NULL ELSE g.fingerprint END "
        "FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu "
        "WHERE s.survey = $2 AND s.host = $3",
        FLEET_VALUES(survey, fleet_number_text(answered, last), host), NULL, NULL, err);
}

/* Where the GPUs that count were seen last is here now. */
static enum status note_gpus(struct fleet_db *db, const char *survey, const char *host,
                             struct err *err)
{
    return fleet_run(db,
                     "UPDATE fleet_gpu SET seen = s.survey, host = s.host, slot = s.slot, "
                     "fingerprint = COALESCE(s.fingerprint, fleet_gpu.fingerprint) "
                     "FROM fleet_sighting s WHERE s.survey = $1 AND s.host = $2 AND +s.counted = 1 "
                     "AND fleet_gpu.id = s.gpu",
                     FLEET_VALUES(survey, host), NULL, NULL, err);
}

/* ---- all of it ---- */

static enum status keep(struct fleet_db *db, int64_t survey, const struct fleet_host *host,
                        const char *name, const struct fleet_gpu *gpus, struct err *err)
{
    char number[FLEET_NUMBER_BYTES];
    char id[FLEET_NUMBER_BYTES];
    struct host_row row;
    enum status s = find_host(db, name, &row, err);

    fleet_number_text(survey, number);
    fleet_number_text(row.id, id);
    if (s == STATUS_OK && row.asked == survey)
        s = err_set(err, STATUS_CONFLICT, "%.200s is kept already in this survey", name);
    if (s == STATUS_OK)
        s = keep_outcome(db, number, &row, host, err);
    if (s == STATUS_OK && host->outcome == FLEET_UNCHANGED)
        s = repeat_gpus(db, number, id, row.answered, err);
    for (uint32_t i = 0; s == STATUS_OK && gpus && i < host->gpu_count; i++)
        s = keep_gpu(db, number, id, !gpus[i].disputed, &gpus[i], err);
    if (s == STATUS_OK && (gpus || host->outcome == FLEET_UNCHANGED))
        s = note_gpus(db, number, id, err);
    if (s == STATUS_OK)
        s = note_host(db, number, &row, host, err);
    return s;
}

enum status fleet_keep_host(struct fleet_db *db, int64_t survey, const struct fleet_host *host,
                            const struct fleet_gpu *gpus, struct err *err)
{
    char name[HOST_BYTES];
    enum status s;

    if (!db->survey || db->survey != survey)
        return err_set(err, STATUS_CONFLICT, "survey %" PRId64 " is not under way", survey);
    clean(host->name, name, sizeof(name));
    if (name[0] == '\0' || (unsigned)host->outcome >= FLEET_OUTCOME_COUNT ||
        strlen(host->name) >= sizeof(name) ||
        (gpus && host->outcome != FLEET_ANSWERED && host->outcome != FLEET_LIED))
        return err_set(err, STATUS_INVALID_ARGUMENT, "this is no outcome of a host");
    s = check_gpus(host, gpus, err);
    if (s != STATUS_OK)
        return s;
    s = db->engine->exec(db->connection, "SAVEPOINT fleet_host", err);
    if (s != STATUS_OK)
        return s;
    s = keep(db, survey, host, name, gpus, err);
    if (s != STATUS_OK) {
        (void)db->engine->exec(db->connection, "ROLLBACK TO SAVEPOINT fleet_host", NULL);
        number_names_free(db->names); /* some of them are gone again */
        db->names = NULL;
    }
    if (db->engine->exec(db->connection, "RELEASE SAVEPOINT fleet_host",
                         s == STATUS_OK ? err : NULL) != STATUS_OK &&
        s == STATUS_OK)
        s = err ? err->status : STATUS_INTERNAL;
    return s;
}

static enum status copy_etag(void *self, int columns, const char *const *values, struct err *err)
{
    (void)columns;
    (void)err;
    (void)snprintf(self, ETAG_BYTES, "%s", values[0]);
    return STATUS_OK;
}

enum status fleet_last_etag(struct fleet_db *db, const char *host, char *out_etag, struct err *err)
{
    char name[HOST_BYTES];

    out_etag[0] = '\0';
    clean(host, name, sizeof(name));
    return fleet_run(db, "SELECT etag FROM fleet_host WHERE name = $1 AND answered > 0",
                     FLEET_VALUES(name), copy_etag, out_etag, err);
}
