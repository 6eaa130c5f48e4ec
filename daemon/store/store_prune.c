/* store_prune.c: what is forgotten, so that a state file does not grow indefinitely.
 *
 * Observations are most of the bytes and are asked for least: they go first, run by run. A run goes
 * with its fingerprint when its GPU has many newer ones. What a GPU's current fingerprint rests on
 * stays, however old. Freed pages are used again; the file itself does not shrink.
 */
#include "store/store_private.h"

#include "base/log.h"
#include "store/store_sql.h"

/* Runs that have ended, and that nothing rests on of what is known of a GPU. */
#define ENDED_AND_OLD                                                                              \
    "SELECT r.id FROM run r WHERE r.state <> 'running' AND r.id NOT IN "                           \
    "(SELECT max(run) FROM fingerprint GROUP BY uuid) AND r.id NOT IN "                            \
    "(SELECT f.run FROM knowledge k, "                                                             \
    "json_each(CASE WHEN json_valid(k.document) THEN k.document ELSE '{}' END, '$.kept') s "       \
    "JOIN fingerprint f ON f.uuid = k.uuid AND f.id = json_extract(s.value, '$.id')) "
#define NEWER_OF_THE_SAME "(SELECT count(*) FROM run n WHERE n.uuid = r.uuid AND n.id > r.id) "
#define HAS_OBSERVATIONS  "EXISTS (SELECT 1 FROM observation o WHERE o.run = r.id) "

static const char too_many_runs[] =
    ENDED_AND_OLD "AND " NEWER_OF_THE_SAME ">= ? ORDER BY r.id LIMIT 1";
static const char too_many_observed[] =
    ENDED_AND_OLD "AND " HAS_OBSERVATIONS "AND " NEWER_OF_THE_SAME ">= ? ORDER BY r.id LIMIT 1";
static const char oldest_observed[] =
    ENDED_AND_OLD "AND " HAS_OBSERVATIONS "AND r.id > ? ORDER BY r.id LIMIT 1";

static const char delete_run[] = "DELETE FROM run WHERE id = ?";
static const char delete_observations[] = "DELETE FROM observation WHERE run = ?";

/* Deletes what belongs to the run that the query names; `*out_done`: it names none. */
static enum status forget_one(struct store *store, const char *which, int64_t limit,
                              const char *statement, bool *out_done, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    int64_t run = 0;
    enum status s = store_write_begin(store, err);

    *out_done = true;
    if (s != STATUS_OK)
        return s;
    s = store_sql_query(store->writing.db, which, SQL_VALUES(SQL_INT(limit)), &stmt, err);
    if (s == STATUS_OK)
        s = store_sql_next(stmt, &row, err);
    if (s == STATUS_OK && row)
        run = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    if (s == STATUS_OK && row) {
        s = store_sql_run(store->writing.db, statement, SQL_VALUES(SQL_INT(run)), NULL, err);
        *out_done = s != STATUS_OK;
    }
    (void)sqlite3_db_release_memory(store->writing.db);
    s = store_write_end(store, s, err);
    if (!*out_done)
        log_debug("state file: run %lld: %s are forgotten", (long long)run,
                  statement == delete_run ? "all its rows" : "its observations");
    return s;
}

static enum status forget(struct store *store, const char *which, int64_t limit,
                          const char *statement, struct err *err)
{
    bool done = false;
    enum status s = STATUS_OK;

    while (s == STATUS_OK && !done && !atomic_load(&store->stop_soon))
        s = forget_one(store, which, limit, statement, &done, err);
    return s;
}

/* Bytes in pages that hold something. */
static enum status used_bytes(struct store *store, uint64_t *out, struct err *err)
{
    sqlite3 *db;
    int64_t pages = 0;
    int64_t free_pages = 0;
    int64_t page = 0;
    enum status s = store_write_begin(store, err);

    if (s != STATUS_OK)
        return s;
    db = store->writing.db;
    s = store_sql_number(db, "PRAGMA page_count", &pages, err);
    if (s == STATUS_OK)
        s = store_sql_number(db, "PRAGMA freelist_count", &free_pages, err);
    if (s == STATUS_OK)
        s = store_sql_number(db, "PRAGMA page_size", &page, err);
    pthread_mutex_unlock(&store->writing.mutex);
    *out = (uint64_t)(pages - free_pages) * (uint64_t)page;
    return s;
}

enum status store_prune(struct store *store, struct err *err)
{
    const struct store_limits *const l = &store->limits;
    uint64_t bytes = 0;
    bool done = false;
    enum status s;

    s = forget(store, too_many_observed, l->observed, delete_observations, err);
    if (s == STATUS_OK)
        s = forget(store, too_many_runs, l->runs, delete_run, err);
    while (s == STATUS_OK && !done && !atomic_load(&store->stop_soon)) {
        s = used_bytes(store, &bytes, err);
        if (s != STATUS_OK || bytes <= l->bytes)
            break;
        s = forget_one(store, oldest_observed, 0, delete_observations, &done, err);
    }
    if (s == STATUS_OK)
        s = store_write_begin(store, err);
    if (s != STATUS_OK)
        return s;
    s = store_sql_run(store->writing.db,
                      "DELETE FROM damage WHERE id <= (SELECT max(id) FROM damage) - ?",
                      SQL_VALUES(SQL_INT(l->damage)), NULL, err);
    return store_write_end(store, s, err);
}
