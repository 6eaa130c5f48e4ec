/* keep_fingerprint.c: a fingerprint, kept once: its document as it came, its numbers in columns.
 *
 * It comes from a host that may lie. It must be one, be named by its own hash and belong to the GPU
 * that shows it; no text in it is longer than a daemon's would be.
 */
#include "clients/fleet/keep_private.h"

#include "base/hash.h"
#include "base/text.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_map_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DOCUMENT_BYTES = 1 << 20, /* the largest that a daemon makes is a tenth of it */
    MAX_CELLS = 1024,
    CANDIDATES_BYTES = 1024 /* an index of PostgreSQL takes 2.7 kB with the signature */
};

/* ---- reading it ---- */

/* Is it named by the hash of what is in it? Of all that is in it: a newer daemon hashes fields that
 * this release does not know. */
static enum status check_id(json_t *json, const char *claimed, struct err *err)
{
    const char *const told = json_string_value(json_object_get(json, "id"));
    char id[FINGERPRINT_ID_BYTES] = "";
    const bool same = told && strcmp(told, claimed) == 0;

    json_object_del(json, "id");
    if (!fingerprint_json_id(json, id))
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    if (!same || strcmp(id, claimed) != 0)
        return err_set(err, STATUS_CORRUPT, "fingerprint %.40s is named by another hash", claimed);
    return STATUS_OK;
}

static enum status read_document(const struct fleet_gpu *gpu, struct fingerprint *out,
                                 struct err *err)
{
    const size_t bytes = strnlen(gpu->fingerprint_json, MAX_DOCUMENT_BYTES + 1);
    json_error_t why;
    json_t *json = NULL;
    enum status s;

    if (bytes > MAX_DOCUMENT_BYTES)
        return err_set(err, STATUS_CORRUPT, "a fingerprint of more than %d bytes",
                       MAX_DOCUMENT_BYTES);
    json = json_loadb(gpu->fingerprint_json, bytes, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        return err_set(err, STATUS_CORRUPT, "a fingerprint is no JSON: %.120s", why.text);
    s = fingerprint_from_json(json, out, err);
    if (s == STATUS_OK)
        s = check_id(json, gpu->fingerprint_id, err);
    if (s == STATUS_OK && strcmp(out->gpu.uuid, gpu->uuid) != 0)
        s = err_set(err, STATUS_CORRUPT, "GPU %.64s shows a fingerprint of %.64s", gpu->uuid,
                    out->gpu.uuid);
    text_tidy(out->gpu.name);
    text_tidy(out->gpu.driver_version);
    text_tidy(out->topology.disabled.signature);
    json_decref(json);
    return s;
}

/* ---- rows that many fingerprints share ---- */

enum status fleet_keep_kind(struct fleet_db *db, const char *model, const char *origin,
                            int64_t *out, struct err *err)
{
    bool found = false;
    enum status s =
        fleet_run_number(db, "SELECT id FROM fleet_kind WHERE model = $1 AND origin = $2",
                         FLEET_VALUES(model, origin), out, &found, err);

    if (s == STATUS_OK && !found)
        s = fleet_run_number(
            db,
            "INSERT INTO fleet_kind (id, model, origin) "
            "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_kind), $1, $2) RETURNING id",
            FLEET_VALUES(model, origin), out, &found, err);
    return s;
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

static enum status keep_signature(struct fleet_db *db, const struct disabled_sms *d, int64_t *out,
                                  struct err *err)
{
    char candidates[CANDIDATES_BYTES];
    char count[FLEET_NUMBER_BYTES];
    const char *known = NULL;
    bool found = false;
    enum status s;

    print_candidates(d, candidates);
    if (IS_KNOWN(d->candidate_count))
        known = fleet_number_text(d->candidate_count.v, count);
    s = fleet_run_number(db,
                         "SELECT id FROM fleet_signature WHERE signature = $1 AND candidates = $2 "
                         "AND COALESCE(candidate_count, -1) = COALESCE(CAST($3 AS BIGINT), -1)",
                         FLEET_VALUES(d->signature, candidates, known), out, &found, err);
    if (s == STATUS_OK && !found)
        s = fleet_run_number(
            db,
            "INSERT INTO fleet_signature (id, signature, candidates, candidate_count) "
            "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_signature), $1, $2, $3) RETURNING "
            "id",
            FLEET_VALUES(d->signature, candidates, known), out, &found, err);
    return s;
}

static enum status keep_map(struct fleet_db *db, const struct sm_partition *p, int64_t *out,
                            struct err *err)
{
    char hash[FINGERPRINT_MAP_HASH_BYTES];
    char count[FLEET_NUMBER_BYTES];
    bool found = false;
    enum status s;

    fingerprint_map_hash(p, hash);
    s = fleet_run_number(db, "SELECT id FROM fleet_map WHERE hash = $1", FLEET_VALUES(hash), out,
                         &found, err);
    if (s == STATUS_OK && !found)
        s = fleet_run_number(db,
                             "INSERT INTO fleet_map (id, hash, group_count) VALUES "
                             "((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_map), $1, $2) "
                             "RETURNING id",
                             FLEET_VALUES(hash, fleet_number_text(p->group_count, count)), out,
                             &found, err);
    return s;
}

static enum status keep_structure(struct fleet_db *db, const struct fingerprint *fp, int64_t *out,
                                  struct err *err)
{
    char *const text = numbers_structure(fp);
    char hash[FLEET_NUMBER_BYTES];
    bool found = false;
    enum status s;

    if (!text)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    (void)snprintf(hash, sizeof(hash), "%016" PRIx64, hash_bytes(HASH_START, text, strlen(text)));
    /* The text is compared too: a host could look for another one of the same hash. */
    s = fleet_run_number(db, "SELECT id FROM fleet_structure WHERE hash = $1 AND text = $2",
                         FLEET_VALUES(hash, text), out, &found, err);
    if (s == STATUS_OK && !found)
        s = fleet_run_number(
            db,
            "INSERT INTO fleet_structure (id, hash, text) "
            "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_structure), $1, $2) RETURNING id",
            FLEET_VALUES(hash, text), out, &found, err);
    free(text);
    return s;
}

/* ---- its measured numbers ---- */

static enum status read_name(void *self, int columns, const char *const *values, struct err *err)
{
    (void)columns;
    return number_names_add(self, values[1] ? values[1] : "", err);
}

static enum status load_names(struct fleet_db *db, struct err *err)
{
    enum status s;

    if (db->names)
        return STATUS_OK;
    db->names = number_names_new();
    if (!db->names)
        return err_set(err, STATUS_NO_MEMORY, "no memory for the names of numbers");
    s = fleet_run(db, "SELECT id, name FROM fleet_number ORDER BY id", 0, NULL, read_name,
                  db->names, err);
    if (s != STATUS_OK) {
        number_names_free(db->names);
        db->names = NULL;
    }
    return s;
}

enum status fleet_names(struct fleet_db *db, const struct number_names **out, struct err *err)
{
    const enum status s = load_names(db, err);

    *out = db->names;
    return s;
}

struct packing {
    struct fleet_db *db;
    char *at;
    uint32_t cells;
    uint32_t left_out;
    enum status status;
    struct err *err;
};

static enum status add_name(struct packing *p, const char *name, uint32_t *out)
{
    char id[FLEET_NUMBER_BYTES];
    enum status s;

    *out = number_names_count(p->db->names);
    s = fleet_run(p->db, "INSERT INTO fleet_number (id, name) VALUES ($1, $2)",
                  FLEET_VALUES(fleet_number_text(*out, id), name), NULL, NULL, p->err);
    return s == STATUS_OK ? number_names_add(p->db->names, name, p->err) : s;
}

static void pack_number(void *self, const char *name, enum known known, double v)
{
    struct packing *const p = self;
    uint32_t id;

    if (p->status != STATUS_OK)
        return;
    id = number_names_find(p->db->names, name);
    if (p->cells == MAX_CELLS ||
        (id == NUMBER_MAX_NAMES && number_names_count(p->db->names) == NUMBER_MAX_NAMES)) {
        p->left_out++;
        return;
    }
    if (id == NUMBER_MAX_NAMES)
        p->status = add_name(p, name, &id);
    if (p->status != STATUS_OK)
        return;
    p->at = numbers_put(p->at, id, known, v);
    p->cells++;
}

static enum status keep_numbers(struct fleet_db *db, const struct fingerprint *fp, const char *id,
                                struct err *err)
{
    char cells[MAX_CELLS * NUMBER_CELL_BYTES + 1] = "";
    char left_out[FLEET_NUMBER_BYTES];
    struct packing p = {.db = db, .at = cells, .err = err};
    enum status s = load_names(db, err);

    if (s != STATUS_OK)
        return s;
    numbers_visit(fp, pack_number, &p);
    if (p.status != STATUS_OK)
        return p.status;
    return fleet_run(
        db, "INSERT INTO fleet_numbers (fingerprint, left_out, cells) VALUES ($1, $2, $3)",
        FLEET_VALUES(id, fleet_number_text(p.left_out, left_out), cells), NULL, NULL, err);
}

/* ---- the row ---- */

/* NULL where it is not known. */
static const char *real_text(struct maybe_f64 m, char *out, size_t out_size)
{
    (void)snprintf(out, out_size, "%.17g", m.v);
    return IS_KNOWN(m) ? out : NULL;
}

static enum status insert_row(struct fleet_db *db, const struct fingerprint *fp,
                              const struct fleet_gpu *gpu, struct fleet_kept_fingerprint *k,
                              struct err *err)
{
    char numbers[6][FLEET_NUMBER_BYTES];
    char plateau[40];
    char whole[40];
    const struct maybe_u64 window = fp->windows.recommended_bytes;
    bool found = false;

    return fleet_run_number(
        db,
        "INSERT INTO fleet_fingerprint (id, uuid, name, kind, signature, map, structure, depth, "
        "verdict, driver, taken_at, plateau_gbps, whole_memory_gbps, window_bytes) "
        "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM fleet_fingerprint), $1, $2, $3, $4, $5, $6, "
        "$7, $8, $9, $10, $11, $12, $13) RETURNING id",
        FLEET_VALUES(gpu->uuid, gpu->fingerprint_id, fleet_number_text(k->kind, numbers[0]),
                     fleet_number_text(k->signature, numbers[1]),
                     fleet_number_text(k->map, numbers[2]),
                     fleet_number_text(k->structure, numbers[3]), depth_name(fp->depth),
                     verdict_name(fp->conditions.verdict), fp->gpu.driver_version,
                     fleet_number_text(fp->taken_at, numbers[4]),
                     real_text(fp->throughput.plateau_gbps, plateau, sizeof(plateau)),
                     real_text(fp->throughput.whole_memory_gbps, whole, sizeof(whole)),
                     IS_KNOWN(window) ? fleet_number_text((int64_t)window.v, numbers[5]) : NULL),
        &k->id, &found, err);
}

static enum status insert(struct fleet_db *db, const struct fingerprint *fp,
                          const struct fleet_gpu *gpu, struct fleet_kept_fingerprint *k,
                          struct err *err)
{
    char id[FLEET_NUMBER_BYTES];
    enum status s = fleet_keep_kind(db, fp->gpu.name, origin_name(fp->gpu.origin), &k->kind, err);

    if (s == STATUS_OK)
        s = keep_signature(db, &fp->topology.disabled, &k->signature, err);
    if (s == STATUS_OK)
        s = keep_map(db, &fp->topology.partition, &k->map, err);
    if (s == STATUS_OK)
        s = keep_structure(db, fp, &k->structure, err);
    if (s == STATUS_OK)
        s = insert_row(db, fp, gpu, k, err);
    if (s == STATUS_OK)
        s = keep_numbers(db, fp, fleet_number_text(k->id, id), err);
    if (s == STATUS_OK)
        s = fleet_run(db, "INSERT INTO fleet_document (fingerprint, document) VALUES ($1, $2)",
                      FLEET_VALUES(id, gpu->fingerprint_json), NULL, NULL, err);
    return s;
}

static enum status read_kept(void *self, int columns, const char *const *values, struct err *err)
{
    struct fleet_kept_fingerprint *const k = self;

    (void)columns;
    (void)err;
    *k = (struct fleet_kept_fingerprint){.id = strtoll(values[0], NULL, 10),
                                         .kind = strtoll(values[1], NULL, 10),
                                         .signature = strtoll(values[2], NULL, 10),
                                         .map = strtoll(values[3], NULL, 10),
                                         .structure = strtoll(values[4], NULL, 10)};
    return STATUS_OK;
}

enum status fleet_keep_fingerprint(struct fleet_db *db, const struct fleet_gpu *gpu,
                                   struct fleet_kept_fingerprint *out, struct err *err)
{
    struct fingerprint *fp = NULL;
    enum status s;

    memset(out, 0, sizeof(*out));
    s = fleet_run(db,
                  "SELECT id, kind, signature, map, structure FROM fleet_fingerprint "
                  "WHERE uuid = $1 AND name = $2",
                  FLEET_VALUES(gpu->uuid, gpu->fingerprint_id), read_kept, out, err);
    if (s != STATUS_OK || out->id != 0)
        return s;
    if (!gpu->fingerprint_json)
        return err_set(err, STATUS_CORRUPT,
                       "GPU %.64s names fingerprint %.40s, which it never showed", gpu->uuid,
                       gpu->fingerprint_id);
    fp = calloc(1, sizeof(*fp));
    if (!fp)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    s = read_document(gpu, fp, err);
    if (s == STATUS_OK)
        s = insert(db, fp, gpu, out, err);
    free(fp);
    return s;
}

enum status fleet_has_fingerprint(struct fleet_db *db, const char *fingerprint_id, bool *out,
                                  struct err *err)
{
    int64_t id = 0;

    return fleet_run_number(db, "SELECT id FROM fleet_fingerprint WHERE name = $1",
                            FLEET_VALUES(fingerprint_id), &id, out, err);
}
