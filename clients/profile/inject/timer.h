/* timer.h: times launches without waiting for them. A byte of pinned host memory is set in the
 * stream before the launch and another after it, and a thread watches both bytes. So a launch that
 * waits for another launch of the program (NCCL) is not held up. The resolution is some
 * microseconds. All functions may be called on any thread, and in callbacks of the Sanitizer API.
 */
#pragma once

#include "clients/profile/inject/kernels.h"
#include "clients/profile/inject/sanitizer_api.h"

/* Starts the thread. `api` is borrowed for the life of the process. Returns STATUS_NO_MEMORY if the
 * thread cannot be made. */
enum status timer_start(const struct sanitizer_api *api, struct err *err);

/* Puts a mark into the stream and returns its number, which the caller frees; -1 if no mark is
 * free, or if the stream takes none. */
int timer_mark(san_context context, san_stream stream);

/* Returns whether the GPU has reached the mark, or its context is gone. The mark may have been
 * freed. */
bool timer_is_reached(int mark);

/* Returns the present time if timer_is_reached, otherwise 0. */
uint64_t timer_see(int mark);

/* Frees a mark. A mark that the GPU has not reached is used again only after that. -1 is ignored.
 */
void timer_free_mark(int mark);

/* Reports the time between two marks to `done`, on the thread of the timer, and frees both. `what`
 * is passed on. `begin_ns` is what timer_see has returned for the first mark after the launch. If
 * the stream was idle, the launch has begun then, and the thread would see the mark later. A time
 * of 0 means that the marks were not reached within the limit, or that their
 * context is gone. `done` must not call functions of this header. */
void timer_watch(int begin, uint64_t begin_ns, int end, void (*done)(void *what, uint64_t ns),
                 void *what);

/* Forgets the memory of a context that is destroyed. Nothing reads that memory after the return. */
void timer_forget(san_context context);

/* Waits until nothing is watched, at most a quarter of a second. */
void timer_wait(void);

/* Forgets the memory of all contexts, because the process ends. There are no marks from now on. */
void timer_end(void);
