/* job.h: what a scheduler put into the environment of this job: REACH_JOB_0, REACH_JOB_1 and so on,
 * one line a GPU (placement/handout.h), in the order in which CUDA numbers the GPUs of the job.
 * Read once, when the handle is opened. Any thread. */
#ifndef REACH_CLIENT_JOB_H
#define REACH_CLIENT_JOB_H

#include "clients/c/offline.h"

struct job;

/* How to take a variable that is not what reachd wrote. */
enum job_manner {
    JOB_IF_ANY, /* as if it were not there; nothing at all is REACH_OK, and `*out` is NULL */
    JOB_MUST    /* REACH_CORRUPT; nothing at all is REACH_NOT_FOUND */
};

/* The caller owns `*out`. Also REACH_NO_MEMORY. */
enum reach_status job_new(enum job_manner manner, struct job **out, struct reach_error *error);
void job_free(struct job *take);

/* The GPU with this UUID, NULL where the environment does not speak of it; borrowed. An index is no
 * UUID: what the daemon and what the job number differs. */
const struct offline *job_find(const struct job *job, const char *uuid);
/* The same for a handle that asks nobody else: an index ("0") is the number behind the name.
 * REACH_NOT_FOUND, REACH_WRONG_GPU. */
enum reach_status job_find_any(const struct job *job, const char *gpu, const struct offline **out,
                               struct reach_error *error);

void job_gpus(const struct job *job, struct reach_gpus *out);

#endif
