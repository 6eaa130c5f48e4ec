/* db_thread.c: a queue, a mutex, a condition.
 *
 *     serving thread --suspend, queue--> reader: snapshot, handler --resume--> serving thread
 *
 * A suspended connection belongs to the reader: libmicrohttpd neither closes nor frees it, so the
 * request stays where it is. Each connection has one request under way, so the queue is never
 * longer than there are connections.
 */
#include "api/server/db_thread.h"

#include "base/log.h"
#include "base/pulse.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES ((size_t)1 << 20)

struct db_thread {
    struct db_thread_options options;
    pthread_t thread;
    bool started; /* the serving thread's */
    struct pulse pulse;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool running; /* these are guarded by the mutex */
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
    if (pthread_mutex_init(&r->mutex, NULL) != 0) {
        free(r);
        return NULL;
    }
    if (pthread_cond_init(&r->wake, NULL) != 0) {
        pthread_mutex_destroy(&r->mutex);
        free(r);
        return NULL;
    }
    return r;
}

/* The next call; NULL: the end. */
static struct db_thread_call *next_call(struct db_thread *r)
{
    struct db_thread_call *call;

    pthread_mutex_lock(&r->mutex);
    while (!r->stop && !r->first) {
        pthread_cond_wait(&r->wake, &r->mutex);
        pulse_beat();
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
    call->handler(&c, call->request, &call->reply);
    snapshot_release(c.snapshot);
    MHD_resume_connection(call->connection); /* from here on the call is the serving thread's */
    o->wake(o->server); /* without a thread of its own the library tells nobody */
}

static void *db_thread_main(void *self)
{
    struct db_thread *r = self;
    struct db_thread_call *call;

    pthread_setname_np(pthread_self(), "http-reader");
    pulse_adopt(&r->pulse);
    while ((call = next_call(r))) {
        answer(r, call);
        pulse_beat();
    }
    pulse_adopt(NULL);
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
        log_warning("http: no thread to read the database, the serving one does: %s",
                    strerror(error));
        return false;
    }
    r->started = true;
    return true;
}

bool db_thread_take(struct db_thread *reader, struct db_thread_call *call)
{
    if (!reader->started && !start(reader))
        return false;
    MHD_suspend_connection(call->connection);
    call->next = NULL;
    pthread_mutex_lock(&reader->mutex);
    reader->running = true;
    if (reader->first)
        reader->last->next = call;
    else
        reader->first = call;
    reader->last = call;
    pthread_cond_signal(&reader->wake);
    pthread_mutex_unlock(&reader->mutex);
    return true;
}

bool db_thread_moves(struct db_thread *reader)
{
    bool moves = true;

    pthread_mutex_lock(&reader->mutex);
    if (reader->running) {
        moves = pulse_has_moved(&reader->pulse);
        pthread_cond_signal(&reader->wake);
    }
    pthread_mutex_unlock(&reader->mutex);
    return moves;
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
