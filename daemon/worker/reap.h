/* reap.h: waits for the end of a child process, but not for a process that hangs in a driver. */
#pragma once

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Waits at most `ns` for the end of `pid` and reaps it. Returns false if it has not ended. */
bool reap_wait(pid_t pid, nsec_t ns, int *out_status);
/* Returns whether `pid` is in uninterruptible sleep (state D), in which SIGKILL has no effect. */
bool reap_is_stuck(pid_t pid);
/* Stops waiting for `pid`. A later reap_leftovers reaps it if it ever ends. */
void reap_abandon(pid_t pid);
/* Returns whether `pid` was abandoned and has not been reaped yet. */
bool reap_is_abandoned(pid_t pid);
/* Reaps the abandoned processes that have ended. Any thread may call it. */
void reap_leftovers(void);
/* Writes a text like "was killed by SIGSEGV (Segmentation fault)" or "exited with code 3". Returns
 * `out`. */
char *reap_describe(int status, char *out, size_t out_size);
