/* jobs.c: the table of jobs. 256 slots, searched from one end to the other: a submission is rare
 * and a look at 256 small numbers is nothing beside it. See jobs.h. */
#include "pipeline/jobs.h"

#include <stdio.h>
#include <string.h>

static bool jobs_ended(const struct job *job)
{
    return job->state == JOB_DONE || job->state == JOB_FAILED;
}

const char *job_state_name(enum job_state s)
{
    static const char *const names[] = {[JOB_QUEUED] = "queued",
                                        [JOB_RUNNING] = "running",
                                        [JOB_DONE] = "done",
                                        [JOB_FAILED] = "failed"};

    return (unsigned)s < sizeof names / sizeof names[0] ? names[s] : "unknown";
}

const char *job_kind_name(enum job_kind k)
{
    return k == JOB_CHECK ? "check" : "measure";
}

int jobs_add(struct jobs *jobs, const char *uuid, enum job_kind kind, enum depth depth, int64_t now)
{
    int slot = JOBS_NONE;

    for (int i = 0; i < JOBS_MAX; i++) {
        if (jobs->numbers[i] == 0) {
            slot = i;
            break;
        }
        if (jobs_ended(&jobs->items[i]) &&
            (slot == JOBS_NONE || jobs->numbers[i] < jobs->numbers[slot])) {
            slot = i;
        }
    }
    if (slot == JOBS_NONE) {
        return JOBS_NONE;
    }
    struct job *job = &jobs->items[slot];

    if (jobs->numbers[slot] != 0) {
        jobs->forgotten_done += job->state == JOB_DONE;
        jobs->forgotten_failed += job->state == JOB_FAILED;
    }
    jobs->numbers[slot] = ++jobs->last;
    *job = (struct job){.kind = kind, .depth = depth, .state = JOB_QUEUED, .queued_at = now};
    snprintf(job->id, sizeof job->id, "job-%llu", (unsigned long long)jobs->last);
    snprintf(job->uuid, sizeof job->uuid, "%s", uuid);
    snprintf(job->sentence, sizeof job->sentence, "waiting for its turn");
    return slot;
}

int jobs_find(const struct jobs *jobs, const char *id)
{
    for (int i = 0; i < JOBS_MAX; i++) {
        if (jobs->numbers[i] != 0 && strcmp(jobs->items[i].id, id) == 0) {
            return i;
        }
    }
    return JOBS_NONE;
}

static bool jobs_waits(const struct jobs *jobs, int slot, const char *uuid)
{
    return jobs->numbers[slot] != 0 && jobs->items[slot].state == JOB_QUEUED &&
           strcmp(jobs->items[slot].uuid, uuid) == 0;
}

int jobs_next(const struct jobs *jobs, const char *uuid)
{
    int slot = JOBS_NONE;

    for (int i = 0; i < JOBS_MAX; i++) {
        if (jobs_waits(jobs, i, uuid) &&
            (slot == JOBS_NONE || jobs->numbers[i] < jobs->numbers[slot])) {
            slot = i;
        }
    }
    return slot;
}

int jobs_queued_like(const struct jobs *jobs, const char *uuid, enum job_kind kind,
                     enum depth depth)
{
    for (int i = 0; i < JOBS_MAX; i++) {
        if (jobs_waits(jobs, i, uuid) && jobs->items[i].kind == kind &&
            jobs->items[i].depth == depth) {
            return i;
        }
    }
    return JOBS_NONE;
}

void jobs_end_cancelled(struct job *job, const struct err *why, int64_t now)
{
    job->state = JOB_FAILED;
    job->ended_at = now;
    job->error = *why;
    snprintf(job->sentence, sizeof job->sentence, "%.150s", why->text);
}

void jobs_count(const struct jobs *jobs, struct job_counts *out)
{
    *out = (struct job_counts){.done = jobs->forgotten_done, .failed = jobs->forgotten_failed};
    for (int i = 0; i < JOBS_MAX; i++) {
        if (jobs->numbers[i] == 0) {
            continue;
        }
        const enum job_state state = jobs->items[i].state;

        out->queued += state == JOB_QUEUED;
        out->running += state == JOB_RUNNING;
        out->done += state == JOB_DONE;
        out->failed += state == JOB_FAILED;
    }
}

uint32_t jobs_queued(const struct jobs *jobs, const char *uuid)
{
    uint32_t count = 0;

    for (int i = 0; i < JOBS_MAX; i++) {
        count += jobs_waits(jobs, i, uuid);
    }
    return count;
}
