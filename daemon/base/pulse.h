/* pulse.h: does a thread still move? Each loop has a pulse, which it beats whenever it comes round
 * and while it waits for something slow; whoever watches looks now and then whether there was a
 * beat. A thread that sleeps until it is needed must be woken by its watcher, or it seems dead. */
#ifndef REACH_BASE_PULSE_H
#define REACH_BASE_PULSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zero it to start. */
struct pulse {
    _Atomic uint64_t beats;
    uint64_t seen; /* the watcher's */
};

/* From now on pulse_beat in this thread beats `p` (NULL: none). Borrowed. */
void pulse_adopt(struct pulse *p);
/* Does nothing in a thread without a pulse. */
void pulse_beat(void);
/* Does this thread have one? */
bool pulse_is_watched(void);
/* Was there a beat since the last time it was asked? For one watcher. */
bool pulse_has_moved(struct pulse *p);

#endif
