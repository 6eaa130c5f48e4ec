/* writer.h: the thread that writes what was recorded: a trace (.rlt) of each recorded launch, and
 * recording-PID.json, which is written anew each second while something changes, so that a program
 * that is killed leaves one. The thread uses the driver only to describe GPUs and memory. */
#pragma once

#include "clients/profile/inject/recorder.h"

/* Starts the thread. `folder` is copied, because a program may change its environment. Returns
 * STATUS_NO_MEMORY if the thread cannot be made. */
enum status writer_start(const char *folder, struct err *err);

/* Queues a recorded launch. Waits while several are queued, because each takes some 40 MiB. */
void writer_add(struct recorded *take);

/* Reports in one sentence why nothing is recorded. `why` is copied. */
void writer_problem(const char *why);

/* Counts a reset of a GPU by the program, and waits up to a second until the file has it, because
 * programs call _exit after a reset. */
void writer_count_reset(void);

/* Writes the rest, and ends the thread. Returns after 31 seconds at the latest, also in a handler
 * of a signal. If the lock is not free, the recording that was written last stays. */
void writer_end(void);
