/* store_maintain.c: maintains the file, in one thread of the daemon.
 *
 *     writing fails    ->  reopen closed and failed connections; write new pages, and the records
 *                          that wait in memory (store_queue.c)
 *     a row is damaged ->  check every row; a file that is damaged beyond its rows is quarantined,
 *                          and an empty one takes its place
 *     a run has ended  ->  delete the rows beyond the limits
 *
 * After an input/output error the writing connection is reopened. A failed fsync is never repeated
 * for the same pages, because the kernel may have dropped them.
 */
#include "store/store_state.h"

#include "base/log.h"
#include "base/heartbeat.h"
#include "store/store_connect.h"
#include "store/store_file.h"
#include "store/store_sql.h"

/* Replaces the writing connection after an error. */
static enum status open_writer_again(struct store *store, struct err *err)
{
    sqlite3 *fresh = NULL;
    sqlite3 *old;
    enum status s = store_connect_writer_again(store->path, &fresh, err);

    if (s != STATUS_OK)
        return s;
    store_connect_trust(fresh);
    pthread_mutex_lock(&store->writing.mutex);
    old = store->writing.db;
    store->writing.db = fresh;
    pthread_mutex_unlock(&store->writing.mutex);
    (void)sqlite3_close(old);
    return STATUS_OK;
}

/* Makes run numbers continue, because a pending measurement must not add to a run of the new
 * file. */
static enum status continue_numbers(struct store *store, struct err *err)
{
    sqlite3 *const db = store->writing.db;
    enum status s = store_sql_exec(db, "DELETE FROM sqlite_sequence WHERE name = 'run'", err);

    if (s == STATUS_OK)
        s = store_sql_run(db, "INSERT INTO sqlite_sequence (name, seq) VALUES ('run', ?1)",
                          SQL_VALUES(SQL_INT(store->last_run)), NULL, err);
    return s;
}

/* Reopens the file while readers and writers wait. Either it could not be written so far, or it is
 * damaged beyond its rows (`damage`, else NULL) and is quarantined. Both connections are closed
 * first, because SQLite shares its state of a file among the connections of a process, and that
 * state may be read-only. */
static enum status open_again(struct store *store, const struct err *damage, struct err *err)
{
    enum status s = STATUS_OK;

    pthread_mutex_lock(&store->writing.mutex);
    pthread_mutex_lock(&store->reading_apart.mutex);
    if (damage) /* the log is not checkpointed: it is moved with its file */
        (void)sqlite3_db_config(store->writing.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_close(store->writing.db);
    (void)sqlite3_close(store->reading_apart.db);
    store->writing.db = store->reading_apart.db = NULL;
    if (damage)
        s = store_quarantine(store, damage, err);
    if (s == STATUS_OK)
        s = store_open_files(store, err);
    if (s != STATUS_OK)
        (void)store_open_to_read(store, NULL);
    else if (!damage)
        store_end_interrupted_at_open(store);
    else if (continue_numbers(store, err) != STATUS_OK)
        log_warning("state file: run numbers restart: %s", err->text);
    pthread_mutex_unlock(&store->reading_apart.mutex);
    pthread_mutex_unlock(&store->writing.mutex);
    return s;
}

static enum status check_room(struct store *store, struct err *err)
{
    const enum status s = store->in_memory ? STATUS_OK : store_room_check(store->path, err);

    if (store_is_write_error(s)) {
        pthread_mutex_lock(&store->state_mutex);
        store_note_error(store, s, err);
        pthread_mutex_unlock(&store->state_mutex);
    }
    return s;
}

/* Checks whether writing works, by writing new pages (`with_room`) and a row. */
static enum status try_write(struct store *store, bool with_room, struct err *err)
{
    enum status s = with_room ? check_room(store, err) : STATUS_OK;

    if (s == STATUS_OK)
        s = store_write_begin(store, err);
    if (s != STATUS_OK)
        return s;
    s = store_sql_run(store->writing.db,
                      "INSERT OR REPLACE INTO upkeep (id, written_at) VALUES (1, ?1)",
                      SQL_VALUES(SQL_INT(clock_wall_seconds())), NULL, err);
    if (s == STATUS_OK && store->runs_interrupted)
        s = store_end_interrupted_runs(store, err);
    return store_write_end(store, s, err);
}

/* Records the reason why opening fails, which may have changed. */
static enum status still_failing(struct store *store, enum status s, const struct err *err)
{
    pthread_mutex_lock(&store->state_mutex);
    err_set(&store->health.last_error, s, "%s", err->text);
    store->work.scan = store->work.scan || s == STATUS_CORRUPT;
    pthread_mutex_unlock(&store->state_mutex);
    return s;
}

static enum status recover(struct store *store, bool reopen, struct err *err)
{
    enum status s = STATUS_OK;

    if (!store->writing.db) { /* only maintenance changes this member */
        s = store_file_writable(store->path, err);
        if (s == STATUS_OK)
            s = open_again(store, NULL, err);
    } else if (reopen) {
        s = open_writer_again(store, err);
    }
    if (s == STATUS_OK)
        return try_write(store, true, err);
    pthread_mutex_lock(&store->state_mutex);
    store->work.reopen = reopen;
    pthread_mutex_unlock(&store->state_mutex);
    return still_failing(store, s, err);
}

static enum status scan(struct store *store, bool *out_recreated, struct err *err)
{
    struct err why = {0};
    enum status s = store_scrub(store, &why);

    if (s != STATUS_CORRUPT)
        return s == STATUS_OK ? s : err_set(err, s, "%s", why.text);
    s = open_again(store, &why, err);
    *out_recreated = s == STATUS_OK;
    if (s == STATUS_OK)
        return s;
    pthread_mutex_lock(&store->state_mutex);
    store->health.last_error_since = clock_wall_seconds();
    pthread_mutex_unlock(&store->state_mutex);
    return still_failing(store, s, err);
}

/* Restores the work that was not done, for the next time. */
static void put_back(struct store *store, const struct store_work *left)
{
    pthread_mutex_lock(&store->state_mutex);
    store->work.scan = store->work.scan || left->scan;
    store->work.prune = store->work.prune || left->prune;
    pthread_mutex_unlock(&store->state_mutex);
}

/* Recovers from an error, or checks whether there is one. */
static enum status ensure_writing(struct store *store, const struct store_work *work,
                                  bool has_error, struct err *err)
{
    if (has_error)
        return recover(store, work->reopen, err);
    return work->check ? try_write(store, store_room_is_short(store->path), err) : STATUS_OK;
}

/* After an error, writes the waiting records until none is left. */
static enum status write_waiting(struct store *store, struct err *err)
{
    enum status s;

    do
        s = store_queue_write(store, err);
    while (s == STATUS_OK && !store_write_works(store) && !atomic_load(&store->stop_soon));
    return s;
}

enum status store_maintain(struct store *store, bool *out_recreated, struct err *err)
{
    struct err why = {0};
    struct store_work work;
    bool has_error;
    enum status s;

    *out_recreated = false;
    pthread_mutex_lock(&store->state_mutex);
    work = store->work;
    store->work = (struct store_work){0};
    has_error = store->health.last_error.status != STATUS_OK;
    pthread_mutex_unlock(&store->state_mutex);
    s = ensure_writing(store, &work, has_error, &why);
    /* A damaged file does not wait for the disk, because the scan may repair the file. */
    if (work.scan && store->writing.db && (s == STATUS_OK || s == STATUS_CORRUPT)) {
        s = scan(store, out_recreated, &why);
        work.scan = s != STATUS_OK;
        if (has_error && *out_recreated)
            s = try_write(store, true, &why);
    }
    if (s == STATUS_OK && has_error)
        s = write_waiting(store, &why);
    if (s == STATUS_OK && work.prune) {
        s = store_prune(store, &why);
        work.prune = s != STATUS_OK;
    }
    if (s != STATUS_OK)
        put_back(store, &work);
    return s == STATUS_OK ? s : err_set(err, s, "%s", why.text);
}

/* Tries once more to write the waiting records. */
static void write_last(struct store *store)
{
    struct err err = {0};

    if (store->queue.first && recover(store, store->work.reopen, &err) == STATUS_OK)
        (void)store_queue_write(store, &err);
}

void store_close(struct store *take)
{
    if (!take)
        return;
    write_last(take);
    store_free(take);
}

void store_wait(struct store *store, nsec_t most)
{
    const nsec_t now = clock_monotonic();
    const nsec_t until = most > UINT64_MAX - now ? UINT64_MAX : now + most;
    const struct timespec at = clock_timespec(until);
    struct store_work *const w = &store->work;
    const uint64_t known_changes = store->reported_changes;
    int timed_out = 0;

    pthread_mutex_lock(&store->state_mutex);
    while (!timed_out && !w->woken && store->health_changes == known_changes &&
           (store->health.last_error.status != STATUS_OK || !(w->scan || w->prune || w->check))) {
        timed_out = pthread_cond_clockwait(&store->wake, &store->state_mutex, CLOCK_MONOTONIC, &at);
        heartbeat_beat();
    }
    w->woken = false;
    store->reported_changes = store->health_changes;
    pthread_mutex_unlock(&store->state_mutex);
}

void store_check_alive(struct store *store)
{
    pthread_mutex_lock(&store->state_mutex);
    pthread_cond_broadcast(&store->wake);
    pthread_mutex_unlock(&store->state_mutex);
}

void store_wake(struct store *store)
{
    atomic_store(&store->stop_soon, true);
    pthread_mutex_lock(&store->state_mutex);
    store->work.woken = true;
    pthread_cond_broadcast(&store->wake);
    pthread_mutex_unlock(&store->state_mutex);
}
