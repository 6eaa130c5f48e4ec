/* job_measure.c: runs all ways of a job in turn and judges their results (job.h). */
#include "job.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double job_median(const double *values, uint32_t count)
{
    double sorted[JOB_MAX_REPEATS];

    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, by_size);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

uint32_t job_best(const struct job_run *run)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < run->way_count; i++) {
        if (run->ways[i].gbps > run->ways[best].gbps)
            best = i;
    }
    return best;
}

/* What the reference knows, and what the first way found. */
static bool is_right(const struct job_run *run, const struct job_result *found)
{
    for (uint32_t i = 0; i < JOB_RESULTS; i++) {
        if (run->reference_known >> i & 1 && found->number[i] != run->reference.number[i])
            return false;
    }
    return memcmp(found, &run->ways[0].result, sizeof *found) == 0;
}

/* The windows of all passes of a way; the caller frees them. */
static struct job_pass *make_passes(const struct job_run *run, const struct job_way *way,
                                    uint32_t sm_slots)
{
    struct job_pass *passes = calloc(way->pass_count, sizeof *passes);

    for (uint32_t p = 0; passes && p < way->pass_count; p++)
        job_way_pass(way, run->plan, run->bytes, sm_slots, p, &passes[p]);
    return passes;
}

static bool run_way(const struct job *job, struct job_run *run, struct job_way *way,
                    uint32_t sm_slots, uint32_t round, char *why)
{
    struct job_pass *passes = make_passes(run, way, sm_slots);
    struct job_result found;
    double milliseconds = 0;

    memset(&found, 0, sizeof found);
    if (!passes)
        snprintf(why, JOB_TEXT_BYTES, "no memory for %u passes", way->pass_count);
    const bool ran = passes && job->run(job->state, way, passes, &milliseconds, &found, why);

    free(passes);
    if (!ran)
        return false;
    if (round == 0) {
        way->result = found;
        way->right = true;
    } else {
        way->milliseconds[round - 1] = milliseconds;
    }
    way->right = way->right && is_right(run, &found);
    return true;
}

bool job_measure(const struct job *job, struct job_run *run, uint32_t sm_slots, char *why)
{
    for (uint32_t round = 0; round <= run->repeats; round++) {
        for (uint32_t i = 0; i < run->way_count; i++) {
            if (!run_way(job, run, &run->ways[i], sm_slots, round, why))
                return false;
        }
    }
    for (uint32_t i = 0; i < run->way_count; i++) {
        struct job_way *way = &run->ways[i];

        way->median_milliseconds = job_median(way->milliseconds, run->repeats);
        way->gbps = run->useful_bytes / (way->median_milliseconds * 1e6);
    }
    return true;
}
