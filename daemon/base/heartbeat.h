/* heartbeat.h: does a thread still move? Each loop has a heartbeat, which it beats whenever it
 * comes round and while it waits for something slow; whoever watches looks now and then whether
 * there was a beat. A thread that sleeps until it is needed must be woken by its watcher, or it
 * seems dead. */
#ifndef REACH_BASE_HEARTBEAT_H
#define REACH_BASE_HEARTBEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zero it to start. */
struct heartbeat {
    _Atomic uint64_t beats;
    uint64_t seen; /* the watcher's */
};

/* From now on heartbeat_beat in this thread beats `p` (NULL: none). Borrowed. */
void heartbeat_adopt(struct heartbeat *p);
/* Does nothing in a thread without a heartbeat. */
void heartbeat_beat(void);
/* Does this thread have one? */
bool heartbeat_is_watched(void);
/* Was there a beat since the last time it was asked? For one watcher. */
bool heartbeat_is_alive(struct heartbeat *p);

#endif
