/* db_thread.c: runs a thread with a queue, a mutex and a condition.
 *
 *     serving thread --suspend, queue--> db_thread: snapshot, dispatch --resume--> serving thread
 *
 * A suspended connection belongs to the db_thread: libmicrohttpd neither closes nor frees it, so
 * the request stays valid. Each connection has at most one request, so the queue is never longer
 * than the number of connections.
 */
#include "api/server/db_thread.h"

#include "base/heartbeat.h"
#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES ((size_t)1 << 20)

struct db_thread {
    struct db_thread_options options;
    pthread_t thread;
    bool started; /* whether the thread was created; used by the serving thread */
    struct heartbeat heartbeat;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool running; /* whether there was a call; the mutex guards the last four members */
    bool stop;
    struct db_thread_call *first;
    struct db_thread_call *last;
};

struct db_thread *db_thread_new(const struct db_thread_options *options)
{
    struct db_thread *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->options = *options;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->wake, NULL);
    return r;
}

/* Returns the next call, or NULL if the thread must stop. */
static struct db_thread_call *next_call(struct db_thread *r)
{
    struct db_thread_call *call;

    pthread_mutex_lock(&r->mutex);
    while (!r->stop && !r->first) {
        pthread_cond_wait(&r->wake, &r->mutex);
        heartbeat_beat();
    }
    call = r->stop ? NULL : r->first;
    if (call)
        r->first = call->next;
    pthread_mutex_unlock(&r->mutex);
    return call;
}

static void answer(const struct db_thread *r, struct db_thread_call *call)
{
    const struct db_thread_options *o = &r->options;
    struct handlers_context c = {
        .backend = o->backend, .daemon_version = o->daemon_version, .may_read = true};

    c.snapshot = snapshot_acquire(o->cell);
    routes_dispatch(&c, call->request, &call->reply);
    snapshot_release(c.snapshot);
    MHD_resume_connection(call->connection); /* the serving thread owns the call again */
    o->wake(o->server); /* in external mode the library wakes no thread by itself */
}

static void *db_thread_main(void *self)
{
    struct db_thread *r = self;
    struct db_thread_call *call;

    pthread_setname_np(pthread_self(), "http-reader");
    heartbeat_adopt(&r->heartbeat);
    while ((call = next_call(r))) {
        answer(r, call);
        heartbeat_beat();
    }
    heartbeat_adopt(NULL);
    return NULL;
}

static bool start(struct db_thread *r)
{
    pthread_attr_t attributes;
    int error;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    error = pthread_create(&r->thread, &attributes, db_thread_main, r);
    pthread_attr_destroy(&attributes);
    if (error) {
        log_warning("http: cannot create the thread that reads the database: %s; the serving "
                    "thread reads the database",
                    strerror(error));
        return false;
    }
    r->started = true;
    return true;
}

bool db_thread_take(struct db_thread *r, struct db_thread_call *call)
{
    if (!r->started && !start(r))
        return false;
    MHD_suspend_connection(call->connection);
    call->next = NULL;
    pthread_mutex_lock(&r->mutex);
    r->running = true;
    if (r->first)
        r->last->next = call;
    else
        r->first = call;
    r->last = call;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->mutex);
    return true;
}

bool db_thread_is_alive(struct db_thread *r)
{
    bool is_alive = true;

    pthread_mutex_lock(&r->mutex);
    if (r->running) {
        is_alive = heartbeat_is_alive(&r->heartbeat);
        pthread_cond_signal(&r->wake);
    }
    pthread_mutex_unlock(&r->mutex);
    return is_alive;
}

void db_thread_free(struct db_thread *take)
{
    if (!take)
        return;
    if (take->started) {
        pthread_mutex_lock(&take->mutex);
        take->stop = true;
        pthread_cond_signal(&take->wake);
        pthread_mutex_unlock(&take->mutex);
        pthread_join(take->thread, NULL);
    }
    while (take->first) {
        struct db_thread_call *call = take->first;
        take->first = call->next;
        MHD_resume_connection(call->connection);
    }
    pthread_cond_destroy(&take->wake);
    pthread_mutex_destroy(&take->mutex);
    free(take);
}
