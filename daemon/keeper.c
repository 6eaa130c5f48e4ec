/* keeper.c: one thread, asleep in store_wait.
 *
 *     keep  ->  is the store back, renewed, or has it lost a fingerprint?  ->  measure what is gone
 *           ->  wait: for ever, or a little longer each time while nothing can be written
 */
#include "keeper.h"

#include "base/log.h"
#include "base/pulse.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEEPER_FIRST_WAIT  (250 * NSEC_PER_MSEC)
#define KEEPER_LONGEST     (10 * NSEC_PER_SEC)
#define KEEPER_STACK_BYTES ((size_t)1 << 20)

struct keeper {
    struct store *store;
    struct pipeline *pipeline;
    atomic_bool stop;
    struct pulse pulse;
    pthread_t thread;
};

/* Did something happen after which a GPU may have to be measured? */
static bool lost_or_found(const struct store_health *before, const struct store_health *now,
                          bool renewed)
{
    return renewed || now->damaged_rows != before->damaged_rows ||
           now->moved_aside != before->moved_aside ||
           (before->trouble.status != STATUS_OK && now->trouble.status == STATUS_OK);
}

static void *keeper_main(void *self)
{
    struct keeper *k = self;
    struct store_health before = {0}; /* what was lost before this thread began counts too */
    nsec_t wait = KEEPER_FIRST_WAIT;

    pthread_setname_np(pthread_self(), "store-keeper");
    pulse_adopt(&k->pulse);
    while (!atomic_load(&k->stop)) {
        struct store_health now;
        struct err err = {0};
        bool renewed = false;

        if (store_keep(k->store, &renewed, &err)) {
            log_debug("state file: %s", err.text);
        }
        store_health(k->store, &now);
        if (lost_or_found(&before, &now, renewed)) {
            pipeline_regain(k->pipeline);
        }
        before = now;
        malloc_trim(0);
        pulse_beat();
        if (now.trouble.status == STATUS_OK) {
            wait = KEEPER_FIRST_WAIT;
            store_wait(k->store, STORE_FOREVER);
        } else {
            store_wait(k->store, wait);
            wait = wait < KEEPER_LONGEST / 2 ? wait * 2 : KEEPER_LONGEST;
        }
    }
    return NULL;
}

enum status keeper_start(struct store *store, struct pipeline *pipeline, struct keeper **out,
                         struct err *err)
{
    struct keeper *k = calloc(1, sizeof *k);
    pthread_attr_t attributes;

    *out = NULL;
    if (!k) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for the upkeep of the store");
    }
    k->store = store;
    k->pipeline = pipeline;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, KEEPER_STACK_BYTES);
    int error = pthread_create(&k->thread, &attributes, keeper_main, k);

    pthread_attr_destroy(&attributes);
    if (error) {
        free(k);
        return err_set(err, STATUS_NO_MEMORY, "no thread for the upkeep of the store: %s",
                       strerror(error));
    }
    *out = k;
    return STATUS_OK;
}

bool keeper_moves(struct keeper *k)
{
    const bool moves = pulse_has_moved(&k->pulse);

    store_nudge(k->store);
    return moves;
}

void keeper_stop(struct keeper *take)
{
    if (!take) {
        return;
    }
    atomic_store(&take->stop, true);
    store_wake(take->store);
    pthread_join(take->thread, NULL);
    free(take);
}
