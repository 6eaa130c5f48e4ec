/* pipeline_state.h: the shared state of the threads of a pipeline. There is one thread per GPU
 * (gpu_thread.h) and one thread that discovers GPUs (discover.h).
 *
 * The pipeline's mutex guards all mutable state: the measurements, the running workers, and the
 * order of published snapshots. It is never held while a thread waits for a worker or for the disk.
 */
#pragma once

#include "base/clock.h"
#include "base/heartbeat.h"
#include "measure/discover.h"
#include "measure/gpu_thread_publish.h"
#include "measure/queue.h"

#include <pthread.h>

/* The list of GPUs that the driver reports. */
struct gpu_listing {
    uint32_t count;
    struct gpu_listed gpus[REACH_MAX_GPUS];
    uint32_t merged;  /* number of GPUs that are already published */
    uint32_t unnamed; /* devices without a known UUID */
    struct err why_unnamed;
    bool complete;  /* the list has all GPUs */
    struct err why; /* the reason why there is no list; STATUS_OK if there is one */
};

struct gpu_thread {
    struct pipeline *pipeline;
    _Atomic uint32_t index; /* index in the newest snapshot */
    struct gpu_identity identity;
    pthread_t pthread;
    bool started;
    bool removed; /* removed from the snapshot, so the thread ends */
    bool ended;   /* the thread has ended, and its place may be used again */
    pthread_cond_t wake;
    struct heartbeat heartbeat;
    struct worker *worker;   /* borrowed while a worker is running; otherwise NULL */
    bool expected;           /* listed from the store; the driver has not yet reported on it */
    bool lost;               /* the driver did not show or not identify the GPU the last time */
    nsec_t rediscover_at;    /* time of the next poll; 0 if not set */
    nsec_t rediscover_pause; /* pause before the next poll, doubled each time */
    int hung_pid; /* process of an abandoned worker, 0 if there is none; used by the thread alone */
    nsec_t retry_at;                  /* time of the next measurement; 0 if not set */
    nsec_t retry_pause;               /* pause before the next measurement, doubled each time */
    enum measurement_kind retry_kind; /* what is done at `retry_at` */
    nsec_t check_at;                  /* time of the next quick check; 0 if not set */
    char unchecked[400];              /* reason logged last for a quick check that failed */
    int slot;                         /* slot of the running measurement, or QUEUE_NONE */
    bool cancelled;                   /* the running measurement must end */
    struct gpu_update pending;        /* not published for lack of memory; owns its fingerprint */
};

struct pipeline {
    pthread_mutex_t mutex;
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline_options options; /* zeros are replaced by defaults */
    bool stopping;
    /* The function pipeline_merge. It is a pointer because pipeline_merge starts threads, and the
     * threads call it. */
    void (*merge)(struct pipeline *p, struct gpu_listing *listing);
    struct measurement_queue queue;
    struct discovery discovery;
    uint32_t gpu_thread_count; /* places that are or were in use */
    struct gpu_thread threads[2 * REACH_MAX_GPUS];
};

/* Returns the thread of a GPU, or NULL if it has none. The mutex is held. */
struct gpu_thread *pipeline_find_thread(struct pipeline *p, const char *uuid);
/* Returns the GPU of a thread in a view, or NULL if it is not there. */
const struct snapshot_gpu *gpu_thread_find(const struct gpu_thread *thread,
                                           const struct snapshot *s);
/* Wakes the threads of all GPUs, because another thread may have to poll for lost GPUs. The mutex
 * is held. */
void pipeline_wake_all(struct pipeline *p);
