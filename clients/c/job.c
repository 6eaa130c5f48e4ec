/* job.c: see job.h. */
#include "clients/c/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct offline *gpus[REACH_GPU_SLOTS]; /* owned, by number; NULL: no line for it */
};

/* Reads one variable, if there is one. */
static enum reach_status read_one(struct job *job, unsigned number, enum job_manner manner,
                                  struct reach_error *error)
{
    enum reach_status status;
    const char *line;
    char name[32];

    snprintf(name, sizeof(name), "REACH_JOB_%u", number);
    line = getenv(name);
    if (!line || !*line)
        return REACH_OK;
    status = offline_new_line(name, line, &job->gpus[number], error);
    return status == REACH_CORRUPT && manner == JOB_IF_ANY ? REACH_OK : status;
}

enum reach_status job_new(enum job_manner manner, struct job **out, struct reach_error *error)
{
    struct job *job = calloc(1, sizeof(*job));
    enum reach_status status = REACH_OK;
    bool any = false;

    *out = NULL;
    if (!job)
        return fail_with(error, REACH_NO_MEMORY, "no memory for a handle");
    for (unsigned i = 0; i < REACH_GPU_SLOTS && status == REACH_OK; i++) {
        status = read_one(job, i, manner, error);
        any = any || job->gpus[i];
    }
    if (status == REACH_OK && !any && manner == JOB_MUST)
        status = fail_with(error, REACH_NOT_FOUND,
                           "the environment has no REACH_JOB_0: no scheduler asked reachd for this "
                           "job");
    if (status == REACH_OK && any)
        *out = job;
    else
        job_free(job);
    return status;
}

void job_free(struct job *take)
{
    if (!take)
        return;
    for (unsigned i = 0; i < REACH_GPU_SLOTS; i++)
        offline_free(take->gpus[i]);
    free(take);
}

const struct offline *job_find(const struct job *job, const char *uuid)
{
    for (unsigned i = 0; i < REACH_GPU_SLOTS; i++) {
        if (job->gpus[i] && offline_is(job->gpus[i], uuid))
            return job->gpus[i];
    }
    return NULL;
}

enum reach_status job_find_any(const struct job *job, const char *gpu, const struct offline **out,
                               struct reach_error *error)
{
    const bool is_index = gpu[strspn(gpu, "0123456789")] == '\0';
    const unsigned long index =
        is_index && strlen(gpu) <= 4 ? strtoul(gpu, NULL, 10) : (unsigned long)REACH_GPU_SLOTS;

    *out = index < REACH_GPU_SLOTS ? job->gpus[index] : job_find(job, gpu);
    if (*out)
        return REACH_OK;
    if (is_index)
        return fail_with(error, REACH_NOT_FOUND, "the environment has no REACH_JOB_%s", gpu);
    return fail_with(error, REACH_WRONG_GPU, "the environment does not speak of %s", gpu);
}

void job_gpus(const struct job *job, struct reach_gpus *out)
{
    for (uint32_t i = 0; i < REACH_GPU_SLOTS; i++) {
        if (!job->gpus[i])
            continue;
        offline_gpus(job->gpus[i], out);
        out->gpu[out->count - 1].index = i;
    }
}
