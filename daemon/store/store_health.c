/* store_health.c: begins and ends write transactions, and records whether writing works. */
#include "store/store_state.h"

#include "base/log.h"
#include "store/store_sql.h"

/* If clients request the health of an idle daemon, the daemon writes at most once in this
 * interval. */
#define STORE_CHECK_AFTER (10 * NSEC_PER_SEC)

void store_health(struct store *store, struct store_health *out)
{
    pthread_mutex_lock(&store->state_mutex);
    *out = store->health;
    pthread_mutex_unlock(&store->state_mutex);
}

void store_check_soon(struct store *store)
{
    pthread_mutex_lock(&store->state_mutex);
    if (!store->in_memory && !store->work.check &&
        clock_monotonic() - store->written_at > STORE_CHECK_AFTER) {
        store->work.check = true;
        pthread_cond_broadcast(&store->wake);
    }
    pthread_mutex_unlock(&store->state_mutex);
}

bool store_is_write_error(enum status s)
{
    return s == STATUS_IO || s == STATUS_READ_ONLY || s == STATUS_FULL || s == STATUS_CORRUPT;
}

void store_note_error(struct store *store, enum status s, const struct err *err)
{
    struct store_health *const h = &store->health;

    if (h->last_error.status == STATUS_OK) {
        h->last_error_since = clock_wall_seconds();
        log_warning("state file: writing fails: %s; results are kept in memory, and will be lost "
                    "when reachd exits",
                    err ? err->text : "");
        store->health_changes++;
        pthread_cond_broadcast(&store->wake);
    }
    err_set(&h->last_error, s, "%s", err && err->status == s ? err->text : status_info(s)->message);
    h->failed_writes++;
    store->work.reopen = store->work.reopen || s == STATUS_IO;
    store->work.scan = store->work.scan || s == STATUS_CORRUPT;
}

bool store_write_works(struct store *store)
{
    struct store_health *const h = &store->health;
    bool works;

    pthread_mutex_lock(&store->state_mutex);
    works = !store->queue.first;
    if (works && h->last_error.status != STATUS_OK) {
        log_info("state file: writing works again, and all pending results are stored");
        h->last_error = (struct err){0};
        h->last_error_since = 0;
        store->health_changes++;
        pthread_cond_broadcast(&store->wake);
    }
    pthread_mutex_unlock(&store->state_mutex);
    return works;
}

enum status store_write_begin(struct store *store, struct err *err)
{
    struct store_health health;
    enum status s;

    pthread_mutex_lock(&store->writing.mutex);
    if (store->writing.db) {
        s = store_sql_begin(store->writing.db, err);
        if (s == STATUS_CONFLICT) { /* another process holds the file longer than the timeout */
            s = STATUS_IO;
            if (err)
                err->status = s;
        }
        return s == STATUS_OK ? s : store_write_end(store, s, err);
    }
    pthread_mutex_unlock(&store->writing.mutex);
    store_health(store, &health);
    if (health.last_error.status == STATUS_OK) /* the connection is being reopened */
        return err_set(err, STATUS_IO, "the state file is being opened");
    return err_set(err, health.last_error.status, "%s", health.last_error.text);
}

enum status store_write_end(struct store *store, enum status s, struct err *err)
{
    s = store_sql_end(store->writing.db, s, err);
    (void)sqlite3_db_release_memory(store->writing.db); /* the next write may be days away */
    pthread_mutex_unlock(&store->writing.mutex);
    pthread_mutex_lock(&store->state_mutex);
    if (store_is_write_error(s))
        store_note_error(store, s, err);
    else if (s == STATUS_OK)
        store->written_at = clock_monotonic();
    pthread_mutex_unlock(&store->state_mutex);
    return s;
}

void store_count_damage(struct store *store)
{
    pthread_mutex_lock(&store->state_mutex);
    store->health.damaged_rows++;
    store->health_changes++;
    pthread_mutex_unlock(&store->state_mutex);
}

enum status store_read_end(struct store *store, enum status s, bool corrupt)
{
    if (!store->in_memory && (corrupt || s == STATUS_CORRUPT)) {
        pthread_mutex_lock(&store->state_mutex);
        store->work.scan = true;
        pthread_cond_broadcast(&store->wake);
        pthread_mutex_unlock(&store->state_mutex);
    }
    return s;
}
