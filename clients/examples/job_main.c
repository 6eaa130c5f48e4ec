/* job_main.c: the main program of every job (job.h). */
#include "job.h"

#include "base/output.h"

#include <stdlib.h>

enum { OK = 0, FAILED = 1, WRONG_OPTIONS = 2 };

/* The state that all sizes share. */
struct course {
    const struct job *job;
    const struct job_options *options;
    struct reach *reach;
    char gpu[REACH_UUID_BYTES];
    uint64_t reach_bytes;
    uint32_t sm_slots;
    struct job_run runs[JOB_MAX_SIZES];
};

/* Gets the reach of one group, and the number of SM ids. */
static bool get_fingerprint(struct course *c, char *why)
{
    const struct reach_fingerprint *fingerprint;
    struct reach_answer *answer = NULL;
    struct reach_error error;

    if (reach_get_fingerprint(c->reach, c->gpu, &answer, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    fingerprint = reach_answer_fingerprint(answer);
    c->sm_slots = fingerprint->sm_slots;
    c->reach_bytes = (uint64_t)fingerprint->recommended_bytes.value;
    if (!c->reach_bytes)
        job_fail(why, "the fingerprint of %s has no reach (%s)", c->gpu,
                 fingerprint->recommended_bytes.reason);
    reach_answer_free(answer);
    return c->reach_bytes != 0;
}

static struct reach_job describe(const struct course *c)
{
    struct reach_job request = {.size = sizeof request};

    c->job->describe(c->job->state, c->options, &request);
    return request;
}

/* A plan for another GPU, or from a stale fingerprint, is an error that libreach reports. */
static bool get_plan(const struct course *c, struct job_run *run, char *why)
{
    const struct job_variant *variants =
        c->job->variants ? c->job->variants(c->options) : job_strategies;
    struct reach_job request = describe(c);
    struct reach_error error;

    request.bytes = run->bytes;
    request.in_reach_gbps = run->in_reach_gbps;
    request.scan_gps = run->scan_rate;
    if (reach_get_plan(c->reach, c->gpu, &request, &run->plan, &error) != REACH_OK ||
        (run->repeats && reach_answer_check_gpu(run->plan, c->gpu, &error) != REACH_OK))
        return job_fail(why, "%s", error.text);
    run->choice_count = job_choices_make(variants, run->plan, c->options->strategy, run->choices);
    return run->choice_count > 0 || !c->options->strategy ||
           job_fail(why, "the plan does not consider %s possible", c->options->strategy);
}

static bool calibrate(const struct course *c, struct job_run *run, char *why)
{
    const struct reach_job request = describe(c);
    double in_reach_ms = 0, scan_ms = 0;

    if (!c->job->calibrate(c->job->state, &in_reach_ms, &scan_ms, why))
        return false;
    const uint64_t batches = c->job->batches ? c->job->batches(c->options) : 1;
    const double accesses = (double)request.accesses * (double)batches;
    run->useful_bytes = accesses * request.transaction_bytes;
    run->in_reach_gbps = run->useful_bytes / (in_reach_ms * 1e6);
    run->scan_rate = accesses / (scan_ms * 1e6);
    return true;
}

static bool do_size(const struct course *c, uint32_t i, struct job_run *run, char *why)
{
    run->bytes = c->options->bytes[i];
    if (!c->options->dry_run) {
        run->repeats = c->options->repeats;
        return c->job->prepare(c->job->state, &run->bytes, c->reach_bytes, run, why) &&
               calibrate(c, run, why) && get_plan(c, run, why) &&
               job_measure(c->job, run, c->sm_slots, why);
    }
    if (run->bytes == 0)
        return job_fail(why, "--dry-run requires sizes: add --bytes SIZE");
    return get_plan(c, run, why);
}

static bool all_right(const struct job_run *run)
{
    bool right = true;

    for (uint32_t i = 0; i < run->choice_count && run->repeats; i++)
        right = right && run->choices[i].right;
    return right;
}

static bool do_sizes(struct course *c, char *why)
{
    bool right = true;

    for (uint32_t i = 0; i < c->options->size_count; i++) {
        if (!do_size(c, i, &c->runs[i], why))
            return false;
        job_report(stdout, c->job, c->options, &c->runs[i]);
        fflush(stdout);
        right = right && all_right(&c->runs[i]);
    }
    if (c->options->json &&
        !job_write_json(c->options->json, c->job, c->options, c->runs, c->options->size_count, why))
        return false;
    return right || job_fail(why, "not all strategies computed the same result");
}

static bool open_all(struct course *c, char *why)
{
    struct reach_error error;

    if (reach_open(c->options->uri, &c->reach, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    snprintf(c->gpu, sizeof c->gpu, "%s", c->options->gpu);
    if (!c->options->dry_run &&
        !c->job->open(c->job->state, c->options, atoi(c->options->gpu), c->gpu, why)) // NOLINT
        return false;
    return get_fingerprint(c, why);
}

int job_exit(const char *name, bool good)
{
    return output_exit(name, good ? OK : FAILED, FAILED);
}

int job_main(int argc, char **argv, const struct job *job)
{
    struct job_options options;
    char why[JOB_TEXT_BYTES] = "";

    if (!job_options_parse(argc, argv, job, &options, why)) {
        fprintf(stderr, "%s: %s\n", job->name, why);
        return WRONG_OPTIONS;
    }
    if (options.help) {
        job_options_help(stdout, job);
        return job_exit(job->name, true);
    }
    struct course *c = calloc(1, sizeof *c);

    if (!c) {
        fprintf(stderr, "%s: cannot allocate the job: out of memory\n", job->name);
        return FAILED;
    }
    c->job = job;
    c->options = &options;
    const bool good = open_all(c, why) && do_sizes(c, why);

    if (!good)
        fprintf(stderr, "%s: %s\n", job->name, why);
    if (!options.dry_run)
        job->close(job->state);
    for (uint32_t i = 0; i < JOB_MAX_SIZES; i++)
        reach_answer_free(c->runs[i].plan);
    reach_close(c->reach);
    free(c);
    return job_exit(job->name, good);
}
