/* heartbeat.h: detects threads that hang. Each loop beats its heartbeat in every round and during
 * slow waits. A watcher checks from time to time whether there was a beat. The watcher must wake a
 * thread that sleeps until it is needed, or the thread seems dead. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The caller zeroes it before the first use. */
struct heartbeat {
    _Atomic uint64_t beats;
    uint64_t seen; /* beats at the last check; used by the watcher only */
};

/* From now on heartbeat_beat in this thread beats `p`, which is borrowed. NULL means that the
 * thread no longer has a heartbeat. */
void heartbeat_adopt(struct heartbeat *p);
/* Beats the heartbeat of this thread, if it has one. */
void heartbeat_beat(void);
/* Returns whether this thread has a heartbeat. */
bool heartbeat_is_watched(void);
/* Returns whether there was a beat since the last call. Only one watcher may call it. */
bool heartbeat_is_alive(struct heartbeat *p);
