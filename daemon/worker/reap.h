/* reap.h: the end of a child process, without waiting for one that hangs in a driver. */
#ifndef REACH_WORKER_REAP_H
#define REACH_WORKER_REAP_H

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Waits at most `ns` for the end of `pid` and reaps it. False: it has not ended. */
bool reap_wait(pid_t pid, nsec_t ns, int *out_status);
/* Is it in uninterruptible sleep (state D), in which SIGKILL has no effect? */
bool reap_is_stuck(pid_t pid);
/* Stops waiting for `pid`; a later reap_leftovers reaps it if it ever ends. */
void reap_abandon(pid_t pid);
/* Is it still one of those? */
bool reap_is_abandoned(pid_t pid);
/* Reaps the abandoned processes that have ended. Any thread. */
void reap_leftovers(void);
/* "was killed by SIGSEGV (Segmentation fault)", "exited with code 3". Returns `out`. */
char *reap_describe(int status, char *out, size_t out_size);

#endif
