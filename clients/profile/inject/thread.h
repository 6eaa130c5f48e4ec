/* thread.h: starts the threads of the library in the program's process, and takes locks when
 * the process ends. */
#pragma once

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread that gets no signals of the process, because the program expects its signals on
 * threads of its own. `what` names the thread in messages. If `out_thread` is NULL, the thread is
 * detached; otherwise the caller joins it. Returns STATUS_NO_MEMORY if the thread cannot be made.
 */
enum status thread_start(void *(*run)(void *unused), const char *what, pthread_t *out_thread,
                         struct err *err);

/* Takes a lock at the end of the process. Returns false if the lock is not free for a second,
 * because a handler of a signal that calls exit(3) may have stopped the thread that has it. */
bool thread_lock_at_end(pthread_mutex_t *lock);
