/* find.h: finds the thread of a GPU, and the GPU of a thread. */
#ifndef REACH_MEASURE_FIND_H
#define REACH_MEASURE_FIND_H

#include "snapshot/snapshot.h"

struct gpu_thread;
struct pipeline;

/* Returns the thread of a GPU, or NULL if it has none. The mutex is held. */
struct gpu_thread *pipeline_find_thread(struct pipeline *p, const char *uuid);
/* Returns the GPU of a thread in a view, or NULL if it is not there. */
const struct snapshot_gpu *gpu_thread_find(const struct gpu_thread *thread,
                                           const struct snapshot *s);

#endif
