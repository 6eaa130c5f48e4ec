/* pipeline.h: from probes to published fingerprints, one thread per GPU:
 *
 *     campaign -> worker -> observations -> analysis -> fingerprint -> store -> snapshot
 *         ^________________________|
 *
 * A thread sleeps until a measurement is queued for its GPU; an idle daemon uses no CPU time and
 * holds no GPU. The last good fingerprint stays published if a measurement fails; one that a check
 * found out of date is marked stale. Two threads wake by themselves: that of a GPU that the driver
 * has lost or hangs with polls for it; that of a GPU whose measurement failed tries again after a
 * minute, two, four ... an hour, and if it has a fingerprint, checks it. Any thread may call any
 * function.
 */
#ifndef REACH_MEASURE_PIPELINE_H
#define REACH_MEASURE_PIPELINE_H

#include "fingerprint/fingerprint.h"
#include "snapshot/snapshot.h"
#include "store/store.h"
#include "worker/worker.h"

struct pipeline;

enum measurement_state {
    MEASUREMENT_QUEUED = 0,
    MEASUREMENT_RUNNING,
    MEASUREMENT_DONE,
    MEASUREMENT_FAILED
};
const char *measurement_state_name(enum measurement_state s);

/* A check verifies whether the stored fingerprint is still true (verify.c). */
enum measurement_kind { MEASUREMENT_NEW = 0, MEASUREMENT_CHECK };
const char *measurement_kind_name(enum measurement_kind k); /* "measure", "check" */

struct measurement {
    char id[24]; /* "m-17" */
    char uuid[64];
    enum measurement_kind kind;
    enum depth depth; /* of a measurement */
    enum measurement_state state;
    double progress;   /* 0..1 */
    char message[160]; /* what it does, or how it ended */
    int64_t queued_at; /* wall clock, seconds; 0: not yet */
    int64_t started_at;
    int64_t ended_at;
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* once done: of what is served since */
    char measured_id[FINGERPRINT_ID_BYTES];    /* once done: of the measurement as it was made */
    struct err error;                          /* once failed */
};

struct pipeline_options {
    const char *executable; /* of the worker: "/proc/self/exe"; borrowed until pipeline_stop */
    struct gpu_options gpu; /* its strings are borrowed, too */
    bool measure_unknown;   /* queue a full fingerprint for each GPU that has none that is true */
    bool check_known;       /* on start and when it comes back, check each GPU that has one */
    bool stored_only;       /* publish the GPUs that the store knows; no worker, no thread */
    bool list_lost;         /* list real GPUs that the store knows and the driver does not show */
    bool discover_later;    /* return at once, and look for GPUs in a thread until there are some */
    uint32_t rediscover_ms; /* for a GPU that the driver no longer shows; 0: 30 s */
    uint32_t retry_ms;      /* after a measurement that failed, doubled each time; 0: 60 s */
    uint32_t open_ms;       /* for a worker to open its GPU; 0: 120 s */
    uint32_t grace_ms;      /* for a worker to end; 0: 60 s */
};

/* Lists the GPUs (through a worker), loads what the store knows about them, publishes the first
 * snapshot and starts the threads. A node without a driver is no error: the snapshot says why it is
 * empty (STATUS_NOT_READY while they are being looked for). Borrows `store` and `cell` until
 * pipeline_stop. */
enum status pipeline_start(const struct pipeline_options *options, struct store *store,
                           struct snapshot_cell *cell, struct pipeline **out, struct err *err);

/* Cancels what runs, joins the threads. NULL is fine. */
void pipeline_stop(struct pipeline *take);

/* Queues a measurement. At most 8 wait for one GPU (STATUS_FULL); a queued measurement of the same
 * depth is joined instead of doubled. Never waits for a measurement. STATUS_NOT_FOUND: no such GPU.
 * STATUS_NOT_SUPPORTED: this pipeline measures nothing, or the GPU is divided by MIG. */
enum status pipeline_submit(struct pipeline *p, const char *uuid, enum depth depth,
                            struct measurement *out, struct err *err);

/* Ends a measurement early: a queued one at once, one under way soon, because its worker is
 * cancelled. Either ends as failed with STATUS_CANCELLED. The last good fingerprint stays. `*out`
 * is the measurement as it is now. STATUS_NOT_FOUND; STATUS_CONFLICT: it has ended already. */
enum status pipeline_cancel(struct pipeline *p, const char *id, struct measurement *out,
                            struct err *err);

/* The number of measurements by state; ended ones since the start. */
struct measurement_counts {
    uint64_t queued;
    uint64_t running;
    uint64_t done;
    uint64_t failed;
};
void pipeline_count_measurements(struct pipeline *p, struct measurement_counts *out);

/* Was every thread alive since the last call? Wakes those that sleep, so that they can beat their
 * heartbeats. `*out_stuck` names one that was not ("the thread of GPU 1"), cut at `size`. For one
 * watcher. */
bool pipeline_is_alive(struct pipeline *p, char *out_stuck, size_t size);

/* Asks the driver again which GPUs there are, in a thread of its own: new ones are measured, those
 * that it no longer shows are lost, those that have changed are stale and measured. What failed is
 * tried again now instead of later. Never waits for the driver. For one caller, not while the
 * pipeline stops. STATUS_NO_MEMORY: no thread. */
enum status pipeline_rediscover(struct pipeline *p, struct err *err);

/* Forgets a GPU that the driver does not show: deletes all that is stored about it, and removes it
 * from the list. Waits for the disk. STATUS_NOT_FOUND; STATUS_CONFLICT: it is not lost;
 * STATUS_READ_ONLY. */
enum status pipeline_forget(struct pipeline *p, const char *uuid, struct err *err);

/* The store has lost something, or can be written again: queues a measurement for each GPU whose
 * fingerprint it lacks (with `measure_unknown` alone). */
void pipeline_requeue(struct pipeline *p);

/* State of one measurement. The last 256 are remembered. STATUS_NOT_FOUND. */
enum status pipeline_measurement(struct pipeline *p, const char *id, struct measurement *out,
                                 struct err *err);

#endif
