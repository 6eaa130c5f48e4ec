/* store_maintenance.c: runs one thread, which sleeps in store_wait.
 *
 *     maintain  ->  was the file recovered or recreated, was a row lost?  ->  measure again
 *               ->  wait: indefinitely, or longer each time while nothing can be written
 */
#include "service/store_maintenance.h"

#include "base/log.h"
#include "base/heartbeat.h"
#include "base/memory_trim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAINTENANCE_FIRST_WAIT  (250 * NSEC_PER_MSEC)
#define MAINTENANCE_LONGEST     (2 * NSEC_PER_SEC)
#define MAINTENANCE_STACK_BYTES ((size_t)1 << 20)

struct store_maintenance {
    struct store *store;
    struct pipeline *pipeline;
    atomic_bool stop;
    struct heartbeat heartbeat;
    pthread_t thread;
};

/* Returns whether a change of the health may require a measurement. */
static bool lost_or_found(const struct store_health *before, const struct store_health *now,
                          bool renewed)
{
    return renewed || now->damaged_rows != before->damaged_rows ||
           now->quarantined != before->quarantined ||
           (before->last_error.status != STATUS_OK && now->last_error.status == STATUS_OK);
}

static void *store_maintenance_main(void *self)
{
    struct store_maintenance *k = self;
    struct store_health before = {0}; /* includes losses before this thread began */
    nsec_t wait = MAINTENANCE_FIRST_WAIT;

    pthread_setname_np(pthread_self(), "store-maintain");
    heartbeat_adopt(&k->heartbeat);
    while (!atomic_load(&k->stop)) {
        struct store_health now;
        struct err err = {0};
        bool renewed = false;

        if (store_maintain(k->store, &renewed, &err))
            log_debug("state file: %s", err.text);
        store_health(k->store, &now);
        if (lost_or_found(&before, &now, renewed))
            pipeline_requeue(k->pipeline);
        before = now;
        memory_trim();
        heartbeat_beat();
        if (now.last_error.status == STATUS_OK) {
            wait = MAINTENANCE_FIRST_WAIT;
            store_wait(k->store, STORE_NO_TIMEOUT);
        } else {
            store_wait(k->store, wait);
            wait = wait < MAINTENANCE_LONGEST / 2 ? wait * 2 : MAINTENANCE_LONGEST;
        }
    }
    return NULL;
}

enum status store_maintenance_start(struct store *store, struct pipeline *pipeline,
                                    struct store_maintenance **out, struct err *err)
{
    struct store_maintenance *k = calloc(1, sizeof *k);
    pthread_attr_t attributes;

    *out = NULL;
    if (!k)
        return err_set(err, STATUS_NO_MEMORY, "cannot maintain the state file: out of memory");
    k->store = store;
    k->pipeline = pipeline;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, MAINTENANCE_STACK_BYTES);
    int error = pthread_create(&k->thread, &attributes, store_maintenance_main, k);

    pthread_attr_destroy(&attributes);
    if (error) {
        free(k);
        return err_set(err, STATUS_NO_MEMORY,
                       "cannot create the thread that maintains the state file: %s",
                       strerror(error));
    }
    *out = k;
    return STATUS_OK;
}

bool store_maintenance_is_alive(struct store_maintenance *k)
{
    const bool moves = heartbeat_is_alive(&k->heartbeat);

    store_check_alive(k->store);
    return moves;
}

void store_maintenance_stop(struct store_maintenance *take)
{
    if (!take)
        return;
    atomic_store(&take->stop, true);
    store_wake(take->store);
    pthread_join(take->thread, NULL);
    free(take);
}
