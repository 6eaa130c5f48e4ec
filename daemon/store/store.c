/* store.c: opening, which is mostly refusing, and closing.
 *
 *     lock  ->  whose file?  ->  SQLite  ->  whose database?  ->  schema  ->  WAL  ->  second
 * connection
 *
 * Up to the schema nothing is written, and until all is well the log is not checkpointed on close:
 * a file that is refused keeps every byte. The first commit of a new file is made with a rollback
 * journal, so that the header says from the start whose it is (store_file.c).
 *
 * Memory: SQLite's caches would grow to 2 MiB a connection. Documents are read once and then served
 * from snapshots, so a small cache serves as well; a quarter of a MiB each is what the daemon pays.
 *
 * A write that fails leaves the old state to this process. If the failure was an fsync and the
 * process dies before its next write, the next one may find the new state, whole: the log may have
 * reached the disk after all. It never finds half of it.
 */
#include "store/store_private.h"

#include "base/log.h"
#include "store/migrations.h"
#include "store/store_file.h"
#include "store/store_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_PATH     ":memory:"
#define HEAP_LIMIT      ((sqlite3_int64)3 << 20) /* caches shrink above this; nothing fails */
#define BUSY_TIMEOUT_MS 2000 /* somebody with a shell may be looking at the file */

enum { STATEMENT_BYTES = 96 };

/* Settings of every connection, before it may write. */
static const char connection_settings[] = "PRAGMA cache_size = -256;"
                                          "PRAGMA mmap_size = 0;"
                                          "PRAGMA foreign_keys = ON;"
                                          "PRAGMA synchronous = FULL;";

static const char log_settings[] = "PRAGMA wal_autocheckpoint = 512;"
                                   "PRAGMA journal_size_limit = 4194304;";

static enum status open_connection(const char *path, sqlite3 **out, struct err *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                      SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;
    const int rc = sqlite3_open_v2(path, out, flags, NULL);

    if (rc != SQLITE_OK)
        return store_sql_fail(*out, rc, "opening", err);
    (void)sqlite3_db_config(*out, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_db_config(*out, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(*out, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_busy_timeout(*out, BUSY_TIMEOUT_MS);
    if (sqlite3_db_readonly(*out, "main") == 1)
        return err_set(err, STATUS_READ_ONLY, "%s cannot be written", path);
    return STATUS_OK;
}

/* Asks SQLite what the header was asked before: a log beside the file may say something newer. */
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
    if (*out_version < 1 || *out_version > (int64_t)store_migration_count)
        return err_set(err, STATUS_NOT_SUPPORTED, "%s has schema %lld, this reachd knows 1 to %u",
                       path, (long long)*out_version, store_migration_count);
    return STATUS_OK;
}

/* One migration, its number and our name in the header: one transaction. */
static enum status migrate_once(sqlite3 *db, unsigned from, struct err *err)
{
    char statement[STATEMENT_BYTES];
    enum status s;

    (void)snprintf(statement, sizeof(statement), "PRAGMA user_version = %u", from + 1);
    s = store_sql_begin(db, err);
    if (s != STATUS_OK)
        return s;
    s = store_sql_exec(db, store_migrations[from], err);
    if (s == STATUS_OK)
        s = store_sql_exec(db, statement, err);
    (void)snprintf(statement, sizeof(statement), "PRAGMA application_id = %u",
                   STORE_FILE_APPLICATION_ID);
    if (s == STATUS_OK)
        s = store_sql_exec(db, statement, err);
    return store_sql_end(db, s, err);
}

static enum status migrate(sqlite3 *db, int64_t version, struct err *err)
{
    enum status s = STATUS_OK;

    for (unsigned v = (unsigned)version; s == STATUS_OK && v < store_migration_count; v++) {
        s = migrate_once(db, v, err);
        if (s == STATUS_OK && version > 0)
            log_info("state file: schema %u", v + 1);
    }
    return s;
}

/* WAL: readers do not wait for the writer. A file system that cannot do it says another mode. */
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

/* Finds out now, and not in the middle of a measurement, whether a transaction can begin. */
static enum status try_to_write(sqlite3 *db, struct err *err)
{
    enum status s = store_sql_begin(db, err);

    return s == STATUS_OK ? store_sql_exec(db, "ROLLBACK", err) : s;
}

static enum status prepare_file(struct store *store, struct err *err)
{
    sqlite3 *const db = store->writing.db;
    int64_t version = 0;
    enum status s;

    s = inspect(db, store->path, &version, err);
    if (s == STATUS_OK)
        s = store_sql_exec(db, connection_settings, err);
    if (s == STATUS_OK)
        s = migrate(db, version, err);
    if (s == STATUS_OK && store->lock_fd >= 0)
        s = use_log(db, err);
    if (s == STATUS_OK)
        s = try_to_write(db, err);
    return s;
}

static enum status open_reader(struct store *store, struct err *err)
{
    enum status s;

    store->reading = &store->reading_apart;
    s = open_connection(store->path, &store->reading_apart.db, err);
    if (s == STATUS_OK)
        s = store_sql_exec(store->reading_apart.db, connection_settings, err);
    if (s == STATUS_OK)
        s = store_sql_exec(store->reading_apart.db, "PRAGMA query_only = ON", err);
    return s;
}

static void free_store(struct store *take)
{
    (void)sqlite3_close(take->reading_apart.db);
    (void)sqlite3_close(take->writing.db);
    pthread_mutex_destroy(&take->reading_apart.mutex);
    pthread_mutex_destroy(&take->writing.mutex);
    free(take->path);
    free(take);
}

static struct store *new_store(const char *path)
{
    struct store *const store = calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    store->lock_fd = -1;
    store->path = strdup(path);
    if (!store->path || pthread_mutex_init(&store->writing.mutex, NULL) != 0 ||
        pthread_mutex_init(&store->reading_apart.mutex, NULL) != 0) {
        free(store->path);
        free(store);
        return NULL;
    }
    store->reading = &store->writing;
    return store;
}

static enum status open_in_memory(struct store *store, struct err *err)
{
    const enum status s = open_connection(MEMORY_PATH, &store->writing.db, err);

    return s == STATUS_OK ? prepare_file(store, err) : s;
}

static enum status open_file(struct store *store, struct err *err)
{
    bool made_lock = false;
    enum status s;

    s = store_file_lock(store->path, &store->lock_fd, &made_lock, err);
    if (s != STATUS_OK)
        return s;
    s = store_file_inspect(store->path, store_migration_count, err);
    if (s == STATUS_OK)
        s = open_connection(store->path, &store->writing.db, err);
    if (s == STATUS_OK)
        s = prepare_file(store, err);
    if (s == STATUS_OK)
        s = open_reader(store, err);
    if (s == STATUS_OK) {
        (void)sqlite3_db_config(store->writing.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        return STATUS_OK;
    }
    /* Closed before the lock goes, or another process could be in between. */
    (void)sqlite3_close(store->reading_apart.db);
    (void)sqlite3_close(store->writing.db);
    store->reading_apart.db = store->writing.db = NULL;
    store_file_unlock(store->path, store->lock_fd, made_lock);
    return s;
}

enum status store_open(const char *path, struct store **out, struct err *err)
{
    struct store *store;
    enum status s;

    *out = NULL;
    /* "" would be a file that vanishes, "file:.." a URI with switches of its own. */
    if (path[0] == '\0' || strncmp(path, "file:", strlen("file:")) == 0)
        return err_set(err, STATUS_INVALID_ARGUMENT, "\"%s\" is no path of a state file", path);
    store = new_store(path);
    if (!store)
        return err_set(err, STATUS_NO_MEMORY, "no memory for the store");
    (void)sqlite3_soft_heap_limit64(HEAP_LIMIT);
    s = strcmp(path, MEMORY_PATH) == 0 ? open_in_memory(store, err) : open_file(store, err);
    if (s != STATUS_OK) {
        free_store(store);
        return s;
    }
    *out = store;
    return STATUS_OK;
}

void store_close(struct store *take)
{
    int lock_fd;

    if (!take)
        return;
    lock_fd = take->lock_fd;
    free_store(take);
    store_file_unlock("", lock_fd, false);
}

bool store_is_volatile(const struct store *store)
{
    return store->lock_fd < 0;
}
