/* timer.c: marks in streams, and the thread that watches them. */
#include "clients/profile/inject/timer.h"

#include "base/clock.h"
#include "clients/profile/inject/thread.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>

enum { MARKS = 256, CONTEXTS = 16, WATCHES = MARKS / 2 };
#define LONGEST_NS      (20 * NSEC_PER_SEC)
#define LONGEST_WAIT_NS (250 * NSEC_PER_MSEC)

struct watch { /* owns two marks */
    int begin, end;
    uint64_t since_ns, begin_ns; /* begin_ns is 0 until the first mark is reached */
    void (*done)(void *what, uint64_t ns);
    void *what;
};

static const struct sanitizer_api *api;
/* Never held in a call of the API. Threads spin for it, because the timer holds it often. */
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct watch watches[WATCHES];
static uint32_t watch_count;
static struct {
    san_context context;          /* NULL is free */
    _Atomic unsigned char *bytes; /* MARKS bytes of pinned memory */
} contexts[CONTEXTS];
static struct {
    _Atomic unsigned char *byte; /* NULL if the mark was never used, or if its context is gone */
    bool is_owned;
    unsigned uses;
} marks[MARKS];
static bool has_ended;

/* ---- with the lock ---- */

/* Returns the number of the present use of a mark. */
static int get_number(int i)
{
    return (int)(marks[i].uses % (INT_MAX / MARKS)) * MARKS + i;
}

static bool has_byte(int mark)
{
    return get_number(mark % MARKS) == mark && marks[mark % MARKS].byte;
}

/* A mark that is used again was reached. */
static bool is_reached(int mark)
{
    return !has_byte(mark) || *marks[mark % MARKS].byte != 0;
}

static void free_mark(int mark)
{
    if (get_number(mark % MARKS) == mark)
        marks[mark % MARKS].is_owned = false;
}

static _Atomic unsigned char *find_bytes(san_context context)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context == context)
            return contexts[i].bytes;
    }
    return NULL;
}

static bool add_bytes(san_context context, void *bytes)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if (!contexts[i].context) {
            contexts[i].context = context;
            contexts[i].bytes = bytes;
            return true;
        }
    }
    return false;
}

static void forget(int context)
{
    _Atomic unsigned char *const bytes = contexts[context].bytes;
    for (int i = 0; i < MARKS; i++) {
        if (marks[i].byte == bytes + i)
            marks[i].byte = NULL;
    }
    contexts[context].context = NULL;
}

/* Looks at the marks of a watch. Returns whether the watch is finished. */
static bool look(struct watch *w, uint64_t now)
{
    if (w->begin_ns == 0 && is_reached(w->begin))
        w->begin_ns = now;
    const bool is_lost = !has_byte(w->end) || now - w->since_ns > LONGEST_NS;
    if (!is_lost && !is_reached(w->end))
        return false;
    w->done(w->what, is_lost ? 0 : now - w->begin_ns);
    free_mark(w->begin);
    free_mark(w->end);
    return true;
}

static void look_at_all(void)
{
    const uint64_t now = clock_monotonic();
    for (uint32_t i = 0; i < watch_count;) {
        if (look(&watches[i], now))
            watches[i] = watches[--watch_count];
        else
            i++;
    }
}

/* ---- marks ---- */

/* Takes a free mark of a context; -1 if there is none. */
static int take_mark(san_context context, _Atomic unsigned char **out_byte)
{
    int mark = -1;
    pthread_mutex_lock(&lock);
    _Atomic unsigned char *const bytes = find_bytes(context);
    for (int i = 0; i < MARKS && bytes && mark < 0; i++) {
        if (!marks[i].is_owned && is_reached(get_number(i))) {
            marks[i].uses++;
            marks[i].is_owned = true;
            mark = get_number(i);
            marks[i].byte = *out_byte = bytes + i;
            *marks[i].byte = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return mark;
}

/* Allocates the pinned bytes of a context. Returns false if the context has some already. Of
 * threads that come at the same time, one allocates and the others get false. */
static bool make_bytes(san_context context)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    void *bytes = NULL;
    if (pthread_mutex_trylock(&making) != 0)
        return false;
    pthread_mutex_lock(&lock);
    const bool is_wanted = !has_ended && !find_bytes(context);
    pthread_mutex_unlock(&lock);
    bool good = is_wanted && api->alloc_host(context, &bytes, MARKS) == 0;
    if (good) {
        pthread_mutex_lock(&lock);
        good = add_bytes(context, bytes);
        pthread_mutex_unlock(&lock);
        if (!good)
            (void)api->free_host(context, bytes);
    }
    pthread_mutex_unlock(&making);
    return good;
}

int timer_mark(san_context context, san_stream stream)
{
    _Atomic unsigned char *byte = NULL;
    int mark = take_mark(context, &byte);
    if (mark < 0 && make_bytes(context))
        mark = take_mark(context, &byte);
    if (mark >= 0 && api->memset((void *)(uintptr_t)byte, 1, 1, stream) != 0) {
        pthread_mutex_lock(&lock);
        marks[mark % MARKS].byte = NULL; /* the GPU does not write it */
        free_mark(mark);
        pthread_mutex_unlock(&lock);
        mark = -1;
    }
    return mark;
}

bool timer_is_reached(int mark)
{
    pthread_mutex_lock(&lock);
    const bool reached = is_reached(mark);
    pthread_mutex_unlock(&lock);
    return reached;
}

uint64_t timer_see(int mark)
{
    return timer_is_reached(mark) ? clock_monotonic() : 0;
}

void timer_free_mark(int mark)
{
    if (mark < 0)
        return;
    pthread_mutex_lock(&lock);
    free_mark(mark);
    pthread_mutex_unlock(&lock);
}

void timer_forget(san_context context)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context == context)
            forget(i);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- watches ---- */

void timer_watch(int begin, uint64_t begin_ns, int end, void (*done)(void *what, uint64_t ns),
                 void *what)
{
    pthread_mutex_lock(&lock);
    watches[watch_count++] = (struct watch){.begin = begin,
                                            .end = end,
                                            .since_ns = clock_monotonic(),
                                            .begin_ns = begin_ns,
                                            .done = done,
                                            .what = what};
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

void timer_wait(void)
{
    const uint64_t begin = clock_monotonic();
    bool is_idle = false;
    while (!is_idle && clock_monotonic() - begin < LONGEST_WAIT_NS) {
        pthread_mutex_lock(&lock);
        is_idle = watch_count == 0;
        pthread_mutex_unlock(&lock);
        if (!is_idle)
            sched_yield();
    }
}

void timer_end(void)
{
    if (!thread_lock_at_end(&lock))
        return;
    has_ended = true;
    for (int i = 0; i < CONTEXTS; i++)
        forget(i);
    pthread_mutex_unlock(&lock);
}

static void *run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (watch_count == 0)
            (void)pthread_cond_wait(&changed, &lock);
        look_at_all();
        pthread_mutex_unlock(&lock);
        sched_yield(); /* others can take the lock */
        pthread_mutex_lock(&lock);
    }
    return NULL;
}

enum status timer_start(const struct sanitizer_api *use, struct err *err)
{
    api = use;
    return thread_start(run, "timer", NULL, err);
}
