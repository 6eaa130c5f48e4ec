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
#include <stdatomic.h>

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

/* What the driver has reported. */
struct gpu_listing {
    uint32_t count;
    struct gpu_listed gpus[REACH_MAX_GPUS];
    uint32_t merged;  /* the first so many are published already */
    uint32_t unnamed; /* devices of which not even the UUID is known, */
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
    bool found;            /* the driver has shown a GPU since the start */
    char failure[400];     /* why there is no list, as it was logged last; the thread's own */
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

/* Lists the GPUs through a worker. Each is published as soon as the driver has identified it.
 * `*slot` is the worker meanwhile, for pipeline_stop to cancel; `*hung_pid` is that of a worker
 * that hangs and is abandoned. The mutex is not held. */
void gpu_thread_list_gpus(struct pipeline *p, struct worker **slot, int *hung_pid,
                          struct gpu_listing *out);

/* The thread of a GPU; NULL if it has none. The mutex is held. (find.c) */
struct gpu_thread *pipeline_thread_of(struct pipeline *p, const char *uuid);
/* The GPU of a thread in a view; NULL if it is not there. */
const struct snapshot_gpu *gpu_thread_find(const struct gpu_thread *thread,
                                           const struct snapshot *s);
/* Wakes all threads: another one may be the one that polls for lost GPUs. The mutex is held. */
void pipeline_wake_all(struct pipeline *p);

/* What the store knows of these GPUs, to be published. The mutex is not held. STATUS_NO_MEMORY. */
enum status pipeline_draft(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count,
                           struct snapshot **out, struct err *err);

/* The state of a GPU that nothing is queued for, by what is known of it. */
enum gpu_state pipeline_idle_state(const struct snapshot_gpu *gpu);
/* Makes the thread of a GPU. The mutex is held. STATUS_NO_MEMORY. */
enum status pipeline_start_thread(struct pipeline *p, const struct gpu_identity *identity,
                                  bool expected, struct err *err);
/* Publishes `take`, and queues what the options want for those of its GPUs that `which` marks. The
 * mutex is held. */
void pipeline_publish_and_queue(struct pipeline *p, struct snapshot *take,
                                const bool which[REACH_MAX_GPUS]);
/* Merges a list of the driver's, which may grow, with what is published. The mutex is not held.
 * (hotplug.c) */
void pipeline_merge(struct pipeline *p, struct gpu_listing *listing);
/* Removes a GPU from a draft and ends its thread. The mutex is held. */
void pipeline_remove(struct pipeline *p, struct snapshot *draft, uint32_t index);
/* Puts the GPUs of a draft into the order of their indices, and `which` as well; tells the threads
 * their new indices. Returns the draft, or another one in its place. The mutex is held. (order.c)
 */
struct snapshot *pipeline_sort(struct pipeline *p, struct snapshot *take,
                               bool which[REACH_MAX_GPUS]);
/* Publishes the GPUs that the store has fingerprints of, until the driver is asked. The mutex is
 * not held. */
enum status pipeline_publish_expected(struct pipeline *p, struct err *err);

/* Asks the driver once. Returns whether there are GPUs. (discover.c) */
bool discover_once(struct pipeline *p);
/* Discovers GPUs in a thread of its own, until there are some. (discover.c) */
enum status discover_start(struct pipeline *p, struct err *err);
/* Publishes the GPUs that the store has fingerprints of. (discover.c) */
enum status discover_stored(struct pipeline *p, struct err *err);

#endif
