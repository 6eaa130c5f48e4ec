/* l1_queue.h: the lines that wait for the data cache of a core. Only the engine includes this
 * header. */
#pragma once

#include "clients/lab/papers/engine/core_state.h"

/* Queues the lines of the warp's instruction whose page is in `pages` (one bit each). The warp is
 * ready when the data of all lines is available and no walk of the warp is pending. */
void lab_l1_queue_add(struct lab_core *c, uint32_t warp, uint32_t pages, bool missed, uint64_t now);

/* Reads queued lines until one misses and no miss register is free. */
void lab_l1_queue_drain(struct lab_core *c);
