/* measure.h: one measurement of one GPU, from the start of a worker to a stored fingerprint. */
#ifndef REACH_MEASURE_MEASURE_H
#define REACH_MEASURE_MEASURE_H

#include "analysis/check.h"
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
    const struct fingerprint *known; /* of this GPU so far; NULL: nothing */
    bool known_stale;                /* a check has found it out of date */
    void *self; /* first argument of the functions below, which are called from the same thread */
    void (*progress)(void *self, double progress, const char *message);
    /* Other threads may cancel `worker` from now until this is called with NULL. False: do not
     * begin, the daemon is stopping. */
    bool (*attach)(void *self, struct worker *worker);
    /* Is the daemon stopping, so that a worker gets little time to end? NULL: never. */
    bool (*stopping)(void *self);
    /* The worker does not end and is abandoned: this process. */
    void (*hung)(void *self, int pid);
    nsec_t open_deadline_ns;
    nsec_t grace_ns; /* for a worker to end */
};

#define MEASURE_GRACE_STOPPING (250 * NSEC_PER_MSEC) /* twice this, and a margin, is a second */

/* Starts a worker for a request, to be ended by measure_abandon also on failure, and opens the GPU.
 */
enum status measure_open(const struct measure_request *request, struct worker **out,
                         struct gpu_identity *identity, struct gpu_limits *limits, struct err *err);
/* Ends the worker of a request. STATUS_OK, or STATUS_GPU_HUNG: it is abandoned, `hung` was called.
 */
enum status measure_abandon(const struct measure_request *request, struct worker *take,
                            struct err *err);

/* The result of a measurement. */
struct measure_result {
    struct fingerprint *known; /* the caller's; of this GPU from now on (knowledge.h) */
    char known_id[FINGERPRINT_ID_BYTES];
    char id[FINGERPRINT_ID_BYTES]; /* of the fingerprint as it was measured */
};

/* Measures, derives, stores. A measurement that contradicts itself (STATUS_DISTURBED) or determines
 * nothing (STATUS_INCONCLUSIVE) is repeated once, and so is one that contradicts what is known; at
 * depth quick, beside other processes, up to eight times within ten seconds. A
 * single probe that is not clean is repeated up to three times before that. `*out` is complete only
 * with STATUS_OK. Every observation is stored, also those of a failed run. */
enum status measure_gpu(const struct measure_request *request, struct measure_result *out,
                        struct err *err);

/* Checks whether the stored fingerprint still describes this GPU, with a few probes in a worker,
 * when the daemon starts and when a GPU comes back. (verify.c)
 *
 * Opens the GPU of `request` (its store and depth are not used), compares its identity, and runs
 * the probes of verify_probes. A probe that is not clean is repeated; a change is checked twice.
 * `*probe_ns` is the time of the first check, without opening the GPU.
 * STATUS_OK: `*out` is complete. Errors are those of the worker; nothing is stored. */
enum status verify_gpu(const struct measure_request *request, const struct fingerprint *fp,
                       struct check *out, nsec_t *probe_ns, struct err *err);

#endif
