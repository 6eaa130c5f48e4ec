/* pipeline_state.h: what the threads of a pipeline share. There is one thread per GPU
 * (gpu_thread.h) and one that discovers GPUs (discover.h).
 *
 * The pipeline's mutex guards all that changes: the measurements, the workers under way, and the
 * order of published snapshots. It is never held while a thread waits for a worker or for the disk.
 */
#ifndef REACH_MEASURE_PIPELINE_STATE_H
#define REACH_MEASURE_PIPELINE_STATE_H

#include "base/clock.h"
#include "base/heartbeat.h"
#include "measure/discover.h"
#include "measure/gpu_thread_publish.h"
#include "measure/queue.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the driver has reported. */
struct gpu_listing {
    uint32_t count;
    struct gpu_listed gpus[REACH_MAX_GPUS];
    uint32_t merged;  /* how many of them are published already */
    uint32_t unnamed; /* devices whose UUID is not known either, */
    struct err why_unnamed;
    bool complete;  /* there are no others */
    struct err why; /* why there is no list; STATUS_OK: there is one */
};

struct gpu_thread {
    struct pipeline *pipeline;
    _Atomic uint32_t index; /* in the newest snapshot */
    struct gpu_identity identity;
    pthread_t pthread;
    bool started;
    bool removed; /* from the snapshot: the thread ends */
    bool ended;   /* it has, and its place may be used again */
    pthread_cond_t wake;
    struct heartbeat heartbeat;
    struct worker *worker;     /* borrowed, while one is under way */
    bool expected;             /* from the store; the driver has not yet said whether it is there */
    bool lost;                 /* the driver did not show or not identify it the last time */
    nsec_t rediscover_at;      /* when to poll for it; 0: not set */
    nsec_t rediscover_pause;   /* before that, doubled each time */
    int hung_pid;              /* of an abandoned worker; 0: none; the thread's own */
    nsec_t retry_at;           /* when to measure again; 0: not set */
    nsec_t retry_pause;        /* before that, doubled each time */
    int slot;                  /* of the measurement under way, or QUEUE_NONE */
    bool cancelled;            /* the measurement under way is to end */
    struct gpu_update pending; /* not published for lack of memory; owns its fingerprint */
};

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
