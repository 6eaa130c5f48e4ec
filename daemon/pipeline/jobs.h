/* jobs.h: the table of jobs. A plain structure without a lock: the pipeline holds its own. */
#ifndef REACH_PIPELINE_JOBS_H
#define REACH_PIPELINE_JOBS_H

#include "pipeline/pipeline.h"

enum {
    JOBS_MAX = 256,      /* remembered */
    JOBS_MAX_QUEUED = 8, /* waiting for one GPU */
    JOBS_NONE = -1
};

struct jobs {
    uint64_t last;              /* number of the newest; 0: none yet */
    uint64_t numbers[JOBS_MAX]; /* of the job in each slot; 0: free */
    struct job items[JOBS_MAX];
    uint64_t forgotten_done; /* ended ones whose slot another job has now */
    uint64_t forgotten_failed;
};

/* Makes a queued job, in place of the oldest ended one where the table is full. JOBS_NONE: all of
 * them are still under way. */
int jobs_add(struct jobs *jobs, const char *uuid, enum job_kind kind, enum depth depth,
             int64_t now);
/* Slot of the job with this id, or JOBS_NONE. */
int jobs_find(const struct jobs *jobs, const char *id);
/* Slot of the oldest queued job of this GPU, or JOBS_NONE. */
int jobs_next(const struct jobs *jobs, const char *uuid);
/* Slot of the queued job of this GPU, kind and depth, or JOBS_NONE. */
int jobs_queued_like(const struct jobs *jobs, const char *uuid, enum job_kind kind,
                     enum depth depth);
/* Ends a job that was cancelled; `why` says where. */
void jobs_end_cancelled(struct job *job, const struct err *why, int64_t now);
void jobs_count(const struct jobs *jobs, struct job_counts *out);
/* How many jobs of this GPU are queued. */
uint32_t jobs_queued(const struct jobs *jobs, const char *uuid);

#endif
