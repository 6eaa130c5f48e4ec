/* store_open.c: opens the store.
 *
 * After a failed write, this process sees the old state. An fsync may fail although the log has
 * reached the disk. If the process then dies before its next write, the next process finds the
 * complete new state. It never finds a partial state.
 */
#include "store/store_state.h"

#include "base/log.h"
#include "store/store_connect.h"
#include "store/store_file.h"

#include <stdlib.h>
#include <string.h>

void store_free(struct store *take)
{
    store_queue_free(take);
    (void)sqlite3_close(take->reading_apart.db);
    (void)sqlite3_close(take->writing.db);
    store_file_unlock("", take->lock_fd, false);
    pthread_cond_destroy(&take->wake);
    pthread_mutex_destroy(&take->state_mutex);
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
    pthread_mutex_init(&store->writing.mutex,
                       NULL); /* these calls cannot fail with default attributes */
    pthread_mutex_init(&store->reading_apart.mutex, NULL);
    pthread_mutex_init(&store->state_mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
    store->in_memory = strcmp(path, STORE_MEMORY_PATH) == 0;
    store->reading = store->in_memory ? &store->writing : &store->reading_apart;
    store->limits = STORE_LIMITS_DEFAULT;
    store->queue.limit_bytes = STORE_QUEUE_LIMIT_BYTES;
    store->written_at = clock_monotonic();
    store->work.scan = !store->in_memory;
    if (store->path)
        return store;
    store_free(store);
    return NULL;
}

enum status store_quarantine(struct store *store, const struct err *why, struct err *err)
{
    char name[sizeof(err->text) / 2];
    const enum status s = store_file_quarantine(store->path, name, sizeof(name), err);

    if (s != STATUS_OK)
        return s;
    log_warning("state file: %s; moved to %s, starting with an empty one", why->text, name);
    pthread_mutex_lock(&store->state_mutex);
    store->health.quarantined++;
    store->health_changes++;
    pthread_mutex_unlock(&store->state_mutex);
    return STATUS_OK;
}

static enum status connect_both(struct store *store, struct err *err)
{
    enum status s = store_connect_writer(store->path, &store->writing.db, err);

    if (s != STATUS_OK)
        return s;
    s = store_connect_reader(store->path, &store->reading_apart.db, err);
    if (s == STATUS_OK) {
        store_connect_trust(store->writing.db);
    } else {
        (void)sqlite3_close(store->writing.db);
        store->writing.db = NULL;
    }
    return s;
}

enum status store_open_files(struct store *store, struct err *err)
{
    const bool locked = store->lock_fd >= 0;
    struct err why = {0};
    bool made_lock = false;
    enum status s = STATUS_OK;

    if (!locked)
        s = store_file_lock(store->path, &store->lock_fd, &made_lock, err);
    if (s != STATUS_OK)
        return s;
    s = store_file_quarantine_orphans(store->path, &why);
    if (s == STATUS_OK)
        s = connect_both(store, &why);
    if (s == STATUS_CORRUPT) {
        const struct err corrupt = why;
        s = store_quarantine(store, &corrupt, &why);
        if (s == STATUS_OK)
            s = connect_both(store, &why);
    }
    if (s == STATUS_OK)
        return STATUS_OK;
    if (!locked) {
        store_file_unlock(store->path, store->lock_fd, made_lock);
        store->lock_fd = -1;
    }
    return err_set(err, s, "%s", why.text);
}

static enum status open_store(struct store *store, struct err *err)
{
    enum status s;

    if (store->in_memory)
        return store_connect_writer(STORE_MEMORY_PATH, &store->writing.db, err);
    s = store_open_files(store, err);
    if (s == STATUS_OK)
        store_end_interrupted_at_open(store);
    return s;
}

enum status store_open_to_read(struct store *store, struct err *err)
{
    struct sqlite_read r;

    if (store_connect_read_only(store->path, &r, NULL) == STATUS_OK) {
        store->reading_apart.db = r.db;
        return STATUS_OK;
    }
    return store_connect_writer(STORE_MEMORY_PATH, &store->reading_apart.db, err);
}

static enum status open_how(const char *path, bool anyway, struct store **out, struct err *err)
{
    struct store *store;
    struct err why = {0};
    enum status s;

    *out = NULL;
    /* SQLite would open a temporary file for "", and "file:.." is a URI with its own settings. */
    if (path[0] == '\0' || strncmp(path, "file:", strlen("file:")) == 0)
        return err_set(err, STATUS_INVALID_ARGUMENT, "\"%s\" is not the path of a state file",
                       path);
    store = new_store(path);
    if (!store)
        return err_no_memory(err, "the store");
    s = open_store(store, &why);
    if (anyway && store_is_write_error(s)) {
        pthread_mutex_lock(&store->state_mutex);
        store_note_error(store, s, &why);
        pthread_mutex_unlock(&store->state_mutex);
        s = store_open_to_read(store, &why);
    }
    if (s != STATUS_OK) {
        store_free(store);
        return err_set(err, s, "%s", why.text);
    }
    *out = store;
    return STATUS_OK;
}

enum status store_open(const char *path, struct store **out, struct err *err)
{
    return open_how(path, false, out, err);
}

enum status store_open_degraded(const char *path, struct store **out, struct err *err)
{
    return open_how(path, true, out, err);
}

void store_set_limits(struct store *store, const struct store_limits *limits)
{
    store->limits = *limits;
}
