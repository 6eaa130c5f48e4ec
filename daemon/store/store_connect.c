/* store_connect.c: opens connections, or refuses to.
 *
 *     whose file? (store_file.c)  ->  SQLite  ->  whose database?  ->  schema  ->  WAL
 *
 * Nothing is written before the schema is checked, and the log is not checkpointed on close before
 * all checks pass. So a refused file keeps every byte. The first commit of a new file is made with
 * a rollback journal. So the header shows from the start that the file is from reachd
 * (store_file.c).
 *
 * By default SQLite's caches grow to 2 MiB per connection. Documents are read once and then served
 * from snapshots, so a small cache is sufficient. Each connection has a quarter of a MiB.
 */
#include "store/store_connect.h"

#include "store/store_file.h"
#include "store/store_sql.h"

#include <stdio.h>
#include <string.h>

extern const char store_sql_tables[]; /* schema/db/tables.sql, embedded by the build */

#define HEAP_LIMIT      ((sqlite3_int64)3 << 20) /* caches shrink above this size; no call fails */
#define BUSY_TIMEOUT_MS 2000                     /* users with a shell may read the file */

/* Settings that every connection gets before it may write. */
static const char connection_settings[] = "PRAGMA cache_size = -256;"
                                          "PRAGMA mmap_size = 0;"
                                          "PRAGMA foreign_keys = ON;"
                                          "PRAGMA synchronous = FULL;";

static const char log_settings[] = "PRAGMA wal_autocheckpoint = 512;"
                                   "PRAGMA journal_size_limit = 4194304;";

enum { CONNECTION_FLAGS = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE };

/* Applies the settings that are the same for every connection. */
static enum status set_up(sqlite3 *db, struct err *err)
{
    const int rc = store_sql_add_functions(db);

    if (rc != SQLITE_OK)
        return store_sql_fail(db, rc, "opening", err);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    return STATUS_OK;
}

static enum status open_connection(const char *path, int flags, sqlite3 **out, struct err *err)
{
    const int rc = sqlite3_open_v2(path, out, flags | CONNECTION_FLAGS, NULL);

    return rc == SQLITE_OK ? set_up(*out, err)
                           : sqlite_fail(&store_sqlite, *out, rc, path, "opening", err);
}

/* Reads the numbers of the header from SQLite, because a log beside the file may have newer
 * numbers. */
static enum status inspect(sqlite3 *db, const char *path, int64_t *out_version, struct err *err)
{
    int64_t application = 0;
    int64_t tables = 0;
    enum status s;

    s = store_sql_number(db, "PRAGMA application_id", &application, err);
    if (s == STATUS_OK)
        s = store_sql_number(db, "PRAGMA user_version", out_version, err);
    if (s == STATUS_OK)
        s = store_sql_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (s != STATUS_OK)
        return s;
    if (application == 0 && *out_version == 0 && tables == 0)
        return STATUS_OK; /* new */
    if (application != STORE_FILE_APPLICATION_ID)
        return err_set(err, STATUS_CORRUPT, "%s is the database of another application", path);
    if (*out_version != STORE_FILE_SCHEMA)
        return err_set(err, STATUS_NOT_SUPPORTED, "%s has schema %lld, this release uses %d", path,
                       (long long)*out_version, STORE_FILE_SCHEMA);
    return STATUS_OK;
}

/* Makes the tables, the version and the application id in one transaction. */
static enum status create_tables(sqlite3 *db, struct err *err)
{
    char numbers[96];
    enum status s = store_sql_begin(db, err);

    if (s != STATUS_OK)
        return s;
    (void)snprintf(numbers, sizeof(numbers), "PRAGMA user_version = %d; PRAGMA application_id = %u",
                   STORE_FILE_SCHEMA, STORE_FILE_APPLICATION_ID);
    s = store_sql_exec(db, store_sql_tables, err);
    if (s == STATUS_OK)
        s = store_sql_exec(db, numbers, err);
    return store_sql_end(db, s, err);
}

/* Sets WAL mode, in which readers do not wait for the writer. Fails if the file system does not
 * support that mode. */
static enum status use_log(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    enum status s;

    s = store_sql_query(db, "PRAGMA journal_mode = WAL", NULL, 0, &stmt, err);
    if (s == STATUS_OK)
        s = store_sql_next(stmt, &row, err);
    if (s == STATUS_OK && row &&
        sqlite3_stricmp((const char *)sqlite3_column_text(stmt, 0), "wal") != 0)
        s = err_set(err, STATUS_IO, "the file system of the state file cannot share memory (WAL)");
    sqlite3_finalize(stmt);
    return s == STATUS_OK ? store_sql_exec(db, log_settings, err) : s;
}

/* Checks now, and not in the middle of a measurement, whether a transaction can begin. */
static enum status try_to_write(sqlite3 *db, struct err *err)
{
    enum status s = store_sql_begin(db, err);

    return s == STATUS_OK ? store_sql_exec(db, "ROLLBACK", err) : s;
}

static enum status prepare(sqlite3 *db, const char *path, struct err *err)
{
    int64_t version = 0;
    enum status s;

    if (sqlite3_db_readonly(db, "main") == 1)
        return err_set(err, STATUS_READ_ONLY, "cannot write %s", path);
    s = inspect(db, path, &version, err);
    if (s == STATUS_OK)
        s = store_sql_exec(db, connection_settings, err);
    if (s == STATUS_OK && version == 0)
        s = create_tables(db, err);
    if (s == STATUS_OK && strcmp(path, STORE_MEMORY_PATH) != 0)
        s = use_log(db, err);
    return s == STATUS_OK ? try_to_write(db, err) : s;
}

/* Closes a connection that has failed. Returns `s`. */
static enum status opened(enum status s, sqlite3 **db)
{
    if (s != STATUS_OK) {
        (void)sqlite3_close(*db);
        *db = NULL;
    }
    return s;
}

static enum status open_writer(const char *path, sqlite3 **out, struct err *err)
{
    enum status s;

    *out = NULL;
    (void)sqlite3_soft_heap_limit64(HEAP_LIMIT);
    s = open_connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, out, err);
    if (s == STATUS_OK)
        s = prepare(*out, path, err);
    return opened(s, out);
}

enum status store_connect_writer(const char *path, sqlite3 **out, struct err *err)
{
    enum status s = STATUS_OK;

    *out = NULL;
    if (strcmp(path, STORE_MEMORY_PATH) != 0) {
        s = store_file_writable(path, err);
        if (s == STATUS_OK)
            s = store_file_inspect(path, err);
    }
    return s == STATUS_OK ? open_writer(path, out, err) : s;
}

enum status store_connect_writer_again(const char *path, sqlite3 **out, struct err *err)
{
    const enum status s = store_file_writable(path, err);

    *out = NULL;
    return s == STATUS_OK ? open_writer(path, out, err) : s;
}

void store_connect_trust(sqlite3 *db)
{
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

enum status store_connect_reader(const char *path, sqlite3 **out, struct err *err)
{
    enum status s;

    *out = NULL;
    s = open_connection(path, SQLITE_OPEN_READWRITE, out, err);
    if (s == STATUS_OK)
        s = store_sql_exec(*out, connection_settings, err);
    if (s == STATUS_OK)
        s = store_sql_exec(*out, "PRAGMA query_only = ON", err);
    return opened(s, out);
}

enum status store_connect_read_only(const char *path, struct sqlite_read *out, struct err *err)
{
    int64_t version = 0;
    enum status s = store_file_inspect(path, err);

    *out = (struct sqlite_read){.db = NULL};
    if (s == STATUS_OK)
        s = sqlite_read_open(&store_sqlite, path, CONNECTION_FLAGS, out, err);
    if (s == STATUS_OK)
        s = set_up(out->db, err);
    if (s == STATUS_OK)
        s = inspect(out->db, path, &version, err);
    if (s == STATUS_OK && version == 0)
        s = err_set(err, STATUS_NOT_SUPPORTED, "%s has no tables of reachd", path);
    if (s == STATUS_OK)
        s = store_sql_exec(out->db, connection_settings, err);
    return opened(s, &out->db);
}
