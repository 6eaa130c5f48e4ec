/* staging.c: adds the answer of a host to the temporary tables of a survey
 * (schema/fleet/staging.sql).
 *
 * Data that many fingerprints share are sent once. A structure and the name of a metric get a
 * number when they first occur, and rows refer to that number. */
#include "clients/fleet/db_engine.h"
#include "compare/metrics.h"

#include "base/hash.h"
#include "base/text.h"
#include "fingerprint/fingerprint.h"

#include <inttypes.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES = 256,
    METRIC_COLUMNS = 4,
    CANDIDATES_BYTES =
        1024, /* an index entry of PostgreSQL, which also has the signature, is limited to 2.7 kB */
    CANDIDATE_BYTES = FINGERPRINT_MAX_DISABLED * 6 + 4,
    KEY_BYTES = 256 /* model, origin and name of a metric have at most 96, 16 and 96 bytes */
};

/* Beyond these limits a difference or a ratio can overflow, which is an error in PostgreSQL. */
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
static const struct fleet_table new_metric = {"fleet_new_metric",
                                              "series, fingerprint, value, absent", METRIC_COLUMNS};

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

static struct fleet_value reason_value(enum known known)
{
    return text_value(known == MAYBE_KNOWN            ? NULL
                      : known == MAYBE_NOT_OBSERVABLE ? "not_observable"
                                                      : "unknown");
}

/* Appends a row; the arguments are one value for each column. */
#define APPEND(db, table, ...)                                                                     \
    (db)->engine->append((db)->connection, &(table), 1, (const struct fleet_value[]){__VA_ARGS__}, \
                         err)

/* Writes one printable line, truncated if it does not fit. */
static const char *clean_line(const char *text, char *out, size_t out_size)
{
    (void)snprintf(out, out_size, "%s", text);
    text_sanitize(out);
    return out;
}

/* ---- numbered texts ---- */

struct numbered {
    int64_t number;
    const char *text; /* points behind the struct, where the text is stored */
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct numbered *)a)->text, ((const struct numbered *)b)->text);
}

/* Returns the number of a text, or 0 if out of memory. A new text gets the next number, and
 * `*out_new` is then true. */
static int64_t find_number(struct fleet_numbering *in, const char *text, bool *out_new)
{
    const struct numbered key = {.text = text};
    struct numbered *const *const found = tfind(&key, &in->tree, by_text);
    struct numbered *one;

    *out_new = false;
    if (found)
        return (*found)->number;
    one = malloc(sizeof(*one) + strlen(text) + 1);
    if (!one)
        return 0;
    one->text = strcpy((char *)(one + 1), text);
    if (!tsearch(one, &in->tree, by_text)) {
        free(one);
        return 0;
    }
    *out_new = true;
    one->number = ++in->count;
    return one->number;
}

/* ---- one fingerprint ---- */

/* The state that the callbacks of metrics.h share. */
struct staging {
    struct fleet_db *db;
    const struct fingerprint *fp;
    int64_t seq;
    char key[KEY_BYTES]; /* "model\norigin\n", followed by a name */
    size_t key_bytes;
    FILE *text; /* stream for the lines of the structure */
    int64_t structure;
    int64_t place;
    struct fleet_value rows[FLEET_ROWS][METRIC_COLUMNS]; /* metrics that wait to be sent */
    int row_count;
    enum status status;
    struct err *err;
};

/* Sends the metrics that wait, `rows` at a time. */
static enum status append_metrics(struct staging *in, int rows)
{
    enum status s = STATUS_OK;

    for (int i = 0; s == STATUS_OK && i < in->row_count; i += rows)
        s = in->db->engine->append(in->db->connection, &new_metric, rows, in->rows[i], in->err);
    in->row_count = 0;
    return s;
}

static void add_metric(void *self, const char *name, enum known known, double v,
                       const char *no_text)
{
    struct staging *const in = self;
    struct err *const err = in->err;
    bool is_new = false;
    int64_t series;

    (void)no_text;
    if (in->status != STATUS_OK)
        return;
    if (known == MAYBE_KNOWN && !(fabs(v) < LARGEST))
        known = MAYBE_UNKNOWN;
    if (fabs(v) < SMALLEST)
        v = 0;
    strcpy(in->key + in->key_bytes, name); /* a model and a name have at most 96 bytes */
    series = find_number(&in->db->series, in->key, &is_new);
    if (series == 0)
        in->status = err_no_memory(err, "a survey");
    if (is_new)
        in->status = APPEND(in->db, new_series, integer_value(series), text_value(in->fp->gpu.name),
                            text_value(origin_name(in->fp->gpu.origin)), text_value(name));
    memcpy(in->rows[in->row_count++],
           (const struct fleet_value[]){integer_value(series), integer_value(in->seq),
                                        number_value(known == MAYBE_KNOWN, v), reason_value(known)},
           sizeof(in->rows[0]));
    if (in->status == STATUS_OK && in->row_count == FLEET_ROWS)
        in->status = append_metrics(in, FLEET_ROWS);
}

static void print_line(void *self, const char *name, enum known known, double v, const char *text)
{
    const char *const sign = known == MAYBE_NOT_OBSERVABLE ? "!" : "?";

    (void)v;
    fprintf(((struct staging *)self)->text, "%s=%s\n", name, known == MAYBE_KNOWN ? text : sign);
}

static void add_line(void *self, const char *name, enum known known, double v, const char *value)
{
    struct staging *const in = self;
    struct err *const err = in->err;
    char *end = NULL;
    const double parsed = strtod(value, &end);
    const bool is_known = known == MAYBE_KNOWN;

    (void)v;
    if (in->status == STATUS_OK)
        in->status = APPEND(
            in->db, new_line, integer_value(in->structure), integer_value(in->place++),
            text_value(name), text_value(is_known ? value : NULL),
            number_value(is_known && end != value && *end == '\0', parsed), reason_value(known));
}

/* Adds the structure if it is new in this survey, and sets `in->structure` to its number. */
static enum status add_structure(struct staging *in, struct err *err)
{
    char hash[FLEET_INTEGER_BYTES];
    char *lines = NULL;
    size_t bytes = 0;
    bool is_new = false;

    in->text = open_memstream(&lines, &bytes);
    if (in->text) {
        structure_visit(in->fp, print_line, in);
        if (fclose(in->text) == 0)
            in->structure = find_number(&in->db->structures, lines, &is_new);
    }
    if (in->structure == 0)
        in->status = err_no_memory(err, "a survey");
    if (is_new) {
        (void)snprintf(hash, sizeof(hash), "%016" PRIx64, hash_bytes(HASH_START, lines, bytes));
        in->status = APPEND(in->db, new_structure, integer_value(in->structure), text_value(hash),
                            text_value(lines));
        structure_visit(in->fp, add_line, in);
    }
    free(lines);
    return in->status;
}

/* Writes the sets of disabled SMs that explain the observed pattern, "10,11 | 10,12", up to
 * CANDIDATES_BYTES. `out` has room for one more set. */
static void print_candidates(const struct disabled_sms *d, char *out)
{
    int at = 0;

    out[0] = '\0';
    for (uint32_t k = 0; k < d->listed; k++) {
        const int start = at;
        for (uint32_t i = 0; IS_KNOWN(d->sm_count) && i < d->sm_count.v; i++)
            at += sprintf(out + at, "%s%u", i > 0 ? "," : k > 0 ? " | " : "", d->candidates[k][i]);
        if (at + sizeof(" ...") > CANDIDATES_BYTES) {
            strcpy(out + start, " ...");
            return;
        }
    }
}

static enum status add_fingerprint_row(const struct staging *in, const struct host_answer_gpu *gpu,
                                       struct err *err)
{
    const struct fingerprint *const fp = in->fp;
    const struct disabled_sms *const d = &fp->topology.disabled;
    const struct throughput *const t = &fp->throughput;
    const struct maybe_u64 window = fp->windows.recommended_bytes;
    char candidates[CANDIDATES_BYTES + CANDIDATE_BYTES];
    char map[FINGERPRINT_MAP_HASH_BYTES];
    char *document = NULL;
    enum status s;

    if (asprintf(&document, "{\"id\":\"%s\",%s", gpu->fingerprint_id, gpu->text + 1) < 0)
        return err_no_memory(err, "a fingerprint");
    print_candidates(d, candidates);
    s = APPEND(
        in->db, new_fingerprint, integer_value(in->seq), text_value(gpu->uuid),
        text_value(gpu->fingerprint_id), text_value(fp->gpu.name),
        text_value(origin_name(fp->gpu.origin)), text_value(d->signature),
        IS_KNOWN(d->candidate_count) ? integer_value(d->candidate_count.v) : text_value(NULL),
        text_value(candidates), text_value(fingerprint_map_hash(&fp->topology.partition, map)),
        integer_value(fp->topology.partition.group_count), integer_value(in->structure),
        text_value(depth_name(fp->depth)), text_value(verdict_name(fp->conditions.verdict)),
        text_value(fp->gpu.driver_version), integer_value(fp->taken_at),
        number_value(IS_KNOWN(t->plateau_gbps), t->plateau_gbps.v),
        number_value(IS_KNOWN(t->whole_memory_gbps), t->whole_memory_gbps.v),
        IS_KNOWN(window) ? integer_value((int64_t)window.v) : text_value(NULL),
        text_value(document));
    free(document);
    return s;
}

static enum status add_fingerprint(struct fleet_db *db, const struct host_answer_gpu *gpu,
                                   struct err *err)
{
    struct fingerprint *const fp = gpu->fingerprint;
    struct staging in = {.db = db, .fp = fp, .seq = ++db->fingerprint_count, .err = err};

    text_sanitize(fp->gpu.name);
    text_sanitize(fp->gpu.driver_version);
    text_sanitize(fp->topology.disabled.signature);
    in.key_bytes = (size_t)snprintf(in.key, sizeof(in.key), "%s\n%s\n", fp->gpu.name,
                                    origin_name(fp->gpu.origin));
    if (add_structure(&in, err) == STATUS_OK)
        in.status = add_fingerprint_row(&in, gpu, err);
    if (in.status == STATUS_OK)
        metrics_visit(fp, add_metric, &in);
    return in.status == STATUS_OK ? append_metrics(&in, 1) : in.status;
}

/* ---- one host ---- */

static enum status add_gpu(struct fleet_db *db, uint32_t place, const struct host_answer_gpu *gpu,
                           struct err *err)
{
    const enum status s =
        APPEND(db, new_gpu, integer_value(place), integer_value(gpu->slot), text_value(gpu->uuid),
               text_value(gpu->serial), text_value(gpu->model), text_value(gpu->state),
               text_value(gpu->fingerprint_id));

    return s == STATUS_OK && gpu->fingerprint ? add_fingerprint(db, gpu, err) : s;
}

static enum status add_host(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                            const struct host_answer *answer, struct err *err)
{
    char name[TEXT_BYTES];
    char detail[TEXT_BYTES];
    char etag[FLEET_ETAG_BYTES];

    /* Drops a tag that does not fit or is not one line of text, because it would be sent back
     * changed. */
    clean_line(host->etag, etag, sizeof(etag));
    if (strcmp(etag, host->etag) != 0)
        etag[0] = '\0';
    return APPEND(db, new_host, integer_value(place),
                  text_value(clean_line(host->name, name, sizeof(name))),
                  text_value(fleet_outcome_name(host->outcome)),
                  text_value(clean_line(host->detail, detail, sizeof(detail))), text_value(etag),
                  text_value(answer ? answer->daemon_version : ""), integer_value(host->attempts),
                  integer_value((int64_t)(host->received_bytes & INT64_MAX)),
                  integer_value(host->elapsed_ms));
}

enum status fleet_survey_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                             struct host_answer *answer, struct err *err)
{
    enum status s;

    if (!db->in_survey)
        return err_set(err, STATUS_CONFLICT, "no survey is in progress");
    if (host->name[0] == '\0' || strlen(host->name) >= TEXT_BYTES ||
        (answer != NULL) != (host->outcome == FLEET_ANSWERED))
        return err_set(err, STATUS_INVALID_ARGUMENT, "invalid outcome of a host");
    s = add_host(db, place, host, answer, err);
    for (uint32_t i = 0; s == STATUS_OK && answer && i < answer->gpu_count; i++)
        s = add_gpu(db, place, &answer->gpus[i], err);
    return s;
}
