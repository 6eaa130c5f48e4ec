/* db_ingest.c: one survey into the database. Answers are added to temporary tables
 * (schema/fleet/staging.sql); at the end statements over all of them do the rest (ingest.sql), and
 * compute what reports and dashboards read (spread.sql, quartiles_*.sql, outliers.sql).
 */
#include "clients/fleet/db_engine.h"
#include "clients/fleet/metrics.h"

#include "base/hash.h"
#include "base/text.h"
#include "fingerprint/diff.h"
#include "fingerprint/fingerprint.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES = 256,
    MAX_DOCUMENT_BYTES = 1 << 20, /* the largest that a daemon makes is a tenth of it */
    CANDIDATES_BYTES = 1024,      /* an index of PostgreSQL takes 2.7 kB with the signature */
    KEY_BYTES = 256               /* model, origin and name of a metric */
};

/* Beyond these a difference or a ratio may have no value, which PostgreSQL takes for an error. */
#define LARGEST  1e100
#define SMALLEST 1e-100

static const struct fleet_table new_host = {
    "fleet_new_host",
    "seq, name, outcome, detail, etag, daemon_version, attempts, received_bytes, elapsed_ms", 9};
static const struct fleet_table new_gpu = {
    "fleet_new_gpu", "host, slot, uuid, serial, model, state, fingerprint", 7};
static const struct fleet_table new_fingerprint = {
    "fleet_new_fingerprint",
    "seq, uuid, name, model, origin, signature, candidate_count, candidates, map, group_count, "
    "structure, depth, verdict, driver, taken_at, plateau_gbps, whole_memory_gbps, window_bytes, "
    "document",
    19};
static const struct fleet_table new_structure = {"fleet_new_structure", "id, hash, text", 3};
static const struct fleet_table new_line = {"fleet_new_line",
                                            "structure, place, name, value, number, absent", 6};
static const struct fleet_table new_series = {"fleet_new_series", "id, model, origin, name", 4};
static const struct fleet_table metric = {"fleet_metric", "series, fingerprint, value, absent", 4};

/* A text of this survey with a number of its own. */
struct numbered {
    const char *text; /* behind it */
    int64_t id;
};

/* A metric of a new fingerprint, in a file until its series and its fingerprint have ids. */
struct waiting_metric {
    double v;
    uint32_t series;      /* its number in this survey */
    uint32_t fingerprint; /* the same */
    enum known known;
};

struct fleet_staging {
    FILE *metrics; /* owned */
    int64_t fingerprints;
    int64_t series_count;
    int64_t structure_count;
    void *series; /* trees of struct numbered, owned */
    void *structures;
};

/* ---- values ---- */

static struct fleet_value text_value(const char *text)
{
    return (struct fleet_value){.type = text ? FLEET_TEXT : FLEET_NULL, .text = text};
}

static struct fleet_value integer_value(int64_t v)
{
    return (struct fleet_value){.type = FLEET_INTEGER, .integer = v};
}

static struct fleet_value number_value(bool known, double v)
{
    return (struct fleet_value){.type = known ? FLEET_NUMBER : FLEET_NULL, .number = v};
}

static struct fleet_value absent_value(enum known known)
{
    return text_value(known == MAYBE_KNOWN            ? NULL
                      : known == MAYBE_NOT_OBSERVABLE ? "not_observable"
                                                      : "unknown");
}

static enum status append(struct fleet_db *db, const struct fleet_table *table,
                          const struct fleet_value *values, struct err *err)
{
    return db->engine->append(db->connection, table, values, err);
}

/* One printable line that fits. */
static const char *clean(const char *text, char *out, size_t out_size)
{
    (void)snprintf(out, out_size, "%s", text);
    text_sanitize(out);
    return out;
}

/* ---- numbered texts ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct numbered *)a)->text, ((const struct numbered *)b)->text);
}

/* The number of a text; a new one is the next after `*count`, and `*out_new` is then true. 0
 * without memory. */
static int64_t number_of(void **tree, int64_t *count, const char *text, bool *out_new)
{
    const struct numbered key = {.text = text};
    struct numbered *const *const found = tfind(&key, tree, by_text);
    struct numbered *one;

    *out_new = false;
    if (found)
        return (*found)->id;
    one = malloc(sizeof(*one) + strlen(text) + 1);
    if (!one)
        return 0;
    one->text = strcpy((char *)(one + 1), text);
    if (!tsearch(one, tree, by_text)) {
        free(one);
        return 0;
    }
    *out_new = true;
    one->id = ++*count;
    return one->id;
}

/* ---- one fingerprint ---- */

/* What the callbacks of metrics.h share. */
struct staging {
    struct fleet_db *db;
    const struct fingerprint *fp;
    int64_t seq;
    char key[KEY_BYTES]; /* "model\norigin\n", and the name behind it */
    size_t key_bytes;
    FILE *text; /* of the structure */
    int64_t structure;
    int64_t place;
    enum status status;
    struct err *err;
};

static void add_metric(void *self, const char *name, enum known known, double v)
{
    struct staging *const in = self;
    struct fleet_staging *const staged = in->db->staged;
    bool is_new = false;
    int64_t series;

    if (in->status != STATUS_OK)
        return;
    if (known == MAYBE_KNOWN && !(fabs(v) < LARGEST))
        known = MAYBE_UNKNOWN;
    if (fabs(v) < SMALLEST)
        v = 0;
    (void)snprintf(in->key + in->key_bytes, sizeof(in->key) - in->key_bytes, "%s", name);
    series = number_of(&staged->series, &staged->series_count, in->key, &is_new);
    if (series == 0)
        in->status = err_set(in->err, STATUS_NO_MEMORY, "no memory for a survey");
    if (is_new)
        in->status = append(
            in->db, &new_series,
            (struct fleet_value[]){integer_value(series), text_value(in->fp->gpu.name),
                                   text_value(origin_name(in->fp->gpu.origin)), text_value(name)},
            in->err);
    const struct waiting_metric one = {
        .v = v, .series = (uint32_t)series, .fingerprint = (uint32_t)in->seq, .known = known};
    if (in->status == STATUS_OK && fwrite(&one, sizeof(one), 1, staged->metrics) != 1)
        in->status = err_set(in->err, STATUS_IO, "cannot write to a temporary file");
}

static void print_line(void *self, const char *name, enum known known, const char *value)
{
    struct staging *const in = self;

    fprintf(in->text, "%s=%s\n", name,
            known == MAYBE_KNOWN            ? value
            : known == MAYBE_NOT_OBSERVABLE ? "!"
                                            : "?");
}

static void add_line(void *self, const char *name, enum known known, const char *value)
{
    struct staging *const in = self;
    char *end = NULL;
    const double number = known == MAYBE_KNOWN ? strtod(value, &end) : 0;
    const bool is_number = known == MAYBE_KNOWN && end != value && *end == '\0';

    if (in->status != STATUS_OK)
        return;
    in->status = append(
        in->db, &new_line,
        (struct fleet_value[]){integer_value(in->structure), integer_value(in->place++),
                               text_value(name), text_value(known == MAYBE_KNOWN ? value : NULL),
                               number_value(is_number, number), absent_value(known)},
        in->err);
}

/* Adds the structure where it is new to this survey; `in->structure` is then its number. */
static enum status add_structure(struct staging *in)
{
    struct fleet_staging *const staged = in->db->staged;
    char hash[FLEET_INTEGER_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    bool is_new = false;

    in->text = open_memstream(&text, &bytes);
    if (in->text) {
        structure_visit(in->fp, print_line, in);
        if (fclose(in->text) == 0)
            in->structure = number_of(&staged->structures, &staged->structure_count, text, &is_new);
    }
    if (in->structure == 0)
        in->status = err_set(in->err, STATUS_NO_MEMORY, "no memory for a survey");
    if (is_new) {
        (void)snprintf(hash, sizeof(hash), "%016" PRIx64, hash_bytes(HASH_START, text, bytes));
        in->status = append(in->db, &new_structure,
                            (struct fleet_value[]){integer_value(in->structure), text_value(hash),
                                                   text_value(text)},
                            in->err);
        structure_visit(in->fp, add_line, in);
    }
    free(text);
    return in->status;
}

/* "10,11 | 10,12": the sets of SMs that give the same pattern, as many as fit. */
static void print_candidates(const struct disabled_sms *d, char *out)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t k = 0; k < d->listed; k++) {
        char one[FINGERPRINT_MAX_DISABLED * 6 + 4];
        size_t n = 0;
        if (k > 0)
            n += (size_t)snprintf(one, sizeof(one), " | ");
        one[n] = '\0';
        for (uint32_t i = 0; IS_KNOWN(d->sm_count) && i < d->sm_count.v; i++)
            n += (size_t)snprintf(one + n, sizeof(one) - n, "%s%u", i ? "," : "",
                                  d->candidates[k][i]);
        if (at + n + sizeof(" ...") > CANDIDATES_BYTES) {
            (void)snprintf(out + at, CANDIDATES_BYTES - at, " ...");
            return;
        }
        memcpy(out + at, one, n + 1);
        at += n;
    }
}

static enum status add_fingerprint_row(struct staging *in, const struct host_answer_gpu *gpu)
{
    const struct fingerprint *const fp = in->fp;
    const struct disabled_sms *const d = &fp->topology.disabled;
    const struct maybe_u64 window = fp->windows.recommended_bytes;
    char candidates[CANDIDATES_BYTES];
    char map[FINGERPRINT_MAP_HASH_BYTES];
    char *document = NULL;
    enum status s;

    if (asprintf(&document, "{\"id\":\"%s\",%s", gpu->fingerprint_id, gpu->text + 1) < 0)
        return err_set(in->err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    print_candidates(d, candidates);
    const struct fleet_value values[] = {
        integer_value(in->seq),
        text_value(gpu->uuid),
        text_value(gpu->fingerprint_id),
        text_value(fp->gpu.name),
        text_value(origin_name(fp->gpu.origin)),
        text_value(d->signature),
        IS_KNOWN(d->candidate_count) ? integer_value(d->candidate_count.v) : text_value(NULL),
        text_value(candidates),
        text_value(fingerprint_map_hash(&fp->topology.partition, map)),
        integer_value(fp->topology.partition.group_count),
        integer_value(in->structure),
        text_value(depth_name(fp->depth)),
        text_value(verdict_name(fp->conditions.verdict)),
        text_value(fp->gpu.driver_version),
        integer_value(fp->taken_at),
        number_value(IS_KNOWN(fp->throughput.plateau_gbps), fp->throughput.plateau_gbps.v),
        number_value(IS_KNOWN(fp->throughput.whole_memory_gbps),
                     fp->throughput.whole_memory_gbps.v),
        IS_KNOWN(window) ? integer_value((int64_t)window.v) : text_value(NULL),
        text_value(document),
    };
    s = append(in->db, &new_fingerprint, values, in->err);
    free(document);
    return s;
}

static enum status add_fingerprint(struct fleet_db *db, const struct host_answer_gpu *gpu,
                                   struct err *err)
{
    struct fingerprint *const fp = gpu->fingerprint;
    struct staging in = {.db = db, .fp = fp, .seq = ++db->staged->fingerprints, .err = err};

    text_sanitize(fp->gpu.name);
    text_sanitize(fp->gpu.driver_version);
    text_sanitize(fp->topology.disabled.signature);
    in.key_bytes = (size_t)snprintf(in.key, sizeof(in.key), "%s\n%s\n", fp->gpu.name,
                                    origin_name(fp->gpu.origin));
    if (add_structure(&in) == STATUS_OK)
        in.status = add_fingerprint_row(&in, gpu);
    if (in.status == STATUS_OK)
        metrics_visit(fp, add_metric, &in);
    return in.status;
}

/* ---- one host ---- */

static enum status check_sizes(const struct host_answer *answer, struct err *err)
{
    for (uint32_t i = 0; i < answer->gpu_count; i++) {
        if (answer->gpus[i].text && strlen(answer->gpus[i].text) > MAX_DOCUMENT_BYTES)
            return err_set(err, STATUS_CORRUPT, "a fingerprint of more than %d bytes",
                           MAX_DOCUMENT_BYTES);
    }
    return STATUS_OK;
}

static enum status add_gpus(struct fleet_db *db, uint32_t place, const struct host_answer *answer,
                            struct err *err)
{
    enum status s = STATUS_OK;

    for (uint32_t i = 0; s == STATUS_OK && i < answer->gpu_count; i++) {
        const struct host_answer_gpu *const gpu = &answer->gpus[i];
        const struct fleet_value values[] = {
            integer_value(place),
            integer_value(gpu->slot),
            text_value(gpu->uuid),
            text_value(gpu->serial),
            text_value(gpu->model),
            text_value(gpu->state),
            text_value(gpu->fingerprint_id),
        };
        s = append(db, &new_gpu, values, err);
        if (s == STATUS_OK && gpu->fingerprint)
            s = add_fingerprint(db, gpu, err);
    }
    return s;
}

static enum status add_host(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                            const struct host_answer *answer, struct err *err)
{
    char name[TEXT_BYTES];
    char detail[TEXT_BYTES];
    char etag[FLEET_ETAG_BYTES];

    /* A tag that does not fit, or is not text of one line, would be sent back as another one. */
    clean(host->etag, etag, sizeof(etag));
    if (strcmp(etag, host->etag) != 0)
        etag[0] = '\0';
    const struct fleet_value values[] = {
        integer_value(place),
        text_value(clean(host->name, name, sizeof(name))),
        text_value(fleet_outcome_name(host->outcome)),
        text_value(clean(host->detail, detail, sizeof(detail))),
        text_value(etag),
        text_value(answer ? answer->daemon_version : ""),
        integer_value(host->attempts),
        integer_value((int64_t)(host->received_bytes & INT64_MAX)),
        integer_value(host->elapsed_ms),
    };
    return append(db, &new_host, values, err);
}

enum status fleet_survey_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                             const struct host_answer *answer, struct err *err)
{
    enum status s;

    if (!db->staged)
        return err_set(err, STATUS_CONFLICT, "no survey is under way");
    if (host->name[0] == '\0' || strlen(host->name) >= TEXT_BYTES ||
        (unsigned)host->outcome >= FLEET_OUTCOME_COUNT ||
        (answer != NULL) != (host->outcome == FLEET_ANSWERED))
        return err_set(err, STATUS_INVALID_ARGUMENT, "this is not the outcome of a host");
    s = answer ? check_sizes(answer, err) : STATUS_OK;
    if (s == STATUS_OK)
        s = add_host(db, place, host, answer, err);
    if (s == STATUS_OK && answer)
        s = add_gpus(db, place, answer, err);
    return s;
}

/* ---- GPUs that were measured again, too few of a kind to know their noise ---- */

static enum status read_document(const char *text, struct fingerprint *out, struct err *err)
{
    json_error_t why;
    json_t *const json = json_loads(text, 0, &why);
    enum status s;

    if (!json)
        return err_set(err, STATUS_CORRUPT, "a stored fingerprint is not JSON: %.120s", why.text);
    s = fingerprint_from_json(json, out, err);
    json_decref(json);
    return s;
}

/* A pair that waits for its comparison: no statement may run while rows are read. */
struct pair {
    struct pair *next;
    char fingerprint[FLEET_INTEGER_BYTES];
    struct fingerprint_diff diff;
};

/* fingerprint, document, document before */
static enum status compare_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct pair **const list = self;
    struct fingerprint *const two = calloc(2, sizeof(*two));
    struct pair *const pair = calloc(1, sizeof(*pair));
    enum status s = STATUS_NO_MEMORY;

    (void)columns;
    if (!two || !pair) {
        (void)err_set(err, s, "no memory for a fingerprint");
        goto out;
    }
    s = read_document(values[2], &two[0], err);
    if (s == STATUS_OK)
        s = read_document(values[1], &two[1], err);
    if (s != STATUS_OK)
        goto out;
    (void)snprintf(pair->fingerprint, sizeof(pair->fingerprint), "%s", values[0]);
    fingerprint_compare(&two[0], &two[1], &pair->diff);
    pair->next = *list;
    *list = pair;
out:
    if (s != STATUS_OK)
        free(pair);
    free(two);
    return s;
}

static enum status store_pair(struct fleet_db *db, const char *survey, const struct pair *pair,
                              struct err *err)
{
    const struct fingerprint_diff *const diff = &pair->diff;
    const uint32_t rows = diff->count > 0 ? diff->count : diff->result != FINGERPRINT_SAME;
    char place[FLEET_INTEGER_BYTES];
    enum status s = STATUS_OK;

    for (uint32_t i = 0; s == STATUS_OK && i < rows; i++)
        s = fleet_run(db,
                      "INSERT INTO fleet_drift (survey, fingerprint, place, what, class) "
                      "VALUES ($1, $2, $3, $4, $5)",
                      FLEET_VALUES(survey, pair->fingerprint, fleet_integer_text(i, place),
                                   diff->count ? diff->sentences[i] : NULL,
                                   fingerprint_class_name(diff->result)),
                      NULL, NULL, err);
    return s;
}

static enum status compare_pairs(struct fleet_db *db, const char *survey, struct err *err)
{
    struct pair *list = NULL;
    enum status s = fleet_run(db,
                              "SELECT p.fingerprint, b.document, a.document FROM fleet_new_pair p "
                              "JOIN fleet_document a ON a.fingerprint = p.was "
                              "JOIN fleet_document b ON b.fingerprint = p.fingerprint "
                              "WHERE p.many = 0",
                              0, NULL, compare_row, &list, err);

    while (list) {
        struct pair *const one = list;
        list = one->next;
        if (s == STATUS_OK)
            s = store_pair(db, survey, one, err);
        free(one);
    }
    return s;
}

/* ---- metrics, from the file into the table ---- */

enum { CHUNK = 1 << 17 };

/* Ids by the number in this survey; 0: not stored, as one of two that are the same. */
struct ids {
    int64_t *series;
    int64_t *fingerprint;
};

static enum status read_id(void *self, int columns, const char *const *values, struct err *err)
{
    int64_t *const ids = self;

    (void)columns;
    (void)err;
    ids[strtoul(values[0], NULL, 10)] = strtoll(values[1], NULL, 10);
    return STATUS_OK;
}

static enum status read_ids(struct fleet_db *db, struct ids *out, struct err *err)
{
    enum status s;

    out->series = calloc((size_t)db->staged->series_count + 1, sizeof(*out->series));
    out->fingerprint = calloc((size_t)db->staged->fingerprints + 1, sizeof(*out->fingerprint));
    if (!out->series || !out->fingerprint)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    s = fleet_run(db, "SELECT id, series FROM fleet_new_series", 0, NULL, read_id, out->series,
                  err);
    if (s == STATUS_OK)
        s = fleet_run(db,
                      "SELECT f.id - b.fingerprint, f.id FROM fleet_new_base b "
                      "JOIN fleet_fingerprint f ON f.id > b.fingerprint",
                      0, NULL, read_id, out->fingerprint, err);
    return s;
}

static int by_series(const void *a, const void *b)
{
    const struct waiting_metric *const x = a;
    const struct waiting_metric *const y = b;

    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return x->fingerprint < y->fingerprint ? -1 : x->fingerprint > y->fingerprint;
}

/* Rows that stand together in the table come together: that is several times as fast. */
static enum status store_chunk(struct fleet_db *db, struct waiting_metric *chunk, size_t count,
                               const struct ids *ids, struct err *err)
{
    enum status s = STATUS_OK;

    qsort(chunk, count, sizeof(*chunk), by_series);
    for (size_t i = 0; s == STATUS_OK && i < count; i++) {
        const struct waiting_metric *const m = &chunk[i];
        const struct fleet_value values[] = {
            integer_value(ids->series[m->series]), integer_value(ids->fingerprint[m->fingerprint]),
            number_value(m->known == MAYBE_KNOWN, m->v), absent_value(m->known)};
        if (values[1].integer > 0)
            s = append(db, &metric, values, err);
    }
    return s;
}

static enum status store_metrics(struct fleet_db *db, struct err *err)
{
    struct waiting_metric *const chunk = calloc(CHUNK, sizeof(*chunk));
    struct ids ids = {NULL, NULL};
    enum status s =
        chunk ? read_ids(db, &ids, err) : err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    size_t count = 1;

    rewind(db->staged->metrics);
    while (s == STATUS_OK && count > 0) {
        count = fread(chunk, sizeof(*chunk), CHUNK, db->staged->metrics);
        s = store_chunk(db, chunk, count, &ids, err);
    }
    if (s == STATUS_OK && ferror(db->staged->metrics))
        s = err_set(err, STATUS_IO, "cannot read from a temporary file");
    if (s == STATUS_OK)
        s = db->engine->flush(db->connection, err);
    free(ids.fingerprint);
    free(ids.series);
    free(chunk);
    return s;
}

/* ---- the survey ---- */

static enum status compute(struct fleet_db *db, const char *survey, struct err *err)
{
    int64_t news = 0;
    enum status s = fleet_run_integer(db,
                                      "SELECT (SELECT COUNT(*) FROM fleet_new_fleet) + "
                                      "(SELECT COUNT(*) FROM fleet_new_pair)",
                                      0, NULL, &news, err);

    if (s != STATUS_OK || news == 0)
        return s; /* the quartiles of an earlier survey hold */
    s = fleet_script(db, fleet_sql_spread, survey, NULL, NULL, NULL, err);
    if (s == STATUS_OK)
        s = fleet_script(db, db->engine->quartiles, survey, NULL, NULL, NULL, err);
    if (s == STATUS_OK)
        s = fleet_script(db, fleet_sql_outliers, survey, NULL, NULL, NULL, err);
    return s == STATUS_OK ? compare_pairs(db, survey, err) : s;
}

static enum status read_counts(void *self, int columns, const char *const *values, struct err *err)
{
    struct fleet_survey *const out = self;

    (void)columns;
    (void)err;
    out->gpu_count = (uint32_t)strtoul(values[0], NULL, 10);
    out->conflict_count = (uint32_t)strtoul(values[1], NULL, 10);
    out->new_fingerprints = (uint32_t)strtoul(values[2], NULL, 10);
    return STATUS_OK;
}

/* All of it inside a transaction; its number goes to `out`. */
static enum status store(struct fleet_db *db, const char *at, nsec_t began,
                         struct fleet_survey *out, struct err *err)
{
    char survey[FLEET_INTEGER_BYTES];
    char elapsed[FLEET_INTEGER_BYTES];
    enum status s = fleet_run_integer(
        db,
        "INSERT INTO fleet_survey (id, at) "
        "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_survey), $1) RETURNING id",
        FLEET_VALUES(at), &out->number, err);

    fleet_integer_text(out->number, survey);
    if (s == STATUS_OK)
        s = fleet_script(db, fleet_sql_ingest, survey, NULL, NULL, NULL, err);
    if (s == STATUS_OK && db->staged->fingerprints > 0)
        s = store_metrics(db, err);
    if (s == STATUS_OK)
        s = compute(db, survey, err);
    if (s == STATUS_OK)
        s = fleet_run(db,
                      "SELECT (SELECT COUNT(*) FROM fleet_new_gpu WHERE conflict = 0), "
                      "(SELECT COUNT(DISTINCT LOWER(uuid)) FROM fleet_new_gpu WHERE conflict = 1), "
                      "(SELECT COUNT(*) FROM fleet_fingerprint f JOIN fleet_new_base b "
                      "ON f.id > b.fingerprint)",
                      0, NULL, read_counts, out, err);
    out->elapsed_ms = (uint32_t)((clock_monotonic() - began) / NSEC_PER_MSEC);
    if (s == STATUS_OK)
        s = fleet_run(db, "UPDATE fleet_survey SET elapsed_ms = $2 WHERE id = $1",
                      FLEET_VALUES(survey, fleet_integer_text(out->elapsed_ms, elapsed)), NULL,
                      NULL, err);
    return s;
}

static enum status empty_staging(struct fleet_db *db, struct err *err)
{
    static const char *const tables[] = {
        "fleet_new_host",      "fleet_new_gpu",   "fleet_new_fingerprint",
        "fleet_new_structure", "fleet_new_line",  "fleet_new_series",
        "fleet_new_base",      "fleet_new_fleet", "fleet_new_pair"};
    enum status s = STATUS_OK;

    if (!db->has_staging) {
        s = db->engine->exec(db->connection, fleet_sql_staging, err);
        db->has_staging = s == STATUS_OK;
        return s;
    }
    for (size_t i = 0; s == STATUS_OK && i < sizeof(tables) / sizeof(*tables); i++) {
        char sql[64];
        (void)snprintf(sql, sizeof(sql), "DELETE FROM %s", tables[i]);
        s = db->engine->exec(db->connection, sql, err);
    }
    return s;
}

enum status fleet_survey_begin(struct fleet_db *db, struct err *err)
{
    enum status s;

    if (db->staged)
        return err_set(err, STATUS_CONFLICT, "a survey is under way");
    s = empty_staging(db, err);
    if (s == STATUS_OK && db->engine->begin_staging)
        s = db->engine->exec(db->connection, db->engine->begin_staging, err);
    if (s != STATUS_OK)
        return s;
    db->staged = calloc(1, sizeof(*db->staged));
    if (!db->staged)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    db->staged->metrics = tmpfile();
    if (db->staged->metrics)
        return STATUS_OK;
    s = err_set(err, STATUS_IO, "cannot make a temporary file: %s", strerror(errno));
    fleet_survey_abort(db);
    return s;
}

/* All rows are in the temporary tables then, and none waits for the next survey. */
static enum status end_staging(struct fleet_db *db, struct err *err)
{
    const enum status s = db->engine->flush(db->connection, err);

    return s == STATUS_OK && db->engine->begin_staging
               ? db->engine->exec(db->connection, "COMMIT", err)
               : s;
}

static void free_staged(struct fleet_db *db)
{
    tdestroy(db->staged->series, free);
    tdestroy(db->staged->structures, free);
    if (db->staged->metrics)
        (void)fclose(db->staged->metrics);
    free(db->staged);
    db->staged = NULL;
}

enum status fleet_survey_end(struct fleet_db *db, const char *at, nsec_t began,
                             struct fleet_survey *out, struct err *err)
{
    enum status s;

    *out = (struct fleet_survey){.number = 0};
    if (!db->staged)
        return err_set(err, STATUS_CONFLICT, "no survey is under way");
    s = end_staging(db, err);
    if (s == STATUS_OK)
        s = db->engine->exec(db->connection, db->engine->begin_write, err);
    if (s == STATUS_OK)
        s = fleet_end_write(db, store(db, at, began, out, err), err);
    free_staged(db);
    if (s == STATUS_OK && db->engine->after_survey) /* the survey is stored, whatever comes of it */
        (void)db->engine->exec(db->connection, db->engine->after_survey, NULL);
    return s;
}

void fleet_survey_abort(struct fleet_db *db)
{
    if (!db->staged)
        return;
    (void)end_staging(db, NULL);
    free_staged(db);
}

enum status fleet_survey_hosts(struct fleet_db *db, fleet_row_fn *row, void *self, struct err *err)
{
    return fleet_run(db,
                     "SELECT n.seq, n.outcome, n.detail, COUNT(g.host) FROM fleet_new_host n "
                     "LEFT JOIN fleet_new_gpu g ON g.host = n.seq "
                     "GROUP BY n.seq, n.outcome, n.detail ORDER BY n.seq",
                     0, NULL, row, self, err);
}
