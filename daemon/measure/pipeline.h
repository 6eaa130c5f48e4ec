/* pipeline.h: from probes to published fingerprints, one thread per GPU:
 *
 *     campaign -> worker -> observations -> analysis -> fingerprint -> store -> snapshot
 *         ^________________________|
 *
 * A thread sleeps until a measurement is queued for its GPU; an idle daemon uses no CPU time and
 * holds no GPU. The last good fingerprint stays published if a measurement fails. A fingerprint
 * that a check found out of date is marked stale.
 *
 * A GPU without a fingerprint is measured at depth quick, which is enough for a placement, and then
 * at depth full. Each result is published at once.
 *
 * Three kinds of threads wake by themselves. If the driver has lost a GPU or hangs in a call for
 * it, the thread of that GPU polls. The thread of a GPU whose measurement failed measures again
 * after a minute, then after pauses that double up to an hour. If the GPU has a fingerprint, the
 * thread checks it instead. If the measurement failed because other work uses the GPU, the pauses
 * begin with a second and double up to ten minutes, until the fingerprint is complete. With
 * check_every_s, each thread makes quick checks while no other process uses its GPU. Any thread may
 * call any function.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "measure/measurement.h"
#include "snapshot/snapshot.h"
#include "store/store.h"
#include "worker/worker.h"

struct pipeline;

struct pipeline_options {
    const char *executable; /* path of the worker: "/proc/self/exe"; borrowed until pipeline_stop */
    struct gpu_options gpu; /* its strings are borrowed too */
    bool measure_unknown;   /* measure each GPU without a valid and complete fingerprint */
    bool check_known; /* check each GPU that has a fingerprint, on start and when it comes back */
    bool stored_only; /* publish the GPUs of the store, without workers or threads */
    bool list_lost;   /* list real GPUs of the store that the driver does not show */
    uint32_t check_every_s; /* period of the quick checks of idle GPUs; 0 means none */
    uint32_t expected_gpus; /* GPUs that the node must have; 0 means any number */
    bool discover_later;    /* return at once, and look for GPUs in a thread until there are some */
    uint32_t rediscover_ms; /* pause between polls for a lost GPU; 0 means 30 s */
    uint32_t retry_ms;      /* pause after a failed measurement, doubled each time; 0 means 60 s */
    uint32_t busy_ms;       /* the same if other work on the GPU is the reason; 0 means 1 s */
    uint32_t open_ms;       /* time for a worker to open its GPU; 0 means 120 s */
    uint32_t grace_ms;      /* time for a worker to end; 0 means 60 s */
};

/* Lists the GPUs through a worker, loads their fingerprints from the store, publishes the first
 * snapshot and starts the threads. A node without a driver is no error: the snapshot has the reason
 * why it is empty (STATUS_NOT_READY during discovery). Borrows `store` and `cell` until
 * pipeline_stop. */
enum status pipeline_start(const struct pipeline_options *options, struct store *store,
                           struct snapshot_cell *cell, struct pipeline **out, struct err *err);

/* Cancels running measurements and joins the threads. NULL is allowed. */
void pipeline_stop(struct pipeline *take);

/* Queues a measurement. At most 8 measurements wait for one GPU (STATUS_FULL); a queued measurement
 * of the same depth is joined instead of doubled. Never waits for a measurement. Returns
 * STATUS_NOT_FOUND if there is no such GPU. Returns STATUS_NOT_SUPPORTED if this pipeline measures
 * nothing, or the GPU is divided. */
enum status pipeline_submit(struct pipeline *p, const char *uuid, enum depth depth,
                            struct measurement *out, struct err *err);

/* Ends a measurement early. A queued measurement ends at once. A running measurement ends soon,
 * because its worker is cancelled. The measurement has then failed with STATUS_CANCELLED. The last
 * good fingerprint stays. `*out` is the present state of the measurement. Returns STATUS_NOT_FOUND,
 * or STATUS_CONFLICT if it has already ended. */
enum status pipeline_cancel(struct pipeline *p, const char *id, struct measurement *out,
                            struct err *err);

void pipeline_count_measurements(struct pipeline *p, struct measurement_counts *out);

/* Returns whether every thread was alive since the last call. Wakes the threads that sleep, so that
 * they can beat their heartbeats. `*out_stuck` names a thread that was not alive ("the thread of
 * GPU 1"), cut at `size`. Only one thread may call the function. */
bool pipeline_is_alive(struct pipeline *p, char *out_stuck, size_t size);

/* Lists the GPUs of the driver again in a separate thread. New GPUs are measured, missing GPUs are
 * lost, and changed GPUs are stale and measured. Failed measurements are retried now instead of
 * later. Never waits for the driver. Only one thread may call the function, and not while the
 * pipeline stops. Returns STATUS_NO_MEMORY if the thread cannot be made. */
enum status pipeline_rediscover(struct pipeline *p, struct err *err);

/* Forgets a GPU that the driver does not show: deletes its data from the store, and removes it from
 * the list. Waits for the disk. Returns STATUS_NOT_FOUND, STATUS_CONFLICT if it is not lost, or
 * STATUS_READ_ONLY. */
enum status pipeline_forget(struct pipeline *p, const char *uuid, struct err *err);

/* Must be called if the store has lost data or can be written again. Queues a measurement for each
 * GPU whose fingerprint it lacks (only with `measure_unknown`). */
void pipeline_requeue(struct pipeline *p);

/* Reports the state of one measurement. The last 256 measurements are kept. Returns
 * STATUS_NOT_FOUND for an unknown id. */
enum status pipeline_measurement(struct pipeline *p, const char *id, struct measurement *out,
                                 struct err *err);
