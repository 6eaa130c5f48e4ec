/* store_scrub.c: looks at every row, and at the file as a whole.
 *
 * Rows first, the structure after: a row whose text no longer fits its column's check would make
 * SQLite call the file damaged, and is only a row. Documents are hashed in pieces, so that the
 * largest costs no more memory than the smallest. Reading has a connection of its own: nobody
 * waits.
 *
 * What is dropped:
 *   an observation   alone; the fingerprint that was concluded from it stands
 *   a fingerprint    alone; its GPU is measured again
 *   knowledge        alone; the row before it is served, and its GPU is measured again
 *   a run            with all that belongs to it; its GPU is measured again
 */
#include "store/store_private.h"

#include "base/log.h"
#include "base/heartbeat.h"
#include "store/store_connect.h"
#include "store/store_rows.h"
#include "store/store_sql.h"

#include <string.h>

enum { PAGE_ROWS = 128, PIECE_BYTES = 32768, STEPS_BETWEEN_LOOKS = 10000 };

enum table { RUNS = 0, OBSERVATIONS, FINGERPRINTS, KNOWLEDGE, DAMAGES, TABLE_COUNT };

static const struct {
    const char *name; /* of the table, and in the table damage */
    const char *page; /* id and what its check needs, from an id on */
    const char *drop;
} tables[TABLE_COUNT] = {
    [RUNS] = {"run",
              "SELECT id, document_hash, row_hash, "
              "checksum = reach_checksum(id, row_hash, state, ended_at, failure, failure_text), "
              "uuid, depth, started_at FROM run WHERE id > ? ORDER BY id LIMIT 128",
              "DELETE FROM run WHERE id = ?"},
    [OBSERVATIONS] =
        {"observation",
         "SELECT id, document_hash, row_hash, checksum = reach_checksum(id, row_hash), run, "
         "kind, started_at, duration_ns, value_count, verdict FROM observation "
         "WHERE id > ? ORDER BY id LIMIT 128",
         "DELETE FROM observation WHERE id = ?"},
    [FINGERPRINTS] = {"fingerprint",
                      "SELECT run, document_hash, row_hash, 1, uuid, id, depth, origin, taken_at, "
                      "duration_ms FROM fingerprint WHERE run > ? ORDER BY run LIMIT 128",
                      "DELETE FROM fingerprint WHERE run = ?"},
    [KNOWLEDGE] = {"knowledge",
                   "SELECT run, document_hash, row_hash, 1, uuid, id, depth, origin, taken_at, "
                   "duration_ms FROM knowledge WHERE run > ? ORDER BY run LIMIT 128",
                   "DELETE FROM knowledge WHERE run = ?"},
    [DAMAGES] =
        {"damage",
         "SELECT id, 0, 0, checksum = reach_checksum(found_at, kind, run, uuid) FROM damage "
         "WHERE id > ? ORDER BY id LIMIT 128",
         "DELETE FROM damage WHERE id = ?"},
};

static const char *text_of(sqlite3_stmt *stmt, int column)
{
    const char *const text = (const char *)sqlite3_column_text(stmt, column);

    return text ? text : "";
}

/* The hash that the columns give; 0 and false where a word is none of ours. */
static bool hash_run(sqlite3_stmt *stmt, uint64_t *out)
{
    const struct store_run_row row = {.uuid = text_of(stmt, 4),
                                      .depth = text_of(stmt, 5),
                                      .started_at = sqlite3_column_int64(stmt, 6)};

    *out = store_rows_run(&row, (uint64_t)sqlite3_column_int64(stmt, 1));
    return true;
}

static bool hash_observation(sqlite3_stmt *stmt, uint64_t *out)
{
    struct store_observation_row row = {.run = sqlite3_column_int64(stmt, 4),
                                        .started_at = sqlite3_column_int64(stmt, 6),
                                        .duration_ns = (nsec_t)sqlite3_column_int64(stmt, 7),
                                        .value_count = (uint64_t)sqlite3_column_int64(stmt, 8)};

    if (!probe_kind_from_name(text_of(stmt, 5), &row.kind) ||
        !verdict_from_name(text_of(stmt, 9), &row.verdict))
        return false;
    *out = store_rows_observation(&row, (uint64_t)sqlite3_column_int64(stmt, 1));
    return true;
}

static bool hash_fingerprint(sqlite3_stmt *stmt, uint64_t *out)
{
    struct store_fingerprint_row row = {.run = sqlite3_column_int64(stmt, 0),
                                        .taken_at = sqlite3_column_int64(stmt, 8),
                                        .duration_ms = (uint32_t)sqlite3_column_int64(stmt, 9)};

    (void)snprintf(row.id, sizeof(row.id), "%s", text_of(stmt, 5));
    if (!depth_from_name(text_of(stmt, 6), &row.depth) ||
        !origin_from_name(text_of(stmt, 7), &row.origin))
        return false;
    *out = store_rows_fingerprint(&row, text_of(stmt, 4), (uint64_t)sqlite3_column_int64(stmt, 1));
    return true;
}

static bool columns_agree(enum table table, sqlite3_stmt *stmt)
{
    uint64_t hash = 0;
    bool known = true;

    if (table == RUNS)
        known = hash_run(stmt, &hash);
    else if (table == OBSERVATIONS)
        known = hash_observation(stmt, &hash);
    else if (table == FINGERPRINTS || table == KNOWLEDGE)
        known = hash_fingerprint(stmt, &hash);
    return known && hash == (uint64_t)sqlite3_column_int64(stmt, 2) &&
           sqlite3_column_int(stmt, 3) == 1;
}

/* The document's hash, piece by piece. */
static enum status document_agrees(sqlite3 *db, enum table table, int64_t id, uint64_t hash,
                                   bool *out, struct err *err)
{
    unsigned char piece[PIECE_BYTES];
    uint64_t h = store_rows_document("", 0);
    sqlite3_blob *blob = NULL;
    int rc;

    rc = sqlite3_blob_open(db, "main", tables[table].name, "document", id, 0, &blob);
    if (rc == SQLITE_ERROR) { /* its type is no text any more */
        sqlite3_blob_close(blob);
        *out = false;
        return STATUS_OK;
    }
    if (rc == SQLITE_OK) {
        const int size = sqlite3_blob_bytes(blob);

        for (int at = 0; at < size && rc == SQLITE_OK; at += PIECE_BYTES) {
            const int n = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;

            rc = sqlite3_blob_read(blob, piece, n, at);
            h = store_rows_document_more(h, piece, (size_t)n);
        }
    }
    *out = h == hash;
    if (rc != SQLITE_OK) {
        const enum status s = store_sql_fail(db, rc, "looking at a document", err);

        sqlite3_blob_close(blob);
        return s;
    }
    sqlite3_blob_close(blob);
    return STATUS_OK;
}

/* One transaction: the row goes, and it is written down that it was there. */
static enum status drop(struct store *store, enum table table, int64_t id, struct err *err)
{
    static const char note[] =
        "INSERT INTO damage (found_at, kind, run, uuid, checksum) SELECT ?1, ?2, run, uuid, "
        "reach_checksum(?1, ?2, run, uuid) FROM (SELECT r.id AS run, "
        "CASE ?2 WHEN 'run' THEN coalesce(f.uuid, r.uuid) ELSE r.uuid END AS uuid "
        "FROM run r LEFT JOIN fingerprint f ON f.run = r.id "
        "WHERE r.id = CASE ?2 WHEN 'observation' THEN (SELECT run FROM observation WHERE id = ?3) "
        "ELSE ?3 END)";
    int dropped = 0;
    enum status s = store_write_begin(store, err);

    if (s != STATUS_OK)
        return s;
    s = store_sql_begin(store->writing.db, err);
    if (s == STATUS_OK) {
        if (table != DAMAGES)
            s = store_sql_run(store->writing.db, note,
                              SQL_VALUES(SQL_INT(clock_wall_seconds()),
                                         SQL_TEXT(tables[table].name), SQL_INT(id)),
                              NULL, err);
        if (s == STATUS_OK)
            s = store_sql_run(store->writing.db, tables[table].drop, SQL_VALUES(SQL_INT(id)),
                              &dropped, err);
        s = store_sql_end(store->writing.db, s, err);
    }
    s = store_write_end(store, s, err);
    if (s == STATUS_OK && dropped > 0) {
        log_warning("state file: %s %lld failed its check and was dropped", tables[table].name,
                    (long long)id);
        store_count_damage(store);
    }
    return s;
}

/* Rows of one page that are not what was written; `*last` moves on, and stays at the end. */
static enum status scan_page(sqlite3 *db, enum table table, int64_t *last, int64_t *bad,
                             uint32_t *out_bad, uint64_t *rows, struct err *err)
{
    const int64_t from = *last;
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    enum status s;

    *out_bad = 0;
    s = store_sql_query(db, tables[table].page, SQL_VALUES(SQL_INT(from)), &stmt, err);
    while (s == STATUS_OK) {
        bool good;

        s = store_sql_next(stmt, &more, err);
        if (s != STATUS_OK || !more)
            break;
        *last = sqlite3_column_int64(stmt, 0);
        (*rows)++;
        good = columns_agree(table, stmt);
        if (good && table != DAMAGES)
            s = document_agrees(db, table, *last, (uint64_t)sqlite3_column_int64(stmt, 1), &good,
                                err);
        if (s == STATUS_OK && !good)
            bad[(*out_bad)++] = *last;
    }
    sqlite3_finalize(stmt);
    return s;
}

/* Counts what look_at_table would drop. */
enum status store_scrub_count(sqlite3 *db, uint64_t *out_rows, uint64_t *out_bad, struct err *err)
{
    int64_t bad[PAGE_ROWS];
    enum status s = STATUS_OK;

    *out_rows = *out_bad = 0;
    for (int table = 0; table < TABLE_COUNT; table++) {
        int64_t last = INT64_MIN;
        int64_t before;
        uint32_t count = 0;

        do {
            before = last;
            s = scan_page(db, (enum table)table, &last, bad, &count, out_rows, err);
            *out_bad += count;
        } while (s == STATUS_OK && last != before);
        if (s != STATUS_OK)
            return s;
    }
    return s;
}

static enum status scan_table(struct store *store, sqlite3 *db, enum table table, struct err *err)
{
    int64_t bad[PAGE_ROWS];
    int64_t last = INT64_MIN;
    int64_t before;
    uint64_t rows = 0;
    uint32_t count = 0;
    enum status s;

    do {
        before = last;
        if (atomic_load(&store->stop_soon))
            return err_set(err, STATUS_CANCELLED, "looking at the rows was cut short");
        s = scan_page(db, table, &last, bad, &count, &rows, err);
        for (uint32_t i = 0; s == STATUS_OK && i < count; i++)
            s = drop(store, table, bad[i], err);
    } while (s == STATUS_OK && last != before);
    return s;
}

static int stop_if_asked(void *self)
{
    heartbeat_beat();
    return atomic_load(&((struct store *)self)->stop_soon) ? 1 : 0;
}

/* SQLite's own look at pages, indexes and constraints. */
static enum status scan_structure(struct store *store, sqlite3 *db, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    enum status s;

    sqlite3_progress_handler(db, STEPS_BETWEEN_LOOKS, stop_if_asked, store);
    s = store_sql_query(db, "PRAGMA integrity_check(1)", NULL, 0, &stmt, err);
    if (s == STATUS_OK)
        s = store_sql_next(stmt, &row, err);
    if (s == STATUS_OK && (!row || strcmp(text_of(stmt, 0), "ok") != 0))
        s = err_set(err, STATUS_CORRUPT, "%s is damaged: %s", store->path, text_of(stmt, 0));
    sqlite3_finalize(stmt);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (s != STATUS_OK && atomic_load(&store->stop_soon))
        return err_set(err, STATUS_CANCELLED, "looking at the file was cut short");
    return s;
}

enum status store_scrub(struct store *store, struct err *err)
{
    sqlite3 *db = NULL;
    enum status s = store_connect_reader(store->path, &db, err);

    for (int table = 0; s == STATUS_OK && table < TABLE_COUNT; table++)
        s = scan_table(store, db, (enum table)table, err);
    if (s == STATUS_OK)
        s = scan_structure(store, db, err);
    (void)sqlite3_close(db);
    return s;
}
