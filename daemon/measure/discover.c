/* discover.c: the thread that discovers GPUs.
 *
 * A driver may take seconds to list the GPUs, and may not be loaded yet when the machine starts. So
 * the daemon serves at once, and this thread lists them (through a worker), again after a second,
 * two, four, at last every minute, until there are some; then it starts their threads and ends.
 */
#include "base/clock.h"
#include "base/log.h"
#include "measure/gpu_thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DISCOVER_FIRST_PAUSE NSEC_PER_SEC
#define DISCOVER_LAST_PAUSE  (60 * NSEC_PER_SEC)
#define DISCOVER_STACK_BYTES ((size_t)2 << 20)

enum status discover_publish_none(struct pipeline *p, const struct err *why, struct err *err)
{
    struct snapshot *draft = NULL;
    enum status status = pipeline_draft(p, NULL, 0, &draft, err);

    if (status)
        return status;
    draft->discovering = why->status == STATUS_NOT_READY;
    if (!draft->discovering)
        log_warning("no GPUs: %s", why->text);
    draft->source_error = *why;
    snapshot_publish(p->cell, draft);
    return STATUS_OK;
}

enum status discover_stored(struct pipeline *p, struct err *err)
{
    struct gpu_identity gpus[REACH_MAX_GPUS];
    struct snapshot *draft = NULL;
    uint32_t count = 0;
    enum status status = store_list_gpus(p->store, gpus, REACH_MAX_GPUS, &count, err);

    status = status ? status : pipeline_draft(p, gpus, count, &draft, err);
    if (status)
        return status;
    snprintf(draft->source, sizeof draft->source, "stored");
    if (count == 0)
        err_set_hint(&draft->source_error, STATUS_NOT_FOUND,
                     "Start reachd without --no-gpus once, so that it measures, or name another "
                     "state file with --state.",
                     "nothing is stored about any GPU");
    log_info("serving what is stored: %u GPUs", count);
    snapshot_publish(p->cell, draft);
    return STATUS_OK;
}

/* Lists the GPUs once. True: discovery has ended. */
static bool discover_once(struct pipeline *p, struct err *published)
{
    struct gpu_identity gpus[REACH_MAX_GPUS];
    struct err why = {0}, err = {0};
    uint32_t count =
        gpu_thread_list_gpus(p, &p->discovery.worker, &p->discovery.hung_pid, gpus, &why);
    const bool failed = count && pipeline_start_threads(p, gpus, count, &why);

    if (failed ||
        (!count && why.status != STATUS_CANCELLED && strcmp(why.text, published->text) != 0)) {
        *published = why;
        (void)discover_publish_none(p, &why, &err);
    }
    /* A wrong description stays wrong. */
    return count > 0 || why.status == STATUS_INVALID_ARGUMENT;
}

/* Sleeps; beats its heartbeat whenever it is woken. The mutex is held. */
static void discover_sleep(struct pipeline *p, nsec_t pause)
{
    const struct timespec at = clock_timespec(clock_monotonic() + pause);

    while (!p->stopping &&
           pthread_cond_clockwait(&p->discovery.wake, &p->mutex, CLOCK_MONOTONIC, &at) != ETIMEDOUT)
        heartbeat_beat();
}

static void *discover_main(void *self)
{
    struct pipeline *p = self;
    nsec_t pause = DISCOVER_FIRST_PAUSE;
    struct err published = {0};

    pthread_setname_np(pthread_self(), "find-gpus");
    heartbeat_adopt(&p->discovery.heartbeat);
    pthread_mutex_lock(&p->mutex);
    while (!p->stopping) {
        pthread_mutex_unlock(&p->mutex);
        bool done = discover_once(p, &published);

        heartbeat_beat();
        pthread_mutex_lock(&p->mutex);
        if (done)
            break;
        discover_sleep(p, pause);
        pause = 2 * pause < DISCOVER_LAST_PAUSE ? 2 * pause : DISCOVER_LAST_PAUSE;
    }
    p->discovery.ended = true;
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

enum status discover_start(struct pipeline *p, struct err *err)
{
    pthread_attr_t attributes;
    struct err running = {0};

    err_set(&running, STATUS_NOT_READY,
            "GPU discovery is running: the driver has not yet answered which GPUs there are");
    enum status status = discover_publish_none(p, &running, err);

    if (status)
        return status;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, DISCOVER_STACK_BYTES);
    int error = pthread_create(&p->discovery.pthread, &attributes, discover_main, p);

    pthread_attr_destroy(&attributes);
    p->discovery.started = error == 0;
    return error ? err_set(err, STATUS_NO_MEMORY,
                           "cannot create the thread that discovers GPUs: %s", strerror(error))
                 : STATUS_OK;
}
