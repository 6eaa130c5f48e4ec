/* thread.c: see thread.h. */
#include "clients/profile/inject/thread.h"

#include "base/clock.h"

#include <signal.h>
#include <string.h>
#include <time.h>

enum status thread_start(void *(*run)(void *unused), const char *what, pthread_t *out_thread,
                         struct err *err)
{
    sigset_t all, before;
    pthread_t thread;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int e = pthread_create(&thread, NULL, run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e)
        return err_set(err, STATUS_NO_MEMORY, "cannot start the %s: %s", what, strerror(e));
    if (out_thread)
        *out_thread = thread;
    else
        (void)pthread_detach(thread);
    return STATUS_OK;
}

bool thread_lock_at_end(pthread_mutex_t *lock)
{
    const uint64_t begin = clock_monotonic();
    bool is_locked = pthread_mutex_trylock(lock) == 0;

    while (!is_locked && clock_monotonic() - begin < NSEC_PER_SEC) {
        nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_MSEC}, NULL);
        is_locked = pthread_mutex_trylock(lock) == 0;
    }
    return is_locked;
}
