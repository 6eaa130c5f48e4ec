/* staging.c: adds the answer of a host to the temporary tables of a survey
 * (schema/fleet/staging.sql).
 *
 * What many fingerprints share is sent once: a structure and the name of a metric get a number when
 * they first occur, and rows refer to it.
 */
#include "clients/fleet/db_engine.h"
#include "clients/fleet/metrics.h"

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
    MAX_DOCUMENT_BYTES = 1 << 20, /* the largest that a daemon makes is a tenth of it */
    CANDIDATES_BYTES = 1024,      /* an index of PostgreSQL takes 2.7 kB with the signature */
    CANDIDATE_BYTES = FINGERPRINT_MAX_DISABLED * 6 + 4,
    KEY_BYTES = 256 /* model, origin and name of a metric */
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
static const struct fleet_table new_metric = {"fleet_new_metric",
                                              "series, fingerprint, value, absent", 4};

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

/* A value for each column. */
#define APPEND(db, table, ...)                                                                     \
    (db)->engine->append((db)->connection, &(table), (const struct fleet_value[]){__VA_ARGS__}, err)

/* One printable line that fits. */
static const char *clean(const char *text, char *out, size_t out_size)
{
    (void)snprintf(out, out_size, "%s", text);
    text_sanitize(out);
    return out;
}

/* ---- numbered texts ---- */

struct numbered {
    int64_t number;
    const char *text; /* stored after it */
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct numbered *)a)->text, ((const struct numbered *)b)->text);
}

/* The number of a text; a new one is the next, and `*out_new` is then true. 0 without memory. */
static int64_t number_of(struct fleet_numbering *in, const char *text, bool *out_new)
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

/* What the callbacks of metrics.h share. */
struct staging {
    struct fleet_db *db;
    const struct fingerprint *fp;
    int64_t seq;
    char key[KEY_BYTES]; /* "model\norigin\n", followed by a name */
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
    struct err *const err = in->err;
    bool is_new = false;
    int64_t series;

    if (in->status != STATUS_OK)
        return;
    if (known == MAYBE_KNOWN && !(fabs(v) < LARGEST))
        known = MAYBE_UNKNOWN;
    if (fabs(v) < SMALLEST)
        v = 0;
    (void)snprintf(in->key + in->key_bytes, sizeof(in->key) - in->key_bytes, "%s", name);
    series = number_of(&in->db->series, in->key, &is_new);
    if (series == 0)
        in->status = err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    if (is_new)
        in->status = APPEND(in->db, new_series, integer_value(series), text_value(in->fp->gpu.name),
                            text_value(origin_name(in->fp->gpu.origin)), text_value(name));
    if (in->status == STATUS_OK)
        in->status = APPEND(in->db, new_metric, integer_value(series), integer_value(in->seq),
                            number_value(known == MAYBE_KNOWN, v), absent_value(known));
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
    struct err *const err = in->err;
    char *end = NULL;
    const double number = known == MAYBE_KNOWN ? strtod(value, &end) : 0;
    const bool is_number = known == MAYBE_KNOWN && end != value && *end == '\0';

    if (in->status == STATUS_OK)
        in->status =
            APPEND(in->db, new_line, integer_value(in->structure), integer_value(in->place++),
                   text_value(name), text_value(known == MAYBE_KNOWN ? value : NULL),
                   number_value(is_number, number), absent_value(known));
}

/* Adds the structure if it is new to this survey; `in->structure` is then its number. */
static enum status add_structure(struct staging *in, struct err *err)
{
    char hash[FLEET_INTEGER_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    bool is_new = false;

    in->text = open_memstream(&text, &bytes);
    if (in->text) {
        structure_visit(in->fp, print_line, in);
        if (fclose(in->text) == 0)
            in->structure = number_of(&in->db->structures, text, &is_new);
    }
    if (in->structure == 0)
        in->status = err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    if (is_new) {
        (void)snprintf(hash, sizeof(hash), "%016" PRIx64, hash_bytes(HASH_START, text, bytes));
        in->status = APPEND(in->db, new_structure, integer_value(in->structure), text_value(hash),
                            text_value(text));
        structure_visit(in->fp, add_line, in);
    }
    free(text);
    return in->status;
}

/* "10,11 | 10,12": the sets of SMs that leave the same pattern, up to
 * CANDIDATES_BYTES. `out` has room for one set more. */
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
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
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
    return in.status;
}

/* ---- one host ---- */

static enum status check_sizes(const struct host_answer *answer, struct err *err)
{
    for (uint32_t i = 0; i < answer->gpu_count; i++) {
        if (answer->gpus[i].text && strlen(answer->gpus[i].text) > MAX_DOCUMENT_BYTES)
            return err_set(err, STATUS_CORRUPT, "a fingerprint exceeds %d bytes",
                           MAX_DOCUMENT_BYTES);
    }
    return STATUS_OK;
}

/* The GPUs of an answer, by bits, whose fingerprint is stored already. */
struct stored {
    const struct host_answer *answer;
    uint32_t gpus;
};

static enum status read_stored(void *self, int columns, const char *const *values, struct err *err)
{
    struct stored *const stored = self;

    (void)columns;
    (void)err;
    for (uint32_t i = 0; i < stored->answer->gpu_count; i++) {
        if (strcmp(stored->answer->gpus[i].uuid, values[0]) == 0 &&
            strcmp(stored->answer->gpus[i].fingerprint_id, values[1]) == 0)
            stored->gpus |= (uint32_t)1 << i;
    }
    return STATUS_OK;
}

/* Finds those that the host reported last time. Others that are stored are added in vain. */
static enum status find_stored(struct fleet_db *db, const char *host, struct stored *out,
                               struct err *err)
{
    return fleet_query(db,
                       "SELECT f.uuid, f.name FROM fleet_host h "
                       "JOIN fleet_sighting s ON s.survey = h.answered AND s.host = h.id "
                       "JOIN fleet_fingerprint f ON f.id = s.fingerprint WHERE h.name = $1",
                       FLEET_VALUES(host), read_stored, out, err);
}

static enum status add_gpu(struct fleet_db *db, uint32_t place, const struct host_answer_gpu *gpu,
                           bool stored, struct err *err)
{
    const enum status s =
        APPEND(db, new_gpu, integer_value(place), integer_value(gpu->slot), text_value(gpu->uuid),
               text_value(gpu->serial), text_value(gpu->model), text_value(gpu->state),
               text_value(gpu->fingerprint_id));

    return s == STATUS_OK && gpu->fingerprint && !stored ? add_fingerprint(db, gpu, err) : s;
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
    return APPEND(db, new_host, integer_value(place),
                  text_value(clean(host->name, name, sizeof(name))),
                  text_value(fleet_outcome_name(host->outcome)),
                  text_value(clean(host->detail, detail, sizeof(detail))), text_value(etag),
                  text_value(answer ? answer->daemon_version : ""), integer_value(host->attempts),
                  integer_value((int64_t)(host->received_bytes & INT64_MAX)),
                  integer_value(host->elapsed_ms));
}

enum status fleet_survey_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                             const struct host_answer *answer, struct err *err)
{
    struct stored stored = {.answer = answer};
    enum status s = STATUS_OK;

    if (!db->in_survey)
        return err_set(err, STATUS_CONFLICT, "no survey is in progress");
    if (host->name[0] == '\0' || strlen(host->name) >= TEXT_BYTES ||
        (answer != NULL) != (host->outcome == FLEET_ANSWERED))
        return err_set(err, STATUS_INVALID_ARGUMENT, "this is not the outcome of a host");
    if (answer)
        s = check_sizes(answer, err);
    if (s == STATUS_OK)
        s = add_host(db, place, host, answer, err);
    if (s == STATUS_OK && answer)
        s = find_stored(db, host->name, &stored, err);
    for (uint32_t i = 0; s == STATUS_OK && answer && i < answer->gpu_count; i++)
        s = add_gpu(db, place, &answer->gpus[i], stored.gpus >> i & 1, err);
    return s;
}
