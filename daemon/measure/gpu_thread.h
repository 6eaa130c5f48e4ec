/* gpu_thread.h: the threads of a pipeline: one per GPU (gpu_thread.c) and one that discovers GPUs
 * (discover.c).
 *
 * The pipeline's mutex guards all that changes: the measurements, the workers under way, and the
 * order of published snapshots. It is never held while a thread waits for a worker or for the disk.
 */
#ifndef REACH_MEASURE_GPU_THREAD_H
#define REACH_MEASURE_GPU_THREAD_H

#include "base/clock.h"
#include "base/heartbeat.h"
#include "measure/queue.h"
#include "measure/pipeline.h"

#include <pthread.h>

#define MEASURE_AGAIN_HINT "Measure again: POST /v1/gpus/{gpu}/measurements, or reachctl measure."

/* A change of a published GPU; what is not set stays. */
struct gpu_update {
    enum gpu_state state;
    bool has_error;                  /* `error` is set; STATUS_OK in it: no error any more */
    bool stale;                      /* the fingerprint there is */
    bool any;                        /* anything is set */
    struct fingerprint *fingerprint; /* a new one, which is not stale */
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    struct err error;
};

struct gpu_thread {
    struct pipeline *pipeline;
    uint32_t index; /* in the snapshot */
    struct gpu_identity identity;
    pthread_t pthread;
    bool started;
    pthread_cond_t wake;
    struct heartbeat heartbeat;
    struct worker *worker;     /* borrowed, while one is under way */
    bool lost;                 /* the driver did not show it the last time */
    nsec_t rediscover_at;      /* when to poll for it; 0: not set */
    int hung_pid;              /* of an abandoned worker; 0: none; the thread's own */
    nsec_t retry_at;           /* when to measure again; 0: not set */
    nsec_t retry_pause;        /* before that, doubled each time */
    int slot;                  /* of the measurement under way, or QUEUE_NONE */
    bool cancelled;            /* the measurement under way is to end */
    struct gpu_update pending; /* not published for lack of memory; owns its fingerprint */
};

/* The thread that discovers GPUs, and ends when there are some; another one for each time that the
 * driver is asked again (discover.c). */
struct discovery {
    pthread_t pthread;
    bool started;
    bool ended;
    pthread_cond_t wake;
    struct heartbeat heartbeat;
    struct worker *worker; /* borrowed, while one is under way */
    int hung_pid;          /* of an abandoned worker; 0: none; the thread's own */
    bool again;            /* the driver is to be asked (again) */
};

struct pipeline {
    pthread_mutex_t mutex;
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline_options options; /* with defaults instead of zeros */
    bool stopping;
    /* pipeline_merge: starting threads is above the threads, which need it. */
    void (*merge)(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count);
    struct measurement_queue queue;
    struct discovery discovery;
    uint32_t gpu_thread_count; /* those of the newest snapshot; never less */
    struct gpu_thread threads[REACH_MAX_GPUS];
};

/* Main function of a GPU's thread; `self` is the struct gpu_thread. */
void *gpu_thread_main(void *self);

/* Publishes `update`, whose fingerprint it takes, or what is pending. The mutex is held.
 * (gpu_thread_publish.c) */
void gpu_thread_publish(struct gpu_thread *thread, const struct gpu_update *update);
void gpu_thread_publish_pending(struct gpu_thread *thread);

/* Queues a measurement for `thread`, or joins one that waits. The mutex is held. STATUS_FULL. */
enum status gpu_thread_queue(struct gpu_thread *thread, enum measurement_kind kind,
                             enum depth depth, struct measurement *out, struct err *err);

/* Ends the measurement in `slot`, which is this thread's. The mutex is held. STATUS_CONFLICT: it
 * has ended.
 */
enum status gpu_thread_cancel(struct gpu_thread *thread, int slot, struct err *err);

/* Lists the GPUs through a worker, and returns their number; if it is 0, `*why` has the reason.
 * `*slot` is the worker meanwhile, for pipeline_stop to cancel; `*hung_pid` is that of a worker
 * that hangs and is abandoned. The mutex is not held. */
uint32_t gpu_thread_list_gpus(struct pipeline *p, struct worker **slot, int *hung_pid,
                              struct gpu_identity *out, struct err *why);

/* What the store knows of these GPUs, to be published. The mutex is not held. STATUS_NO_MEMORY. */
enum status pipeline_draft(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count,
                           struct snapshot **out, struct err *err);

/* The state of a GPU that nothing is queued for, by what is known of it. */
enum gpu_state pipeline_idle_state(const struct snapshot_gpu *gpu);
/* Makes the thread of GPU `index`, the next one. The mutex is held. STATUS_NO_MEMORY. */
enum status pipeline_start_thread(struct pipeline *p, uint32_t index,
                                  const struct gpu_identity *identity, struct err *err);
/* Publishes `take`, and queues what the options want for those of its GPUs that `which` marks. The
 * mutex is held. */
void pipeline_publish_and_queue(struct pipeline *p, struct snapshot *take,
                                const bool which[REACH_MAX_GPUS]);
/* Merges a new list of the driver's with what is published. The mutex is not held. (arrivals.c) */
void pipeline_merge(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count);

/* Makes the threads of these GPUs, publishes what the store knows of them, and queues what is to be
 * done at the start. The mutex is not held. */
enum status pipeline_start_threads(struct pipeline *p, const struct gpu_identity *gpus,
                                   uint32_t count, struct err *err);

/* Discovers GPUs in a thread of its own, until there are some. (discover.c) */
enum status discover_start(struct pipeline *p, struct err *err);
/* Publishes the GPUs that the store has fingerprints of. (discover.c) */
enum status discover_stored(struct pipeline *p, struct err *err);
/* Publishes why there are no GPUs. (discover.c) */
enum status discover_publish_none(struct pipeline *p, const struct err *why, struct err *err);

#endif
