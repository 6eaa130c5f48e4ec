/* offline.h: answers from a fingerprint in a file, or from variables of the environment, by the
 * handlers of the daemon (api/handlers) over a snapshot. An open source does not change, and any
 * thread may use it. */
#pragma once

#include "clients/c/error.h"

#include "api/decode/planner_call.h"
#include "snapshot/snapshot.h"

struct offline {
    enum reach_source source;
    char *name;                /* owned: the path of the file, or "the environment" */
    struct snapshot *snapshot; /* owned; one GPU, or all GPUs of the environment */
    uint64_t read_ms;          /* CLOCK_MONOTONIC */
};

/* Reads and checks the file. Returns REACH_NOT_FOUND, REACH_CORRUPT or REACH_NO_MEMORY on failure.
 * The caller owns `*out`. */
enum reach_status offline_open_file(const char *path, struct offline **out,
                                    struct reach_error *error);

/* The treatment of a variable that reachd did not write. */
enum offline_strictness {
    OFFLINE_SKIP,  /* ignore the variable; if no other is left, return REACH_OK with `*out` NULL */
    OFFLINE_REFUSE /* return REACH_CORRUPT, or REACH_NOT_FOUND if there are no variables */
};

/* Reads the variables that a scheduler set for this job: REACH_JOB_0, REACH_JOB_1 and so on, one
 * text per GPU (planner/job_env.h), by CUDA ordinal within the job. Returns REACH_NO_MEMORY if
 * memory runs out. */
enum reach_status offline_open_environment(enum offline_strictness strictness, struct offline **out,
                                           struct reach_error *error);
void offline_free(struct offline *take);

/* The response that a daemon would have sent. */
struct offline_response {
    uint32_t http_status;
    char *body; /* owned, terminated */
    size_t body_bytes;
    const struct snapshot_gpu *gpu; /* the GPU in the target; borrowed */
};

/* Returns REACH_NO_MEMORY if memory runs out; every other failure is a response. `call` (may be
 * NULL) receives the planner's answer if the request calls the planner and the status is 200. */
enum reach_status offline_send(const struct offline *offline, const struct reach_request *request,
                               struct planner_call *call, struct offline_response *out,
                               struct reach_error *error);

/* Reads the file again and checks that it still contains this fingerprint of this GPU. Returns
 * REACH_STALE, REACH_WRONG_GPU, or an error of reading. Returns REACH_NOT_SUPPORTED for the
 * environment. */
enum reach_status offline_revalidate(const struct offline *offline, const char *gpu_uuid,
                                     const char *fingerprint_id, struct reach_error *error);
