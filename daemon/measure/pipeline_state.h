/* pipeline_state.h: what the threads of a pipeline share. There is one thread per GPU
 * (gpu_thread.h) and one that discovers GPUs (discover.h).
 *
 * The pipeline's mutex guards all that changes: the measurements, the workers under way, and the
 * order of published snapshots. It is never held while a thread waits for a worker or for the disk.
 */
#ifndef REACH_MEASURE_PIPELINE_STATE_H
#define REACH_MEASURE_PIPELINE_STATE_H

#include "measure/discover.h"
#include "measure/gpu_thread.h"
#include "measure/queue.h"

struct pipeline {
    pthread_mutex_t mutex;
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline_options options; /* with defaults instead of zeros */
    bool stopping;
    /* pipeline_merge: starting threads is above the threads, which need it. */
    void (*merge)(struct pipeline *p, struct gpu_listing *listing);
    struct measurement_queue queue;
    struct discovery discovery;
    uint32_t gpu_thread_count; /* places that are or were in use */
    struct gpu_thread threads[2 * REACH_MAX_GPUS];
};

#endif
