/* store_prune.c: deletes old rows, so that a state file does not grow indefinitely.
 *
 * Observations take most of the bytes and are used least, so they are deleted first, run by run. A
 * run is deleted with its fingerprint when its GPU has many newer runs. The observations of a GPU's
 * current fingerprint always stay. Freed pages are used again; the file itself does not shrink.
 */
#include "store/store_state.h"

#include "base/log.h"
#include "store/store_sql.h"

/* The served fingerprint of each GPU, and the fingerprint before its newest measurement. */
#define KNOWN_NOW                                                                                  \
    "(SELECT * FROM knowledge k WHERE (SELECT count(DISTINCT n.run) FROM knowledge n "             \
    "WHERE n.uuid = k.uuid AND n.run > k.run) < 2)"

/* Runs that have ended and that no part of a served fingerprint comes from. */
#define ENDED_AND_OLD                                                                              \
    "SELECT r.id FROM run r WHERE r.state <> 'running' AND r.id NOT IN "                           \
    "(SELECT max(run) FROM fingerprint GROUP BY uuid) AND r.id NOT IN "                            \
    "(SELECT f.run FROM " KNOWN_NOW " k, "                                                         \
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

/* Deletes the rows of the run that the query returns. `*out_done` is true if the query returns no
 * run. */
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
    s = store_sql_first(store->writing.db, which, SQL_VALUES(SQL_INT(limit)), &stmt, &row, err);
    if (row)
        run = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    if (row)
        s = store_sql_run(store->writing.db, statement, SQL_VALUES(SQL_INT(run)), NULL, err);
    s = store_write_end(store, s, err);
    *out_done = !row || s != STATUS_OK;
    if (!*out_done)
        log_debug("state file: %s of run %lld deleted",
                  statement == delete_run ? "all rows" : "the observations", (long long)run);
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

/* Deletes the oldest observations until the pages in use fit. */
static enum status forget_by_size(struct store *store, struct err *err)
{
    static const char used[] = "SELECT (page_count - freelist_count) * page_size FROM "
                               "pragma_page_count, pragma_freelist_count, pragma_page_size";
    const struct store_limits *const l = &store->limits;
    int64_t bytes = INT64_MAX;
    bool done = false;
    enum status s = STATUS_OK;

    while (s == STATUS_OK && !done && !atomic_load(&store->stop_soon)) {
        s = store_write_begin(store, err);
        if (s == STATUS_OK)
            s = store_write_end(store, store_sql_number(store->writing.db, used, &bytes, err), err);
        if (s != STATUS_OK || (uint64_t)bytes <= l->bytes)
            break;
        s = forget_one(store, oldest_observed, 0, delete_observations, &done, err);
    }
    return s;
}

enum status store_prune(struct store *store, struct err *err)
{
    const struct store_limits *const l = &store->limits;
    enum status s;

    s = forget(store, too_many_observed, l->observed, delete_observations, err);
    if (s == STATUS_OK)
        s = forget(store, too_many_runs, l->runs, delete_run, err);
    if (s == STATUS_OK)
        s = forget_by_size(store, err);
    if (s == STATUS_OK)
        s = store_write_begin(store, err);
    if (s != STATUS_OK)
        return s;
    s = store_sql_run(store->writing.db,
                      "DELETE FROM damage WHERE id <= (SELECT max(id) FROM damage) - ?1",
                      SQL_VALUES(SQL_INT(l->damage)), NULL, err);
    return store_write_end(store, s, err);
}

enum status store_forget(struct store *store, const char *uuid, struct err *err)
{
    static const char *const statements[] = {"DELETE FROM knowledge WHERE uuid = ?1",
                                             "DELETE FROM run WHERE uuid = ?1",
                                             "DELETE FROM damage WHERE uuid = ?1"};
    enum status s = store_write_begin(store, err);

    if (s != STATUS_OK)
        return s;
    for (size_t i = 0; s == STATUS_OK && i < sizeof statements / sizeof statements[0]; i++)
        s = store_sql_run(store->writing.db, statements[i], SQL_VALUES(SQL_TEXT(uuid)), NULL, err);
    return store_write_end(store, s, err);
}
