/* store_scrub.c: checks every row, and the file as a whole.
 *
 * Rows are checked first and the structure afterwards. Otherwise one row whose text no longer fits
 * its column's check would make SQLite report the file as damaged. Documents are hashed in pieces,
 * so that the largest needs no more memory than the smallest. The scan has a connection of its own,
 * so no other thread waits.
 *
 * Dropped rows:
 *   an observation   alone; the fingerprint that was derived from it stays
 *   a fingerprint    alone; its GPU is measured again
 *   knowledge        alone; the row before it is served, and its GPU is measured again
 *   a run            with all rows that belong to it; its GPU is measured again
 */
#include "store/store_state.h"

#include "base/hash.h"
#include "base/heartbeat.h"
#include "base/log.h"
#include "store/store_connect.h"
#include "store/store_rows.h"
#include "store/store_sql.h"

#include <string.h>

enum { PAGE_ROWS = 128, PIECE_BYTES = 32768, STEPS_PER_BEAT = 10000 };

/* The statements of one table. A page has the key, whether the columns are valid, and the
 * document's hash, which is NULL if there is none. */
#define TABLE(table, key, good, hash)                                                              \
    {                                                                                              \
        table,                                                                                     \
            "SELECT " key ", " good ", " hash " FROM " table " WHERE " key " > ?1 ORDER BY " key   \
            " LIMIT 128",                                                                          \
            "DELETE FROM " table " WHERE " key " = ?1"                                             \
    }

struct table {
    const char *name; /* name of the table, also in the table damage */
    const char *page;
    const char *drop;
};

static const struct table tables[] = {
    TABLE("run", "id", RUN_IS_GOOD, "document_hash"),
    TABLE("observation", "id", OBSERVATION_IS_GOOD, "document_hash"),
    TABLE("fingerprint", "run", FINGERPRINT_IS_GOOD, "document_hash"),
    TABLE("knowledge", "number", KNOWLEDGE_IS_GOOD,
          "CASE WHEN document IS NOT NULL THEN document_hash END"),
    TABLE("damage", "id", DAMAGE_IS_GOOD, "NULL"),
};

enum { TABLE_COUNT = sizeof(tables) / sizeof(tables[0]) };

/* The state of a walk over all rows. */
struct scan {
    sqlite3 *db;
    struct store *store; /* drops corrupt rows; NULL means that rows are only counted */
    uint64_t rows;
    uint64_t corrupt;
};

/* Compares the document's hash, piece by piece. */
static enum status document_is_good(sqlite3 *db, const struct table *table, int64_t id,
                                    uint64_t hash, bool *out, struct err *err)
{
    unsigned char piece[PIECE_BYTES];
    uint64_t h = HASH_START;
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(db, "main", table->name, "document", id, 0, &blob);
    const int size = rc == SQLITE_OK ? sqlite3_blob_bytes(blob) : 0;
    enum status s = STATUS_OK;

    for (int at = 0; at < size && rc == SQLITE_OK; at += PIECE_BYTES) {
        const int n = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;

        rc = sqlite3_blob_read(blob, piece, n, at);
        h = hash_bytes(h, piece, (size_t)n);
    }
    *out = rc == SQLITE_OK && h == hash;
    if (rc != SQLITE_OK &&
        (rc != SQLITE_ERROR || size > 0)) /* otherwise the document is no longer a text */
        s = store_sql_fail(db, rc, "reading a document", err);
    sqlite3_blob_close(blob);
    return s;
}

/* Drops a row and records it in the table damage, in one transaction. */
static enum status drop(struct store *store, const struct table *table, int64_t id, struct err *err)
{
    static const char note[] =
        "INSERT INTO damage (found_at, kind, run, uuid, checksum) SELECT ?1, ?2, run, uuid, "
        "reach_checksum(?1, ?2, run, uuid) FROM (SELECT r.id AS run, "
        "CASE ?2 WHEN 'run' THEN coalesce(f.uuid, r.uuid) ELSE r.uuid END AS uuid "
        "FROM run r LEFT JOIN fingerprint f ON f.run = r.id "
        "WHERE r.id = CASE ?2 WHEN 'observation' THEN (SELECT run FROM observation WHERE id = ?3) "
        "WHEN 'knowledge' THEN (SELECT run FROM knowledge WHERE number = ?3) "
        "ELSE ?3 END) WHERE ?2 <> 'damage'";
    sqlite3 *db;
    int dropped = 0;
    enum status s = store_write_begin(store, err);

    if (s != STATUS_OK)
        return s;
    db = store->writing.db;
    s = store_sql_run(db, note,
                      SQL_VALUES(SQL_INT(clock_wall_seconds()), SQL_TEXT(table->name), SQL_INT(id)),
                      NULL, err);
    if (s == STATUS_OK)
        s = store_sql_run(db, table->drop, SQL_VALUES(SQL_INT(id)), &dropped, err);
    s = store_write_end(store, s, err);
    if (s == STATUS_OK && dropped > 0) {
        log_warning("state file: %s %lld failed its check and was dropped", table->name,
                    (long long)id);
        store_count_damage(store);
    }
    return s;
}

/* Writes the keys of a page's corrupt rows to `bad`. `*last` moves to the page's last key. */
static enum status scan_page(struct scan *scan, const struct table *table, int64_t *last,
                             int64_t bad[PAGE_ROWS], uint32_t *out_bad, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    enum status s;

    *out_bad = 0;
    s = store_sql_query(scan->db, table->page, SQL_VALUES(SQL_INT(*last)), &stmt, err);
    while (s == STATUS_OK) {
        bool good;

        s = store_sql_next(stmt, &more, err);
        if (s != STATUS_OK || !more)
            break;
        *last = sqlite3_column_int64(stmt, 0);
        scan->rows++;
        good = sqlite3_column_int(stmt, 1) == 1;
        if (good && sqlite3_column_type(stmt, 2) != SQLITE_NULL)
            s = document_is_good(scan->db, table, *last, (uint64_t)sqlite3_column_int64(stmt, 2),
                                 &good, err);
        if (s == STATUS_OK && !good)
            bad[(*out_bad)++] = *last;
    }
    sqlite3_finalize(stmt);
    return s;
}

static enum status scan_table(struct scan *scan, const struct table *table, struct err *err)
{
    int64_t bad[PAGE_ROWS];
    int64_t last = INT64_MIN;
    int64_t before;
    uint32_t count = 0;
    enum status s;

    do {
        before = last;
        if (scan->store && atomic_load(&scan->store->stop_soon))
            return err_set(err, STATUS_CANCELLED, "the check of the rows was cancelled");
        s = scan_page(scan, table, &last, bad, &count, err);
        for (uint32_t i = 0; scan->store && s == STATUS_OK && i < count; i++)
            s = drop(scan->store, table, bad[i], err);
        scan->corrupt += count;
    } while (s == STATUS_OK && last != before);
    return s;
}

static enum status scan_rows(struct scan *scan, struct err *err)
{
    enum status s = STATUS_OK;

    for (size_t i = 0; s == STATUS_OK && i < TABLE_COUNT; i++)
        s = scan_table(scan, &tables[i], err);
    return s;
}

enum status store_scrub_count(sqlite3 *db, uint64_t *out_rows, uint64_t *out_bad, struct err *err)
{
    struct scan scan = {.db = db};
    const enum status s = scan_rows(&scan, err);

    *out_rows = scan.rows;
    *out_bad = scan.corrupt;
    return s;
}

static int stop_if_asked(void *self)
{
    heartbeat_beat();
    return atomic_load(&((struct store *)self)->stop_soon) ? 1 : 0;
}

/* Runs SQLite's own check of pages, indexes and constraints. */
static enum status scan_structure(struct store *store, sqlite3 *db, struct err *err)
{
    sqlite3_stmt *stmt;
    bool row;
    enum status s;

    sqlite3_progress_handler(db, STEPS_PER_BEAT, stop_if_asked, store);
    s = store_sql_first(db, "PRAGMA integrity_check(1)", NULL, 0, &stmt, &row, err);
    if (s == STATUS_OK && (!row || strcmp(store_sql_text(stmt, 0), "ok") != 0))
        s = err_set(err, STATUS_CORRUPT, "%s is damaged: %s", store->path, store_sql_text(stmt, 0));
    sqlite3_finalize(stmt);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (s != STATUS_OK && atomic_load(&store->stop_soon))
        return err_set(err, STATUS_CANCELLED, "the check of the file was cancelled");
    return s;
}

enum status store_scrub(struct store *store, struct err *err)
{
    struct scan scan = {.store = store};
    enum status s = store_connect_reader(store->path, &scan.db, err);

    if (s == STATUS_OK)
        s = scan_rows(&scan, err);
    if (s == STATUS_OK)
        s = scan_structure(store, scan.db, err);
    (void)sqlite3_close(scan.db);
    return s;
}
