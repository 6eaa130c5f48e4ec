/* gate.c: counts threads in launch calls, and waits for streams. */
#include "clients/profile/inject/gate.h"

#include "base/clock.h"
#include "clients/profile/inject/timer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define LONGEST_CALL_NS  (1 * NSEC_PER_SEC) /* for threads inside launch calls */
#define LONGEST_DRAIN_NS (2 * NSEC_PER_SEC)
/* After an attempt that failed, the next one comes after a pause, which doubles each time. */
#define FIRST_PAUSE_NS   (1 * NSEC_PER_SEC)
#define LONGEST_PAUSE_NS (60 * NSEC_PER_SEC)

static atomic_bool closed;
static _Atomic int inside;
static _Atomic int captures;
static _Atomic uint32_t epoch;
static __thread int depth; /* launch calls of this thread, one in another */
static __thread uint32_t depth_epoch;
static __thread bool is_owner;

struct stream {
    san_context context; /* NULL is free */
    san_stream stream;
    void *user_stream;
    int mark; /* after the last work of a destroyed stream; -1 means none yet */
    bool is_destroyed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held in a call of the API */
static struct stream *streams;                           /* a stream keeps its place */
static uint32_t stream_count, stream_room;
static atomic_bool is_full;             /* a stream had no memory */
static _Atomic uint32_t stream_changes; /* streams that were destroyed */

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* ---- threads in launch calls ---- */

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

bool gate_leave(void)
{
    if (is_owner || depth_epoch != atomic_load(&epoch) || depth == 0 || --depth > 0)
        return false;
    atomic_fetch_sub(&inside, 1);
    return true;
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
    int count = atomic_load(&captures);
    while (count > 0 && !atomic_compare_exchange_weak(&captures, &count, count - 1)) {
    }
}

bool gate_is_capturing(void)
{
    return atomic_load(&captures) > 0;
}

/* ---- streams ---- */

/* Returns a free place; NULL without memory. The caller has the lock. */
static struct stream *new_stream(void)
{
    for (uint32_t i = 0; i < stream_count; i++) {
        if (!streams[i].context)
            return &streams[i];
    }
    if (stream_count == stream_room) {
        const uint32_t room = stream_room ? 2 * stream_room : 64;
        struct stream *const moved = realloc(streams, room * sizeof *moved);
        if (!moved)
            return NULL;
        streams = moved;
        stream_room = room;
    }
    return &streams[stream_count++];
}

void gate_saw_stream(san_context context, san_stream stream, void *user_stream)
{
    static __thread san_stream last;
    static __thread uint32_t last_changes;
    const uint32_t changes = atomic_load(&stream_changes);
    bool is_known = false;
    if (stream == last && last_changes == changes)
        return;
    last = stream;
    last_changes = changes;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < stream_count && !is_known; i++)
        is_known = streams[i].context == context && streams[i].stream == stream &&
                   !streams[i].is_destroyed;
    struct stream *const s = is_known ? NULL : new_stream();
    if (s)
        *s = (struct stream){
            .context = context, .stream = stream, .user_stream = user_stream, .mark = -1};
    pthread_mutex_unlock(&lock);
    if (!s && !is_known)
        atomic_store(&is_full, true);
}

/* Takes a stream out of use and returns its place; -1 if the stream had no launches. Forgets
 * streams that were destroyed earlier and whose work has ended. */
static int take_out_of_use(void *user_stream, struct stream *out)
{
    int found = -1;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < stream_count; i++) {
        struct stream *const s = &streams[i];
        if (s->context && s->mark >= 0 && timer_is_reached(s->mark)) {
            s->context = NULL;
        } else if (s->context && !s->is_destroyed && s->user_stream == user_stream && found < 0) {
            s->is_destroyed = true;
            *out = *s;
            found = (int)i;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void gate_destroys_stream(void *user_stream)
{
    struct stream s;
    int at;
    while ((at = take_out_of_use(user_stream, &s)) >= 0) {
        const int mark = timer_mark(s.context, s.stream);
        timer_free_mark(mark);
        pthread_mutex_lock(&lock);
        if (streams[at].is_destroyed && mark >= 0)
            streams[at].mark = mark;
        else if (streams[at].is_destroyed)
            streams[at].context = NULL;
        pthread_mutex_unlock(&lock);
    }
    atomic_fetch_add(&stream_changes, 1); /* another stream can get the same handle */
}

void gate_forget_streams(san_context context)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < stream_count; i++) {
        if (streams[i].context == context)
            streams[i].context = NULL;
    }
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&stream_changes, 1);
}

/* ---- the gate ---- */

static bool get_stream(uint32_t i, struct stream *out)
{
    pthread_mutex_lock(&lock);
    const bool found = i < stream_count;
    if (found)
        *out = streams[i];
    pthread_mutex_unlock(&lock);
    return found;
}

static bool wait_for_mark(int mark, uint64_t until_ns)
{
    while (!timer_is_reached(mark)) {
        if (clock_monotonic() >= until_ns)
            return false;
        pause_briefly();
    }
    return true;
}

/* Waits for all streams of a context. The gate is closed, so no stream is used or destroyed. */
static bool drain(san_context context)
{
    const uint64_t until_ns = clock_monotonic() + LONGEST_DRAIN_NS;
    struct stream s;
    bool is_drained = true;
    for (uint32_t i = 0; is_drained && get_stream(i, &s); i++) {
        if (s.context != context)
            continue;
        const int mark = s.is_destroyed ? s.mark : timer_mark(context, s.stream);
        is_drained = mark >= 0 && wait_for_mark(mark, until_ns);
        if (!s.is_destroyed)
            timer_free_mark(mark);
    }
    return is_drained;
}

static bool wait_for_calls(void)
{
    const int own = depth > 0 && depth_epoch == atomic_load(&epoch) ? 1 : 0;
    const uint64_t until_ns = clock_monotonic() + LONGEST_CALL_NS;
    while (atomic_load(&inside) > own) {
        if (clock_monotonic() >= until_ns)
            return false;
        pause_briefly();
    }
    return true;
}

bool gate_close(san_context context)
{
    static _Atomic uint64_t next_ns; /* time of the next attempt */
    static _Atomic uint64_t pause_ns = FIRST_PAUSE_NS;
    bool expected = false;

    if (atomic_load(&is_full) || gate_is_capturing() || clock_monotonic() < atomic_load(&next_ns) ||
        !atomic_compare_exchange_strong(&closed, &expected, true))
        return false;
    is_owner = true;
    if (wait_for_calls() && !gate_is_capturing() && drain(context)) {
        atomic_store(&pause_ns, FIRST_PAUSE_NS);
        return true;
    }
    gate_open();
    atomic_store(&next_ns, clock_monotonic() + atomic_load(&pause_ns));
    if (atomic_load(&pause_ns) < LONGEST_PAUSE_NS)
        atomic_store(&pause_ns, 2 * atomic_load(&pause_ns));
    return false;
}

void gate_open(void)
{
    is_owner = false;
    atomic_store(&closed, false);
}
