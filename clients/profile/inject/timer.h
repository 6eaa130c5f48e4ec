/* timer.h: times launches without waiting for them. A byte of pinned host memory is set in the
 * stream before the launch and another after it, and a thread watches both bytes. So a launch that
 * waits for another launch of the program (NCCL) is not held up. The resolution is some
 * microseconds. */
#ifndef REACH_CLIENTS_PROFILE_INJECT_TIMER_H
#define REACH_CLIENTS_PROFILE_INJECT_TIMER_H

#include "clients/profile/inject/kernels.h"
#include "clients/profile/inject/sanitizer_api.h"

/* Starts the thread. Returns STATUS_NO_MEMORY if the thread cannot be made. */
enum status timer_start(const struct sanitizer_api *api, struct err *err);

/* Puts a mark into the stream and returns its number; -1 if that is not possible. The functions of
 * marks are called in callbacks, on any thread. */
int timer_mark(san_context context, san_stream stream);

/* Returns whether the GPU has reached the mark. */
bool timer_is_reached(int mark);
void timer_free_mark(int mark);

/* Reports the time between two marks to `done`, on the thread of the timer, and frees both. `what`
 * is passed on. A time of 0 means that the marks were not reached within the limit. */
void timer_watch(int begin, int end, void (*done)(void *what, uint64_t ns), void *what);

/* Forgets the memory of a context that is destroyed. */
void timer_forget(san_context context);

/* Waits until nothing is watched, at most a quarter of a second. */
void timer_wait(void);

#endif
