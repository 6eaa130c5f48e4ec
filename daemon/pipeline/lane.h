/* lane.h: what the files of this layer share: a lane is one GPU's thread (lane.c), the finder is
 * the one that looks for GPUs (find.c), and a pipeline is all of them (pipeline.c).
 *
 * One mutex guards all that changes: the jobs, the workers under way, and the order of published
 * snapshots. It is never held while something waits: not for a worker, not for the disk.
 */
#ifndef REACH_PIPELINE_LANE_H
#define REACH_PIPELINE_LANE_H

#include "base/clock.h"
#include "base/pulse.h"
#include "pipeline/jobs.h"
#include "pipeline/pipeline.h"

#include <pthread.h>

#define MEASURE_AGAIN_HINT                                                                         \
    "Measure again: POST /v1/gpus/{gpu}/fingerprint, or reachctl fingerprint."

/* What is to change in a published GPU; what is not set stays. */
struct lane_news {
    enum gpu_state state;
    bool has_error;                  /* `error` is news; STATUS_OK inside: none any more */
    bool stale;                      /* the fingerprint there is */
    bool any;                        /* there is news at all */
    struct fingerprint *fingerprint; /* a new one, which is not stale */
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    struct err error;
};

struct lane {
    struct pipeline *pipeline;
    uint32_t index; /* in the snapshot */
    struct gpu_identity identity;
    pthread_t thread;
    bool started;
    pthread_cond_t wake;
    struct pulse pulse;
    struct worker *worker; /* borrowed, while one is under way */
    bool lost;             /* the driver did not show it last time */
    nsec_t look_at;        /* when to look whether it is back; 0: not set */
    int hung_pid;          /* of a worker that was left alone; 0: none */
    nsec_t retry_at;       /* when to measure again what could not be had; 0: not set */
    nsec_t retry_pause;    /* before that, doubled each time */
    int slot;              /* of the job under way, or JOBS_NONE */
    bool cancelled;        /* the job under way is to end */
    struct lane_news owed; /* not published for want of memory; owns its fingerprint */
};

/* The thread that looks for GPUs until there are some, and then ends (find.c). */
struct finder {
    pthread_t thread;
    bool started;
    bool ended;
    pthread_cond_t wake;
    struct pulse pulse;
    struct worker *worker; /* borrowed, while one is under way */
    int hung_pid;          /* of a worker that was left alone; 0: none */
};

struct pipeline {
    pthread_mutex_t mutex;
    struct store *store;
    struct snapshot_cell *cell;
    char *executable;
    struct gpu_options gpu;
    char **simulated; /* owned, NULL-terminated; the list in `gpu` */
    char *libcuda;    /* owned */
    bool stopping;
    bool stored_only;
    bool measure_unknown;
    bool check_known;
    nsec_t look_again_ns;
    nsec_t retry_ns;
    nsec_t open_ns;
    nsec_t grace_ns;
    struct jobs jobs;
    struct finder finder;
    uint32_t lane_count; /* 0, or all: they are started together */
    struct lane lanes[REACH_MAX_GPUS];
};

/* The thread of one lane; `self` is the lane. */
void *lane_main(void *self);

/* Publishes news of this lane, or what is owed. Whoever has the news gives its fingerprint away.
 * The mutex is held. (lane_publish.c) */
void lane_publish(struct lane *lane, const struct lane_news *news);
void lane_publish_owed(struct lane *lane);
/* Frees what it owes. Its thread has ended. */
void lane_forget(struct lane *lane);

/* Queues a job for `lane`, or joins one that waits. The mutex is held. STATUS_FULL. */
enum status lane_queue(struct lane *lane, enum job_kind kind, enum depth depth, struct job *out,
                       struct err *err);

/* Ends the job in `slot`, which is this lane's. The mutex is held. STATUS_CONFLICT: it has ended.
 */
enum status lane_cancel(struct lane *lane, int slot, struct err *err);

/* Asks a worker which GPUs there are, and returns their number. Why there are none is in `*why`.
 * `slot` holds the worker meanwhile, for pipeline_stop to cancel; `*hung_pid` is that of a worker
 * that hangs and is left alone. The mutex is not held. */
uint32_t lane_list_gpus(struct pipeline *p, struct worker **slot, int *hung_pid,
                        struct gpu_identity *out, struct err *why);

/* What is known of these GPUs, to be published; NULL without memory. The mutex is not held. */
struct snapshot *lane_draft(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count);

/* Makes the lanes of these GPUs, publishes what the store knows of them, and queues what is to be
 * done at the start. The mutex is not held. */
enum status lane_start_all(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count,
                           struct err *err);

/* Looks for GPUs, again and again, in a thread of its own. (find.c) */
enum status find_start(struct pipeline *p, struct err *err);
/* Publishes the GPUs that the store has fingerprints of. (find.c) */
enum status find_stored(struct pipeline *p, struct err *err);
/* Publishes why there are no GPUs. (find.c) */
enum status find_publish_none(struct pipeline *p, const struct err *why, struct err *err);

#endif
