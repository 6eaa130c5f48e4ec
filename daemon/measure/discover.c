/* discover.c: the threads that list the GPUs of the driver.
 *
 * A driver may take seconds to list the GPUs, and may not be loaded yet when the machine starts. So
 * the daemon serves at once, and a thread lists the GPUs through a worker. The thread repeats the
 * list after a second, then after pauses that double up to a minute, until there are GPUs. Then it
 * starts their threads and ends. For pipeline_rediscover, another thread lists the GPUs again
 * (hotplug.c).
 */
#include "measure/discover.h"

#include "base/clock.h"
#include "base/log.h"
#include "measure/gpu_thread.h"
#include "measure/hotplug.h"
#include "measure/pipeline_state.h"
#include "measure/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DISCOVER_FIRST_PAUSE NSEC_PER_SEC
#define DISCOVER_LAST_PAUSE  (60 * NSEC_PER_SEC)
#define DISCOVER_STACK_BYTES ((size_t)2 << 20)

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
    draft->stored_only = true;
    if (count == 0)
        err_set_hint(&draft->source_error, STATUS_NOT_FOUND,
                     "Start reachd without --no-gpus once to measure, or name another state file "
                     "with --state.",
                     "nothing is stored about any GPU");
    log_info("serving %u stored GPUs", count);
    snapshot_publish(p->cell, draft);
    return STATUS_OK;
}

bool discover_once(struct pipeline *p)
{
    struct gpu_listing listing;

    gpu_thread_list_gpus(p, &p->discovery.worker, &p->discovery.hung_pid, &listing);
    if (listing.why.status == STATUS_CANCELLED)
        return false;
    if (listing.why.status && strcmp(listing.why.text, p->discovery.failure) != 0)
        log_warning("no GPUs: %s", listing.why.text);
    (void)snprintf(p->discovery.failure, sizeof p->discovery.failure, "%s", listing.why.text);
    pipeline_merge(p, &listing);
    if (listing.complete)
        pipeline_requeue(p); /* the store may have dropped rows before there were threads */
    /* A wrong description of a simulated GPU cannot become valid. */
    return listing.complete || listing.why.status == STATUS_INVALID_ARGUMENT;
}

/* Queries the driver again, after GPUs were found. A driver that has been unloaded shows no GPU. A
 * driver that fails leaves no GPU that can be used. */
static void discover_again(struct pipeline *p)
{
    struct gpu_listing listing;

    gpu_thread_list_gpus(p, &p->discovery.worker, &p->discovery.hung_pid, &listing);
    listing.complete = listing.complete || listing.why.status == STATUS_NO_DRIVER;
    if (listing.why.status == STATUS_CANCELLED)
        return;
    if (!listing.complete)
        log_warning("the driver does not list its GPUs: %s", listing.why.text);
    pipeline_merge(p, &listing);
}

/* Sleeps, and beats the heartbeat whenever the thread wakes. The mutex is held. */
static void discover_sleep(struct pipeline *p, nsec_t pause)
{
    const struct timespec at = clock_timespec(clock_monotonic() + pause);

    while (!p->stopping && !p->discovery.again &&
           pthread_cond_clockwait(&p->discovery.wake, &p->mutex, CLOCK_MONOTONIC, &at) != ETIMEDOUT)
        heartbeat_beat();
}

static void *discover_main(void *self)
{
    struct pipeline *p = self;
    nsec_t pause = DISCOVER_FIRST_PAUSE;

    pthread_setname_np(pthread_self(), "find-gpus");
    heartbeat_adopt(&p->discovery.heartbeat);
    pthread_mutex_lock(&p->mutex);
    while (!p->stopping) {
        const bool known = p->discovery.found;
        bool done = true;

        p->discovery.again = false;
        pthread_mutex_unlock(&p->mutex);
        if (known)
            discover_again(p);
        else
            done = discover_once(p);
        heartbeat_beat();
        pthread_mutex_lock(&p->mutex);
        if (done && !p->discovery.again)
            break;
        if (done)
            continue;
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

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, DISCOVER_STACK_BYTES);
    int error = pthread_create(&p->discovery.pthread, &attributes, discover_main, p);

    pthread_attr_destroy(&attributes);
    p->discovery.started = error == 0;
    return error ? err_set(err, STATUS_NO_MEMORY,
                           "cannot create the thread that discovers GPUs: %s", strerror(error))
                 : STATUS_OK;
}

enum status pipeline_rediscover(struct pipeline *p, struct err *err)
{
    struct discovery *const d = &p->discovery;
    enum status status = STATUS_OK;

    if (p->options.stored_only)
        return STATUS_OK;
    pthread_mutex_lock(&p->mutex);
    for (uint32_t i = 0; i < p->gpu_thread_count; i++) { /* failed measurements are retried now */
        if (p->threads[i].retry_at == 0)
            continue;
        p->threads[i].retry_at = clock_monotonic();
        pthread_cond_signal(&p->threads[i].wake);
    }
    d->again = true;
    const bool running = d->started && !d->ended;
    if (running) {
        pthread_cond_signal(&d->wake);
    } else {
        if (d->started)
            pthread_join(d->pthread, NULL); /* the thread does not lock the mutex any more */
        d->ended = false;
        status = discover_start(p, err);
    }
    pthread_mutex_unlock(&p->mutex);
    return status;
}
