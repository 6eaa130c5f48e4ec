/* timer.c: marks in streams, and the thread that watches them. */
#include "clients/profile/inject/timer.h"

#include "clients/profile/inject/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { MARKS = 256, CONTEXTS = 16, WATCHES = MARKS / 2 };
#define LONGEST_NS      20000000000u
#define LONGEST_WAIT_NS 250000000u

struct watch {
    int begin, end;
    uint64_t since_ns, begin_ns; /* begin_ns is 0 until the first mark is reached */
    void (*done)(void *what, uint64_t ns);
    void *what;
};

static const struct sanitizer_api *api;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held in a call of the API */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct watch watches[WATCHES];
static uint32_t watch_count;
static struct {
    _Atomic(san_context) context;
    _Atomic unsigned char *bytes; /* MARKS bytes of pinned memory */
} contexts[CONTEXTS];
static _Atomic unsigned char *marks[MARKS]; /* NULL is a free mark */

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the pinned bytes of a context, which are allocated at the first call; NULL if there are
 * none. Of threads that come at the same time, one allocates and the others get NULL. */
static _Atomic unsigned char *bytes_of(san_context context)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < CONTEXTS; i++) {
        if (atomic_load(&contexts[i].context) == context)
            return contexts[i].bytes;
    }
    if (pthread_mutex_trylock(&making) != 0)
        return NULL;
    void *bytes = NULL;
    int at = 0;
    while (at < CONTEXTS && atomic_load(&contexts[at].context))
        at++;
    if (at < CONTEXTS && api->alloc_host(context, &bytes, MARKS) == 0) {
        contexts[at].bytes = bytes;
        atomic_store(&contexts[at].context, context);
    }
    pthread_mutex_unlock(&making);
    return bytes;
}

void timer_forget(san_context context)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if (atomic_load(&contexts[i].context) == context)
            atomic_store(&contexts[i].context, NULL);
    }
}

int timer_mark(san_context context, san_stream stream)
{
    _Atomic unsigned char *const bytes = bytes_of(context);
    int mark = -1;
    if (!bytes)
        return -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MARKS && mark < 0; i++) {
        if (!marks[i]) {
            mark = i;
            marks[i] = bytes + i;
            bytes[i] = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    if (mark >= 0 && api->memset((void *)(uintptr_t)(bytes + mark), 1, 1, stream) != 0) {
        timer_free_mark(mark);
        return -1;
    }
    return mark;
}

bool timer_is_reached(int mark)
{
    return *marks[mark] != 0;
}

void timer_free_mark(int mark)
{
    if (mark < 0)
        return;
    pthread_mutex_lock(&lock);
    marks[mark] = NULL;
    pthread_mutex_unlock(&lock);
}

void timer_watch(int begin, int end, void (*done)(void *what, uint64_t ns), void *what)
{
    pthread_mutex_lock(&lock);
    watches[watch_count++] = (struct watch){
        .begin = begin, .end = end, .since_ns = clock_ns(), .done = done, .what = what};
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* Looks at the marks of a watch. Returns whether the watch is finished. */
static bool look(struct watch *w, uint64_t now)
{
    if (w->begin_ns == 0 && *marks[w->begin])
        w->begin_ns = now;
    const bool is_late = now - w->since_ns > LONGEST_NS;
    if (!*marks[w->end] && !is_late)
        return false;
    const uint64_t ns = is_late ? 0 : now - w->begin_ns;
    w->done(w->what, ns);
    if (!is_late) /* the GPU may still write late marks, so they are not used again */
        marks[w->begin] = marks[w->end] = NULL;
    return true;
}

void timer_wait(void)
{
    const uint64_t begin = clock_ns();
    bool is_idle = false;
    while (!is_idle && clock_ns() - begin < LONGEST_WAIT_NS) {
        pthread_mutex_lock(&lock);
        is_idle = watch_count == 0;
        pthread_mutex_unlock(&lock);
        if (!is_idle)
            sched_yield();
    }
}

static void *run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (watch_count == 0)
            (void)pthread_cond_wait(&changed, &lock);
        const uint64_t now = clock_ns();
        for (uint32_t i = 0; i < watch_count;) {
            if (look(&watches[i], now))
                watches[i] = watches[--watch_count];
            else
                i++;
        }
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
    }
    return NULL;
}

enum status timer_start(const struct sanitizer_api *use, struct err *err)
{
    api = use;
    return thread_start(run, "timer", NULL, err);
}
