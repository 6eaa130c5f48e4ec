/* store_health.c: does writing work, and what was found damaged? */
#include "store/store_private.h"

#include "base/log.h"

void store_health(struct store *store, struct store_health *out)
{
    pthread_mutex_lock(&store->state_mutex);
    *out = store->health;
    pthread_mutex_unlock(&store->state_mutex);
}

enum status store_write_begin(struct store *store, struct err *err)
{
    struct store_health health;

    pthread_mutex_lock(&store->writing.mutex);
    if (store->writing.db)
        return STATUS_OK;
    pthread_mutex_unlock(&store->writing.mutex);
    store_health(store, &health);
    if (health.last_error.status == STATUS_OK) /* it comes back just now */
        return err_set(err, STATUS_IO, "the state file is being opened");
    return err_set(err, health.last_error.status, "%s", health.last_error.text);
}

/* Is it the file that cannot take it, and not the request that was wrong? */
static bool is_write_error(enum status s)
{
    return s == STATUS_IO || s == STATUS_READ_ONLY || s == STATUS_FULL || s == STATUS_CORRUPT;
}

static void note_error(struct store *store, enum status s, const struct err *err)
{
    struct store_health *const h = &store->health;

    if (h->last_error.status == STATUS_OK) {
        h->last_error_since = clock_wall_seconds();
        log_warning("state file: nothing can be written: %s", err ? err->text : "");
        store->health_changes++;
        pthread_cond_broadcast(&store->wake);
    }
    err_set(&h->last_error, s, "%s", err && err->status == s ? err->text : status_info(s)->message);
    h->failed_writes++;
    store->work.reopen = store->work.reopen || s == STATUS_IO;
    store->work.scan = store->work.scan || s == STATUS_CORRUPT;
}

enum status store_write_end(struct store *store, enum status s, const struct err *err)
{
    pthread_mutex_unlock(&store->writing.mutex);
    pthread_mutex_lock(&store->state_mutex);
    if (is_write_error(s)) {
        note_error(store, s, err);
    } else if (s == STATUS_OK && store->health.last_error.status != STATUS_OK) {
        log_info("state file: writing works again");
        store->health.last_error = (struct err){0};
        store->health.last_error_since = 0;
        store->health_changes++;
        pthread_cond_broadcast(&store->wake);
    }
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
