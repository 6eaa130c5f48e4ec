/* measure.h: one measurement of one GPU, from the start of a worker to a stored fingerprint. */
#pragma once

#include "analysis/check.h"
#include "analysis/drift.h"
#include "base/clock.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "store/store.h"
#include "worker/worker.h"

struct measure_request {
    const char *executable;
    const struct gpu_options *gpu;
    struct store *store;
    const char *uuid;
    enum depth depth;
    const struct fingerprint *known; /* known results of this GPU; NULL if there are none */
    bool known_stale;                /* a check has found `known` out of date */
    void *self; /* first argument of the functions below, which are called from the same thread */
    void (*progress)(void *self, double progress, const char *message);
    /* Lets other threads cancel `worker` until the function is called with NULL. Returns false if
     * the daemon is stopping, so that the measurement must not begin. */
    bool (*attach)(void *self, struct worker *worker);
    /* Returns whether the daemon is stopping, so that a worker gets little time to end. If it is
     * NULL, the daemon never stops. */
    bool (*stopping)(void *self);
    /* Reports that the worker with process `pid` does not end and is abandoned. */
    void (*hung)(void *self, int pid);
    nsec_t open_deadline_ns;
    nsec_t grace_ns; /* time for a worker to end */
};

/* Twice this time plus a margin is one second. */
#define MEASURE_GRACE_STOPPING (250 * NSEC_PER_MSEC)

/* Starts a worker for a request and opens the GPU. The caller ends the worker with measure_abandon,
 * also on failure. */
enum status measure_open(const struct measure_request *request, struct worker **out,
                         struct gpu_identity *identity, struct gpu_limits *limits, struct err *err);
/* Ends the worker of a request. Returns STATUS_OK, or STATUS_GPU_HUNG if it was abandoned and
 * `hung` was called. */
enum status measure_abandon(const struct measure_request *request, struct worker *take,
                            struct err *err);

/* The result of a measurement. */
struct measure_result {
    struct fingerprint *known; /* memory of the caller; the known results of this GPU from now on */
    char known_id[FINGERPRINT_ID_BYTES];
    char id[FINGERPRINT_ID_BYTES]; /* id of the fingerprint of this measurement alone */
};

/* Measures a GPU, derives its fingerprint and stores both. A measurement is repeated once if it
 * contradicts itself or the known results (STATUS_DISTURBED), or determines nothing
 * (STATUS_INCONCLUSIVE). At depth quick, beside other processes, it is repeated up to eight times
 * within ten seconds. Before that, a probe that is not clean is repeated up to three times. `*out`
 * is complete only with STATUS_OK. Every observation is stored, even in a failed run. */
enum status measure_gpu(const struct measure_request *request, struct measure_result *out,
                        struct err *err);

/* Checks with a few probes in a worker whether the stored fingerprint still describes this GPU. It
 * is used when the daemon starts and when a GPU comes back. (verify.c)
 *
 * Opens the GPU of `request` (its store and depth are not used), compares its identity, and runs
 * the probes of verify_probes. A probe that is not clean is repeated; a change is checked twice.
 * `*probe_ns` is the time of the first check, without opening the GPU. `*out` is complete if it
 * returns STATUS_OK. Errors come from the worker; nothing is stored.
 *
 * A quick check passes `quick`, which is otherwise NULL. It also finds drift (analysis/drift.h), in
 * two looks. `quick->gpu_ns` is the time of all probes, even after a failure. */
struct quick_look {
    struct drift drift;
    nsec_t gpu_ns;
};
enum status verify_gpu(const struct measure_request *request, const struct fingerprint *fp,
                       struct check *out, struct quick_look *quick, nsec_t *probe_ns,
                       struct err *err);
