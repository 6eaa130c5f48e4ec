/* thread.c: see thread.h. */
#include "clients/profile/inject/thread.h"

#include <signal.h>
#include <string.h>

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
