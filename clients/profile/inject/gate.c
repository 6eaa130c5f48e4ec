/* gate.c: counts threads in launch calls, and waits for streams. */
#include "clients/profile/inject/gate.h"

#include "clients/profile/inject/timer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { STREAMS = 256 };
#define LONGEST_CALL_NS  1000000000u /* for threads inside launch calls */
#define LONGEST_DRAIN_NS 2000000000u
/* After an attempt that failed, the next one comes after a pause, which doubles each time. */
#define FIRST_PAUSE_NS   1000000000u
#define LONGEST_PAUSE_NS 60000000000u

static atomic_bool closed;
static _Atomic int inside;
static _Atomic int captures;
static _Atomic uint32_t epoch;
static __thread int depth; /* launch calls of this thread, one in another */
static __thread uint32_t depth_epoch;
static __thread bool is_owner;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held in a call of the API */
static struct {
    san_context context; /* NULL is free */
    san_stream stream;
    void *user_stream;
    int mark; /* -1 means none; if the stream is destroyed, the mark after its last work */
    bool is_destroyed;
} streams[STREAMS];
static bool is_full;
static _Atomic uint32_t stream_changes; /* streams that were destroyed */

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

void gate_enter(void)
{
    if (depth_epoch != atomic_load(&epoch))
        depth = 0;
    depth_epoch = atomic_load(&epoch);
    if (is_owner || depth++ > 0)
        return;
    for (;;) {
        atomic_fetch_add(&inside, 1);
        if (!atomic_load(&closed))
            return;
        atomic_fetch_sub(&inside, 1);
        while (atomic_load(&closed))
            pause_briefly();
    }
}

void gate_leave(void)
{
    if (is_owner || depth_epoch != atomic_load(&epoch) || depth == 0 || --depth > 0)
        return;
    atomic_fetch_sub(&inside, 1);
}

void gate_reset(void)
{
    atomic_fetch_add(&epoch, 1);
    atomic_store(&inside, 0);
}

void gate_capture_begins(void)
{
    atomic_fetch_add(&captures, 1);
}

void gate_capture_ends(void)
{
    atomic_fetch_sub(&captures, 1);
}

bool gate_is_capturing(void)
{
    return atomic_load(&captures) > 0;
}

void gate_saw_stream(san_context context, san_stream stream, void *user_stream)
{
    static __thread san_stream last;
    static __thread uint32_t last_changes;
    int unused = -1;
    if (stream == last && last_changes == atomic_load(&stream_changes))
        return;
    last = stream;
    last_changes = atomic_load(&stream_changes);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].context == context && streams[i].stream == stream &&
            !streams[i].is_destroyed) {
            pthread_mutex_unlock(&lock);
            return;
        }
        if (!streams[i].context && unused < 0)
            unused = i;
    }
    if (unused >= 0) {
        streams[unused].context = context;
        streams[unused].stream = stream;
        streams[unused].user_stream = user_stream;
        streams[unused].mark = -1;
        streams[unused].is_destroyed = false;
    } else {
        is_full = true;
    }
    pthread_mutex_unlock(&lock);
}

void gate_destroys_stream(void *user_stream)
{
    atomic_fetch_add(&stream_changes, 1);
    for (int i = 0; i < STREAMS; i++) {
        pthread_mutex_lock(&lock);
        const bool is_it =
            streams[i].context && streams[i].user_stream == user_stream && !streams[i].is_destroyed;
        const san_context context = streams[i].context;
        const san_stream stream = streams[i].stream;
        if (is_it)
            streams[i].is_destroyed = true;
        pthread_mutex_unlock(&lock);
        if (!is_it)
            continue;
        const int mark = timer_mark(context, stream);
        pthread_mutex_lock(&lock);
        streams[i].mark = mark;
        if (mark < 0)
            streams[i].context = NULL;
        pthread_mutex_unlock(&lock);
    }
}

/* Waits for all streams of a context. Only the owner of the gate calls it. */
static bool drain(san_context context)
{
    const uint64_t begin = clock_ns();
    bool is_drained = true;
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].context == context && !streams[i].is_destroyed)
            streams[i].mark = timer_mark(context, streams[i].stream);
    }
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].context != context)
            continue;
        if (streams[i].mark < 0) {
            is_drained = false;
            continue;
        }
        while (is_drained && !timer_is_reached(streams[i].mark)) {
            pause_briefly();
            is_drained = clock_ns() - begin < LONGEST_DRAIN_NS;
        }
        if (timer_is_reached(streams[i].mark)) { /* a late mark is not used again */
            timer_free_mark(streams[i].mark);
            if (streams[i].is_destroyed)
                streams[i].context = NULL;
        }
        streams[i].mark = streams[i].is_destroyed ? streams[i].mark : -1;
    }
    return is_drained;
}

bool gate_close(san_context context)
{
    static _Atomic uint64_t next_ns; /* time of the next attempt */
    static _Atomic uint64_t pause_ns = FIRST_PAUSE_NS;
    bool expected = false;

    if (is_full || gate_is_capturing() || clock_ns() < atomic_load(&next_ns) ||
        !atomic_compare_exchange_strong(&closed, &expected, true))
        return false;
    is_owner = true;
    const int own = depth > 0 && depth_epoch == atomic_load(&epoch) ? 1 : 0;
    const uint64_t begin = clock_ns();
    bool is_quiet = true;
    while (is_quiet && atomic_load(&inside) > own) {
        pause_briefly();
        is_quiet = clock_ns() - begin < LONGEST_CALL_NS;
    }
    if (is_quiet && !gate_is_capturing() && drain(context)) {
        atomic_store(&pause_ns, FIRST_PAUSE_NS);
        return true;
    }
    gate_open();
    atomic_store(&next_ns, clock_ns() + atomic_load(&pause_ns));
    if (atomic_load(&pause_ns) < LONGEST_PAUSE_NS)
        atomic_store(&pause_ns, 2 * atomic_load(&pause_ns));
    return false;
}

void gate_open(void)
{
    is_owner = false;
    atomic_store(&closed, false);
}
