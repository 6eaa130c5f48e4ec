/* offline.h: answers from a fingerprint in a file, or from variables of the environment, by the
 * handlers of the daemon (api/handlers) over a snapshot. Does not change once it is open; any
 * thread. */
#ifndef REACH_CLIENTS_C_OFFLINE_H
#define REACH_CLIENTS_C_OFFLINE_H

#include "clients/c/error.h"

#include "api/decode/planner_call.h"
#include "snapshot/snapshot.h"

struct offline {
    enum reach_source source;
    char *name;                /* owned: the path of the file, or "the environment" */
    struct snapshot *snapshot; /* owned: of one GPU, or of all that the environment has */
    uint64_t read_ms;          /* CLOCK_MONOTONIC */
};

/* Reads and checks the file. Errors: REACH_NOT_FOUND, REACH_CORRUPT, REACH_NO_MEMORY. The caller
 * owns `*out`. */
enum reach_status offline_open_file(const char *path, struct offline **out,
                                    struct reach_error *error);

/* What to do about a variable that reachd did not write. */
enum offline_strictness {
    OFFLINE_SKIP,  /* ignore it; if nothing is left, REACH_OK and `*out` is NULL */
    OFFLINE_REFUSE /* REACH_CORRUPT; if there are none, REACH_NOT_FOUND */
};

/* What a scheduler put into the environment of this job: REACH_JOB_0, REACH_JOB_1 and so on, one
 * text per GPU (planner/job_env.h), by CUDA ordinal within the job. Also REACH_NO_MEMORY. */
enum reach_status offline_open_environment(enum offline_strictness strictness, struct offline **out,
                                           struct reach_error *error);
void offline_free(struct offline *take);

/* What a daemon would have sent. */
struct offline_response {
    uint32_t http_status;
    char *body; /* owned, terminated */
    size_t body_bytes;
    const struct snapshot_gpu *gpu; /* that the target names; borrowed */
};

/* REACH_NO_MEMORY; anything else is a response. `call` (NULL: not needed) gets what the planner
 * answered, if its function is called and the status is 200. */
enum reach_status offline_send(const struct offline *offline, const struct reach_request *request,
                               struct planner_call *call, struct offline_response *out,
                               struct reach_error *error);

/* Reads the file again: does it still have this fingerprint of this GPU? REACH_STALE,
 * REACH_WRONG_GPU, and what reading can fail with; REACH_NOT_SUPPORTED for the environment. */
enum reach_status offline_revalidate(const struct offline *offline, const char *gpu_uuid,
                                     const char *fingerprint_id, struct reach_error *error);

#endif
